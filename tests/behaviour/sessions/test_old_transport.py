"""HTTP+SSE of 2024-11-05 over two replicas, and notices of every list on every transport."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import Events, Wire, call, request
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource
from tests.support.replicas import Replica, until

BEGIN = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
ANYTHING = {"kind": "template", "text": "row {{ id }}"}
CHANGES = (
    ("tools", static_tool("brand_new"), "notifications/tools/list_changed"),
    ("resources", text_resource("note://new"), "notifications/resources/list_changed"),
    (
        "resource-templates",
        template("row://{id}", ANYTHING, mimeType="text/plain"),
        "notifications/resources/list_changed",
    ),
    ("prompts", text_prompt("another"), "notifications/prompts/list_changed"),
)


@dataclass(frozen=True, slots=True)
class Old:
    """A client of the old transport, whose stream is at one replica."""

    wire: Wire
    events: Events
    path: str

    async def post(self, at: Replica, body: dict[str, Any]) -> httpx2.Response:
        """Send one message to a replica."""
        return await self.wire.client(at).post(self.path, json=body, headers={"accept": ACCEPT})

    async def initialize(self, at: Replica) -> None:
        """Shake hands at a replica; the answer is on the stream."""
        assert (await self.post(at, request("initialize", BEGIN, 0))).status_code == 202
        answer = await self.events.message()
        assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert (await self.post(at, {"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202


@asynccontextmanager
async def _old(talk: Talk, stream: Replica) -> AsyncGenerator[Old]:
    wire = Wire(talk.replicas, talk.slug, talk.key)
    talk.stack.push_async_callback(wire.close)
    opened = wire.client(stream).stream("GET", f"/t/{talk.slug}/sse", headers={"accept": "text/event-stream"})
    async with opened as response:
        events = Events(response)
        yield Old(wire, events, (await events.next()).data)


@asynccontextmanager
async def _listens_old(talk: Talk) -> AsyncGenerator[Events]:
    async with _old(talk, talk.replicas.b) as old:
        await old.initialize(talk.replicas.a)
        yield old.events


@asynccontextmanager
async def _listens_session(talk: Talk) -> AsyncGenerator[Events]:
    wire = await talk.wire()
    async with wire.listening(talk.replicas.b) as events:
        await events.next()
        yield events


@asynccontextmanager
async def _listens_modern(talk: Talk) -> AsyncGenerator[Events]:
    wanted = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}
    body = request("subscriptions/listen", {"_meta": META, "notifications": wanted})
    wire = Wire(talk.replicas, talk.slug, talk.key)
    talk.stack.push_async_callback(wire.close)
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "subscriptions/listen"}
    async with wire.streaming(talk.replicas.b, body, **headers) as events:
        assert (await events.message())["method"] == "notifications/subscriptions/acknowledged"
        yield events


@pytest.mark.parametrize("listens", [_listens_old, _listens_session, _listens_modern])
async def test_every_changed_list_is_noticed_on_every_transport(own_talk: Talk, listens: Any) -> None:
    """MCP: the notifications that `listChanged` promises are sent for each list, whichever replica changed it (CAP-2,
    SRV-1).
    """
    await add(own_talk.gateway, own_talk.slug, "prompts", text_prompt("greet"))
    opened: AbstractAsyncContextManager[Events] = listens(own_talk)
    async with opened as events:
        for nouns, body, method in CHANGES:
            await add(own_talk.gateway, own_talk.slug, nouns, body)
            assert (await events.message())["method"] == method


async def test_undeclared_notices_are_not_sent_on_the_old_transport(own_talk: Talk) -> None:
    """MCP: notices only of what `initialize` declared (CAP-1)."""
    async with _listens_old(own_talk) as events:
        await add(own_talk.gateway, own_talk.slug, "prompts", text_prompt("greet"))
        await add(own_talk.gateway, own_talk.slug, "tools", static_tool("brand_new"))
        assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_a_request_before_the_handshake_is_refused_with_the_remedy(talk: Talk) -> None:
    """MCP: before `initialize` a server answers nothing but pings; ours: the refusal names what to send (SRV-1)."""
    async with _old(talk, talk.replicas.a) as old:
        for body in (request("tools/list"), call("echo", {"name": "you"}, request_id="c")):
            assert (await old.post(talk.replicas.b, body)).status_code == 202
            refused = await old.events.message()
            assert (refused["id"], refused["error"]["code"]) == (body["id"], -32600)
            assert "send initialize" in refused["error"]["message"]
        await old.post(talk.replicas.b, request("ping", None, "p"))
        assert (await old.events.message())["result"] == {}
        await old.initialize(talk.replicas.b)
        await old.post(talk.replicas.b, call("echo", {"name": "you"}))
        assert (await old.events.message())["result"]["content"][0]["text"] == "hello you"


async def test_a_cancelled_request_is_not_answered_on_the_old_transport(talk: Talk) -> None:
    """MCP: nothing is sent for a cancelled request; the stream goes on (SRV-1)."""
    async with _old(talk, talk.replicas.a) as old:
        await old.initialize(talk.replicas.b)
        talk.upstream.gate = asyncio.Event()
        await old.post(talk.replicas.b, call("wait", request_id="gone", progressToken=1))
        assert (await old.events.message())["method"] == "notifications/progress"
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}}
        await old.post(talk.replicas.b, cancel)
        await old.post(talk.replicas.b, request("ping", None, "p"))
        reported = await old.events.message()
    assert reported["id"] == "p"


async def test_messages_are_refused_once_the_replica_with_the_stream_is_gone(own_talk: Talk) -> None:
    """Ours: 404 makes the client reconnect, where 202 would leave it waiting (SRV-3)."""
    a, b = own_talk.replicas.all
    async with _old(own_talk, a) as old:
        await old.initialize(b)
        a.kill()

        async def is_refused() -> bool:
            return (await old.post(b, request("ping"))).status_code == 404

        await until(is_refused, seconds=15)
        assert not own_talk.stored(f"*{old.path.partition('session_id=')[2]}*")
        async with _old(own_talk, b) as again:
            await again.initialize(b)
