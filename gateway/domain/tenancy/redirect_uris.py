"""Redirect URIs of clients: validation, comparison, and the part that is displayed to a person.

Accepted are https, http at the client's own machine (RFC 8252 section 7.3), and private-use schemes (section 7.1).
"""

import re
from urllib.parse import urlsplit

from gateway.domain.tenancy.limits import MAX_REDIRECT_URI_LENGTH

_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?(/[^?#]*)?(\?[^#]*)?")
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_HOST = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,60}")
_KNOWN_CLIENT_SCHEMES = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf", "zed"})
"""Schemes without a period, contrary to RFC 8252, of widely used MCP clients."""
_NEVER = frozenset(
    {
        "about",
        "blob",
        "chrome",
        "data",
        "file",
        "filesystem",
        "ftp",
        "intent",
        "javascript",
        "mailto",
        "ms-msdt",
        "resource",
        "search-ms",
        "tel",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    }
)
"""Schemes that run code, or belong to a browser or the operating system."""


def fault_of(uri: str, *, is_trusted: bool) -> str | None:
    """Return the reason why a redirect URI is invalid; None if it is valid.

    `is_trusted` is True for a client that an administrator registers, which may have any private-use scheme.
    """
    if not 0 < len(uri) <= MAX_REDIRECT_URI_LENGTH or not _VISIBLE_ASCII.fullmatch(uri):
        return f"must have 1 to {MAX_REDIRECT_URI_LENGTH} visible ASCII characters"
    try:
        parts = urlsplit(uri)
        has_user = parts.username is not None or parts.password is not None
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "must be a valid URI"
    if "#" in uri or has_user:
        return "must have neither a fragment nor a user name"
    if parts.scheme == "https":
        return None if _HOST.fullmatch(_authority(host)) else "must name a host in ASCII"
    if parts.scheme == "http":
        return None if _LOOPBACK.fullmatch(uri) else "must be https, or http at 127.0.0.1, [::1] or localhost"
    if parts.scheme in _NEVER or not _SCHEME.fullmatch(parts.scheme):  # guard: redirect-scheme
        return "must have a scheme of the client's own"
    if not is_trusted and "." not in parts.scheme and parts.scheme not in _KNOWN_CLIENT_SCHEMES:
        return "must have a scheme with a period (RFC 8252 section 7.1), such as com.example.app"
    return None


def check_own(uri: str) -> str:
    """Return the URI if an administrator may register it.

    Raises:
        ValueError: it is invalid.
    """
    if (fault := fault_of(uri, is_trusted=True)) is not None:
        raise ValueError(fault)
    return uri


def is_registered(requested: str, registered: tuple[str, ...]) -> bool:
    """True if a requested URI equals a registered one, except for the port at the client's own machine."""
    if requested in registered:
        return True
    own = _LOOPBACK.fullmatch(requested)
    if own is None:  # guard: redirect-exact
        return False
    return any(
        (found := _LOOPBACK.fullmatch(each)) is not None and found.groups() == own.groups() for each in registered
    )


def is_native(uri: str) -> bool:
    """True for a URI of a program on the person's machine, whose identity no host name confirms."""
    return urlsplit(uri).scheme != "https"


def host_of(uri: str) -> str:
    """Return the part to display: host and port of an https URI, the loopback host, or a private-use scheme."""
    parts = urlsplit(uri)
    if parts.scheme == "https":
        host = _authority(parts.hostname or "")
        return host if parts.port in {None, 443} else f"{host}:{parts.port}"
    return _authority(parts.hostname or "") if parts.scheme == "http" else f"{parts.scheme}:"


def form_source_of(uri: str) -> str:
    """Return the source expression with which a Content Security Policy permits forms to redirect to a URI."""
    parts = urlsplit(uri)
    if parts.scheme not in {"http", "https"} or "[" in parts.netloc:  # a source expression has no IPv6 address
        return f"{parts.scheme}:"
    return f"{parts.scheme}://{parts.netloc}"


def _authority(host: str) -> str:
    return f"[{host}]" if ":" in host else host
