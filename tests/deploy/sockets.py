"""TCP on loopback in front of the tests' servers, which listen on Unix sockets that only their user may use."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio

_PORTS = 20_000, 32_000
_claims: list[socket.socket] = []


class Relay:
    """TCP in front of a server on a Unix socket; it can cut its connections, and accept others without an answer.

    Its sockets are asyncio's: one of anyio on a Unix socket fails on the loop if it is cancelled when bytes arrive.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._serving = set[asyncio.Task[object]]()
        self._is_mute = False
        self.accepted = 0

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        """Listen at a loopback port for as long as the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            self._cut()

    def mute(self) -> None:
        """Cut all connections, and answer none."""
        self._is_mute = True
        self._cut()

    def speak(self) -> None:
        """Answer the connections to come."""
        self._is_mute = False

    def move(self, path: str) -> None:
        """Lead the connections to come to another server, as a name with a new address does; the open ones stay."""
        self._path = path

    def _cut(self) -> None:
        for task in self._serving:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.accepted += 1
        try:
            if self._is_mute:
                await anyio.sleep_forever()
            try:
                theirs, ours = await asyncio.open_unix_connection(self._path)
            except OSError:  # the server is away
                return
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pump(reader, ours))
                    group.create_task(_pump(theirs, writer))
            finally:
                ours.close()
        finally:
            self._serving.discard(task)
            writer.close()


@asynccontextmanager
async def forwarded(url: str) -> AsyncGenerator[str]:
    """The same server at a loopback port, by a URL of the same kind."""
    parts = urlsplit(url)
    is_redis = parts.scheme == "unix"
    path = parts.path if is_redis else f"{_folder(parts.query)}/.s.PGSQL.5432"
    async with Relay(path).listening() as port:
        if is_redis:
            yield f"redis://127.0.0.1:{port}/0"
        else:
            yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Forward the bytes of one side until it ends."""
    with contextlib.suppress(OSError):
        while piece := await source.read(1 << 16):
            sink.write(piece)
            await sink.drain()
        sink.write_eof()


def free_port() -> int:
    """A loopback port that no program uses now, below those that the system gives to connections (from 32768).

    The calling process keeps an abstract socket named after the port, so that no test process gets the port again.
    """
    while True:
        port, claim = random.SystemRandom().randrange(*_PORTS), socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            claim.bind(f"\0gateway-test-port-{port}")
            _claims.append(claim)
            return port
        claim.close()


def _folder(query: str) -> Path:
    return Path(parse_qs(query)["host"][0])
