"""Normalized origins (scheme, host and port) of URLs, for comparison."""

from collections.abc import Iterable
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return the origin of an absolute http(s) URL: lower case, without the default port; empty for other URLs."""
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
    """True if the URL has one of these origins."""
    wanted = origin_of(url)
    return bool(wanted) and any(origin_of(origin) == wanted for origin in origins)
