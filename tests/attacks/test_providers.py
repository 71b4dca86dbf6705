"""Hostile providers: frames, messages and crowds that must not cost the gateway or other tenants anything (TEN-5)."""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from gateway.app.server import websocket_protocol
from gateway.app.server.websocket_protocol import HardenedWebSocketProtocol
from gateway.domain.identifiers import TenantId
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.upstream.live.agent import attachment as attachments
from gateway.upstream.live.agent.limits import MAX_NOTICE_BYTES
from gateway.web.providers import connection as connections
from gateway.web.providers import endpoint as endpoints
from tests.support.providers import (
    PATIENCE_S,
    TOOL,
    Provider,
    ProviderStand,
    RecordingClient,
    running_providers,
)
from tests.support.replicas import until

MIB = 1024 * 1024


@pytest.fixture
async def stand(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[ProviderStand]:
    """An endpoint without connections; raw sockets answer no close frame, so it waits for none."""
    monkeypatch.setattr(HardenedWebSocketProtocol, "close_s", 0.05)
    async with running_providers() as running:
        yield running


def _upgrade(key: str, path: str = "/t/acme/provide", *more: str, method: str = "GET") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {key}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Extensions: permessage-deflate",
        f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def _frame(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


@asynccontextmanager
async def _raw(stand: ProviderStand) -> AsyncGenerator[ByteStream]:
    async with await anyio.connect_tcp("127.0.0.1", int(stand.url.rpartition(":")[2])) as stream:
        yield stream


async def _received(stream: ByteStream) -> bytes:
    """Everything until the end of the connection."""
    arrived = b""
    with anyio.fail_after(PATIENCE_S):
        try:
            while True:
                arrived += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return arrived


@asynccontextmanager
async def _upgraded(stand: ProviderStand) -> AsyncGenerator[ByteStream]:
    """A raw socket behind the 101."""
    async with _raw(stand) as stream:
        await stream.send(_upgrade(stand.keys.make("acme")))
        with anyio.fail_after(PATIENCE_S):
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"sec-websocket-extensions" not in head.lower()
        yield stream


def _close_code(arrived: bytes) -> int:
    """The code of the close frame at the end."""
    start = arrived.rindex(b"\x88")
    return int(struct.unpack("!H", arrived[start + 2 : start + 4])[0])


async def _alive(provider: Provider) -> bool:
    return bool((await provider.request("ping"))["result"] == {})


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([_frame(Opcode.BINARY, b"{}")], 1003),
        ([_frame(Opcode.TEXT, b"\xff\xfe")], 1007),
        ([_frame(Opcode.TEXT, b'{"a":"\xc3', fin=False), _frame(Opcode.CONT, b'("}')], 1007),
        ([_frame(Opcode.TEXT, b'{"a":"\xed\xa0\x80"}')], 1007),  # a surrogate
        ([_frame(Opcode.TEXT, b'{"a":"\xc3')], 1007),  # ends within a character
        ([_frame(Opcode.CLOSE, b"\x03\xe8\xff\xfe")], 1007),
        ([b"\xc1" + _frame(Opcode.TEXT, b"{}")[1:]], 1002),  # compressed
        ([_frame(Opcode.TEXT, b"{}")], 4400),
        ([_frame(Opcode.CONT, b"{}")], 1002),
        ([_frame(Opcode.TEXT, b"{", fin=False), _frame(Opcode.TEXT, b"}")], 1002),
        ([b"\x81\x02{}"], 1002),  # not masked
        ([b"\x89\xfe\x00\x7e" + bytes(130)], 1002),
        ([b"\x81\xff" + struct.pack("!Q", 4 * MIB + 1)], 1009),
        ([b"\x81\xff" + struct.pack("!Q", 2**63)], 1009),
        ([_frame(Opcode.TEXT, b"x" * MIB, fin=False), *[_frame(Opcode.CONT, b"x" * MIB, fin=False)] * 4], 1009),
        ([_frame(Opcode.TEXT, fin=False), *[_frame(Opcode.CONT, fin=False)] * 3000], 1008),
        ([_frame(Opcode.PING)] * 3000, 1008),
        ([_frame(Opcode.PONG)] * 3000, 1008),
    ],
)
async def test_a_hostile_frame_ends_its_own_connection(stand: ProviderStand, frames: list[bytes], code: int) -> None:
    """RFC 6455 §7.4.1, and ours: frames without content are counted (TEN-5)."""
    async with stand.attached() as (provider, _), _upgraded(stand) as stream:
        await stream.send(b"".join(frames))
        assert _close_code(await _received(stream)) == code
        assert await _alive(provider)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '[{"jsonrpc":"2.0","id":1,"method":"provider/hello"}]',
        "{}",
        '{"jsonrpc":"1.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":{},"method":"ping"}',
        '{"jsonrpc":"2.0","id":true,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":7}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + "[" * 100 + "]" * 100 + "}}",
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + "[" * 2_000_000 + "}}",
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[' + "0," * 200_000 + "0]}}",
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + "9" * 100_000 + "}}",
    ],
    ids=lambda text: text[:60],
)
@pytest.mark.refill
async def test_a_message_that_is_no_message_ends_its_own_connection(stand: ProviderStand, text: str) -> None:
    """Ours: 4400 with a reason, and the attachment ends (TEN-5)."""
    async with stand.attached("other") as (other, _), stand.attached() as (provider, _):
        await provider.connection.send(text)
        assert (await provider.closed())[0] == 4400
        await stand.sources.wait_until_gone("laptop")
        assert await _alive(other)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"version": 1},
        {"version": 2, "source": "laptop"},
        {"version": "1", "source": "laptop"},
        *({"version": 1, "source": source} for source in ("", "a" * 41, "Laptop", "a b", "ä", "a\n", "../x", 7, None)),
    ],
    ids=str,
)
async def test_a_hello_with_a_bad_name_or_version_is_refused(stand: ProviderStand, params: dict[str, Any]) -> None:
    """Ours: names are of one form, because they are part of URLs, keys and logs (DYN-4)."""
    async with stand.connect(stand.keys.make("acme")) as provider:
        assert (await provider.request("provider/hello", **params))["error"]["data"] == {"code": "input.invalid"}
        assert (await provider.closed())[0] == 4400
    assert not stand.sources.owners


