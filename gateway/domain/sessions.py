"""MCP sessions of the handshake protocol, independent of any connection."""

from dataclasses import dataclass
from typing import Literal

from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One session, bound to tenant and subject; `client` is the wire form of its initialize parameters."""

    id: str
    tenant: TenantId
    subject: str
    profile: str | None
    protocol_version: str
    client: dict[str, object]
    revision: int = 0
    """The tenant's revision when the client connected."""
    lists: tuple[Family, ...] = ()
    """Lists whose change notifications the gateway announced to the client."""
    transport: Literal["http", "sse"] = "http"
    """`sse` is the HTTP+SSE transport of 2024-11-05, where the stream is opened before the handshake."""
    holder: str = ""
    """The replica with the HTTP+SSE stream of the session; empty if any replica can serve the session."""

    @property
    def is_open(self) -> bool:
        """True if the handshake is complete."""
        return bool(self.client)
