"""The bridge between standard streams and a tenant's URL: both eras, messages both ways, ends and failures."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from gateway.cli.stdio.bridge import Bridge
from gateway.protocol.stdio.streams import StdioStreams
from tests.behaviour.stdio.conftest import Tenant
from tests.behaviour.stdio.scripted import (
    EVENTS,
    Answer,
    Received,
    ScriptedRemote,
    initialized,
    reply,
    result,
    scripted_remote,
)
from tests.support.gateway import META
from tests.support.primitives import add, static_tool, text_resource, tool
from tests.support.replicas import until
from tests.support.stdio import RawClient, raw_client


async def test_a_session_is_bridged_both_ways_and_ended_with_the_input(acme: Tenant) -> None:
    """MCP: handshake, calls, and a change that the server announces; at the end the session is deleted (SRV-1)."""
    limited = await acme.gateway.admin.patch("/tenants/acme/policy", json={"limits": {"sessions": 1}})
    limited.raise_for_status()
    async with acme.bridged() as client:
        begun = await client.shake_hands()
        assert begun["serverInfo"]["name"] == "gateway"
        result = await client.call("get_pet", {"id": 7})
        assert json.loads(result["content"][0]["text"]) == {"ok": True}
        await add(acme.gateway, "acme", "tools", static_tool("fresh"))
        changed = await client.next()
        assert changed["method"] == "notifications/tools/list_changed"
        names = {tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]}
        assert "fresh" in names
    async with acme.bridged() as another:
        assert await another.shake_hands()


async def test_requests_without_a_session_are_bridged(acme: Tenant) -> None:
    """MCP: in 2026-07-28 the bridge adds the headers that HTTP requires, for names outside of ASCII too (SRV-1)."""
    await add(acme.gateway, "acme", "resources", text_resource("test://tall", "tall"))
    async with acme.bridged() as client:
        found = (await client.ask("server/discover", modern=True))["result"]
        assert "2026-07-28" in found["supportedVersions"]
        called = await client.call("get_pet", {"id": 7}, modern=True)
        unknown = await client.ask("tools/call", {"name": "größe"}, modern=True)
        read = (await client.ask("resources/read", {"uri": "test://tall"}, modern=True))["result"]
    assert called["resultType"] == "complete"
    assert unknown["error"]["code"] == -32602
    assert read["contents"][0]["text"] == "tall"


async def test_a_subscription_without_a_session_is_bridged_and_cancelled(acme: Tenant) -> None:
    """MCP: `subscriptions/listen` delivers changes; a cancelled one ends at the server (SRV-1, RES-6)."""
    async with acme.bridged() as client:
        wanted = {"notifications": {"toolsListChanged": True}}
        listening = await client.begin("subscriptions/listen", wanted, modern=True)
        assert (await client.next())["method"] == "notifications/subscriptions/acknowledged"
        await add(acme.gateway, "acme", "tools", static_tool("fresh"))
        assert (await client.next())["method"] == "notifications/tools/list_changed"
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listening}})
        again = await client.begin("subscriptions/listen", wanted, modern=True)
        assert again != listening
        assert (await client.next())["method"] == "notifications/subscriptions/acknowledged"


async def test_arguments_that_are_mirrored_into_headers_are_bridged(acme: Tenant) -> None:
    """MCP: a call without a list before it gets its `Mcp-Param-*` headers all the same (SRV-1)."""
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    handler = {"kind": "template", "text": "in {{ region }}"}
    await add(acme.gateway, "acme", "tools", tool("where", handler, schema=schema))
    async with acme.bridged() as client:
        for _ in range(2):
            found = await client.call("where", {"region": "Zürich"}, modern=True)
            assert found["content"][0]["text"] == "in Zürich"


async def test_the_server_asks_the_client_and_gets_an_answer(acme: Tenant) -> None:
    """MCP: requests of the server, progress and answers cross the bridge in a session (SRV-1)."""
    await acme.gateway.admin.patch("/tenants/acme/policy", json={"moderate": "confirm"})
    async with acme.bridged() as client:
        await client.shake_hands(elicitation={})
        call = {"name": "create_pet", "arguments": {"body": {"name": "Rex"}}}
        asked_id = await client.begin("tools/call", call)
        question = await client.next()
        assert question["method"] == "elicitation/create"
        given = {"action": "accept", "content": {"confirm": True}}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": given})
        made = (await client.response_to(asked_id))["result"]
    assert made.get("isError", False) is False
    assert [seen.method for seen in acme.upstream.seen] == ["POST"]


async def test_a_cancelled_call_is_cancelled_at_the_server_and_has_no_response(acme: Tenant) -> None:
    """MCP: a cancellation reaches the gateway in both eras, and the bridge goes on (SRV-1)."""
    acme.upstream.gate = asyncio.Event()
    async with acme.bridged() as client:
        await client.shake_hands()
        for number, is_modern in enumerate((False, True), 1):
            has_cancelled = partial(_has_cancelled, acme, number)
            acme.upstream.arrived.clear()
            named = await client.begin("tools/call", {"name": "list_pets", "arguments": {}}, modern=is_modern)
            await acme.upstream.arrived.wait()
            await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": named}})
            await until(has_cancelled, seconds=20)
            assert "result" in await client.ask("ping")
    assert client.others == []


async def test_an_expired_session_is_opened_again_with_its_subscriptions() -> None:
    """Ours: a request that finds its session gone is sent again in a new one, once for all that find it (SRV-1)."""
    state = {"session": "s1"}

    async def answer(request: Received) -> bytes:
        if request.message.get("method") == "initialize":
            return initialized(request, state["session"])
        if request.method == "GET":
            return reply(b"", status=405)
        if request.headers.get("mcp-session-id") != state["session"]:
            return reply({}, status=404)
        return reply(result(request)) if "id" in request.message else reply(b"", status=202)

    async with _bridged(answer) as (client, remote):
        await client.shake_hands()
        await client.ask("resources/subscribe", {"uri": "test://a"})
        await client.ask("resources/subscribe", {"uri": "test://b"})
        await client.ask("resources/unsubscribe", {"uri": "test://b"})
        state["session"] = "s2"
        named = [await client.begin("tools/list") for _ in range(5)]
        seen: dict[object, dict[str, Any]] = {}
        changed: list[str] = []
        while len(seen) < len(named):
            message = await client.next()
            if "method" in message:
                changed.append(message["method"])
            else:
                seen[message["id"]] = message
    assert all("result" in message for message in seen.values())
    assert changed == ["notifications/tools/list_changed"]
    assert len(remote.named("initialize")) == 2
    again = [one for one in remote.named("resources/subscribe") if one.headers["mcp-session-id"] == "s2"]
    assert [one.message["params"]["uri"] for one in again] == ["test://a"]
    assert [one.headers["mcp-session-id"] for one in remote.named("DELETE")] == ["s2"]


async def test_a_broken_stream_is_resumed_after_its_last_event() -> None:
    """MCP: the messages and the response of a broken stream are delivered once each (SRV-1)."""

    async def answer(request: Received) -> bytes:
        if request.message.get("method") == "initialize":
            return initialized(request)
        progress = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}'
        if request.message.get("method") == "tools/call":
            return EVENTS + b"id: r/1\ndata:\n\nid: r/2\r\ndata: " + progress % 1 + b"\r\n\r\nid: r/3\ndata: {cut"
        if request.headers.get("last-event-id") == "r/2":
            done = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"content": []}}, indent=1).encode()
            lines = b"".join(b"data: " + line + b"\n" for line in done.splitlines())
            return EVENTS + b"id: r/3\ndata: " + progress % 2 + b"\n\nid: r/4\n" + lines + b"\n"
        return reply(b"", status=405 if request.method == "GET" else 202)

    async with _bridged(answer) as (client, _):
        await client.shake_hands()
        assert await client.call("x") == {"content": []}
    assert [one["params"]["progress"] for one in client.others] == [1, 2]


async def test_the_standalone_stream_is_opened_again_after_its_last_event() -> None:
    """MCP: messages that belong to no request are delivered once each, over any number of connections (SRV-1)."""

    async def answer(request: Received) -> bytes:
        if request.message.get("method") == "initialize":
            return initialized(request)
        if request.method != "GET":
            return reply(b"", status=202)
        number = int(request.headers.get("last-event-id", "0")) + 1
        note = b'data: {"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}\n\n' % number
        wrong = b'data: {"jsonrpc":"2.0","id":1,"result":{"no":"request is open"}}\n\n'
        return EVENTS + b"id: %d\n" % number + note + wrong

    async with _bridged(answer) as (client, _):
        await client.shake_hands()
        assert [(await client.next())["params"]["n"] for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("answered", "code"),
    [
        (reply({"title": "x", "detail": "no such key"}, status=401), 40100),
        (reply(b"<html>", status=502), 50300),
        (reply({"jsonrpc": "2.0", "id": None, "error": {"code": -32020, "message": "x"}}, status=400), -32020),
        (reply({"jsonrpc": "2.0", "id": 99, "result": {"of": "another"}}), 50300),
        (reply(b"[" * 100_000), 50300),
        (reply({"jsonrpc": "2.0", "id": "1", "result": {"of": "another type"}}), 50300),
        (EVENTS + b'data: {"jsonrpc":"2.0","id":99,"result":{}}\n\n', 50300),
        (reply(b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}'), 50300),
        (EVENTS + b"data: no json\n\n: comment\n\nevent\n\n", 50300),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", 50300),
        (b"nonsense", 50300),
        (b"", 50300),
    ],
)
async def test_a_broken_server_costs_one_request(answered: bytes, code: int) -> None:
    """Ours: whatever comes instead of a response, the request gets one error with its own id (CAL-4)."""

    async def answer(_: Received) -> bytes:
        return answered

    async with _bridged(answer) as (client, _):
        response = await client.ask("tools/list", modern=True)
        assert response["error"]["code"] == code
        assert "result" not in await client.ask("ping")


@pytest.mark.parametrize("strange", ["größe", "a\x00b", " "])
async def test_event_ids_that_no_header_can_have_are_ignored(strange: str) -> None:
    """Ours: a stream is resumed after the last event whose id can be sent, and the bridge goes on (CAL-4)."""
    standalone, is_opened_again = iter((True,)), asyncio.Event()

    async def answer(request: Received) -> bytes:
        if request.message.get("method") == "initialize":
            return initialized(request)
        if request.message.get("method") == "tools/call":
            return EVENTS + b"id: good\ndata:\n\nid: " + strange.encode() + b"\ndata:\n\n"
        if request.headers.get("last-event-id") == "good":
            done: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}
            return EVENTS + b"data: " + json.dumps(done).encode() + b"\n\n"
        if request.method == "GET" and next(standalone, False):
            return EVENTS + b"id: " + strange.encode() + b"\ndata:\n\n"
        if request.method == "GET":
            is_opened_again.set()
        return reply(b"", status=405 if request.method == "GET" else 202)

    async with _bridged(answer) as (client, remote):
        await client.shake_hands()
        assert await client.call("x") == {"content": []}
        async with asyncio.timeout(20):
            await is_opened_again.wait()
    assert {one.headers.get("last-event-id") for one in remote.named("GET")} == {None, "good"}


@pytest.mark.parametrize("strange", ["größe", "a b", "a\tb", ""])
async def test_a_session_id_that_no_header_can_have_is_refused(strange: str) -> None:
    """Ours: the handshake fails, also when it replaces an expired session; the bridge goes on (CAL-4)."""
    given = ["s1"]

    async def answer(request: Received) -> bytes:
        if request.message.get("method") == "initialize":
            return initialized(request, given.pop() if given else strange)
        return reply(b"", status=404 if "id" in request.message else 405)

    async with _bridged(answer) as (client, _):
        await client.shake_hands()
        assert "session id" in (await client.ask("tools/list"))["error"]["message"]

    async with _bridged(answer) as (client, _):
        assert "session id" in (await client.ask("initialize", {}))["error"]["message"]
        assert "error" in await client.ask("tools/list")


async def test_an_endless_event_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a server cannot fill the bridge's memory (CAL-5)."""
    monkeypatch.setattr("gateway.cli.stdio.event_stream.MAX_MESSAGE_BYTES", 100_000)
    monkeypatch.setattr("gateway.cli.stdio.remote_endpoint.MAX_MESSAGE_BYTES", 100_000)
    for endless in (EVENTS + b"data: " + b"x" * 200_000, EVENTS + b"data: x\n" * 50_000, reply(b" " * 200_000)):

        async def answer(_: Received, endless: bytes = endless) -> bytes:
            return endless

        async with _bridged(answer) as (client, _):
            error = (await client.ask("tools/list", modern=True))["error"]
            assert error["code"] == 50300
            assert "larger than 100000 bytes" in error["message"]


