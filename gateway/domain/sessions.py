"""MCP sessions: those of clients, independent of any connection, and those of callers at live sources."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from gateway.domain.identifiers import LiveSourceId, TenantId
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


class SessionOwner(NamedTuple):
    """The caller of a session: a subject, and its client's MCP session; empty in 2026-07-28, which has none."""

    subject: str
    session: str = ""


class UpstreamSessionKey(NamedTuple):
    """Identity of one caller's session at one live source.

    `version` is that of the source's declaration: another one may name another server. `variant` is a digest of what
    else must be equal: the credential and the capabilities of the client.
    """

    tenant: TenantId
    source: LiveSourceId
    version: int
    owner: SessionOwner
    variant: bytes


class UpstreamSession(msgspec.Struct, frozen=True):
    """A session that a live source has opened: its id and the protocol revision. The id is as good as a credential."""

    id: str
    revision: str
