"""Clients that keep a connection without using it: slow headers, slow readers, silence (security C4)."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from gateway.app.server import http_protocol
from gateway.app.server.http_protocol import HardenedHttpProtocol
from gateway.app.server.limits import HEADER_S, STALL_BYTES, STALL_S
from tests.support.serving import Server
from tests.support.timers import TimedLoop, Timers

KEEP_ALIVE_S = 60
DRIP_S = 0.02
"""The pace of a client that drips: far below what the server has patience for."""
ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Impatient(HardenedHttpProtocol):
    header_s = 0.3
    stall_s = 0.3
    linger_s = 0.3


def _timed(timers: Timers, slow: list[asyncio.Transport] | None = None) -> type[HardenedHttpProtocol]:
    """A connection with the patience of production, on these timers; it names itself when its reader is slow."""

    class Timed(HardenedHttpProtocol):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.loop = cast("asyncio.AbstractEventLoop", TimedLoop(self.loop, timers))

        def pause_writing(self) -> None:
            super().pause_writing()
            if slow is not None:
                slow[:] = [self.transport]

    return Timed


@pytest.fixture
async def timers() -> Timers:
    """Timers that do not advance."""
    return Timers()


@asynccontextmanager
async def _serving(app: Answer, *, http: type[HardenedHttpProtocol] = _Impatient) -> AsyncGenerator[int]:
    """A server, with little patience unless another kind of connection is given; the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=http, lifespan="off", access_log=False, log_config=None, timeout_keep_alive=KEEP_ALIVE_S
    )
    server = Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        try:
            with anyio.fail_after(10):
                await server.answering.wait()
            yield listener.getsockname()[1]
        finally:
            server.leave()


