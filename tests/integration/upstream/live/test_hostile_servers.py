"""MCP servers that break the protocol, flood, or try to learn what is not theirs."""

import asyncio
import contextlib
import gzip
import itertools
import json
from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.domain.sessions import SessionOwner
from gateway.errors import GatewayError, UpstreamBusy
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.mcp import local_sessions
from gateway.upstream.live.mcp.changes import follow_changes
from gateway.upstream.live.mcp.limits import MAX_FOLLOWED, MAX_MESSAGE_BYTES, MAX_MESSAGES, MAX_QUESTIONS
from gateway.upstream.live.mcp.link import McpLink
from gateway.upstream.live.mcp.session import ServerFacts, StreamNotOffered
from tests.integration.upstream.live.parts import Client, Listener, mcp_connector, source
from tests.integration.upstream.live.scripted_server import (
    EVENTS,
    Reply,
    Scripted,
    World,
    attached_to,
    event,
    json_body,
    result,
)
from tests.integration.upstream.loopback import Exchange, body, loopback
from tests.support.replicas import until

CALL: dict[str, Any] = {"name": "t", "arguments": {}}
FACTS: dict[str, Any] = {"protocolVersion": "2024-11-05", "capabilities": {}}
SECRET = "s3cr3t-of-the-tenant-0123456789"


async def call(world: World, client: Client | None = None) -> Any:
    """Call a tool."""
    return await world.attachment.request("tools/call", CALL, client or Client())


def note(method: str, **params: object) -> Callable[[dict[str, Any]], bytes]:
    """Makes a notification."""
    return lambda _: event({"jsonrpc": "2.0", "method": method, "params": params})


def done(message: dict[str, Any]) -> bytes:
    """The result of a call."""
    return event(result(message, {"content": []}))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":1,"a":2}}', "the key 'a'"),
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":NaN}}', "NaN is not JSON"),
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":1e999}}', "too large"),
        (b'{"jsonrpc":"2.0","id":2,"result":' + b'{"a":' * 100 + b"1" + b"}" * 101, "nested deeper than 64"),
        (b"[" * 100_000, "no valid message"),
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":"\xff"}}', "not UTF-8"),
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":"\\ud800"}}', "surrogate"),
        (b'[{"jsonrpc":"2.0","id":2,"result":{}}]', "a message that is not JSON-RPC"),
        (b'{"id":2,"result":{}}', "a message that is not JSON-RPC"),
        (b'"x"', "not JSON-RPC"),
        (b'{"jsonrpc":"2.0","id":2,"result":[]}', "without a result object"),
        (b'{"jsonrpc":"2.0","id":2,"error":"boom"}', "without a result object"),
        (b'{"jsonrpc":"2.0","id":3,"result":{}}', "to another request"),
        (b'{"jsonrpc":"2.0","id":"2","result":{}}', "to another request"),
        (b'{"jsonrpc":"2.0","id":null,"result":{}}', "to another request"),
        (b'{"jsonrpc":"2.0","id":2}', "without a method"),
        (b"", "ended the response before the result"),
    ],
    ids=range(17),
)
async def test_an_invalid_message_fails_the_call(raw: bytes, reason: str) -> None:
    """Ours: a message that parsers read differently, and one that is no response to the request, have one clear reason
    (DYN-5).
    """
    script = Scripted()
    script.states("tools/call", raw)
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match=reason):
            await call(world)


async def test_another_content_type_fails_the_call() -> None:
    """Ours: a web page is no answer."""
    script = Scripted()

    async def page(_: Exchange, __: dict[str, Any]) -> bytes:
        return body(b"<html>", "Content-Type: text/html")

    script.replies["tools/call"] = page
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="neither JSON nor a stream"):
            await call(world)


@pytest.mark.parametrize(("status", "reason"), [(302, "redirects are not followed"), (401, "credential"), (500, "500")])
async def test_a_status_has_a_reason(status: int, reason: str) -> None:
    """Ours: no redirect is followed, and a refusal has its status."""
    script = Scripted()
    script.states("tools/call", b"", "Location: http://127.0.0.1:1/", status=status)
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match=reason):
            await call(world)


async def test_words_of_the_server_are_printable_and_short() -> None:
    """Ours: an error is quoted, with its code, and cannot fill a log or a terminal."""
    script = Scripted()
    words = "\x1b[2J\n\u202e" + "x" * 100_000
    script.states("tools/call", {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": words}})
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed) as caught:
            await call(world)

    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400
    assert "-32000" in caught.value.message


async def test_a_flood_of_messages_ends_the_call() -> None:
    """Ours: a response has a bounded number of messages."""
    script = Scripted()
    flood = note("notifications/x")({}) * (MAX_MESSAGES + 1)
    script.streams("tools/call", lambda _: flood, done)
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="more than 10,000 messages"):
            await call(world)