@pytest.mark.parametrize(
    "first",
    [
        {"id": 1, "method": "provider/register", "params": {"tools": [TOOL]}},
        {"method": "provider/hello", "params": {"version": 1, "source": "laptop"}},
        {"id": "c1", "result": {}},
    ],
    ids=str,
)
async def test_nothing_comes_before_hello(stand: ProviderStand, first: dict[str, Any]) -> None:
    """Ours: a connection without a hello does nothing (DYN-4)."""
    async with stand.connect(stand.keys.make("acme")) as provider:
        await provider.send(**first)
        assert (await provider.closed())[0] == 4400


async def test_a_silent_connection_is_closed(stand: ProviderStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: without a hello in time the connection ends (TEN-5)."""
    monkeypatch.setattr(endpoints, "HELLO_S", 0.05)
    async with stand.connect(stand.keys.make("acme")) as provider:
        assert (await provider.closed())[0] == 4408


@pytest.mark.parametrize("frame", [None, _frame(Opcode.TEXT, b"{", fin=False), b"\x81\xfe\x00\x10\x00\x00\x00\x00{"])
async def test_a_dead_or_dripping_provider_is_closed(frame: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: an unanswered ping ends the connection; an unfinished message answers none (DYN-3, TEN-5)."""
    monkeypatch.setattr(HardenedWebSocketProtocol, "close_s", 0.05)
    async with running_providers(heartbeat_s=0.1) as stand, _upgraded(stand) as stream:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "provider/hello", "params": {"version": 1, "source": "laptop"}}
        await stream.send(_frame(Opcode.TEXT, json.dumps(hello).encode()))
        if frame is not None:
            await stream.send(frame)
        arrived = await _received(stream)
        assert b'"method":"ping"' in arrived
        assert _close_code(arrived) == 4408


async def test_pings_keep_a_quiet_provider() -> None:
    """Ours: the answer to a ping is a sign of life (DYN-4)."""
    async with running_providers(heartbeat_s=0.2) as quick, quick.attached() as (provider, _):
        for _ in range(3):
            ping = await provider.receive()
            assert ping["method"] == "ping"
            await provider.send(id=ping["id"], result={})
        assert await _alive(provider)


