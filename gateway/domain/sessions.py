"""What an MCP session of the handshake era is, apart from any connection."""

from dataclasses import dataclass

from gateway.domain.identifiers import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One session: bound to tenant and subject; `client` is the wire form of its initialize parameters."""

    id: str
    tenant: TenantId
    subject: str
    profile: str | None
    protocol_version: str
    client: dict[str, object]
