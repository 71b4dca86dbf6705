"""Loopback addresses of URLs: upstreams on this machine, which the egress guard permits by `host:port` only."""

import ipaddress
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def is_loopback(url: str) -> bool:
    """True if the URL's host is a loopback address or name."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def loopback_address(url: str) -> str | None:
    """Return the `host:port` of a URL at a loopback host; None for any other URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if port is None or not parts.hostname or not is_loopback(url):
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"
