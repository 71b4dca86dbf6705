"""The method `resources/read`: resources of the registry, and stored results."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from mcp.server.context import HandlerResult
from mcp_types import INVALID_PARAMS, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.calls.pipeline import CallPipeline
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.primitives import Family
from gateway.domain.refusals import AccountRequired
from gateway.errors import NotFound
from gateway.handlers.binding import BoundResource
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.errors import Hidden
from gateway.protocol.methods.account_pages import open_account_page
from gateway.protocol.methods.capabilities import hidden, require_family
from gateway.protocol.methods.limits import MAX_ECHOED_URI_LENGTH
from gateway.protocol.methods.peers import input_required_result, peer_for_request
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.registry.registry import Registry

RESOURCE_NOT_FOUND = -32002
"""The error code for an unknown URI in revisions with a handshake; revision 2026-07-28 uses `INVALID_PARAMS`."""

FindResource: TypeAlias = Callable[[Registry, str, str | None], Awaitable[BoundResource | None]]
"""Finds the resource at a URI for the client of a session, if there is one; None if there is no resource."""

_READ_TTL_MS = 0


class Resources:
    """Handles `resources/read`."""

    def __init__(self, calls: CallPipeline, spawn: Spawn, find: FindResource) -> None:
        self._calls = calls
        self._spawn = spawn
        self._find = find

    async def read(self, ctx: SdkContext, params: ReadResourceRequestParams) -> HandlerResult:
        """Read one resource.

        Raises:
            Hidden: resources are not declared, or no resource has that URI.
            MCPError: the state or a response is malformed.
            GatewayError: the call pipeline rejected the request, or the handler failed.
        """
        context = CURRENT_REQUEST.get()
        registry = context.registry
        bound = await self._find(registry, params.uri, context.session)
        if bound is None:
            require_family(registry, Family.RESOURCE, params.uri, ctx.method)
            raise _missing(ctx, registry, params.uri)
        try:
            async with peer_for_request(ctx, params, self._spawn, talks=bound.is_interactive) as peer:
                read = await self._calls.read(
                    context.principal,
                    bound,
                    correlation_id=context.correlation_id,
                    peer=peer,
                    lookup=registry,
                )
        except InputRequired as required:
            return input_required_result(required)
        except AccountRequired as required:
            if (page := await open_account_page(ctx, params, required, self._spawn)) is None:
                raise
            return page
        except NotFound:
            raise _missing(ctx, registry, params.uri) from None
        return {
            "contents": list(read.contents),
            "resultType": "complete",
            "ttlMs": _READ_TTL_MS,
            "cacheScope": "private",
        }


def _missing(ctx: SdkContext, registry: Registry, uri: str) -> Hidden:
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
    return hidden(registry, Family.RESOURCE, uri, "Resource not found", rpc_code=code, uri=uri[:MAX_ECHOED_URI_LENGTH])