async def test_an_endless_event_ends_the_call() -> None:
    """Ours: an event has a bounded size, even if it never ends."""
    script = Scripted()

    async def endless(exchange: Exchange, _: dict[str, Any]) -> None:
        await exchange.write(EVENTS, b"data: ")
        for _count in range(MAX_MESSAGE_BYTES // (1 << 18) + 8):
            await exchange.write(b"x" * (1 << 18))
        await exchange.reader.read()

    script.replies["tools/call"] = endless
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="an event of more than 10,485,760 bytes"):
            await call(world)


async def test_a_huge_body_ends_the_call() -> None:
    """Ours: a response has a bounded size, compressed or not."""
    script = Scripted()

    async def huge(exchange: Exchange, _: dict[str, Any]) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        await exchange.write(head, *[b" " * (1 << 20)] * 24)

    async def bomb(_: Exchange, __: dict[str, Any]) -> bytes:
        return body(gzip.compress(b" " * (64 << 20), 9), "Content-Type: application/json", "Content-Encoding: gzip")

    replies: list[Reply] = [huge, bomb]
    for reply in replies:
        script.replies["tools/call"] = reply
        async with attached_to(script) as world:
            with pytest.raises(LiveSourceFailed, match=r"than a result may be|expands more than 100-fold"):
                await call(world)


async def test_a_message_beyond_the_limit_of_results_is_refused() -> None:
    """Ours: a result has at most 10 MiB."""
    script = Scripted()
    script.states("tools/call", b'{"jsonrpc":"2.0","id":2,"result":{"x":"' + b"x" * MAX_MESSAGE_BYTES + b'"}}')
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="a message of more than"):
            await call(world)


async def test_a_broken_connection_ends_the_call_at_once() -> None:
    """Ours: a server that dies inside its answer fails the call with a reason."""
    script = Scripted()

    async def half(exchange: Exchange, _: dict[str, Any]) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")

    script.replies["tools/call"] = half
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="connection was lost"):
            await call(world)


async def test_a_stream_that_ends_early_is_a_lost_attachment() -> None:
    """Ours: the call ends with a clean error."""
    script = Scripted()
    script.streams("tools/call", note("notifications/x"))
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceDetached, match="ended the response before the result"):
            await call(world)


async def test_a_silent_server_ends_with_the_time_limit() -> None:
    """Ours: `timeout_s` bounds the call, and the server is notified."""
    script = Scripted()

    async def silent(exchange: Exchange, _: dict[str, Any]) -> None:
        await exchange.reader.read()

    script.replies["tools/call"] = silent
    async with attached_to(script, timeout_s=0.2) as world:
        with pytest.raises(LiveSourceFailed, match=r"did not respond within 0.2 seconds"):
            await call(world)
    assert script.sent("DELETE")
    assert [each["params"] for each in script.sent("notifications/cancelled")] == [{"requestId": 2}]


async def test_a_caller_keeps_the_session_of_a_cancelled_request() -> None:
    """Ours: the state of a caller's session outlives a request that the server did not answer in time (DYN-5)."""
    script = Scripted()

    async def silent(exchange: Exchange, _: dict[str, Any]) -> None:
        await exchange.reader.read()

    script.replies["tools/call"] = silent
    async with attached_to(script, timeout_s=0.2) as world:
        with pytest.raises(LiveSourceFailed, match="did not respond"):
            await call(world)
        del script.replies["tools/call"]
        await call(world)
    assert script.sessions == 2  # the attachment's own, and the caller's


@pytest.mark.parametrize("is_retired", [True, False])
async def test_the_session_of_a_request_that_outlives_its_attachment_is_ended(is_retired: bool) -> None:
    """Ours: a source that is changed during a call leaves no session at its server; a replica that stops leaves the
    sessions of callers to the others.
    """
    script, began, finish = Scripted(), asyncio.Event(), asyncio.Event()

    async def slow(_: Exchange, message: dict[str, Any]) -> bytes:
        began.set()
        await finish.wait()
        return json_body(result(message, {"content": []}))

    script.replies["tools/call"] = slow
    async with (
        loopback(script.answer) as server,
        UpstreamClient(egress_allow=[server.authority]) as upstream,
        TaskSupervisor() as tasks,
        asyncio.TaskGroup() as group,
    ):
        connector = mcp_connector(upstream)(tasks.spawn)
        declared = source({"url": f"http://{server.authority}/mcp"})
        async with connector.attach(declared, Listener()) as attachment:
            running = group.create_task(attachment.request("tools/call", CALL, Client()))
            await began.wait()
            if is_retired:
                attachment.retire()
        assert len(script.sent("DELETE")) == 1  # the attachment's own session
        finish.set()
        assert await running == {"content": []}
        if is_retired:
            await until(lambda: len(script.sent("DELETE")) == 2)
    assert len(script.sent("DELETE")) == 1 + is_retired


