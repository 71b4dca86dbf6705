"""The current request context, for callbacks of the SDK that receive only a name or parameters."""

from contextvars import ContextVar
from typing import Any, TypeAlias

import msgspec
from mcp.server.context import ServerRequestContext

from gateway.domain.tenancy.principals import Principal
from gateway.errors import GatewayError
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import Peer
from gateway.handlers.null_peer import NULL_PEER
from gateway.identity.refusal_trail import RefusalTrail, note_refusal
from gateway.registry.registry import Registry

SdkContext: TypeAlias = ServerRequestContext[Any, Any]
"""The SDK's context of one message; the gateway uses neither its lifespan object nor its HTTP request object."""


class RawResult(msgspec.Struct):
    """The rendered members of a tool's result, which bypass the SDK; None until the tool has run."""

    members: bytes | None = None


class RequestContext(msgspec.Struct, frozen=True):
    """The principal of one message, the registry that serves the message, and the peer for its client.

    `session` is set only in handshake revisions. `finished` is set only where the result of a tool may bypass the SDK.
    `tool` is the called tool if it was looked up already.
    """

    principal: Principal
    registry: Registry
    correlation_id: str
    peer: Peer = NULL_PEER
    session: str | None = None
    finished: RawResult | None = None
    tool: BoundTool | None = None


def note_refused(
    trail: RefusalTrail, context: RequestContext, error: GatewayError, *, action: str, target: str
) -> None:
    """Note an error for the audit trail if it is a refusal, with the catalog that the request sees."""
    registry = context.registry
    facts: dict[str, object] = {
        "profile": registry.profile,
        "catalog_revision": registry.revision,
        "policy_revision": registry.policy_version,
    }
    note_refusal(trail, context.principal, error, action=action, target=target, facts=facts)


CURRENT_REQUEST: ContextVar[RequestContext] = ContextVar("gateway_exchange")
