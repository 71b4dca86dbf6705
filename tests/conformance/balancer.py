"""A load balancer over TCP: every HTTP request goes to the next replica, unchanged byte by byte, nothing held back.

One request a connection: what has answered is closed, which both sides understand as HTTP has it.
"""

import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio
import anyio.abc
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead
from anyio.streams.buffered import BufferedByteReceiveStream

_MAX_HEAD_BYTES = 64 * 1024
_GONE = (BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead)


@dataclass(slots=True)
class Balancer:
    """Address for clients, and the replicas behind it."""

    port: int
    targets: Sequence[str] = ()
    served: list[str] = field(default_factory=list[str])
    """The replica of each request, in order."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        """Pass on one request and its answer."""
        async with client:
            try:
                head, body = await _read_request(client)
                async with await self._connect() as replica:
                    await replica.send(head + body)
                    async with anyio.create_task_group() as group:
                        group.start_soon(_watch, client, group.cancel_scope)
                        async for part in replica:
                            await client.send(part)
                        group.cancel_scope.cancel()
            except* _GONE:
                pass  # one side has left: so does the other

    async def _connect(self) -> anyio.abc.SocketStream:
        """The next replica that takes a connection."""
        turn = next(self._numbers)
        for number in range(turn, turn + len(self.targets)):
            target = self.targets[number % len(self.targets)]
            try:
                stream = await anyio.connect_tcp("127.0.0.1", urlsplit(target).port or 0)
            except OSError:
                continue
            self.served.append(target)
            return stream
        raise BrokenResourceError


@asynccontextmanager
async def running_balancer() -> AsyncGenerator[Balancer]:
    """A balancer on a free loopback port; its targets are set once they are known."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    balancer = Balancer(port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, balancer.serve)
        yield balancer
        group.cancel_scope.cancel()


async def _read_request(client: anyio.abc.SocketStream) -> tuple[bytes, bytes]:
    """The request with its head unchanged, but for the keep-alive header."""
    stream = BufferedByteReceiveStream(client)
    head = await stream.receive_until(b"\r\n\r\n", _MAX_HEAD_BYTES)
    first, *fields = head.split(b"\r\n")
    kept = [line for line in fields if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    lengths = [line.partition(b":")[2] for line in kept if line.lower().startswith(b"content-length:")]
    body = await stream.receive_exactly(int(lengths[0])) if lengths and int(lengths[0]) else b""
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""]), body


async def _watch(client: anyio.abc.SocketStream, scope: anyio.CancelScope) -> None:
    """Give up when the client goes away."""
    try:
        while True:
            await client.receive()
    except _GONE:
        scope.cancel()
