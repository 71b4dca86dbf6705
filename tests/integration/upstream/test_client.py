"""The pool against a real HTTP server: how answers are read, connections kept, and failures named."""

import asyncio
import gzip
import tracemalloc
import zlib

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import (
    EgressDenied,
    UpstreamAnswerBroken,
    UpstreamAnswerTooLarge,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from tests.integration.upstream.loopback import OK, Answer, Exchange, Loopback, body, loopback, states

MIB = 1 << 20


def allowed(server: Loopback, *, limit_bytes: int = 10 * MIB, timeouts: Timeouts | None = None) -> UpstreamClient:
    """A pool that may dial this server."""
    return UpstreamClient(egress_allow=[server.authority], limit_bytes=limit_bytes, timeouts=timeouts)


async def fails(
    answer: Answer, kind: type[UpstreamError], *, limit_bytes: int = 10 * MIB, **seconds: float
) -> UpstreamError:
    """The error that one request ends with; whatever was left of the answer, the connection is not used again."""
    timeouts = Timeouts(**seconds)
    async with loopback(answer) as server, allowed(server, limit_bytes=limit_bytes, timeouts=timeouts) as upstream:
        with anyio.fail_after(20), pytest.raises(kind) as caught:
            await upstream.send(server.get(idempotent=False))
        assert server.authority not in str(caught.value)
        with anyio.fail_after(30):
            await server.hung_up.wait()
    return caught.value


async def test_a_request_goes_out_exactly_as_built() -> None:
    """Ours: URL, method, headers and body are as the request declares; only framing and two of our own are added."""
    async with loopback(states(OK)) as server, allowed(server) as upstream:
        path = "/a%2Fb/..;/%7Ex/[y]?q=%20&r=a+b&s='|\""[:-2]
        request = UpstreamRequest(
            method="M-SEARCH",
            url=f"http://{server.authority}{path}",
            headers=(("X-b", "1"), ("x-A", "a b"), ("Authorization", "Bearer t"), ("Cookie", "a=1; b=2")),
            body=b"\x00\xff",
        )
        answer = await upstream.send(request)

    (exchange,) = server.exchanges
    assert exchange.line == f"M-SEARCH {path}"
    assert exchange.body == b"\x00\xff"
    assert sorted(exchange.headers) == sorted(
        [
            ("Host", server.authority),
            ("User-Agent", "mcp-gateway"),
            ("Accept-Encoding", "gzip, deflate"),
            ("X-b", "1"),
            ("x-A", "a b"),
            ("Authorization", "Bearer t"),
            ("Cookie", "a=1; b=2"),
            ("Content-Length", "2"),
        ]
    )
    assert (answer.status, answer.content_type, answer.body) == (200, "application/json", b"{}")


async def test_a_large_body_goes_out_whole() -> None:
    """Ours: size changes nothing."""
    async with loopback(states(OK)) as server, allowed(server) as upstream:
        await upstream.send(replace(server.get(method="PUT"), body=b"x" * (3 * MIB)))

    assert server.exchanges[0].body == b"x" * (3 * MIB)


@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
async def test_answers_of_every_framing_and_encoding_are_read_whole(encoding: str) -> None:
    """RFC 9112: declared length, chunks, or until the end of the connection."""
    content = b'{"n":1}' * 5000
    packed = {"identity": content, "gzip": gzip.compress(content), "deflate": zlib.compress(content)}[encoding]
    coding = [] if encoding == "identity" else [f"Content-Encoding: {encoding}"]
    head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/x", "Retry-After: 7", *coding, ""]).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (packed[:10], packed[10:])) + b"0\r\n\r\n"
    for answer in (
        states(body(packed, "Content-Type: text/x", "Retry-After: 7", *coding)),
        states(head + b"Transfer-Encoding: chunked\r\n\r\n", chunks),
        states(head + b"\r\n", packed, keep=False),
    ):
        async with loopback(answer) as server, allowed(server) as upstream:
            read = await upstream.send(server.get())

        assert (read.body, read.content_type, read.retry_after) == (content, "text/x", "7")


async def test_connections_are_kept_and_shared() -> None:
    """Ours: calls one after another use one connection, whatever they were."""
    answers = iter(
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
            body(b"{}", status=404),
            (
                b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"0\r\n\r\n"
            ),
            body(b"last"),
        ]
    )

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(next(answers))
        return True

    async with loopback(answer) as server, allowed(server) as upstream:
        read = [await upstream.send(server.get(method="HEAD"))]
        read += [await upstream.send(server.get()) for _ in range(5)]

    assert [(one.status, one.body) for one in read] == [
        (200, b""),
        (204, b""),
        (304, b""),
        (404, b"{}"),
        (200, b""),
        (200, b"last"),
    ]
    assert server.connections == 1