async def _ok(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _too_large(scope: Scope, receive: Receive, send: Send) -> None:
    del scope
    await receive()
    headers = [(b"content-length", b"2"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes before the connection ends."""
    seen = b""
    with anyio.fail_after(10):
        while True:
            try:
                chunk = await reader.read(65536)
            except ConnectionError:
                return seen
            if not chunk:
                return seen
            seen += chunk


@pytest.mark.parametrize(
    "reported",
    [b"", b"G", b"GET / HTTP/1.1\r\nhost: x\r\n", b"\r\n\r\n", ASK + b"GET / HT"],
    ids=["silent", "letter", "half a header", "empty lines", "half a second one"],
)
async def test_a_header_that_does_not_come_ends_the_connection(reported: bytes) -> None:
    """Ours: no client keeps a connection by sending little (TEN-5)."""
    async with _serving(_ok) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(reported)
        seen = await _until_closed(reader)
        writer.close()

    assert seen.count(b"HTTP/1.1 200") == reported.count(ASK)


async def test_an_empty_line_after_an_answer_does_not_buy_time() -> None:
    """Ours: bytes that neither begin a request nor end one do not count as use of a connection (TEN-5)."""
    async with _serving(_ok) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        await reader.readuntil(b"ok")
        writer.write(b"\r\n")
        assert await _until_closed(reader) == b""
        writer.close()


async def test_dripping_does_not_buy_time() -> None:
    """Ours: the clock does not restart with each byte (TEN-5)."""
    async with _serving(_ok) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def drip() -> None:
            for byte in b"GET / HTTP/1.1\r\nhost: " + b"x" * 10_000:
                writer.write(bytes([byte]))
                await asyncio.sleep(DRIP_S)  # the pace is the attack

        dripping = asyncio.create_task(drip())
        assert await _until_closed(reader) == b""
        dripping.cancel()
        writer.close()


async def test_a_body_that_is_refused_early_does_not_lose_the_answer() -> None:
    """RFC 9112 9.6: a client that writes its whole body before it reads has the answer, and no second one (CAL-5)."""
    size = 16 * 2**20

    def ask(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
            client.sendall(b" " * size + ASK)
            return client.recv(65536)

    async with _serving(_too_large, http=HardenedHttpProtocol) as port:
        seen = await anyio.to_thread.run_sync(ask, port)

    assert seen.startswith(b"HTTP/1.1 413")
    assert seen.endswith(b"no")
    assert seen.count(b"HTTP/1.1") == 1


async def test_a_refused_body_that_drips_does_not_buy_time() -> None:
    """Ours: the rest of a refused body is read for a limited time (TEN-5)."""
    async with _serving(_too_large) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nx")

        async def drip() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(DRIP_S)  # the pace is the attack

        dripping = asyncio.create_task(drip())
        assert (await _until_closed(reader)).endswith(b"no")
        dripping.cancel()
        writer.close()


async def test_an_unwanted_body_does_not_keep_the_connection() -> None:
    """Ours: bytes that come slowly after the response are not awaited (TEN-5)."""
    async with _serving(_ok) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

        async def drip() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(DRIP_S)  # the pace is the attack

        dripping = asyncio.create_task(drip())
        assert await _until_closed(reader) == b""
        dripping.cancel()
        writer.close()


async def test_a_client_with_many_requests_is_served(timers: Timers) -> None:
    """Ours: the time limit restarts with each request; between them the server's own keep-alive counts."""
    async with _serving(_ok, http=_timed(timers)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(4):
            writer.write(ASK[:10])
            await timers.running(HEADER_S)
            timers.advance(HEADER_S * 0.9)
            writer.write(ASK[10:])
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            await timers.running(KEEP_ALIVE_S)
            timers.advance(KEEP_ALIVE_S * 0.9)
        writer.close()


async def test_a_slow_application_is_not_a_slow_client(timers: Timers) -> None:
    """Ours: no time is counted while a response is made."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await release.wait()
        await _ok(scope, receive, send)

    async with _serving(app, http=_timed(timers)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        await asked.wait()
        timers.advance(3600)
        release.set()
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_reader_that_has_stopped_is_cut_off() -> None:
    """Ours: data that a client does not take are not kept for it, and the writer is released (TEN-5)."""
    ended = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

        async def write() -> None:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                await asyncio.sleep(0)

        writing = asyncio.create_task(write())
        while (await receive())["type"] != "http.disconnect":
            pass
        writing.cancel()
        ended.set()

    async with _serving(app) as port:
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(ASK)
        with anyio.fail_after(15):
            await ended.wait()
        client.close()


async def test_a_slow_reader_that_reads_is_served(timers: Timers) -> None:
    """Ours: slowness alone ends nothing."""
    size = 24 * 1024 * 1024
    slow: list[asyncio.Transport] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        length = str(size).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async with _serving(app, http=_timed(timers, slow)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**17)
        writer.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        await timers.running(STALL_S)
        left = size
        for _ in range(8):
            unsent = slow[0].get_write_buffer_size()
            while slow[0].get_write_buffer_size() > unsent - STALL_BYTES:  # what the kernel holds comes first
                left -= len(await reader.readexactly(64 * 1024))
            timers.advance(STALL_S)
        assert len(await reader.readexactly(left)) == left
        writer.close()


async def test_half_open_sockets_do_not_hinder_others(timers: Timers) -> None:
    """Ours: hundreds of silent connections are closed, and other clients are answered meanwhile (TEN-5)."""
    async with _serving(_ok, http=_timed(timers)) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        timers.advance(HEADER_S)
        for half, _ in silent:
            assert await _until_closed(half) == b""
        writer.write(ASK)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        for _, end in (*silent, (reader, writer)):
            end.close()


async def test_there_is_an_end_to_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: beyond the most that one replica holds a connection is refused, not queued (TEN-5)."""
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 3)
    async with _serving(_ok) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in held:
            writer.write(ASK)
            await reader.readuntil(b"ok")
        with capture_logs() as lines:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            refused = _problem(await _until_closed(reader), lines, event="connection_refused")
        assert (refused["status"], refused["code"]) == (503, "http.too_many_connections")
        for _, open_one in (*held, (reader, writer)):
            open_one.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"GET\r\n\r\n",
        b"BREW /t/acme/mcp HTTP/1.1\r\nhost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        ASK + b"\x00\x01\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_request_are_refused_with_a_problem(raw: bytes) -> None:
    """Ours: every refusal has the form, the headers and the log line of the others, also before a request exists."""
    async with _serving(_ok) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with capture_logs() as lines:
            writer.write(raw)
            received = await _until_closed(reader)
        writer.close()

    problem = _problem(received[received.index(b"HTTP/1.1 400") :], lines, event="request_malformed")
    assert (problem["status"], problem["code"]) == (400, "http.malformed")


def _problem(received: bytes, lines: Sequence[Mapping[str, Any]], *, event: str) -> dict[str, Any]:
    """The problem document of a response, with the id of its header and of its log line."""
    head, _, body = received.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    found: dict[str, Any] = json.loads(body)
    assert int(headers["content-length"]) == len(body)
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-content-type-options"] == "nosniff"
    assert (headers["cache-control"], headers["connection"]) == ("no-store", "close")
    logged = {line["correlation_id"] for line in lines if line["event"] == event}
    assert {found["correlation_id"], headers["x-request-id"]} == logged
    return found


async def test_the_kernel_watches_the_peer() -> None:
    """Ours: a peer that is gone without a word is found out by the kernel (TEN-5)."""
    seen: list[Any] = []

    class Watched(_Impatient):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            raw = transport.get_extra_info("socket")
            seen.append(raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
            seen.append(raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(uvicorn.Config(_ok, http=Watched, lifespan="off", access_log=False, log_config=None))
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        with anyio.fail_after(10):
            await server.answering.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(ASK)
        await reader.readuntil(b"ok")
        writer.close()
        server.leave()

    assert seen == [1, 30_000]
