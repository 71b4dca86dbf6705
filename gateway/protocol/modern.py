"""2026-07-28: every request by itself, through the SDK's own transport but for the plainest.

A request whose primitive may say something before its answer is answered on a stream if it does, all others with JSON.
Whoever goes away has cancelled what he asked for, also where nobody streams: then a watch is set up for what takes
longer than a moment.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

import structlog
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from gateway.handlers.bind import BoundPrompt, BoundResource, BoundTool
from gateway.protocol.current import Exchange
from gateway.protocol.envelopes import is_request, misjudged
from gateway.protocol.leash import Leash
from gateway.protocol.listen_streams import METHOD, ListenStreams
from gateway.protocol.outlets import Spawn
from gateway.protocol.plain import Plain
from gateway.protocol.plain_results import Reply
from gateway.protocol.wire import accepts, answer, replay
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)

MAX_BODY: Final = 1024 * 1024


class Modern:
    """Serves requests of 2026-07-28; open it with `async with`, once."""

    def __init__(self, server: Server[Any], plain: Plain, listens: ListenStreams, *, spawn: Spawn) -> None:
        self._plain = plain
        self._listens = listens
        self._spawn = spawn
        self._json = _transport(server, is_json=True)
        self._streaming = _transport(server, is_json=False)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._json.run())
        await self._stack.enter_async_context(self._streaming.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def post(
        self, scope: Scope, receive: Receive, send: Send, message: dict[str, Any], raw: bytes, exchange: Exchange
    ) -> None:
        """Serve one message whose body was read already."""
        if message.get("method") == METHOD and await self._listens.post(scope, receive, send, message, exchange):
            return
        reply: Reply | None = None
        with Leash(receive, self._spawn) as leash:
            reply = await self._plain.modern(scope, message, exchange)
        if leash.is_called_off:
            log.info("client_gone", correlation_id=exchange.correlation_id)
        elif reply is not None:
            await answer(send, reply.status, reply.body)
        elif is_request(message) and (refused := misjudged(message, scope, exchange)) is not None:
            await answer(send, 400, refused)
        elif accepts(scope, "text/event-stream") and await _may_talk(message, exchange.registry):
            await self._streaming.handle_request(scope, replay(raw, receive), send)
        else:
            with Leash(receive, self._spawn) as leash:  # the SDK does so itself only where it may stream
                await self._json.handle_request(scope, replay(raw, receive), send)
            if leash.is_called_off:
                log.info("client_gone", correlation_id=exchange.correlation_id)

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a method other than POST."""
        await self._json.handle_request(scope, receive, send)


async def _may_talk(message: Mapping[str, Any], registry: Registry) -> bool:
    """Whether what is asked for may say something before its answer."""
    try:
        return await _talks(message, registry)
    except Exception:
        log.debug("not_bound", method=message.get("method"))
        return False  # it fails again where the client is told


async def _talks(message: Mapping[str, Any], registry: Registry) -> bool:
    bound: BoundTool | BoundPrompt | BoundResource | None
    match message:
        case {"method": "tools/call", "params": {"name": str(name)}}:
            bound = await registry.tool(name)
        case {"method": "prompts/get", "params": {"name": str(name)}}:
            bound = await registry.prompt(name)
        case {"method": "resources/read", "params": {"uri": str(uri)}}:
            bound = await registry.resource(uri)
        case _:
            return False
    return bound is not None and bound.talks


def _transport(server: Server[Any], *, is_json: bool) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        app=server, json_response=is_json, stateless=True, max_request_body_size=MAX_BODY
    )
