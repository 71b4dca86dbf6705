"""Where the gateway is and what this person may show there: URLs, the operator key, a tenant's key."""

import ipaddress
import os
from pathlib import Path
from urllib.parse import quote, urlsplit

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_FOLDER = Path(".gateway")
OPERATOR_KEY_FILE = "operator-key"
_NO_SEGMENTS = frozenset({"", ".", ".."})


def check_url(url: str) -> str:
    """The URL without a trailing slash.

    Raises:
        Failure: it is no http or https URL.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise Failure(f"{url!r} is no http or https URL", ExitCode.USAGE)
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether the URL names this machine itself."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def mcp_url(url: str, tenant: str) -> str:
    """The URL of a tenant that an MCP client is pointed at.

    Raises:
        Failure: the tenant cannot stand in a path.
    """
    return f"{url}/t/{segment_of(tenant)}/mcp"


def segment_of(name: str) -> str:
    """The name as one segment of a path, whatever it holds.

    Raises:
        Failure: it is empty or dots that lead out of the path, as RFC 3986 reads them, quoted or not.
    """
    if name in _NO_SEGMENTS:
        raise Failure(f"{name!r} names nothing", ExitCode.USAGE)
    return quote(name, safe="")


def find_admin_key(url: str, *, given: str | None, folder: Path) -> str:
    """The key for the admin API: given, the operator's from the environment or, on this machine, from its file.

    Raises:
        Failure: there is none; the message says how to give one.
    """
    key = given or os.environ.get("GATEWAY_OPERATOR_KEY") or _read_named_file() or _read_operator_key(url, folder)
    key = key or os.environ.get("GATEWAY_KEY")
    if not key:
        hint = f" or run where {folder / OPERATOR_KEY_FILE} is" if is_loopback(url) else ""
        raise Failure(f"no credential: set GATEWAY_OPERATOR_KEY, give --key{hint}", ExitCode.DENIED)
    return check_key(key)


def find_key(given: str | None) -> str:
    """The key for a tenant's MCP URL: given, or the environment's.

    Raises:
        Failure: there is none.
    """
    key = given or os.environ.get("GATEWAY_KEY")
    if not key:
        raise Failure("no credential: set GATEWAY_KEY or give --key", ExitCode.DENIED)
    return check_key(key)


def check_key(key: str) -> str:
    """The key without surrounding space.

    Raises:
        Failure: it cannot stand in a header.
    """
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise Failure("the key holds characters that no key has", ExitCode.USAGE)
    return key


def _read_named_file() -> str | None:
    """The key in the file that the environment names, where a container has its secrets."""
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
