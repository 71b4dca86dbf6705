"""Bytes of a request on the wire."""

import asyncio

import anyio
import pytest

from gateway.domain.http.requests import UpstreamRequest
from gateway.upstream.client import UpstreamClient

OURS = b"User-Agent: mcp-gateway\r\nAccept-Encoding: gzip, deflate\r\n"


class Everywhere:
    """Every name is this machine."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Loopback."""
        return ["127.0.0.1"]

    def close(self) -> None:
        """Nothing to close."""


async def sent(
    method: str = "GET",
    url: str = "http://api.test:{port}/",
    headers: tuple[tuple[str, str], ...] = (),
    content: bytes | None = None,
    address: str = "127.0.0.1",
) -> bytes:
    """All that one request sends, with its port as PORT."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 X\r\n\r\n")
        seen.append(head + (await reader.readexactly(len(content or b""))))
        assert await reader.read() == b""
        writer.close()
        done.set()

    done = asyncio.Event()
    server = await asyncio.start_server(serve, address, 0)
    port = server.sockets[0].getsockname()[1]
    allowed = [f"127.0.0.1:{port}", f"[::1]:{port}", f"api.test:{port}"]
    async with server:
        async with UpstreamClient(egress_allow=allowed, lookup=Everywhere()) as upstream:
            await upstream.send_full(
                UpstreamRequest(method=method, url=url.format(port=port), headers=headers, body=content)
            )
        with anyio.fail_after(20):
            await done.wait()
    (one,) = seen
    return one.replace(str(port).encode(), b"PORT")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", "QUERY"])
@pytest.mark.parametrize("content", [None, b"", b"{}"])
async def test_every_method_with_and_without_a_body(method: str, content: bytes | None) -> None:
    """RFC 9110 section 8.6: a length for every body, and for none where one would be expected."""
    length = b"" if content is None else b"Content-Length: %d\r\n" % len(content)
    if content is None and method not in {"GET", "HEAD", "OPTIONS", "TRACE"}:
        length = b"Content-Length: 0\r\n"
    expected = method.encode() + b" / HTTP/1.1\r\nHost: api.test:PORT\r\n" + OURS + length + b"\r\n" + (content or b"")

    assert await sent(method, content=content) == expected


async def test_headers_go_out_in_their_order_after_ours() -> None:
    """Ours: as the request has them, the length last; nothing else is added."""
    headers = (("X-b", "1"), ("Accept", "*/*"), ("x-A", "a\tb"), ("Content-Type", "a/b"), ("X-b", ""), ("x-B", "3"))

    assert await sent("POST", headers=headers, content=b"{}") == (
        b"POST / HTTP/1.1\r\nHost: api.test:PORT\r\n" + OURS + b"X-b: 1\r\nAccept: */*\r\nx-A: a\tb\r\n"
        b"Content-Type: a/b\r\nX-b: \r\nx-B: 3\r\nContent-Length: 2\r\n\r\n{}"
    )


async def test_a_request_may_name_another_user_agent() -> None:
    """Ours: it replaces ours."""
    head = await sent(headers=(("X", "1"), ("user-agent", "me")))

    assert head == (
        b"GET / HTTP/1.1\r\nHost: api.test:PORT\r\nuser-agent: me\r\nAccept-Encoding: gzip, deflate\r\nX: 1\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("http://api.test:{port}", b"/", b"api.test:PORT"),
        ("http://API.test:{port}?a=b", b"/?a=b", b"API.test:PORT"),
        ("http://api.test:{port}/?", b"/?", b"api.test:PORT"),
        ("http://api.test:{port}//a/../b;c=d/%7E%2f?x=/?&y=[]", b"//a/../b;c=d/%7E%2f?x=/?&y=[]", b"api.test:PORT"),
        ("http://127.0.0.1:{port}/a", b"/a", b"127.0.0.1:PORT"),
    ],
)
async def test_the_target_is_the_url_as_it_was_built(url: str, target: bytes, host: bytes) -> None:
    """RFC 9112 section 3.2.1: the path and the query as they are, and a path in any case."""
    assert await sent(url=url) == b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n" + OURS + b"\r\n"


async def test_an_ipv6_literal_keeps_its_brackets() -> None:
    """RFC 9110 section 7.2: in Host as in the URL."""
    head = await sent(url="http://[::1]:{port}/", address="::1")

    assert head.startswith(b"GET / HTTP/1.1\r\nHost: [::1]:PORT\r\n")


async def test_a_method_is_written_as_it_is_given() -> None:
    """RFC 9110 section 9.1: methods are case-sensitive."""
    assert (await sent("Link")).startswith(b"Link / HTTP/1.1\r\n")
