"""Allow-lists of the operator: exact `host:port` entries, one list for all tenants and one per tenant.

One parser reads `GATEWAY_EGRESS_ALLOW` and the lists of tenants. An entry is a name or an address with a port, or the
path of a unix socket; there are no patterns and no networks. A tenant's list is part of the key of its pooled
connections.
"""

import posixpath
import re
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Protocol, TypeAlias

from gateway.domain.identifiers import TenantId
from gateway.upstream.egress.addresses import Address, read_address
from gateway.upstream.egress.limits import MAX_DOMAIN_LENGTH, MAX_SOCKET_PATH_BYTES

AllowEntry: TypeAlias = tuple[str | Address, int]
"""A name in lower case or an address, and the port; or `unix:` with a path, and 0."""
AllowList: TypeAlias = frozenset[AllowEntry]

NOTHING: AllowList = frozenset()
FORM = "must be an exact host:port, such as billing.internal:8443, 10.0.0.5:8080 or [fd00::5]:8080, or unix:/path"
UNIX = "unix:"

_ENTRY = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")
_LAST_PORT = 65535


class AllowLists(Protocol):
    """The allow-lists of the tenants, read before every attempt of a request."""

    def current(self, tenant: TenantId) -> AllowList | None:
        """Return the list if it is current in memory; None if `read` must be called."""
        ...

    async def read(self, tenant: TenantId) -> AllowList:
        """Return the newest list; empty for a removed tenant, and while only an outdated list is available.

        Raises:
            Unavailable: the database is unavailable, and no list that is recent enough is cached.
        """
        ...


def read_entry(text: str) -> AllowEntry | None:
    """Parse an entry; None if the text is not an exact `host:port` or `unix:/path`."""
    if text.strip().startswith(UNIX):
        return _read_path(text.strip().removeprefix(UNIX))
    found = _ENTRY.fullmatch(text.strip())
    if found is None or not 0 < int(found["port"]) <= _LAST_PORT:
        return None
    port, name = int(found["port"]), found["host"]
    literal = read_address(found["v6"] or name)
    if literal is not None:
        return literal, port
    # guard: egress-exact-entries
    if not name or len(name) > MAX_DOMAIN_LENGTH or not _NAME.fullmatch(name) or _looks_numeric(name):
        return None
    return name.lower(), port


def write_entry(entry: AllowEntry) -> str:
    """Return the canonical spelling of an entry."""
    host, port = entry
    if not port:
        return str(host)
    return f"[{host}]:{port}" if isinstance(host, IPv6Address) else f"{host}:{port}"


def read_stored(texts: Iterable[str]) -> AllowList:
    """Parse the stored entries; invalid entries are ignored."""
    return frozenset(entry for text in texts if (entry := read_entry(text)) is not None)


def _read_path(path: str) -> AllowEntry | None:
    """Return the entry of a socket's path; None unless the path is absolute and normalized."""
    is_normal = path.startswith("/") and not path.startswith("//") and posixpath.normpath(path) == path != "/"
    if not is_normal or not path.isprintable() or "," in path or len(path.encode()) > MAX_SOCKET_PATH_BYTES:
        return None
    return UNIX + path, 0


def _looks_numeric(host: str) -> bool:
    """True if a resolver could read this as a number: 127.1, 0x7f000001, 2130706433."""
    return re.fullmatch(r"(?:0[xX][0-9A-Fa-f]+|[0-9]+)", host.rstrip(".").rpartition(".")[2]) is not None
