"""The client of the current call as handlers see it, whichever era it speaks."""

import secrets
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.handlers.interfaces import InputRequired, Peer
from gateway.handlers.null_peer import NULL_PEER
from gateway.protocol.request_context import CURRENT_REQUEST, Spawn
from gateway.protocol.stateless.input_rounds import StatelessPeer, input_required, resume_peer

RequestParams = CallToolRequestParams | GetPromptRequestParams | ReadResourceRequestParams
"""Parameters of the requests that a client may be asked something during."""


_SILENCE: Final[AbstractAsyncContextManager[Peer, None]] = nullcontext(NULL_PEER)


def peer_for_request(
    ctx: ServerRequestContext[Any, Any], params: RequestParams, spawn: Spawn, *, talks: bool
) -> AbstractAsyncContextManager[Peer, None]:
    """The client of this request, for as long as the block runs; by its end everything has been told.

    Nobody speaks where what is asked for never `talks`, and no earlier round has left anything.

    Raises:
        MCPError: the answers that it brings are none.
    """
    if not talks and params.request_state is None:
        return _SILENCE
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return nullcontext(CURRENT_REQUEST.get().peer)
    return _StatelessPeerScope(resume_peer(ctx, params.request_state, params.input_responses, spawn=spawn))


class _StatelessPeerScope:
    """The client of one request of 2026-07-28 until everything has been told."""

    def __init__(self, peer: StatelessPeer) -> None:
        self._peer = peer

    async def __aenter__(self) -> Peer:
        return self._peer

    async def __aexit__(self, *_: object) -> None:
        await self._peer.close()


def input_required_result(ctx: ServerRequestContext[Any, Any], raised: InputRequired) -> dict[str, Any]:
    """The result (2026-07-28) that asks the client; its state is sealed on the way out.

    Raises:
        HandlerFailed: the call remembers more than a client should carry.
    """
    del ctx
    return input_required(raised, nonce=secrets.token_urlsafe(16))
