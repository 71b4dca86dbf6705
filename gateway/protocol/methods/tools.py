"""The method `tools/call`."""

from typing import Any, Final

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp_types import SERVER_INFO_META_KEY, CallToolRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.calls import result_rendering
from gateway.calls.pipeline import CallPipeline
from gateway.domain.task_supervisor import Spawn
from gateway.errors import CapabilityMissing
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.errors import unknown
from gateway.protocol.methods.content_kinds import known_blocks
from gateway.protocol.methods.peers import input_required_result, peer_for_request
from gateway.protocol.request_context import CURRENT_REQUEST

_SHOWN = 128
_FINISHED: Final[dict[str, Any]] = {
    "content": [],
    "resultType": "dev.mcp-gateway/finished",
    "_meta": {SERVER_INFO_META_KEY: {}},
}
"""Placeholder for a result whose bytes bypass the SDK. The SDK passes this shape unchanged; no client receives it."""


class Tools:
    """Handles `tools/call`."""

    def __init__(self, calls: CallPipeline, spawn: Spawn) -> None:
        self._calls = calls
        self._spawn = spawn

    async def call(self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> HandlerResult:
        """Run one tool.

        Raises:
            MCPError: no tool has that name, or the request's state or an answer is malformed.
            GatewayError: the call pipeline refused the call; most failures become an error result instead.
        """
        context = CURRENT_REQUEST.get()
        bound = context.tool or await context.registry.tool(params.name)
        if bound is None:
            raise unknown(f"Tool not found: {params.name[:_SHOWN]}", context.correlation_id)
        try:
            async with peer_for_request(ctx, params, self._spawn, talks=bound.is_interactive) as peer:
                members = await self._calls.run(
                    context.principal,
                    bound,
                    params.arguments or {},
                    correlation_id=context.correlation_id,
                    peer=peer,
                    lookup=context.registry,
                )
        except InputRequired as asked:
            return input_required_result(asked)
        except CapabilityMissing as error:
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                raise
            members = result_rendering.failure(error, context.correlation_id)  # handshake revisions have no such error
        if context.finished is not None:
            context.finished.members = members
            return _FINISHED
        result: dict[str, Any] = result_rendering.decode(members)
        result["content"] = known_blocks(result["content"], ctx.protocol_version)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result["resultType"] = "complete"
        elif not isinstance(result.get("structuredContent", {}), dict):
            del result["structuredContent"]  # before 2026-07-28 it had to be an object
        return result
