"""Completion: suggested values for the arguments of prompts and the variables of resource templates."""

from typing import Any

from mcp.server.context import HandlerResult
from mcp_types import CompleteRequestParams, PromptReference, ResourceTemplateReference

from gateway.calls.pipeline import CallPipeline
from gateway.domain.primitives import Family
from gateway.domain.results import Completions
from gateway.handlers.binding import BoundPrompt, BoundTemplate
from gateway.protocol.methods.capabilities import hidden, require
from gateway.protocol.methods.limits import MAX_ECHOED_URI_LENGTH
from gateway.protocol.request_context import CURRENT_REQUEST, RequestContext, SdkContext


class CompletionMethod:
    """Handles `completion/complete`."""

    def __init__(self, calls: CallPipeline) -> None:
        self._calls = calls

    async def complete(self, ctx: SdkContext, params: CompleteRequestParams) -> HandlerResult:
        """Suggest values that begin with the typed text.

        Raises:
            MCPError: no primitive in the registry offers completions, or the referenced prompt or template does not
                exist.
            GatewayError: the call pipeline rejected the request, or the handler failed.
        """
        context = CURRENT_REQUEST.get()
        require(context.registry.has_completions, ctx.method)
        bound = await _find(context, params.ref)
        if bound is None:
            return _result(Completions(values=()))
        context_arguments = params.context.arguments if params.context is not None else None
        found = await self._calls.complete(
            context.principal,
            bound,
            (params.argument.name, params.argument.value),
            context_arguments or {},
            correlation_id=context.correlation_id,
        )
        return _result(found)


async def _find(
    context: RequestContext, reference: PromptReference | ResourceTemplateReference
) -> BoundPrompt | BoundTemplate | None:
    """The primitive that the reference names; None for a resource without variables."""
    registry = context.registry
    if isinstance(reference, PromptReference):
        bound = await registry.prompt(reference.name)
        if bound is None:
            text = f"Prompt not found: {reference.name[:MAX_ECHOED_URI_LENGTH]}"
            raise hidden(registry, Family.PROMPT, reference.name, text)
        return bound
    template = await registry.template(reference.uri)
    if template is None and await registry.resource(reference.uri) is None:
        uri, text = reference.uri, "Resource template not found"
        raise hidden(registry, Family.TEMPLATE, uri, text, uri=uri[:MAX_ECHOED_URI_LENGTH])
    return template


def _result(found: Completions) -> dict[str, Any]:
    completion: dict[str, Any] = {"values": list(found.values), "hasMore": found.has_more}
    if found.total is not None:
        completion["total"] = found.total
    return {"completion": completion, "resultType": "complete"}
