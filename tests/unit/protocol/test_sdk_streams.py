"""Use of the SDK for streams and rounds, and of uvicorn for connections; an upgrade that moves it fails."""

import asyncio
import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.server import Server
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, ResourceUpdated, ToolsListChanged
from mcp.shared.inbound import (
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.subscriptions import event_to_notification
from mcp_types import (
    CallToolRequestParams,
    ClientCapabilities,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    RequestParams,
)
from mcp_types.methods import INPUT_REQUIRED_METHODS, validate_client_request
from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from gateway.app.server.http_protocol import HardenedHttpProtocol
from tests.support.gateway import META

Context = ServerRequestContext[Any, Any]
Headers = list[tuple[bytes, bytes]]


class Asgi:
    """One request to an ASGI application, without a socket."""

    def __init__(self, method: str, params: dict[str, Any], **headers: str) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        named = {"mcp-name": params["name"]} if "name" in params else {}
        sent = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "host": "x",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            **named,
            **headers,
        }
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.arrived = asyncio.Event()
        self._body: bytes | None = json.dumps(body).encode()

    async def receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self.arrived.set()

    @property
    def kind(self) -> str:
        """The content type of the answer."""
        kind: bytes = dict(self.sent[0]["headers"])[b"content-type"]
        return kind.decode()

    @property
    def reported(self) -> str:
        """The body of the answer."""
        return b"".join(message.get("body", b"") for message in self.sent).decode()


def _server(handler: Callable[[Context, CallToolRequestParams], Any]) -> Server[Any]:
    server: Server[Any] = Server("t", version="1", get_tool_input_schema=lambda _: None)
    server.add_request_handler("tools/call", CallToolRequestParams, handler)
    server.middleware.clear()
    return server


async def _fast(ctx: Context, params: CallToolRequestParams) -> HandlerResult:
    del ctx, params
    return {"content": [], "resultType": "complete"}


async def _talking(ctx: Context, params: CallToolRequestParams) -> HandlerResult:
    reported = LoggingMessageNotification(params=LoggingMessageNotificationParams(level="info", data=params.name))
    await ctx.session.send_notification(reported, related_request_id=ctx.request_id)
    return {"content": [], "resultType": "complete"}


async def test_two_transports_serve_one_server() -> None:
    """Ours: the choice between them decides the form of an answer."""
    server = _server(_talking)
    as_json = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    as_stream = StreamableHTTPSessionManager(app=server, json_response=False, stateless=True)
    async with as_json.run(), as_stream.run():
        plain, stream = Asgi("tools/call", {"name": "x"}), Asgi("tools/call", {"name": "x"})
        await as_json.handle_request(plain.scope, plain.receive, plain.send)
        await as_stream.handle_request(stream.scope, stream.receive, stream.send)

    assert plain.kind == "application/json"
    assert stream.kind == "text/event-stream"
    assert stream.reported.index("notifications/message") < stream.reported.index("resultType")
    headers = dict(stream.sent[0]["headers"])
    assert headers[b"x-accel-buffering"] == b"no"
    assert b"no-cache" in headers[b"cache-control"]


async def test_a_stream_without_messages_is_json() -> None:
    """Ours: so everything that may talk can take the streaming way."""
    manager = StreamableHTTPSessionManager(app=_server(_fast), json_response=False, stateless=True)
    async with manager.run():
        asked = Asgi("tools/call", {"name": "x"})
        await manager.handle_request(asked.scope, asked.receive, asked.send)

    assert asked.kind == "application/json"


async def test_a_streaming_call_is_cancelled_when_its_client_leaves() -> None:
    """Ours: we do not watch those calls ourselves."""
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(ctx: Context, params: CallToolRequestParams) -> HandlerResult:
        del ctx, params
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return {}

    manager = StreamableHTTPSessionManager(app=_server(wait), json_response=False, stateless=True)
    async with manager.run(), anyio.create_task_group() as group:
        asked = Asgi("tools/call", {"name": "x"})
        group.start_soon(manager.handle_request, asked.scope, asked.receive, asked.send)
        with anyio.fail_after(10):
            await began.wait()
            asked.gone.set()
            await cancelled.wait()