async def test_sessions_are_ended_also_when_the_attachment_is_cancelled() -> None:
    """Ours: a source that is removed leaves no session at a slow server."""
    script, ended = Scripted(), 0

    async def slow(_: Exchange, __: dict[str, Any]) -> bytes:
        nonlocal ended
        for _turn in range(100):  # an unshielded wait is cancelled again in each turn of the loop
            await asyncio.sleep(0)
        ended += 1
        return body(b"", status=200)

    script.replies["DELETE"] = slow
    with anyio.CancelScope() as scope:
        async with attached_to(script) as world:
            await call(world)
            world.attachment.retire()
            scope.cancel()
            await anyio.sleep_forever()
    assert ended == 2


async def test_a_server_that_keeps_silent_to_the_end_of_a_session_delays_closing_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: a changed source and a replica that stops do not wait for a hostile server, whose connection is closed."""
    monkeypatch.setattr("gateway.upstream.live.mcp.clean_up.MAX_CLEAN_UP_S", 0.2)
    script, closed = Scripted(), 0

    async def silent(exchange: Exchange, _: dict[str, Any]) -> None:
        nonlocal closed
        await exchange.reader.read()
        closed += 1

    script.replies["DELETE"] = silent
    async with attached_to(script) as world:
        await call(world)
    assert closed == 1  # that of the pool; the time of the attachment is used up


async def test_the_clock_stops_while_the_client_answers() -> None:
    """Ours: a user may take longer than the server."""
    script = Scripted()
    answered = asyncio.Event()

    async def ask(exchange: Exchange, message: dict[str, Any]) -> None:
        question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}}
        await exchange.write(EVENTS, event(question))
        await answered.wait()
        await exchange.write(event(result(message, {"content": [], "_meta": {"a": 1}})))

    async def take(_: Exchange, __: dict[str, Any]) -> bytes:
        answered.set()
        return body(b"", status=202)

    script.replies |= {"tools/call": ask, "": take}

    class Slow(Client):
        async def ask(self, method: str, params: Any) -> Any:
            await asyncio.sleep(0.5)  # longer than the limit of the server
            return {"action": "decline"}

    async with attached_to(script, timeout_s=0.2) as world:
        assert (await call(world, Slow()))["_meta"] == {"a": 1}
    assert {"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}} in script.messages


async def test_a_flood_of_questions_ends_the_call() -> None:
    """Ours: a request has a bounded number of questions, pings among them."""
    script = Scripted()
    pings = event({"jsonrpc": "2.0", "id": 1, "method": "ping"}) * (MAX_QUESTIONS + 1)
    script.streams("tools/call", lambda _: pings, done)
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="more than 16 requests to the client"):
            await call(world)


async def test_other_methods_are_refused_to_the_server() -> None:
    """Ours: a server cannot make the gateway do anything but ask the client."""
    script = Scripted()
    script.streams(
        "tools/call", lambda _: event({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": CALL}), done
    )
    async with attached_to(script) as world:
        assert await call(world) == {"content": []}
    assert [each["error"]["code"] for each in script.messages if each.get("id") == "x"] == [-32601]


async def test_progress_of_another_token_is_dropped() -> None:
    """Ours: only the token of the request counts, and wrong types are dropped."""
    script = Scripted()
    script.streams(
        "tools/call",
        note("notifications/progress", progressToken=999, progress=1),
        note("notifications/progress", progressToken=2, progress="1"),
        note("notifications/progress", progressToken=2, progress=True),
        note("notifications/message", level="shout", data=1),
        note("notifications/message", level="info", data={"a": 1}, logger=7),
        done,
    )
    client = Client()
    async with attached_to(script) as world:
        await call(world, client)
    assert client.notified == [("log", "info", {"a": 1}, None)]


async def test_nothing_of_the_clients_request_is_sent() -> None:
    """Ours: `_meta` of the client, such as its progress token, stays here."""
    script = Scripted()
    async with attached_to(script, headers={"X-Team": "blue"}) as world:
        params = {**CALL, "_meta": {"progressToken": "client's", "traceparent": "00-1"}}
        await world.attachment.request("tools/call", params, Client())
        heads = [each.header("x-team") for each in world.server.exchanges]

    (sent,) = script.sent("tools/call")
    assert sent["params"] == {**CALL, "_meta": {"progressToken": 2}}
    assert all(head == ["blue"] for head in heads)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer x"),
        ("cookie", "a=b"),
        ("Host", "elsewhere"),
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("MCP-Session-Id", "theirs"),
        ("Last-Event-ID", "1"),
        ("X-Forwarded-For", "1.1.1.1"),
        ("X-Ok", "a\r\nX-Injected: 1"),
        ("X Ok", "a"),
        ("X-Ok", 7),
    ],
)
async def test_declared_headers_cannot_frame_or_identify(name: str, value: object) -> None:
    """Ours: credentials are stored ones, and the gateway frames its requests itself."""
    with pytest.raises(LiveSourceFailed, match=r"set by the gateway only|cannot be sent"):
        async with attached_to(Scripted(), headers={name: value}):
            pass


async def test_the_credential_is_redacted_wherever_it_is_echoed() -> None:
    """Ours: neither results nor errors, logs or questions contain it (ISO-4)."""
    script = Scripted()
    echo = f"you sent {SECRET}"
    script.streams(
        "tools/call",
        note("notifications/message", level="info", data=echo),
        lambda message: event({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"message": echo}}),
        lambda message: event(result(message, {"content": [{"type": "text", "text": echo}]})),
    )
    script.states("resources/read", {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": echo}})
    script.states("prompts/get", {"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": echo}}, status=500)
    client = Client({"elicitation/create": {"action": "cancel"}})
    async with attached_to(script, secret=SECRET) as world:
        got = await call(world, client)
        with pytest.raises(LiveSourceFailed) as read:
            await world.attachment.request("resources/read", {"uri": "x:"}, client)
        with pytest.raises(LiveSourceFailed) as prompt:
            await world.attachment.request("prompts/get", {"name": "x"}, client)
        assert world.server.exchanges[-1].header("authorization") == [f"Bearer {SECRET}"]

    seen = json.dumps([got, client.notified, client.asked]) + read.value.message + prompt.value.message
    assert SECRET not in seen
    assert "you sent ***" in seen


async def test_the_credential_goes_only_to_its_origin() -> None:
    """Ours: nothing is sent to another origin (ISO-4)."""
    script = Scripted()
    with pytest.raises(LiveSourceFailed, match="was not stored for the origin of this request"):
        async with attached_to(script, secret=SECRET, origin="https://elsewhere.test"):
            pass
    assert not script.messages


async def test_a_forgotten_session_is_opened_again_once() -> None:
    """Ours: after a 404 the request is sent once more, in a new session."""
    script = Scripted()
    answers = iter([json_body({}, status=404), None, json_body({}, status=404), json_body({}, status=404)])

    async def forget(_: Exchange, message: dict[str, Any]) -> bytes:
        return next(answers) or json_body(result(message, {"content": [1]}))

    async with attached_to(script) as world:
        await call(world)
        script.replies["tools/call"] = forget
        assert await call(world) == {"content": [1]}
        assert script.sessions == 3  # the attachment's own, the client's, the new one
        with pytest.raises(LiveSourceFailed, match="404"):
            await call(world)
    assert script.sessions == 4


async def test_sessions_serve_one_identity() -> None:
    """Ours: clients of other capabilities have other sessions; equal ones share them in turn."""
    script = Scripted()
    async with attached_to(script) as world:
        for _ in range(3):
            await call(world)
        assert script.sessions == 2
        await call(world, Client(abilities=frozenset({"roots"})))
        assert script.sessions == 3

    declared = [each["params"]["capabilities"] for each in script.sent("initialize")]
    every: dict[str, object] = {"elicitation": {"url": {}, "form": {}}, "roots": {}, "sampling": {}}
    assert declared == [
        every | {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}},
        every,
        {"roots": {}},
    ]


async def test_concurrent_requests_of_a_caller_share_its_session() -> None:
    """Ours: the session of a caller is one, whatever runs in it; another caller has another one (DYN-5)."""
    script = Scripted()
    both = anyio.Event()
    ids: dict[str, list[object]] = {}

    async def meet(exchange: Exchange, message: dict[str, Any]) -> bytes:
        [session] = exchange.header("mcp-session-id")
        ids.setdefault(session, []).append(message["id"])
        if sum(map(len, ids.values())) == 3:
            both.set()
        await both.wait()
        return json_body(result(message, {"content": []}))

    script.replies["tools/call"] = meet
    async with attached_to(script) as world:
        await asyncio.gather(call(world), call(world), call(world, Client(owner=SessionOwner("bob", "s"))))
    assert sorted(len(set(each)) for each in ids.values()) == [1, 2]


@pytest.mark.parametrize("identifier", ["x" * 2000, "a b", ""])
async def test_a_session_id_that_cannot_be_sent_is_refused(identifier: str) -> None:
    """Ours: the server's id is a header of the gateway's requests."""
    script = Scripted()

    async def open_(_: Exchange, message: dict[str, Any]) -> bytes:
        found: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
        return json_body(result(message, found), f"Mcp-Session-Id: {identifier}")

    script.replies["initialize"] = open_
    with pytest.raises(LiveSourceFailed):
        async with attached_to(script):
            pass


async def test_an_unknown_revision_is_refused() -> None:
    """Ours: the gateway does not guess."""
    script = Scripted()
    script.states("initialize", {"protocolVersion": "1999-01-01\x1b", "capabilities": {}})
    with pytest.raises(LiveSourceFailed, match="1999-01-01"):
        async with attached_to(script):
            pass


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"resultType": "input_required"}, "without naming it"),
        ({"resultType": "input_required", "inputRequests": {"a": {"method": "tools/call"}}}, "not supported"),
        ({"resultType": "input_required", "inputRequests": [1]}, "without naming it"),
        ({"resultType": "input_required", "requestState": "x" * (2 << 20)}, "too large"),
        ({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}, "more than 10 rounds"),
        (
            {"resultType": "input_required", "inputRequests": {str(n): {"method": "roots/list"} for n in range(17)}},
            "more than 16 requests to the client",
        ),
        ({"resultType": "task"}, "unsupported kind of result"),
        ({"resultType": 7}, "unsupported kind of result"),
    ],
    ids=range(8),
)
async def test_required_input_is_bounded(answer: dict[str, object], reason: str) -> None:
    """Ours: a server of the newest revision asks a bounded number of questions, in bounded rounds."""
    script = Scripted(is_modern=True)
    script.states("tools/call", answer)
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match=reason):
            await call(world, Client({"roots/list": {"roots": []}}))


async def test_arguments_are_repeated_in_headers_when_the_server_requires_them() -> None:
    """MCP 2026-07-28: arguments marked with `x-mcp-header` are sent as headers, encoded where they could be misread."""
    script = Scripted(is_modern=True)
    script.capabilities = {"tools": {}}
    schema = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    script.states("tools/list", {"tools": [{"name": "t", "inputSchema": schema}], "resultType": "complete"})

    async def strict(exchange: Exchange, message: dict[str, Any]) -> bytes:
        if exchange.header("mcp-param-city") != ["=?base64?S8O2bG4=?="]:
            refusal = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "header"}}
            return json_body(refusal, status=400)
        return json_body(result(message, {"content": [2], "resultType": "complete"}))

    script.replies["tools/call"] = strict
    async with attached_to(script) as world:
        for _ in range(2):
            params = {"name": "t", "arguments": {"city": "Köln"}}
            assert await world.attachment.request("tools/call", params, Client()) == {"content": [2]}
    assert len(script.sent("tools/call")) == 3  # the first one was refused


async def test_marked_arguments_are_headers_of_the_first_request() -> None:
    """MCP 2026-07-28: clients mirror marked arguments, also for a server that refuses no request without (DYN-5)."""
    script = Scripted(is_modern=True)
    script.capabilities = {"tools": {}}
    seen: list[tuple[list[str], list[str]]] = []
    marked = {"city": ("string", "City"), "n": ("integer", "N")}
    schema = {
        "type": "object",
        "properties": {name: {"type": kind, "x-mcp-header": token} for name, (kind, token) in marked.items()},
    }

    async def read(exchange: Exchange, message: dict[str, Any]) -> bytes:
        seen.append((exchange.header("mcp-param-city"), exchange.header("mcp-param-n")))
        return json_body(result(message, {"content": [], "resultType": "complete"}))

    script.replies["tools/call"] = read
    async with attached_to(script) as world:
        params = {"name": "t", "arguments": {"city": "Bonn", "n": 42}}
        await world.attachment.request("tools/call", params, Client(mirrored=schema))
    assert (seen, script.sent("tools/list")) == ([(["Bonn"], ["42"])], [])


async def test_a_stream_is_resumed_where_it_ended() -> None:
    """MCP 2025-11-25: a server may end the stream of a request and continue it after its last event."""
    script = Scripted()

    async def begin(_: Exchange, __: dict[str, Any]) -> bytes:
        return EVENTS + b"id: e-1\nretry: 1\ndata:\n\n"

    async def go_on(exchange: Exchange, _: dict[str, Any]) -> bytes:
        if exchange.header("last-event-id") != ["e-1"]:
            return body(b"", status=405)
        return EVENTS + event({"jsonrpc": "2.0", "id": 2, "result": {"content": [3]}})

    script.replies |= {"tools/call": begin, "GET": go_on}
    async with attached_to(script) as world:
        assert await call(world) == {"content": [3]}


async def test_followed_resources_are_bounded() -> None:
    """Ours: subscriptions are counted, and each is the gateway's own."""
    script = Scripted()
    async with attached_to(script) as world:
        for number in range(MAX_FOLLOWED):
            await world.attachment.request("resources/subscribe", {"uri": f"x:{number}"}, Client())
        await world.attachment.request("resources/subscribe", {"uri": "x:0"}, Client())
        with pytest.raises(LiveSourceFailed, match="too many resource subscriptions"):
            await world.attachment.request("resources/subscribe", {"uri": "x:one-more"}, Client())
        await world.attachment.request("resources/unsubscribe", {"uri": "x:0"}, Client())
        await world.attachment.request("resources/subscribe", {"uri": "x:one-more"}, Client())


