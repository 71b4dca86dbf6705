"""The client of the current call as handlers see it, whichever era it speaks."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.handlers.port import InputRequired, Peer
from gateway.protocol.current import CURRENT
from gateway.protocol.rounds import input_required, open_rounds
from gateway.protocol.telling import Spawn

Asking = CallToolRequestParams | GetPromptRequestParams | ReadResourceRequestParams
"""Parameters of the requests that a client may be asked something during."""


@asynccontextmanager
async def speaking(ctx: ServerRequestContext[Any, Any], params: Asking, spawn: Spawn) -> AsyncGenerator[Peer]:
    """The client of this request, for as long as the block runs; by its end everything has been told.

    Raises:
        MCPError: the answers that it brings are none.
    """
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        yield CURRENT.get().peer
        return
    peer = open_rounds(ctx, params.request_state, params.input_responses, spawn=spawn)
    try:
        yield peer
    finally:
        await peer.close()


def input_required_result(ctx: ServerRequestContext[Any, Any], raised: InputRequired) -> dict[str, Any]:
    """The result (2026-07-28) that asks the client; its state is sealed on the way out.

    Raises:
        HandlerFailed: the call remembers more than a client should carry.
    """
    del ctx
    return input_required(raised, nonce=secrets.token_urlsafe(16))
