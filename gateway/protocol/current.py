"""The request being served, for the SDK's callbacks that are handed nothing but a name or parameters."""

from contextvars import ContextVar

import msgspec

from gateway.domain.principals import Principal
from gateway.handlers.port import Peer
from gateway.handlers.silent import SILENT
from gateway.registry.registry import Registry


class Exchange(msgspec.Struct, frozen=True):
    """One message of one principal, the registry it is served from, and the client as its transport has it.

    `session` is there in the handshake era only.
    """

    principal: Principal
    registry: Registry
    correlation_id: str
    peer: Peer = SILENT
    session: str | None = None


CURRENT: ContextVar[Exchange] = ContextVar("gateway_exchange")
