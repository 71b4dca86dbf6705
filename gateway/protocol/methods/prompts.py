"""The method `prompts/get`."""

from typing import Any

from mcp.server.context import HandlerResult
from mcp_types import GetPromptRequestParams

from gateway.calls.pipeline import CallPipeline
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.primitives import Family
from gateway.domain.refusals import AccountRequired
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.methods.account_pages import open_account_page
from gateway.protocol.methods.capabilities import hidden, require_family
from gateway.protocol.methods.content_kinds import known_messages
from gateway.protocol.methods.limits import MAX_ECHOED_NAME_LENGTH
from gateway.protocol.methods.peers import input_required_result, peer_for_request
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext


class Prompts:
    """Handles `prompts/get`."""

    def __init__(self, calls: CallPipeline, spawn: Spawn) -> None:
        self._calls = calls
        self._spawn = spawn

    async def get(self, ctx: SdkContext, params: GetPromptRequestParams) -> HandlerResult:
        """Fill in one prompt.

        Raises:
            Hidden: prompts are not declared, or no prompt has that name.
            MCPError: the state or a client response is malformed.
            GatewayError: the call pipeline rejected the request, or the handler failed.
        """
        context = CURRENT_REQUEST.get()
        registry = context.registry
        require_family(registry, Family.PROMPT, params.name, ctx.method)
        bound = await registry.prompt(params.name)
        if bound is None:
            raise hidden(
                registry, Family.PROMPT, params.name, f"Prompt not found: {params.name[:MAX_ECHOED_NAME_LENGTH]}"
            )
        try:
            async with peer_for_request(ctx, params, self._spawn, talks=bound.is_interactive) as peer:
                filled = await self._calls.get_prompt(
                    context.principal,
                    bound,
                    params.arguments or {},
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
        result: dict[str, Any] = {
            "messages": known_messages(filled.messages, ctx.protocol_version),
            "resultType": "complete",
        }
        if filled.description is not None:
            result["description"] = filled.description
        return result
