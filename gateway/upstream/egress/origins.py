"""Origins of URLs (scheme, host and port), cached, and the key of pooled connections."""

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
    """One upstream (RFC 9110 section 4.3.1); two origins are the same if their keys are equal."""

    key: str
    """Scheme, lower-case host and port, including a default port."""
    is_tls: bool
    host: str
    """Host in lower case, without brackets."""
    port: int
    is_literal: bool
    """True if the host is an IP literal, which is not resolved."""
    authority: str
    """Host header: the host as written without a final dot, and a non-default port (RFC 9110 section 7.2)."""


class PoolKey(NamedTuple):
    """Key of pooled connections: requests with equal keys may share a connection (REQUIREMENTS ISO-1)."""

    tenant: str
    """Empty for requests of the installation itself."""
    origin: str
    credential: bytes
    """Digest of the secrets in the request; empty without secrets."""
    permitted: AllowList = NOTHING  # guard: egress-withdrawn-connections
    """The tenant's allow-list, so that a changed list does not reuse connections of the old one."""


def read_url(url: str) -> tuple[Origin, str] | None:
    """Split a URL into its origin and request target; None if the URL cannot be sent."""
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
