"""The transport of the tests' HTTP clients takes nothing for a response that is not one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tests.support.serving import http_client

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@asynccontextmanager
async def served(*answers: bytes, then_closed: bool = True) -> AsyncGenerator[tuple[httpx.AsyncClient, list[bytes]]]:
    """A client of a server that sends one of the answers for each request on a connection, and what it received."""
    received: list[bytes] = []

    async def answer(stream: SocketStream) -> None:
        async with stream:
            for sent in answers:
                asked = b""
                while not asked.endswith((b"\r\n\r\n", b"end")):
                    asked += await stream.receive()
                received.append(asked)
                await stream.send(sent)
            if not then_closed:
                await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = listener.extra(SocketAttribute.local_port)
        async with http_client(base_url=f"http://127.0.0.1:{port}", timeout=10) as http:
            yield http, received
        group.cancel_scope.cancel()


async def test_one_connection_serves_requests_one_after_another() -> None:
    """Ours: a kept connection is used again, an informational response is none, HEAD has no body."""
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    async with served(OK, early, head) as (http, received):
        assert (await http.get("/1")).text == "hi"
        later = await http.get("/2")
        assert (later.text, later.headers.get("link")) == ("hi", None)
        assert (await http.head("/3")).headers["content-length"] == "2"
    assert [asked.split(b" ")[1] for asked in received] == [b"/1", b"/2", b"/3"]


async def test_a_body_of_unknown_length_is_sent_in_chunks() -> None:
    """Ours: the server sees chunks."""

    async def parts() -> AsyncGenerator[bytes]:
        yield b"a" * 10
        yield b"end"

    async with served(OK) as (http, received):
        await http.post("/", content=parts())
    assert received[0].endswith(b"\r\n\r\na\r\naaaaaaaaaa\r\n3\r\nend\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
        b"hello\r\n\r\n",
    ],
)
async def test_a_response_that_is_cut_off_is_an_error(answer: bytes) -> None:
    """Ours: a test sees that a server has ended in the middle."""
    async with served(answer) as (http, _):
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get("/")


async def test_a_response_may_end_with_its_connection() -> None:
    """Ours: as HTTP/1.0 servers end theirs."""
    async with served(b"HTTP/1.1 200 OK\r\n\r\nhi") as (http, _):
        assert (await http.get("/")).text == "hi"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi"])
async def test_silence_is_a_timeout(answer: bytes) -> None:
    """Ours: before the response and within its body."""
    async with served(answer, then_closed=False) as (http, _):
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/", timeout=0.05)


async def test_a_reader_that_waits_holds_the_server_back() -> None:
    """Ours: the client does not take an endless response into memory."""
    sent = 0

    async def flood(stream: SocketStream) -> None:
        nonlocal sent
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await stream.send(b"x" * 2**16)
            sent += 2**16

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, flood)
        port = listener.extra(SocketAttribute.local_port)
        async with http_client() as http, http.stream("GET", f"http://127.0.0.1:{port}/"):
            before = -1
            with anyio.fail_after(10):
                while sent != before:
                    before = sent
                    await anyio.sleep(0.1)
        assert sent < 2**25
        group.cancel_scope.cancel()
