"""Scheme, host and port of a URL, written the one way in which two of them can be compared."""

from collections.abc import Iterable
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """The origin of an absolute http(s) URL: lower case, without the scheme's own port; empty when it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return ""
    shown = f"[{host}]" if ":" in host else host.rstrip(".")
    return f"{parts.scheme}://{shown}" + ("" if port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{port}")


def is_among(url: str, origins: Iterable[str]) -> bool:
    """Whether the URL is at one of these origins."""
    wanted = origin_of(url)
    return bool(wanted) and any(origin_of(origin) == wanted for origin in origins)