@pytest.mark.parametrize(
    "named", ["http://127.0.0.1:1/post", "//127.0.0.1:1/post", "https://127.0.0.1/post", "javascript:x", "http://[", ""]
)
async def test_an_endpoint_of_another_origin_is_refused(named: str) -> None:
    """Ours: a server of HTTP+SSE cannot send the gateway's messages and credential elsewhere."""
    script = Scripted()

    async def stream(exchange: Exchange, _: dict[str, Any]) -> None:
        await exchange.write(EVENTS, f"event: endpoint\ndata: {named}\n\n".encode())
        await exchange.reader.read()

    script.replies["GET"] = stream
    with pytest.raises(LiveSourceFailed, match=r"another origin|does not begin with its endpoint"):
        async with attached_to(script, secret=SECRET, transport="sse"):
            pass
    assert not script.sent("initialize")


async def test_a_session_of_http_sse_serves_one_caller() -> None:
    """Ours: messages on its stream name no request, so that those of one caller would reach another (DYN-5)."""
    script = Scripted()
    streams: list[Exchange] = []

    async def stream(exchange: Exchange, _: dict[str, Any]) -> None:
        streams.append(exchange)
        await exchange.write(EVENTS, f"event: endpoint\ndata: /mcp?{len(streams) - 1}\n\n".encode())
        await exchange.reader.read()

    async def answer(exchange: Exchange, message: dict[str, Any]) -> bytes:
        own = int(exchange.line.rpartition("?")[2])
        if message["method"] == "tools/call":
            late = note("notifications/message", level="info", data=f"late of {own}")({})
            for number in range(1, own):
                with contextlib.suppress(ConnectionError):
                    await streams[number].write(late)
            await streams[own].write(note("notifications/message", level="info", data=own)({}))
        await streams[own].write(done(message) if message["method"] == "tools/call" else event(result(message, FACTS)))
        return body(b"", status=202)

    script.replies |= {"GET": stream, "tools/call": answer, "initialize": answer}
    first, second = Client(), Client(owner=SessionOwner("bob", "s"))
    async with attached_to(script, transport="sse") as world:
        await call(world, first)
        await call(world, second)
    assert first.notified == [("log", "info", 1, None)]
    assert second.notified == [("log", "info", 2, None)]