async def test_a_provider_that_does_not_read_is_dropped(stand: ProviderStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: its messages wait within bounds, then its calls end; a neighbour is served meanwhile (TEN-5)."""
    monkeypatch.setattr(connections, "SEND_S", 0.2)
    monkeypatch.setattr(HardenedWebSocketProtocol, "stall_s", 0.2)
    arguments = {"text": "x" * (3 * MIB)}
    async with _upgraded(stand) as stream, stand.attached("other") as (other, _):
        for number, (method, params) in enumerate(
            [("provider/hello", {"version": 1, "source": "laptop"}), ("provider/register", {"tools": [TOOL]})]
        ):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await stream.send(_frame(Opcode.TEXT, json.dumps(message).encode()))
        await stand.sources.wait_for_change("laptop")
        monkeypatch.setattr(attachments, "RESUME_S", 0.05)
        attachment = stand.sources.find("laptop")
        params = {"name": "save", "arguments": arguments}
        calls = [attachment.request("tools/call", params, RecordingClient()) for _ in range(8)]
        with anyio.fail_after(PATIENCE_S):
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {LiveSourceDetached}
        assert await _alive(other)


async def test_unread_pongs_are_bounded(stand: ProviderStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: while a peer does not read, its pings are not read either (TEN-5)."""
    monkeypatch.setattr(websocket_protocol, "FRAMES_BURST", 1e9)
    held: list[int] = []
    pause = HardenedWebSocketProtocol.handle_ping

    def handle_ping(self: HardenedWebSocketProtocol) -> None:
        pause(self)
        held.append(self.transport.get_write_buffer_size())

    monkeypatch.setattr(HardenedWebSocketProtocol, "handle_ping", handle_ping)
    monkeypatch.setattr(HardenedWebSocketProtocol, "stall_s", 0.5)
    flood = _frame(Opcode.PING, b"x" * 125) * 1000
    async with _upgraded(stand) as stream:
        with anyio.fail_after(PATIENCE_S), pytest.raises((anyio.BrokenResourceError, ConnectionError)):
            while True:
                await stream.send(flood)
    assert max(held) < MIB


@pytest.mark.refill
async def test_a_message_above_the_pace_is_read_later(stand: ProviderStand) -> None:
    """Ours: a burst is paced, not refused (TEN-5)."""
    async with stand.attached() as (provider, _):
        for number in range(240):
            await provider.send(id=number, method="ping")
        answers = [(await provider.receive())["id"] for _ in range(240)]
    assert answers == list(range(240))


@pytest.mark.refill
async def test_definitions_are_counted_and_measured(stand: ProviderStand) -> None:
    """Ours: at most 500 primitives and 4 MiB of definitions of one source (TEN-5)."""
    async with stand.connect(stand.keys.make("acme")) as provider:
        await provider.hello()
        many = [{**TOOL, "name": f"t{number}"} for number in range(600)]
        await provider.request("provider/register", tools=many[:300])
        answer = (await provider.request("provider/update", tools=many[300:]))["result"]
        assert (answer["primitives"], len(answer["notices"])) == (500, 100)
        large = [{**TOOL, "name": f"t{number}", "description": "x" * 2 * MIB} for number in range(2)]
        answers = [(await provider.request("provider/update", tools=[tool]))["result"] for tool in large]
        assert [len(answer["notices"]) for answer in answers] == [0, 1]
        again = (await provider.request("provider/update", tools=[large[0]]))["result"]
        assert again["notices"] == []
        bad = (await provider.request("provider/update", tools=[7] * 15_000))["result"]
        assert len(bad["notices"]) <= 1001


async def test_progress_that_is_not_taken_is_dropped(stand: ProviderStand) -> None:
    """Ours: a client that is slow to take progress costs a bounded queue, and gets the result (TEN-5)."""
    taken = asyncio.Event()

    class Slow(RecordingClient):
        async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
            await taken.wait()
            await super().progress(progress, total, message)

    client = Slow()
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, client))
        token = (await provider.receive())["id"]
        for step in range(150):
            await provider.send(method="notifications/progress", params={"progressToken": token, "progress": step})
        await provider.send(id=token, result={"content": []})
        assert await _alive(provider)
        taken.set()
        assert await call == {"content": []}
    assert len(client.received) <= 102


async def test_progress_and_logs_are_measured(stand: ProviderStand) -> None:
    """Ours: so that a queue of a hundred messages is bounded in bytes; a large one is dropped (TEN-5)."""
    client, large = RecordingClient(), "x" * MAX_NOTICE_BYTES
    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, client))
        token = (await provider.receive())["id"]
        about = {"_meta": {"progressToken": token}}
        for text in (large, "small"):
            params = {"progressToken": token, "progress": 1, "message": text}
            await provider.send(method="notifications/progress", params=params)
            await provider.send(method="notifications/message", params={"level": "info", "data": text, **about})
        await provider.send(id=token, result={"content": []})
        await call
    assert client.received == [("progress", 1, None, "small"), ("log", "info", "small", None)]


