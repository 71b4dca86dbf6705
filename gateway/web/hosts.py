"""Accepted Host and Origin headers: the guard against DNS rebinding and misrouted requests."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from gateway.web.limits import MAX_ACCEPTED_HOSTS

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")

_DEFAULT_PORTS = {"http": "80", "https": "443"}


def default_hosts(public_url: str | None = None) -> tuple[str, ...]:
    """Return the hosts that need no configuration: loopback names, and the host of the public URL."""
    public = None if public_url is None else urlsplit(public_url).netloc.rpartition("@")[2].lower()
    return (*LOOPBACK_HOSTS, public) if public else LOOPBACK_HOSTS


class AllowedHosts:
    """Configured host names: `name` on every port, `name:port`, `*.example.com` for all names below `example.com`."""

    def __init__(self, names: Iterable[str]) -> None:
        lowered = [name.strip().lower() for name in names]
        self._exact = frozenset(name for name in lowered if name and not name.startswith("*."))
        self._suffixes = tuple(name[1:] for name in lowered if name.startswith("*."))
        self._accepted: set[bytes] = set()

    def allows(self, header: bytes) -> bool:
        """True if a Host header names this gateway."""
        if header in self._accepted:
            return True
        if not self._matches(header):
            return False
        if len(self._accepted) < MAX_ACCEPTED_HOSTS:
            self._accepted.add(header)
        return True

    def _matches(self, header: bytes) -> bool:
        host = header.decode("latin-1").lower()
        name, port = split_port(host)
        if port and not (port.isascii() and port.isdigit()):
            return False
        if host in self._exact or name in self._exact:
            return True
        return any(
            len(form) > len(suffix) and form.endswith(suffix) and _is_name(name)
            for suffix in self._suffixes
            for form in (name, host)
        )


class AllowedOrigins:
    """Origins as configured, and the origin of the request's own host, with http or https."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._exact = frozenset(origin.strip().lower().rstrip("/").encode() for origin in origins if origin.strip())

    def allows(self, origin: bytes, host: bytes) -> bool:
        """True if a page of this origin may send requests; `AllowedHosts` must have accepted `host`."""
        if self.names(origin):
            return True
        scheme, separator, authority = origin.lower().decode("latin-1").partition("://")
        default = _DEFAULT_PORTS.get(scheme)
        if not separator or default is None:
            return False
        own = host.decode("latin-1").lower()
        return _with_port(authority, default) == _with_port(own, default)

    def names(self, origin: bytes) -> bool:
        """True if the operator has configured this origin."""
        return origin.lower() in self._exact


def split_port(host: str) -> tuple[str, str]:
    """Return the name and the port of an authority; the port is empty if there is none."""
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        return host, ""
    return name, port


def _with_port(authority: str, default: str) -> tuple[str, str]:
    name, port = split_port(authority)
    return name, port or default


def _is_name(name: str) -> bool:
    return name.isascii() and all(label and label.replace("-", "").isalnum() for label in name.split("."))
