"""The gateway's URL and the caller's credentials: the operator key or a tenant's key."""

import os
from pathlib import Path
from urllib.parse import quote, urlsplit

from gateway.app.local.loopback import is_loopback
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_FOLDER = Path(".gateway")
OPERATOR_KEY_FILE = "operator-key"
_NO_SEGMENTS = frozenset({"", ".", ".."})


def check_url(url: str) -> str:
    """Return the URL without trailing slashes.

    Raises:
        Failure: it is not an http or https URL.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise Failure(f"{url!r} is not an http or https URL", ExitCode.USAGE)
    return url.rstrip("/")


def mcp_url(url: str, tenant: str, profile: str | None = None) -> str:
    """Return the MCP URL of a tenant, or of one of its profiles.

    Raises:
        Failure: a name cannot be a path segment.
    """
    return "/".join((url, "t", *(segment_of(name) for name in (tenant, profile) if name is not None), "mcp"))


def segment_of(name: str) -> str:
    """Quote the name as one path segment.

    Raises:
        Failure: the name is empty or a dot segment, which stays relative even when quoted (RFC 3986).
    """
    if name in _NO_SEGMENTS:  # guard: cli-one-segment
        raise Failure(f"invalid name {name!r}", ExitCode.USAGE)
    return quote(name, safe="")


def find_admin_key(url: str, *, given: str | None, folder: Path, stored: str | None = None) -> str:
    """Find the key for the admin API.

    In order of precedence: the given key, `GATEWAY_OPERATOR_KEY`, the file in `GATEWAY_OPERATOR_KEY_FILE`, the operator
    key in the data folder if the URL is loopback and no context has a key, `GATEWAY_KEY`, the stored key of the
    context. Of several operator keys, the first is used.

    Raises:
        Failure: there is no key, or it cannot be a header value, or the named file cannot be read.
    """
    keys = os.environ.get("GATEWAY_OPERATOR_KEY") or _read_named_file() or ""
    keys = keys or (None if stored else _read_operator_key(url, folder)) or ""
    key = given or keys.replace("\n", ",").split(",")[0] or os.environ.get("GATEWAY_KEY") or stored
    if not key:
        hint = f" or run where {folder / OPERATOR_KEY_FILE} is" if is_loopback(url) else ""
        reason = f"no credential: set GATEWAY_OPERATOR_KEY, give --key, sign in with `gateway login`{hint}"
        raise Failure(reason, ExitCode.DENIED)
    return check_key(key)


def find_key(given: str | None, *, stored: str | None = None) -> str:
    """Find the key for a tenant's MCP URL: the given key, `GATEWAY_KEY`, or the stored key of the context.

    Raises:
        Failure: there is no key, or it cannot be a header value.
    """
    key = given or os.environ.get("GATEWAY_KEY") or stored
    if not key:
        raise Failure("no credential: set GATEWAY_KEY, give --key or sign in with `gateway login`", ExitCode.DENIED)
    return check_key(key)


def check_key(key: str) -> str:
    """Return the key without surrounding white space.

    Raises:
        Failure: the key cannot be a header value.
    """
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise Failure("the key contains invalid characters", ExitCode.USAGE)
    return key


def _read_named_file() -> str | None:
    """Read the key from the file that `GATEWAY_OPERATOR_KEY_FILE` names, as containers pass secrets."""
    path = os.environ.get("GATEWAY_OPERATOR_KEY_FILE")
    try:
        return Path(path).read_text(encoding="ascii").strip() if path else None
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"GATEWAY_OPERATOR_KEY_FILE: {path} cannot be read: {error}", ExitCode.DENIED) from None


def _read_operator_key(url: str, folder: Path) -> str | None:
    if not is_loopback(url):
        return None
    try:
        return (folder / OPERATOR_KEY_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