async def test_header_bytes_that_are_no_text_do_not_get_inside() -> None:
    """Ours: the metadata of an answer can always be written as JSON."""
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/\xff\xfe\r\nRetry-After: \xe9\r\nContent-Length: 0\r\n\r\n"
    async with loopback(states(raw)) as server, allowed(server) as upstream:
        answer = await upstream.send(server.get())

    assert (answer.content_type, answer.retry_after) == ("text/??", "?")


async def test_an_encoded_answer_without_body_is_empty() -> None:
    """Ours: HEAD, 204 and empty bodies have nothing to inflate."""
    async with loopback(states(body(b"", "Content-Encoding: gzip"))) as server, allowed(server) as upstream:
        assert (await upstream.send(server.get())).body == b""
        assert (await upstream.send(server.get(method="HEAD"))).body == b""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer(status: int) -> None:
    """Ours: no redirect is followed, not even to the same place."""
    async with loopback(states(body(b"moved", "Location: /elsewhere", status=status))) as server:
        async with allowed(server) as upstream:
            answer = await upstream.send(server.get())

        assert (answer.status, answer.body) == (status, b"moved")
        assert len(server.exchanges) == 1


async def test_cookies_of_an_upstream_are_not_kept() -> None:
    """Ours: the pool is shared by tenants, so it remembers nothing."""
    async with loopback(states(body(b"{}", "Set-Cookie: a=1; Path=/"))) as server, allowed(server) as upstream:
        await upstream.send(server.get())
        await upstream.send(server.get())

    assert server.exchanges[1].header("cookie") == []


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: where a call goes is decided by its plan alone."""
    async with loopback(states(OK)) as proxy, loopback(states(OK)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.authority}")
        async with UpstreamClient(egress_allow=[server.authority, proxy.authority]) as upstream:
            await upstream.send(server.get())

    assert (len(server.exchanges), proxy.connections) == (1, 0)


async def test_a_body_beyond_the_limit_is_not_read() -> None:
    """Ours: declared, chunked and endless bodies stop at the limit and close the connection."""
    await fails(states(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n"), UpstreamAnswerTooLarge, limit_bytes=1000)

    async def endless(exchange: Exchange) -> bool:
        await exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await exchange.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")

    await fails(endless, UpstreamAnswerTooLarge)
    async with loopback(states(body(b"x" * 1000))) as server, allowed(server, limit_bytes=1000) as upstream:
        assert len((await upstream.send(server.get())).body) == 1000
        with pytest.raises(UpstreamAnswerTooLarge):
            await upstream.send(server.get(), limit_bytes=999)


async def test_a_gzip_bomb_ends_early_with_little_memory() -> None:
    """Ours: 200 MB behind 200 kB cost neither their memory nor their time (TEN-5)."""
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([packer.compress(b"\0" * MIB) for _ in range(200)]) + packer.flush()
    async with loopback(states(body(bomb, "Content-Encoding: gzip"))) as server, allowed(server) as upstream:
        tracemalloc.start()
        try:
            with pytest.raises(UpstreamAnswerTooLarge):
                await upstream.send(server.get())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert len(bomb) < MIB
    assert peak < 20 * MIB


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Encoding: gzip, gzip"],
        ["Content-Encoding: gzip", "Content-Encoding: gzip"],
        ["Content-Encoding: br"],
        ["Content-Encoding: deflate"],
    ],
)
async def test_wrong_content_encodings_are_broken_answers(headers: list[str]) -> None:
    """Ours: an encoding that was not offered, stacked or not the truth."""
    await fails(states(body(gzip.compress(gzip.compress(b"{}")), *headers), keep=False), UpstreamAnswerBroken)


async def test_a_truncated_gzip_body_is_a_broken_answer() -> None:
    """Ours: the stream must end where the body ends."""
    await fails(
        states(body(gzip.compress(b"x" * 100)[:-4], "Content-Encoding: gzip"), keep=False), UpstreamAnswerBroken
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_answers_that_are_not_http_are_broken(raw: bytes) -> None:
    """Ours: the error is ours and holds nothing of the answer."""
    error = await fails(states(raw), UpstreamAnswerBroken)

    assert "hello" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
async def test_a_connection_that_breaks_inside_the_answer_is_unreachable(raw: bytes) -> None:
    """Ours: half an answer is none."""
    await fails(states(raw, keep=False), UpstreamUnreachable)


async def hang(exchange: Exchange) -> bool:
    """Answers nothing more and waits for the other side to hang up."""
    await exchange.reader.read()
    return False


async def test_an_upstream_that_does_not_answer_times_out() -> None:
    """Ours: the first byte has its deadline, and the connection is closed."""
    await fails(hang, UpstreamTimeout, first_byte_s=0.1, connect_s=0.1)


async def test_a_body_that_stalls_times_out() -> None:
    """Ours: the wait between two pieces has its deadline."""

    async def stall(exchange: Exchange) -> bool:
        await exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        return await hang(exchange)

    await fails(stall, UpstreamTimeout, first_byte_s=0.1, connect_s=60)


async def test_a_body_that_drips_is_ended_by_the_deadline_for_the_whole_call() -> None:
    """Ours: progress alone does not keep a call alive."""

    async def drip(exchange: Exchange) -> bool:
        await exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await exchange.write(b"1\r\nx\r\n")
            await anyio.sleep(0.005)

    await fails(drip, UpstreamTimeout, total_s=0.3)


async def test_a_refused_connection_is_unreachable() -> None:
    """Ours: a refused connection has its own words, without the address."""
    async with loopback(states(OK)) as server:
        pass
    async with allowed(server) as upstream:
        with pytest.raises(UpstreamUnreachable) as caught:
            await upstream.send(server.get())

    assert "127" not in str(caught.value)


async def test_a_cancelled_call_closes_its_connection() -> None:
    """Ours: a disconnect frees the upstream too; the next call is clean (R19)."""
    stop = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        if stop.is_set():
            await exchange.write(OK)
            return True
        return await hang(exchange)

    async with loopback(answer) as server, allowed(server) as upstream:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(upstream.send, server.get())
                await server.arrived.wait()
                tasks.cancel_scope.cancel()
            while not server.exchanges[0].reader.at_eof():
                await anyio.lowlevel.checkpoint()
            stop.set()
            assert (await upstream.send(server.get())).body == b"{}"

    assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE", "GET"])
async def test_a_request_that_is_not_idempotent_is_never_sent_twice(method: str) -> None:
    """Ours: a kept connection that turns out closed loses the call rather than repeating it."""
    server, error = await _lose_a_kept_connection(method, idempotent=False)

    assert isinstance(error, UpstreamUnreachable)
    assert len(server.exchanges) == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_an_idempotent_request_is_sent_again_when_a_kept_connection_was_closed(method: str) -> None:
    """RFC 9110 section 9.2.2: such a request may be repeated, once."""
    server, error = await _lose_a_kept_connection(method, idempotent=True)

    assert error is None
    assert len(server.exchanges) == 3
    assert server.exchanges[1].body == server.exchanges[2].body


async def _lose_a_kept_connection(method: str, *, idempotent: bool) -> tuple[Loopback, UpstreamError | None]:
    """The second request on a connection is read and dropped, as a server does that closes while we send."""
    calls = 0

    async def answer(exchange: Exchange) -> bool:
        nonlocal calls
        calls += 1
        if calls == 2:
            return False
        await exchange.write(OK if exchange.line[:4] != "HEAD" else OK[:-2])
        return True

    async with loopback(answer) as server, allowed(server) as upstream:
        await upstream.send(server.get())
        request = replace(server.get(method=method, idempotent=idempotent), body=b"b" if method == "PUT" else None)
        try:
            await upstream.send(request)
        except UpstreamError as error:
            return server, error
    return server, None


@pytest.mark.parametrize(
    "headers",
    [
        (("Host", "evil"),),
        (("content-length", "5"),),
        (("Transfer-Encoding", "chunked"),),
        (("Connection", "close"),),
        (("Accept-Encoding", "br"),),
        (("Proxy-Authorization", "x"),),
        (("X A", "b"),),
        (("", "b"),),
        (("X-A\r\nX-B", "b"),),
        (("X-A", "secret\r\nX-B: c"),),
        (("X-A", "secret\x00"),),
        (("X-A", "secreté"),),
    ],
)
async def test_headers_that_would_change_the_message_are_never_sent(headers: tuple[tuple[str, str], ...]) -> None:
    """Ours: framing is ours, names are tokens, and no error shows a value."""
    async with loopback(states(OK)) as server, allowed(server) as upstream:
        with pytest.raises(UpstreamUnreachable) as caught:
            await upstream.send(replace(server.get(), headers=headers))

    assert server.connections == 0
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("method", ["", "GET / HTTP/1.1\r\nX: y\r\n\r\n", "A B", "CONNECT", "é"])
async def test_methods_that_would_change_the_message_are_never_sent(method: str) -> None:
    """Ours: a method is a token and opens no tunnel."""
    async with loopback(states(OK)) as server, allowed(server) as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send(replace(server.get(), method=method))

    assert server.connections == 0


async def test_an_allowed_name_is_dialled_at_the_address_it_resolved_to() -> None:
    """Ours: an operator's entry by name opens its inner address, and Host stays the name."""

    class Names:
        async def resolve(self, host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        def close(self) -> None:
            pass

    async with loopback(states(OK)) as server:
        url = f"http://billing.internal:{server.port}/"
        request = UpstreamRequest(method="GET", url=url, idempotent=True)
        async with UpstreamClient(egress_allow=[f"billing.internal:{server.port}"], lookup=Names()) as upstream:
            await upstream.send(request)
            with pytest.raises(EgressDenied):
                await upstream.send(server.get())
            with pytest.raises(EgressDenied):
                await upstream.send(replace(request, url=f"http://other.internal:{server.port}/"))

    assert server.exchanges[0].header("host") == [f"billing.internal:{server.port}"]
    assert server.connections == 1


async def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    """Ours: an unknown name, or a text that is no name, is not an internal error."""

    class Nothing:
        async def resolve(self, host: str, port: int) -> list[str]:
            return []

        def close(self) -> None:
            pass

    for lookup, host in ((Nothing(), "a.invalid"), (None, "a" * 70 + ".invalid"), (None, "a..invalid")):
        async with UpstreamClient(lookup=lookup) as upstream:
            with pytest.raises(UpstreamUnreachable, match="does not resolve"):
                await upstream.send(UpstreamRequest(method="GET", url=f"http://{host}/"))


async def test_a_pool_that_is_not_open_sends_nothing() -> None:
    """Ours: a use of the client outside its block is a programming error, with a message."""
    upstream = UpstreamClient()

    with pytest.raises(RuntimeError):
        await upstream.send(UpstreamRequest(method="GET", url="http://h/"))