async def test_uris_of_updates_are_measured(stand: ProviderStand) -> None:
    """Ours: no resource has a longer URI, so an update of one is dropped (TEN-5)."""
    async with stand.attached() as (provider, _):
        for uri in ("x:" + "y" * MAX_URL_LENGTH, "x:last"):
            await provider.send(method="notifications/resources/updated", params={"uri": uri})
        await stand.sources.wait_for_update("x:last")
    assert stand.sources.updates == ["x:last"]


async def test_questions_of_one_call_are_bounded(stand: ProviderStand) -> None:
    """Ours: a fifth open question is refused, and so is one of no call (TEN-5)."""
    asked = asyncio.Event()

    class Thinking(RecordingClient):
        async def ask(self, method: str, params: Any) -> Any:
            await asked.wait()
            return {}

    async with stand.attached() as (provider, attachment):
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, Thinking()))
        token = (await provider.receive())["id"]
        about = {"_meta": {"progressToken": token}}
        for number in range(5):
            await provider.send(id=f"q{number}", method="roots/list", params=about)
        refused = await provider.receive()
        assert (refused["id"], "error" in refused) == ("q4", True)
        for token in ("c99", ["c1"], None):
            stray = await provider.request("roots/list", _meta={"progressToken": token})
            assert stray["error"]["code"] == -32602
        call.cancel()
        assert (await provider.receive())["method"] == "notifications/cancelled"


async def test_a_call_without_a_result_ends(stand: ProviderStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the provider learns that no caller waits any more (DYN-4)."""
    monkeypatch.setattr(attachments, "CALL_S", 0.05)
    async with stand.attached() as (provider, attachment):
        with anyio.fail_after(PATIENCE_S), pytest.raises(LiveSourceFailed):
            await attachment.request("tools/call", {"name": "save"}, RecordingClient())
        assert [(await provider.receive())["method"] for _ in range(2)] == ["tools/call", "notifications/cancelled"]


async def test_connections_of_a_tenant_are_bounded(stand: ProviderStand) -> None:
    """Ours: the twenty-first connection is refused with 429, at the other tenants' cost of nothing (TEN-5)."""
    key, refused = stand.keys.make("acme"), 0
    async with anyio.create_task_group() as group:
        done = asyncio.Event()

        async def hold(number: int, *, task_status: anyio.abc.TaskStatus[int]) -> None:
            try:
                async with stand.connect(key) as provider:
                    await provider.hello(f"s{number}")
                    task_status.started(101)
                    await done.wait()
            except InvalidStatus as error:
                task_status.started(error.response.status_code if "retry-after" in error.response.headers else 0)

        statuses = [await group.start(hold, number) for number in range(100)]
        refused = statuses.count(429)
        assert (statuses.count(101), refused) == (20, 80)
        async with stand.attached(slug="globex") as (provider, _):
            assert await _alive(provider)
        done.set()


Check = Callable[[ByteStream], Awaitable[None]]


@pytest.mark.parametrize(
    ("path", "method", "more"),
    [
        ("/t/acme/mcp", "GET", ()),
        ("/t/acme/provide/", "GET", ()),
        ("/t/acme/x/provide", "GET", ()),
        ("/t/acme/%70rovide", "GET", ()),
        ("//t/acme/provide", "GET", ()),
        ("/healthz", "GET", ()),
        ("/", "GET", ()),
        ("/t/acme/provide", "POST", ("Content-Length: 0",)),
        ("/t/acme/provide", "GET", ("Content-Length: 2",)),
        ("/t/acme/provide", "GET", ("Transfer-Encoding: chunked",)),
    ],
)
async def test_an_upgrade_elsewhere_is_ignored(
    stand: ProviderStand, path: str, method: str, more: tuple[str, ...]
) -> None:
    """RFC 9110 §7.8: it is served as a request without an upgrade (TEN-5)."""
    async with _raw(stand) as stream:
        await stream.send(_upgrade(stand.keys.make("acme"), path, "X-Last: 1", *more, method=method))
        if more:
            await stream.send(b"0\r\n\r\n" if "chunked" in more[0] else b"{}")
        with anyio.fail_after(PATIENCE_S):
            assert (await stream.receive()).startswith(b"HTTP/1.1 404 ")
    assert not stand.providers.connections


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (("Host: evil.example",), b"400"),
        (("Origin: http://evil.example",), b"403"),
        (("Origin: null",), b"403"),
        (("X-Long: " + "x" * 9000,), b"431"),
        (("X-Long: " + "x" * 20_000,), b"431"),
        (tuple(f"X-{number}: y" for number in range(80)), b"431"),
        (tuple(f"X-{number}: y" for number in range(200)), b"431"),
        (("Authorization: Bearer other",), b"400"),
        (("Sec-WebSocket-Key: AAAA",), b"400"),
    ],
)
async def test_a_bad_handshake_is_answered(stand: ProviderStand, more: tuple[str, ...], status: bytes) -> None:
    """Ours: the checks of the edge hold for upgrades, and no connection stays open without an answer (TEN-5)."""
    async with _raw(stand) as stream:
        await stream.send(_upgrade(stand.keys.make("acme"), "/t/acme/provide", *more))
        arrived = await _received(stream)
        assert arrived.startswith(b"HTTP/1.1 " + status), arrived[:200]
    assert not stand.providers.connections


