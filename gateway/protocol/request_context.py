"""The request being served, for the SDK's callbacks that are handed nothing but a name or parameters."""

from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from gateway.domain.tenancy.principals import Principal
from gateway.handlers.interfaces import Peer
from gateway.handlers.null_peer import NULL_PEER
from gateway.registry.registry import Registry

Spawn = Callable[..., object]
"""Runs a function as a background task, until it ends or the replica does."""


class RawResult(msgspec.Struct):
    """The members of a tool's result, which whoever answers sends as they are; None as long as there are none."""

    members: bytes | None = None


class RequestContext(msgspec.Struct, frozen=True):
    """One message of one principal, the registry it is served from, and the client as its transport has it.

    `session` is there in the handshake era only, `finished` where the answer is not the SDK's to write.
    """

    principal: Principal
    registry: Registry
    correlation_id: str
    peer: Peer = NULL_PEER
    session: str | None = None
    finished: RawResult | None = None


CURRENT_REQUEST: ContextVar[RequestContext] = ContextVar("gateway_exchange")
