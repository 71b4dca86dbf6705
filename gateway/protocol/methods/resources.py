"""Reading resources: what a URI names in the registry, or what was left over of a result too large to send whole."""

from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.calls.pipeline import Calls
from gateway.errors import NotFound
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.errors import unknown
from gateway.protocol.methods.capabilities import demand, has_resources
from gateway.protocol.methods.peers import input_required_result, speaking
from gateway.protocol.methods.result_overflow import bind_leftover, is_leftover
from gateway.protocol.request_context import CURRENT, Spawn
from gateway.redis.caches.result_overflow import Leftovers

RESOURCE_NOT_FOUND = -32002
"""What the handshake era says of an unknown URI; 2026-07-28 says that the parameters are invalid."""

Context = ServerRequestContext[Any, Any]

_READ_TTL_MS = 0
_SHOWN = 2048


class Resources:
    """Answers `resources/read`."""

    def __init__(self, calls: Calls, leftovers: Leftovers, spawn: Spawn) -> None:
        self._calls = calls
        self._leftovers = leftovers
        self._spawn = spawn

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> HandlerResult:
        """Read one resource.

        Raises:
            MCPError: nothing is declared that could be read, or the URI names nothing.
        """
        exchange = CURRENT.get()
        registry = exchange.registry
        of_result = is_leftover(params.uri)
        demand(of_result or has_resources(registry), ctx.method)
        uri = params.uri
        bound = bind_leftover(self._leftovers, registry, uri) if of_result else await registry.resource(uri)
        if bound is None:
            raise _unknown(ctx, params.uri)
        try:
            async with speaking(ctx, params, self._spawn, talks=bound.talks) as peer:
                read = await self._calls.read(
                    exchange.principal,
                    bound,
                    correlation_id=exchange.correlation_id,
                    peer=peer,
                    finder=registry,
                )
        except InputRequired as asked:
            return input_required_result(ctx, asked)
        except NotFound:
            raise _unknown(ctx, params.uri) from None
        return {
            "contents": list(read.contents),
            "resultType": "complete",
            "ttlMs": _READ_TTL_MS,
            "cacheScope": "private",
        }


def _unknown(ctx: Context, uri: str) -> MCPError:
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
    return unknown("Resource not found", CURRENT.get().correlation_id, code=code, uri=uri[:_SHOWN])
