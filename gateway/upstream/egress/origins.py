"""Origins of URLs: scheme, host and port, parsed once per origin; and the key of the connections kept to one."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from gateway.upstream.egress.allow_list import NOTHING, AllowList
from gateway.upstream.serialize.header_checks import split_url

_ORIGINS = 1024
_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One upstream (RFC 9110 section 4.3.1); only `key` says whether two are the same."""

    key: str
    """Scheme, host in lower case and port, the default one too."""
    is_tls: bool
    host: str
    """Without brackets and in lower case."""
    port: int
    is_literal: bool
    """Whether the host can only be an address: no name system is asked for it."""
    authority: str
    """What the Host header says: the host as written, the port unless it is the scheme's own (RFC 9110 section 7.2)."""


class PoolKey(NamedTuple):
    """Key of kept connections: requests with equal keys may share one (REQUIREMENTS ISO-1)."""

    tenant: str
    """Empty for requests of the installation itself."""
    origin: str
    credential: bytes
    """Digest of the stored credentials on the request; empty without any."""
    permitted: AllowList = NOTHING
    """The tenant's own allow-list, under which the dial was judged; after a change of it the connection fits no key."""


def read_url(url: str) -> tuple[Origin, str] | None:
    """The origin of a URL and what is asked for there; None: it is not one that could be sent."""
    parts = split_url(url)
    origin = None if parts is None else _read_origin(parts[0])
    if parts is None or origin is None:
        return None
    target = parts[1]
    return origin, target if target[:1] == "/" else f"/{target}"


@lru_cache(_ORIGINS)
def _read_origin(text: str) -> Origin | None:
    scheme, _, authority = text.partition("://")
    host, port = authority, _PORTS[scheme]
    before, colon, after = authority.rpartition(":")
    if colon and not after.endswith("]"):
        host, port = before, int(after)
    if port > _LAST_PORT:
        return None
    shown = host.rstrip(".")
    plain = host.removeprefix("[").removesuffix("]").lower()
    return Origin(
        key=f"{scheme}://{host.lower()}:{port}",
        is_tls=scheme == "https",
        host=plain,
        port=port,
        is_literal=plain != host.lower() or plain.replace(".", "").isdigit(),
        authority=shown if port == _PORTS[scheme] else f"{shown}:{port}",
    )