async def test_an_unreachable_gateway_is_an_error_for_each_request() -> None:
    """Ours: the client gets an error, and the bridge continues until the gateway is back (CAL-4)."""

    async def serve(streams: StdioStreams) -> None:
        await Bridge("http://127.0.0.1:1/t/acme/mcp", "key", streams).serve()

    async with raw_client(serve) as client:
        for method in ("initialize", "tools/list"):
            refused = await client.ask(method, {"protocolVersion": "2025-11-25"})
            assert refused["error"]["code"] == 50300
            assert "cannot reach" in refused["error"]["message"]
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (await client.ask("tools/list", modern=True))["error"]["code"] == 50300


async def test_header_values_cannot_be_injected(acme: Tenant) -> None:
    """Ours: names, methods and revisions from the client never become further headers (TEN-5)."""
    async with acme.bridged() as client:
        for method, params in (
            ("tools/call", {"name": "x\r\nMcp-Session-Id: y", "_meta": META}),
            ("x\r\nAuthorization: y", {"_meta": META}),
            ("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "a\r\nb: c"}}),
            ("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "größe"}}),
        ):
            assert "error" in await client.ask(method, params)
        assert "result" in await client.ask("tools/list", modern=True)


@asynccontextmanager
async def _bridged(answer: Answer) -> AsyncGenerator[tuple[RawClient, ScriptedRemote]]:
    """A client of a bridge to a scripted server."""
    async with scripted_remote(answer) as remote:

        async def serve(streams: StdioStreams) -> None:
            await Bridge(remote.url, "key", streams).serve()

        async with raw_client(serve) as client:
            yield client, remote


async def _has_cancelled(acme: Tenant, number: int) -> bool:
    trail = (await acme.gateway.admin.get("/tenants/acme/audit", params={"kind": "call"})).raise_for_status()
    return [entry["outcome"] for entry in trail.json()["items"]].count("cancelled") == number
