"""Streams of events that a real server does not end."""

import asyncio
import zlib

import anyio
import pytest

from gateway.errors import UpstreamTimeout
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from gateway.upstream.limits import MAX_EVENTS
from tests.integration.upstream.loopback import OK, Answer, Exchange, Loopback, body, loopback, states

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"


def chunk(raw: bytes) -> bytes:
    """One piece of a chunked body."""
    return f"{len(raw):x}\r\n".encode() + raw + b"\r\n"


def begins(*pieces: bytes, headers: bytes = b"") -> Answer:
    """A stream that sends these and then nothing more until the other side hangs up."""

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(HEAD + headers + b"\r\n", *(chunk(piece) for piece in pieces))
        await exchange.reader.read()
        return False

    return answer


def listening(server: Loopback, *, stream_s: float = 0.3, limit_bytes: int = 1 << 20) -> UpstreamClient:
    """A pool that listens so long."""
    return UpstreamClient(
        egress_allow=[server.authority], timeouts=Timeouts(stream_s=stream_s), limit_bytes=limit_bytes
    )


async def test_an_endless_stream_gives_the_events_in_time() -> None:
    """Ours: whole events, a word that more may come, and a closed connection (TEN-5)."""
    async with loopback(begins(b"data: 1\n\nda", b"ta: 2\n\ndata: 3")) as server, listening(server) as upstream:
        with anyio.fail_after(30):
            answer = await upstream.send_streaming(server.get())
            await server.hung_up.wait()

    assert (answer.status, answer.body) == (200, b"data: 1\n\ndata: 2\n\n")
    assert answer.cut == "the stream of events did not end within 0.3 seconds; 2 complete events arrived"


async def test_a_flood_of_events_ends_early() -> None:
    """Ours: neither their number nor their bytes are without bounds (TEN-5)."""

    async def flood(exchange: Exchange) -> bool:
        await exchange.write(HEAD + b"\r\n")
        while True:
            await exchange.write(chunk(b"data: x\n\n" * 1000))

    with anyio.fail_after(60):
        async with loopback(flood) as server, listening(server, stream_s=60) as upstream:
            many = await upstream.send_streaming(server.get())
        async with loopback(flood) as server, listening(server, stream_s=60, limit_bytes=2000) as upstream:
            long = await upstream.send_streaming(server.get())

    assert many.body == b"data: x\n\n" * MAX_EVENTS
    assert many.cut == "the stream of events is cut after 10,000 events"
    assert len(long.body) <= 2000
    assert long.cut == "the stream of events is cut after 2,000 bytes"


async def test_a_stream_that_ends_is_whole() -> None:
    """Ours: a complete stream has no note, and its connection is used again."""
    raw = b"data: 1\n\ndata: tail"
    declared = body(raw, "Content-Type: text/event-stream")
    chunked = HEAD + b"\r\n" + chunk(raw) + b"0\r\n\r\n"
    for stream in (declared, chunked):
        async with loopback(states(stream)) as server, listening(server, stream_s=20) as upstream:
            answers = [await upstream.send_streaming(server.get()), await upstream.send(server.get())]

        assert [(answer.body, answer.cut) for answer in answers] == [(raw, None), (raw, None)]
        assert server.connections == 1


async def test_a_compressed_stream_is_read_as_it_comes() -> None:
    """Ours: parts that were inflated until then are not lost."""
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    whole = packed + packer.copy().flush()
    encoding = b"Content-Encoding: gzip\r\n"
    async with loopback(begins(packed, headers=encoding)) as server, listening(server) as upstream:
        cut = await upstream.send_streaming(server.get())
    ended = HEAD + encoding + b"\r\n" + chunk(whole) + b"0\r\n\r\n"
    async with loopback(states(ended)) as server, listening(server, stream_s=20) as upstream:
        read = await upstream.send_streaming(server.get())

    assert (cut.body, cut.cut is None) == (b"data: 1\n\n", False)
    assert (read.body, read.cut) == (b"data: 1\n\n", None)


async def test_a_stream_without_events_times_out() -> None:
    """Ours: headers alone are no answer."""
    async with loopback(begins()) as server, listening(server) as upstream:
        with anyio.fail_after(30), pytest.raises(UpstreamTimeout):
            await upstream.send_streaming(server.get())


async def test_a_partial_document_is_not_returned() -> None:
    """Ours: documents and tokens are never cut."""
    async with loopback(begins(b"data: 1\n\n")) as server, listening(server) as upstream:
        with anyio.fail_after(30), pytest.raises(UpstreamTimeout):
            await upstream.send(server.get())
        with anyio.fail_after(30), pytest.raises(UpstreamTimeout):
            await upstream.send_full(server.get())


async def test_a_cancelled_call_closes_its_stream() -> None:
    """Ours: cancellation is no end of a stream, and leaves nothing open (R19)."""
    begun = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        if begun.is_set():
            await exchange.write(OK)
            return True
        await exchange.write(HEAD + b"\r\n", chunk(b"data: 1\n\n"))
        begun.set()
        await exchange.reader.read()
        return False

    async with loopback(answer) as server, listening(server, stream_s=60) as upstream:
        call = asyncio.create_task(upstream.send_streaming(server.get()))
        with anyio.fail_after(30):
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await server.hung_up.wait()
            assert (await upstream.send_streaming(server.get())).body == b"{}"
