"""Getting prompts."""

from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp_types import GetPromptRequestParams

from gateway.calls.pipeline import Calls
from gateway.domain.primitives import Family
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.errors import unknown
from gateway.protocol.methods.capabilities import demand
from gateway.protocol.methods.content_kinds import known_messages
from gateway.protocol.methods.peers import input_required_result, speaking
from gateway.protocol.request_context import CURRENT, Spawn

_SHOWN = 128


class Prompts:
    """Answers `prompts/get`."""

    def __init__(self, calls: Calls, spawn: Spawn) -> None:
        self._calls = calls
        self._spawn = spawn

    async def get(self, ctx: ServerRequestContext[Any, Any], params: GetPromptRequestParams) -> HandlerResult:
        """Fill in one prompt.

        Raises:
            MCPError: no prompts are declared, or there is none of that name.
        """
        exchange = CURRENT.get()
        registry = exchange.registry
        demand(registry.has(Family.PROMPT), ctx.method)
        bound = await registry.prompt(params.name)
        if bound is None:
            raise unknown(f"Prompt not found: {params.name[:_SHOWN]}", exchange.correlation_id)
        try:
            async with speaking(ctx, params, self._spawn, talks=bound.talks) as peer:
                filled = await self._calls.get_prompt(
                    exchange.principal,
                    bound,
                    params.arguments or {},
                    correlation_id=exchange.correlation_id,
                    peer=peer,
                    finder=registry,
                )
        except InputRequired as asked:
            return input_required_result(ctx, asked)
        result: dict[str, Any] = {
            "messages": known_messages(filled.messages, ctx.protocol_version),
            "resultType": "complete",
        }
        if filled.description is not None:
            result["description"] = filled.description
        return result