async def test_sessions_of_http_sse_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: each is a connection; the idlest one gives way, and one in use does not (ISO-3)."""
    monkeypatch.setattr(local_sessions, "MAX_SESSIONS", 1)
    script, opened, ended, began = Scripted(), list[Exchange](), list[int](), asyncio.Event()

    async def stream(exchange: Exchange, _: dict[str, Any]) -> None:
        opened.append(exchange)
        own = len(opened) - 1
        await exchange.write(EVENTS, f"event: endpoint\ndata: /mcp?{own}\n\n".encode())
        await exchange.reader.read()
        ended.append(own)

    async def answer(exchange: Exchange, message: dict[str, Any]) -> bytes:
        own = int(exchange.line.rpartition("?")[2])
        if message["method"] == "tools/call":
            began.set()
            if message["params"]["name"] == "wait":
                return body(b"", status=202)
        await opened[own].write(done(message) if message["method"] == "tools/call" else event(result(message, FACTS)))
        return body(b"", status=202)

    script.replies |= {"GET": stream, "tools/call": answer, "initialize": answer}
    ann, bob = Client(), Client(owner=SessionOwner("bob", "s"))
    async with attached_to(script, transport="sse", timeout_s=5) as world:
        await call(world, ann)
        await call(world, bob)
        await until(lambda: ended == [1])
        began.clear()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(world.attachment.request("tools/call", {"name": "wait", "arguments": {}}, bob))
            await began.wait()
            with pytest.raises(LiveSourceFailed, match="too many callers"):
                await call(world, ann)
            waiting.cancel()


def listening(script: Scripted) -> None:
    """Let the script acknowledge streams of changes; it leaves out `x:ignored`, and refuses `x:refused`."""

    async def listen(exchange: Exchange, message: dict[str, Any]) -> bytes | None:
        wanted = message["params"]["notifications"]
        uris = wanted.get("resourceSubscriptions", [])
        if "x:refused" in uris:
            return json_body({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}})
        honoured = {**wanted, "resourceSubscriptions": [uri for uri in uris if uri != "x:ignored"]}
        await exchange.write(EVENTS, note("notifications/subscriptions/acknowledged", notifications=honoured)({}))
        for uri in honoured["resourceSubscriptions"]:
            await exchange.write(note("notifications/resources/updated", uri=uri)({}))
        await exchange.reader.read()
        return None

    script.is_modern = True
    script.replies["subscriptions/listen"] = listen


async def subscribe(world: World, uri: str) -> None:
    """Follow a resource."""
    with anyio.fail_after(10):
        await world.attachment.request("resources/subscribe", {"uri": uri}, Client())


@pytest.mark.parametrize("declared", [{"subscribe": True, "listChanged": True}, {"subscribe": True}])
async def test_a_stream_that_is_opened_again_for_a_resource_is_no_change(declared: dict[str, object]) -> None:
    """Ours: else each discovery, which subscribes again, would lead to the next one."""
    script = Scripted(capabilities={"resources": declared})
    listening(script)
    async with attached_to(script) as world:
        await subscribe(world, "x:1")
        count = len(script.sent("subscriptions/listen"))
        await subscribe(world, "x:1")
        assert len(script.sent("subscriptions/listen")) == count
        await subscribe(world, "x:2")
        assert script.sent("subscriptions/listen")[-1]["params"]["notifications"]["resourceSubscriptions"] == [
            "x:1",
            "x:2",
        ]
        assert not world.listener.has_changed.is_set()
        await world.listener.has_updated.wait()


@pytest.mark.parametrize("declared", [{"subscribe": True, "listChanged": True}, {"subscribe": True}])
async def test_a_resource_that_cannot_be_followed_is_left_out(declared: dict[str, object]) -> None:
    """Ours: it fails at once, and the others are followed on."""
    script = Scripted(capabilities={"resources": declared})
    listening(script)
    async with attached_to(script) as world:
        await subscribe(world, "x:1")
        for uri in ("x:ignored", "x:refused"):
            with pytest.raises(LiveSourceFailed, match="does not report updates of this resource"):
                await subscribe(world, uri)
        await asyncio.gather(subscribe(world, "x:2"), subscribe(world, "x:3"), subscribe(world, "x:2"))
        listed = [each["params"]["notifications"] for each in script.sent("subscriptions/listen")]
        assert ["x:1", "x:2", "x:3"] in [
            each["resourceSubscriptions"] for each in listed
        ]  # that without them may be late
        assert not world.listener.has_changed.is_set()


async def test_a_server_that_offers_no_stream_refuses_subscriptions_at_once() -> None:
    """Ours: a declared capability without its method fails with a reason."""
    script = Scripted(capabilities={"resources": {"subscribe": True}}, is_modern=True)
    script.states("subscriptions/listen", {"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "no"}})
    async with attached_to(script) as world:
        for _ in range(2):
            with pytest.raises(LiveSourceFailed, match="offers no stream of changes"):
                await subscribe(world, "x:1")


def without_sessions(script: Scripted) -> None:
    """Let the script give its sessions no id, so that the server keeps none."""
    script.states("initialize", FACTS)


async def test_a_server_without_sessions_receives_the_credential_of_today() -> None:
    """Ours: a rotated credential is used at once, and a withdrawn one not any more (ISO-4)."""
    script = Scripted()
    without_sessions(script)
    async with attached_to(script, secret=SECRET) as world:
        await call(world)
        assert world.server.exchanges[-1].header("authorization") == [f"Bearer {SECRET}"]
        stored = world.secrets.stored.pop("key")
        with pytest.raises(GatewayError, match="not stored"):
            await call(world)
        rotated = Credential(value="rotated-0123456789")
        world.secrets.stored["key"] = NamedCredential(place="bearer", origins=stored.origins, credential=rotated)
        await call(world)
        assert world.server.exchanges[-1].header("authorization") == ["Bearer rotated-0123456789"]


async def test_a_server_without_sessions_learns_of_a_cancellation_at_once() -> None:
    """Ours: the attachment may stay open for days."""
    script = Scripted()
    without_sessions(script)
    cancelled = asyncio.Event()

    async def silent(exchange: Exchange, _: dict[str, Any]) -> None:
        await exchange.reader.read()

    async def cancel(_: Exchange, message: dict[str, Any]) -> bytes:
        cancelled.set()
        return body(b"", status=202)

    script.replies |= {"tools/call": silent, "notifications/cancelled": cancel}
    async with attached_to(script, timeout_s=0.2) as world:
        with pytest.raises(LiveSourceFailed, match="did not respond"):
            await call(world)
        with anyio.fail_after(10):
            await cancelled.wait()
        (given_up,) = script.sent("tools/call")
    assert [each["params"] for each in script.sent("notifications/cancelled")] == [{"requestId": given_up["id"]}]


async def test_a_server_that_refuses_pings_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: any response proves life; a server of this kind need not know the method."""
    monkeypatch.setattr("gateway.upstream.live.mcp.changes.PING_S", 0.01)
    script = Scripted()
    again = asyncio.Event()

    async def refuse(_: Exchange, message: dict[str, Any]) -> bytes:
        if len(script.sent("ping")) > 2:
            again.set()
        return json_body({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})

    script.replies["ping"] = refuse
    async with attached_to(script) as world:
        lost = asyncio.ensure_future(world.attachment.wait_closed())
        ended = asyncio.ensure_future(again.wait())
        await asyncio.wait({lost, ended}, return_when=asyncio.FIRST_COMPLETED)
        assert not lost.done()
        lost.cancel()


