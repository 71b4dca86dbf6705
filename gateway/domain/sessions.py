"""What an MCP session of the handshake era is, apart from any connection."""

from dataclasses import dataclass
from typing import Literal

from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One session: bound to tenant and subject; `client` is the wire form of its initialize parameters."""

    id: str
    tenant: TenantId
    subject: str
    profile: str | None
    protocol_version: str
    client: dict[str, object]
    revision: int = 0
    """The tenant's revision when the client connected: what it may have been shown."""
    lists: tuple[Family, ...] = ()
    """The lists of which the client was promised notices."""
    transport: Literal["http", "sse"] = "http"
    """`sse` is the HTTP+SSE of 2024-11-05, where the stream comes before the handshake."""
    holder: str = ""
    """The replica with the stream of HTTP+SSE, on which the session depends; empty where any replica will do."""

    @property
    def is_open(self) -> bool:
        """Whether the handshake has taken place."""
        return bool(self.client)