def test_the_judges_of_a_modern_request_can_be_called() -> None:
    """Ours: requests that they accept are answered in front of the SDK, all others are the SDK's to refuse."""
    params: dict[str, Any] = {"_meta": META, "notifications": {}}
    body = {"method": "subscriptions/listen", "params": params}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}

    assert isinstance(classify_inbound_request(body, headers=headers), InboundModernRoute)
    assert isinstance(classify_inbound_request(body, headers={}), InboundLadderRejection)
    assert find_duplicated_routing_header([*headers.items(), ("Mcp-Method", "x")]) is not None
    assert find_duplicated_routing_header(headers.items()) is None
    validate_client_request("subscriptions/listen", "2026-07-28", params)
    with pytest.raises(ValidationError):
        validate_client_request("subscriptions/listen", "2026-07-28", {"_meta": META, "notifications": 7})


def test_events_become_notifications_with_the_id_of_their_subscription() -> None:
    """MCP: every message of a subscription names it."""
    for event in (ToolsListChanged(), ResourceUpdated(uri="note://1")):
        reported = event_to_notification(event, {SUBSCRIPTION_ID_META_KEY: 7}).model_dump(by_alias=True, mode="json")
        assert reported["params"]["_meta"][SUBSCRIPTION_ID_META_KEY] == 7


async def test_the_context_of_a_request_for_its_handler() -> None:
    """Ours: capabilities, `_meta` and the id of the request come with its context."""
    seen: list[Any] = []

    async def look(ctx: Context, params: CallToolRequestParams) -> HandlerResult:
        seen.extend(
            (ctx.session.client_capabilities, dict(ctx.meta or {}).keys(), ctx.request_id, params.request_state)
        )
        return {"content": [], "resultType": "complete"}

    manager = StreamableHTTPSessionManager(app=_server(look), json_response=True, stateless=True)
    async with manager.run():
        asked = Asgi("tools/call", {"name": "x"})
        await manager.handle_request(asked.scope, asked.receive, asked.send)

    assert seen[0] == ClientCapabilities()
    assert "io.modelcontextprotocol/clientCapabilities" in seen[1]
    assert seen[2:] == [1, None]


def test_rounds_are_the_methods_we_think() -> None:
    """MCP: only these may ask for input."""
    assert frozenset({"tools/call", "prompts/get", "resources/read"}) == INPUT_REQUIRED_METHODS


def test_states_open_with_every_key_and_are_sealed_with_the_first() -> None:
    """Ours: secret keys are exchanged while clients carry states (TEN-4)."""
    old, new = b"o" * 32, b"n" * 32
    sealed_before = AESGCMRequestStateCodec([old]).seal(b"x")
    rotating = AESGCMRequestStateCodec([new, old])

    assert rotating.unseal(sealed_before) == b"x"
    assert AESGCMRequestStateCodec([new]).unseal(rotating.seal(b"y")) == b"y"
    assert RequestStateBoundary(RequestStateSecurity(keys=[new, old], ttl=600), default_audience="gateway")


async def _discover(ctx: Context, params: RequestParams) -> HandlerResult:
    del ctx, params
    return {}


def test_a_request_without_parameters_of_its_own_is_typed() -> None:
    """Ours: `server/discover` is ours to answer."""
    server: Server[Any] = Server("t", version="1")
    server.add_request_handler("server/discover", RequestParams, _discover)
    assert server.get_request_handler("server/discover") is not None


def test_uvicorn_is_the_version_that_was_read() -> None:
    """Ours: our connection is a subclass of its own."""
    assert version("uvicorn").startswith("0.")
    assert issubclass(HardenedHttpProtocol, asyncio.Protocol)


async def test_uvicorns_connection_has_the_members_that_ours_uses() -> None:
    """Ours: its callbacks, its keep-alive timer and its cycle."""
    config = uvicorn.Config(_nothing, http=HardenedHttpProtocol, lifespan="off", log_config=None)
    config.load()
    server = uvicorn.Server(config)
    connection = HardenedHttpProtocol(config=config, server_state=server.server_state, app_state={})

    assert connection.timeout_keep_alive_task is None
    assert connection.connections is server.server_state.connections
    for name in ("on_message_begin", "on_headers_complete", "pause_writing", "resume_writing", "data_received"):
        assert callable(getattr(connection, name))
    assert config.http_protocol_class is HardenedHttpProtocol


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """No application."""


@pytest.mark.parametrize("name", ["response_complete", "disconnected", "message_event"])
def test_uvicorns_cycle_has_the_members_that_ours_uses(name: str) -> None:
    """Ours: true while a request is being answered."""

    assert name in RequestResponseCycle.__init__.__code__.co_names