class BusyLink:
    """A link without a stream of changes, whose pings meet a full pool twice, and then a lost server."""

    facts = ServerFacts(revision="2025-11-25")
    pings = 0

    async def follow(self, opened: Callable[[], None]) -> None:
        raise StreamNotOffered("none")

    async def ping(self) -> None:
        self.pings += 1
        raise UpstreamBusy("full") if self.pings < 3 else LiveSourceFailed("gone")


async def test_a_full_pool_is_no_lost_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: calls that fill the pool of a source do not end its attachment."""
    monkeypatch.setattr("gateway.upstream.live.mcp.changes.PING_S", 0.01)
    link = BusyLink()
    with anyio.fail_after(10):
        assert await follow_changes(source({}), cast(McpLink, link), Listener()) == "the server is lost: gone"
    assert link.pings == 3


async def test_changes_while_a_stream_is_replaced_are_reported() -> None:
    """Ours: the old stream is read until the new one is acknowledged (DYN-1)."""
    script = Scripted(capabilities={"tools": {"listChanged": True}, "resources": {"subscribe": True}}, is_modern=True)
    streams: list[Exchange] = []
    listener: list[Listener] = []
    closed = asyncio.Event()

    async def listen(exchange: Exchange, message: dict[str, Any]) -> None:
        streams.append(exchange)
        await exchange.write(EVENTS)
        if len(streams) == 2:
            await streams[0].write(note("notifications/tools/list_changed")({}))
            await listener[0].has_changed.wait()
        honoured = message["params"]["notifications"]
        await exchange.write(note("notifications/subscriptions/acknowledged", notifications=honoured)({}))
        await exchange.reader.read()
        closed.set()

    script.replies["subscriptions/listen"] = listen
    async with attached_to(script) as world:
        listener.append(world.listener)
        await subscribe(world, "x:1")
        assert not world.listener.has_changed.is_set()
        await subscribe(world, "x:2")
        with anyio.fail_after(10):
            await closed.wait()
    assert len(streams) == 2


async def test_a_server_that_is_overloaded_once_still_has_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a 503 for the stream is a failure like another, and the stream is opened again (DYN-1)."""
    monkeypatch.setattr("gateway.upstream.live.mcp.changes.PAUSES_S", (0.01, 0.01, 0.01))
    script = Scripted(capabilities={"tools": {"listChanged": True}}, is_modern=True)

    async def listen(exchange: Exchange, message: dict[str, Any]) -> bytes | None:
        count = len(script.sent("subscriptions/listen"))
        if count == 2:
            return body(b"", status=503)
        honoured = message["params"]["notifications"]
        await exchange.write(EVENTS, note("notifications/subscriptions/acknowledged", notifications=honoured)({}))
        if count > 2:
            await exchange.reader.read()
        return None

    script.replies["subscriptions/listen"] = listen
    async with attached_to(script) as world:
        lost = asyncio.ensure_future(world.attachment.wait_closed())
        with anyio.fail_after(10):
            await world.listener.has_changed.wait()
        assert not lost.done()
        lost.cancel()


