"""Answers that no decent server sends, and some that it does: how each is read, and that nothing of it is left over.

After each of them a second request goes to the same place, and has to get the answer that is its own.
"""

import asyncio

import anyio
import pytest
from msgspec.structs import replace

from gateway.domain.http.requests import UpstreamResponse
from gateway.errors import UpstreamAnswerBroken, UpstreamError, UpstreamUnreachable
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.loopback import Exchange, Loopback, body, loopback

OWN = b'{"own":true}'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HELLO = b"5\r\nhello\r\n0\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def pool(server: Loopback) -> UpstreamClient:
    """A pool that may dial this server and never leaves it alone."""
    return UpstreamClient(egress_allow=[server.authority], rules=BulkheadLimits(failures=1000))


async def exchange_twice(
    *pieces: bytes, method: str = "GET", keep: bool = True
) -> tuple[UpstreamResponse | UpstreamError, int]:
    """Outcome of a request with these bytes as its response, and the number of connections that it and the next
    took.
    """

    async def answer(exchange: Exchange) -> bool:
        if exchange.line.endswith("/own"):
            await exchange.write(body(OWN))
            return True
        await exchange.write(*pieces)
        return keep

    async with loopback(answer) as server, pool(server) as upstream:
        request = replace(server.get("/odd", idempotent=False), method=method)
        with anyio.fail_after(20):
            try:
                first: UpstreamResponse | UpstreamError = await upstream.send(request)
            except UpstreamError as error:
                first = error
            for _ in range(3):
                second = await upstream.send(server.get("/own"))
                assert (second.status, second.body) == (200, OWN)
    return first, server.connections


