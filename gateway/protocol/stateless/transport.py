"""The transport of 2026-07-28, in which every request is independent.

The first component that recognises a message serves it: `SubscriptionStreams` for `subscriptions/listen`, the fast path
for plain requests, the SDK's kernel for requests that send no messages before their response. Each returns a response,
or None without any effect. The SDK's own transport serves the rest; it streams if the client accepts a stream. A
disconnect cancels the request. For JSON, a disconnect watcher starts after `WATCH_AFTER_S`
(`gateway.protocol.http.cancellation`).
"""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import structlog
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.protocol.fast_path import MODERN, FastPath
from gateway.protocol.http.cancellation import DisconnectWatch
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import replay
from gateway.protocol.http.results import JsonRpcReply
from gateway.protocol.limits import MAX_BYTES
from gateway.protocol.methods.sdk_runner import SdkRunner
from gateway.protocol.request_context import RequestContext
from gateway.protocol.stateless.envelope import envelope_error, param_header_error, read_request
from gateway.protocol.stateless.subscription_stream import METHOD, SubscriptionReply, SubscriptionStreams

log = structlog.get_logger(__name__)


class StatelessTransport:
    """Serves requests of 2026-07-28; open it with `async with`, once."""

    def __init__(
        self,
        server: Server[Any],
        kernel: SdkRunner,
        plain: FastPath,
        subscriptions: SubscriptionStreams,
        *,
        spawn: Spawn,
    ) -> None:
        self._kernel = kernel
        self._plain = plain
        self._subscriptions = subscriptions
        self._watch = DisconnectWatch(spawn)
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

    async def post(self, request: McpRequest, message: dict[str, Any], raw: bytes, context: RequestContext) -> None:
        """Serve one message; `raw` is its complete body."""
        reply: JsonRpcReply | SubscriptionReply | None = None
        if message.get("method") == METHOD:
            reply = self._subscriptions.reply(request, message, context)
        else:
            with self._watch.scope(request.receive) as disconnect:
                reply = await self._plain.modern(request, message, context)
                reply = reply or await self._run(request, message, context)
            if disconnect.cancelled_caught:
                log.info("client_gone", correlation_id=context.correlation_id)
                return
        if reply is not None:
            await reply.send(request)
        else:
            await self._dispatch(request, replay(raw, request.receive), context)

    async def _dispatch(self, request: McpRequest, receive: Receive, context: RequestContext) -> None:
        """Pass the message to the SDK's transport, with a disconnect watcher if the client accepts no stream."""
        scope = request.scope
        if request.headers.get(b"accept") is None:
            scope = {**scope, "headers": [*request.headers.raw, (b"accept", b"application/json, text/event-stream")]}
        if request.accepts("text/event-stream"):
            await self._streaming.handle_request(scope, receive, request.send)
            return
        with self._watch.scope(receive) as disconnect:
            await self._json.handle_request(scope, receive, request.send)
        if disconnect.cancelled_caught:
            log.info("client_gone", correlation_id=context.correlation_id)

    async def _run(self, request: McpRequest, message: dict[str, Any], context: RequestContext) -> JsonRpcReply | None:
        """The response of the SDK's kernel, after the SDK's validation; None if the SDK's transport has to serve it."""
        call = read_request(message)
        if call is None:
            return None
        refused = envelope_error(message, request, context) or param_header_error(call, request, context)
        if refused is not None:
            return JsonRpcReply(400, refused)
        return await self._kernel.run_stateless(call, MODERN, context)


def _transport(server: Server[Any], *, is_json: bool) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        app=server, json_response=is_json, stateless=True, max_request_body_size=MAX_BYTES
    )
