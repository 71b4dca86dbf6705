"""A raw HTTP server on loopback whose every byte a test decides, and which remembers what it was sent."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.domain.http.requests import UpstreamRequest

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass(slots=True)
class Exchange:
    """One request as it came, and the connection it came on."""

    head: bytes
    body: bytes
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    @property
    def line(self) -> str:
        """The request line without the version."""
        return self.head.split(b"\r\n", 1)[0].rpartition(b" ")[0].decode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Names and values as sent."""
        lines = self.head.decode().split("\r\n")[1:]
        return [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]

    def header(self, name: str) -> list[str]:
        """Every value of one header."""
        return [value for held, value in self.headers if held.lower() == name.lower()]

    async def write(self, *pieces: bytes) -> None:
        """Send these bytes."""
        for piece in pieces:
            if self.writer.is_closing():
                raise ConnectionResetError
            self.writer.write(piece)
            await self.writer.drain()


Answer: TypeAlias = Callable[[Exchange], Awaitable[bool]]
"""Answers one request; true keeps the connection for the next."""


@dataclass(slots=True)
class Loopback:
    """Events at the server so far."""

    port: int = 0
    connections: int = 0
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def authority(self) -> str:
        """The host and port, as the operator's list wants them."""
        return f"127.0.0.1:{self.port}"

    def get(self, path: str = "/", *, method: str = "GET", idempotent: bool = True) -> UpstreamRequest:
        """A request to this server."""
        return UpstreamRequest(method=method, url=f"http://{self.authority}{path}", idempotent=idempotent)


def states(*pieces: bytes, keep: bool = True) -> Answer:
    """The same bytes for every request."""

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(*pieces)
        return keep

    return answer


def body(content: bytes, *headers: str, status: int = 200) -> bytes:
    """A whole answer with a declared length."""
    lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


@asynccontextmanager
async def loopback(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Loopback]:
    """A server on a free port for as long as the block runs."""
    seen = Loopback()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        seen.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while await answer(await _read(reader, writer, seen)):
                    pass
        finally:
            seen.hung_up.set()
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        running = list(tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Loopback) -> Exchange:
    head = (await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n")
    exchange = Exchange(head, b"", writer, reader)
    if lengths := exchange.header("content-length"):
        exchange.body = await reader.readexactly(int(lengths[0]))
    seen.exchanges.append(exchange)
    seen.arrived.set()
    return exchange