@pytest.mark.parametrize(
    "raw",
    [
        PLAIN,
        CHUNKED + HELLO,
        CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        CHUNKED + b"5;name=value;other\r\nhello\r\n0;last\r\nX-Trailer: v\r\nX-Other: w\r\n\r\n",
        CHUNKED + b"00005\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5   \r\nhello\r\n0  \r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" * 3 + PLAIN,
        b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length:5\t\r\nX:\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"Content-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 50_000 + b"\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
async def test_an_answer_of_any_framing_is_read_and_its_connection_kept(raw: bytes) -> None:
    """RFC 9112 section 9.3: a response with a known end leaves a connection for the next."""
    answer, connections = await exchange_twice(raw)

    assert isinstance(answer, UpstreamResponse)
    assert (answer.status, answer.body, connections) == (200, b"hello", 1)


@pytest.mark.parametrize("raw", [PLAIN, CHUNKED + b"3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nT: v\r\n\r\n"])
async def test_an_answer_may_come_in_pieces(raw: bytes) -> None:
    """Ours: wherever it is cut in two, and byte by byte, it is the same."""
    for at in range(1, len(raw)):
        answer, connections = await _in_pieces(raw[:at], raw[at:])
        assert (answer.body, connections) == (b"hello", 1)
    answer, connections = await _in_pieces(*(raw[at : at + 1] for at in range(len(raw))))
    assert (answer.body, connections) == (b"hello", 1)


async def _in_pieces(*pieces: bytes) -> tuple[UpstreamResponse, int]:
    async def answer(exchange: Exchange) -> bool:
        for piece in pieces:
            await exchange.write(piece)
            for _ in range(2):
                await asyncio.sleep(0)  # a turn of the loop for each side: the piece is read before the next is written
        return True

    async with loopback(answer) as server, pool(server) as upstream:
        with anyio.fail_after(20):
            answers = [await upstream.send(server.get()) for _ in range(2)]
    assert answers[0] == answers[1]
    return answers[0], server.connections


@pytest.mark.parametrize(
    ("raw", "method", "whole"),
    [
        (PLAIN + PLAIN, "GET", b"hello"),
        (PLAIN + b"HTTP/1.1 200 OK\r\nContent-Le", "GET", b"hello"),
        (PLAIN + b"x", "GET", b"hello"),
        (CHUNKED + HELLO + b"0\r\n\r\n", "GET", b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\nhello", "GET", b""),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "GET", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", "GET", b""),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n" + HELLO, "GET", b""),
        (PLAIN, "HEAD", b""),
        (CHUNKED + HELLO, "HEAD", b""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HEAD", b""),
        (b"HTTP/1.1 200 OK\r\n\r\n", "HEAD", b""),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "GET", b"hello"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello" + PLAIN, "GET", b"hello"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "GET", b"hello"),
    ],
)
async def test_after_an_odd_answer_the_next_request_gets_its_own(raw: bytes, method: str, whole: bytes) -> None:
    """RFC 9112 section 9.3: unrequested bytes are no response; the connection is not used again."""
    answer, connections = await exchange_twice(raw, method=method)

    assert isinstance(answer, UpstreamResponse)
    assert (answer.body, connections) == (whole, 2)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_body_may_end_with_the_connection(version: bytes) -> None:
    """RFC 9112 section 6.3: a response without a length."""
    answer, connections = await exchange_twice(b"HTTP/" + version + b" 200 OK\r\n\r\n", b"hel", b"lo", keep=False)

    assert isinstance(answer, UpstreamResponse)
    assert (answer.body, connections) == (b"hello", 2)


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + HELLO,
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + HELLO,
        HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        HEAD + b"Content-Length: 5, 5\r\n\r\nhello",
        HEAD + b"Content-Length: +5\r\n\r\nhello",
        HEAD + b"Content-Length: 0x5\r\n\r\nhello",
        HEAD + b"Content-Length:\r\n\r\nhello",
        HEAD + b"Content-Length: 99999999999999999999\r\n\r\nhello",
        HEAD + b"Content-Length : 5\r\n\r\nhello",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + HELLO,
        HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n" + HELLO,
        HEAD + b"Transfer-Encoding: identity\r\n\r\nhello",
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + HELLO,
        HEAD + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\rb\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\nContent-Length: 0\r\n\r\n",
        HEAD + b": a\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + PLAIN,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9 + PLAIN,
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello" + PLAIN,
        HEAD + b"X: y\r\n" * 257 + b"Content-Length: 0\r\n\r\n",
        CHUNKED + b"5\nhello\n0\n\n",
        CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5\r\nhelloo\r\n0\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\n" + b"X: y\r\n" * 257 + b"\r\n",
    ],
)
async def test_an_answer_that_is_not_http_is_broken(raw: bytes) -> None:
    """RFC 9112: an ambiguous response is not read at all, nor the bytes behind it."""
    error, connections = await exchange_twice(raw)

    assert isinstance(error, UpstreamAnswerBroken)
    assert connections == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        CHUNKED + b"5\r\nhell",
        CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\n",
    ],
)
async def test_half_an_answer_is_no_answer(raw: bytes) -> None:
    """RFC 9112 section 8: a response that ends early is not whole."""
    error, connections = await exchange_twice(raw, keep=False)

    assert isinstance(error, UpstreamUnreachable)
    assert connections == 2


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (HEAD + b"X: ", b"y" * 10_000),
        (b"HTTP/1.1 200 ", b"y" * 10_000),
        (b"", b"\r\n" * 5_000),
        (CHUNKED + b"5;", b"y" * 10_000),
        (CHUNKED, b"1;" + b"y" * 10_000 + b"\r\nx\r\n"),
        (CHUNKED + b"0" * 10_000, b"0" * 10_000),
        (CHUNKED + HELLO[:-2] + b"T: ", b"y" * 10_000),
    ],
)
async def test_an_endless_response_is_aborted(head: bytes, more: bytes) -> None:
    """Ours: heads, extensions and trailers have their bounds, beside those of the body (TEN-5)."""

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(head)
        while True:
            await exchange.write(more)

    async with loopback(answer) as server, pool(server) as upstream:
        with anyio.fail_after(20):
            with pytest.raises(UpstreamAnswerBroken):
                await upstream.send(server.get(idempotent=False))
            await server.hung_up.wait()
