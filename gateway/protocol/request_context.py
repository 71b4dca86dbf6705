"""The current request context, for callbacks of the SDK that receive only a name or parameters."""

from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from gateway.domain.tenancy.principals import Principal
from gateway.handlers.interfaces import Peer
from gateway.handlers.null_peer import NULL_PEER
from gateway.registry.registry import Registry

Spawn = Callable[..., object]
"""Runs a function as a background task, until it returns or the replica stops."""


class RawResult(msgspec.Struct):
    """The rendered members of a tool's result, sent unchanged; None until the tool has run."""

    members: bytes | None = None


class RequestContext(msgspec.Struct, frozen=True):
    """One message of one principal, the registry that serves it, and the peer for its client.

    `session` is set only in handshake revisions. `finished` is set only if the gateway, not the SDK, writes the
    response.
    """

    principal: Principal
    registry: Registry
    correlation_id: str
    peer: Peer = NULL_PEER
    session: str | None = None
    finished: RawResult | None = None


CURRENT_REQUEST: ContextVar[RequestContext] = ContextVar("gateway_exchange")