@pytest.mark.parametrize("transport", ["streamable", "sse"])
async def test_the_home_of_sessions_follows_a_rotated_credential(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the session of discoveries is opened again with today's credential, at the next ping (ISO-4)."""
    monkeypatch.setattr("gateway.upstream.live.mcp.changes.PING_S", 0.01)
    script, streams = Scripted(), list[Exchange]()
    renewed = asyncio.Event()

    async def stream(exchange: Exchange, _: dict[str, Any]) -> None:
        streams.append(exchange)
        await exchange.write(EVENTS, b"event: endpoint\ndata: /mcp\n\n")
        await exchange.reader.read()

    async def answer(exchange: Exchange, message: dict[str, Any]) -> bytes:
        if message["method"] == "initialize" and exchange.header("authorization") == ["Bearer rotated-0123456789"]:
            renewed.set()
        await streams[-1].write(event(result(message, FACTS)))
        return body(b"", status=202)

    async def initialize(exchange: Exchange, message: dict[str, Any]) -> bytes:
        if exchange.header("authorization") == ["Bearer rotated-0123456789"]:
            renewed.set()
        return json_body(result(message, FACTS), "Mcp-Session-Id: s-1")

    if transport == "sse":
        script.replies |= {"GET": stream, "initialize": answer, "ping": answer}
    else:
        script.replies["initialize"] = initialize
    async with attached_to(script, secret=SECRET, transport=transport) as world:
        lost = asyncio.ensure_future(world.attachment.wait_closed())
        origins = world.secrets.stored["key"].origins
        rotated = Credential(value="rotated-0123456789")
        world.secrets.stored["key"] = NamedCredential(place="bearer", origins=origins, credential=rotated)
        with anyio.fail_after(10):
            await renewed.wait()
        assert not lost.done()
        lost.cancel()


async def test_a_stream_that_ends_at_once_is_opened_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a server cannot keep the gateway connecting; `retry: 0` is no permission to do so."""
    monkeypatch.setattr("gateway.upstream.live.mcp.changes.PAUSES_S", (0.01, 0.1, 0.2))
    script = Scripted()
    times: list[float] = []
    enough = asyncio.Event()

    async def end(_: Exchange, __: dict[str, Any]) -> bytes:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 5:
            enough.set()
        return EVENTS + (b"retry: 0\nid: 1\ndata:\n\n" if len(times) == 4 else b": end\n\n")

    script.replies["GET"] = end
    async with attached_to(script) as world:
        lost = asyncio.ensure_future(world.attachment.wait_closed())
        await enough.wait()
        lost.cancel()
    # the loop counts whole milliseconds, whose difference as floats may be just below
    pauses = [round(after - before, 3) for before, after in itertools.pairwise(times)]
    assert pauses[1] >= 0.1
    assert pauses[2] >= 0.2
    assert pauses[3] >= 0.2  # resumed
