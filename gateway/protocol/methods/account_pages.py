"""Pages on which users connect accounts, in the form of each revision: an elicitation, an error, or a link."""

from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, ClientCapabilities
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.refusals import AccountRequired
from gateway.handlers.credentials import ask_to_connect
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.errors import to_url_elicitation
from gateway.protocol.methods.peers import RequestParams, input_required_result
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.protocol.stateless.input_rounds import resume_peer


async def open_account_page(
    ctx: SdkContext, params: RequestParams, required: AccountRequired, spawn: Spawn
) -> dict[str, Any] | None:
    """The result (2026-07-28) that opens the page; None if the client cannot open it, or already did in this call.

    Raises:
        MCPError: the error of handshake revisions with the page (-32042), for a client that can open pages.
    """
    context = CURRENT_REQUEST.get()
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        if context.peer.can("elicitation.url"):
            raise to_url_elicitation(required, context.correlation_id)
        return None
    peer = resume_peer(ctx, params.request_state, params.input_responses, spawn=spawn)
    if peer.capabilities is None:  # several clients share the connection
        declared = (ctx.meta or {}).get(CLIENT_CAPABILITIES_META_KEY)
        peer.capabilities = None if declared is None else ClientCapabilities.model_validate(declared)
    try:
        await ask_to_connect(peer, required)
    except InputRequired as question:
        return input_required_result(question)
    return None
