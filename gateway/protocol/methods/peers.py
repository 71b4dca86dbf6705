"""The peer of the current call, for handshake and stateless revisions."""

import secrets
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from mcp_types import CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.handlers.interfaces import InputRequired, Peer
from gateway.handlers.null_peer import NULL_PEER
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.protocol.stateless.input_rounds import StatelessPeer, input_required, resume_peer

RequestParams = CallToolRequestParams | GetPromptRequestParams | ReadResourceRequestParams
"""Parameter types of the requests during which the gateway may send requests to the client."""


_NULL_SCOPE: Final[AbstractAsyncContextManager[Peer, None]] = nullcontext(NULL_PEER)


def peer_for_request(
    ctx: SdkContext, params: RequestParams, spawn: Spawn, *, talks: bool
) -> AbstractAsyncContextManager[Peer, None]:
    """The peer of this request while the block runs; at the end, a stateless peer sends its delayed notifications.

    It is the null peer if the primitive sends no messages (`talks` is False) and the request contains no state.

    Raises:
        MCPError: the state or a client response in the request is malformed.
    """
    if not talks and params.request_state is None:
        return _NULL_SCOPE
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return nullcontext(CURRENT_REQUEST.get().peer)
    return _StatelessPeerScope(resume_peer(ctx, params.request_state, params.input_responses, spawn=spawn))


class _StatelessPeerScope:
    """The peer of one request of 2026-07-28; at the end of the block, it sends its delayed notifications."""

    def __init__(self, peer: StatelessPeer) -> None:
        self._peer = peer

    async def __aenter__(self) -> Peer:
        return self._peer

    async def __aexit__(self, *_: object) -> None:
        await self._peer.close()


def input_required_result(raised: InputRequired) -> dict[str, Any]:
    """The result (2026-07-28) with requests to the client; a middleware seals its state.

    Raises:
        HandlerFailed: the state of the call is too large, or contains a value that is not JSON.
    """
    return input_required(raised, nonce=secrets.token_urlsafe(16))