async def test_frames_before_the_handshake_has_ended_cut_the_connection(stand: ProviderStand) -> None:
    """RFC 6455 §4.1: a client waits for the 101; what comes before it is not parsed (TEN-5)."""
    asked, wait = asyncio.Event(), asyncio.Event()

    async def find(*_: Any, **__: Any) -> dict[Any, Any]:
        asked.set()
        await wait.wait()
        return {}

    key = stand.keys.make("acme")
    stand.keys.find = find  # type: ignore[method-assign]
    async with _raw(stand) as stream:
        await stream.send(_upgrade(key))
        await asked.wait()  # two reads: the kernel may join what is sent at once
        await stream.send(b"\xff" * 100)
        try:
            with anyio.fail_after(20):
                assert await _received(stream) == b""
        finally:
            wait.set()


async def test_a_message_that_breaks_off_is_nothing(stand: ProviderStand) -> None:
    """Ours: half a result is no result; the call goes on after the resume (DYN-4)."""
    key = stand.keys.make("acme")
    async with stand.connect(key) as provider:
        hello = await provider.hello()
        await provider.request("provider/register", tools=[TOOL])
        attachment = stand.sources.find("laptop")
        call = asyncio.ensure_future(attachment.request("tools/call", {"name": "save"}, RecordingClient()))
        token = (await provider.receive())["id"]
        half = _frame(Opcode.TEXT, json.dumps({"jsonrpc": "2.0", "id": token, "result": {"content": []}}).encode())
        provider.connection.transport.write(half[:20])
        provider.connection.transport.close()
    async with stand.connect(key) as provider:
        assert (await provider.hello(resume=hello["resume"], calls=[token]))["calls"] == [token]
        assert not call.done()
        await provider.send(id=token, result={"content": [{"type": "text", "text": "whole"}]})
        assert (await call)["content"][0]["text"] == "whole"


async def test_two_hellos_of_one_source_at_once_leave_one(stand: ProviderStand) -> None:
    """Ours: simultaneous connections of one subject take turns; one attachment stays (DYN-4)."""
    key, codes = stand.keys.make("acme"), list[int | None]()
    async with anyio.create_task_group() as group:

        async def connect() -> None:
            async with stand.connect(key) as provider:
                await provider.hello()
                codes.append((await provider.closed())[0])

        for _ in range(8):
            group.start_soon(connect)
        await until(lambda: len(codes) >= 7, seconds=PATIENCE_S, pause=0.001)
        assert set(codes) == {4410}
        assert len(stand.sources.attached) == 1
        stand.providers.end_tenant(TenantId("ten_acme"))
    assert codes[-1] == 4404


async def test_many_handshakes_in_a_short_time_are_refused(stand: ProviderStand) -> None:
    """Ours: each handshake costs lookups, so they have a rate (TEN-5)."""
    key, statuses = stand.keys.make("acme"), [0]
    for _ in range(70):
        try:
            async with stand.connect(key):
                statuses.append(101)
        except InvalidStatus as error:
            statuses.append(error.response.status_code)
    assert 429 in statuses
    assert statuses.count(101) >= 60
