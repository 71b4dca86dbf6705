"""TCP on loopback in front of the tests' servers, which listen on Unix sockets that only their user may use."""

import contextlib
import random
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import ByteStream, SocketAttribute

_PORTS = 20_000, 32_000


@asynccontextmanager
async def forwarded(url: str) -> AsyncGenerator[str]:
    """The same server at a loopback port, by a URL of the same kind."""
    parts = urlsplit(url)
    is_redis = parts.scheme == "unix"
    path = parts.path if is_redis else f"{_folder(parts.query)}/.s.PGSQL.5432"
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)

    async def forward(client: ByteStream) -> None:
        async with client, await anyio.connect_unix(path) as server, anyio.create_task_group() as group:
            group.start_soon(pump, client, server)
            group.start_soon(pump, server, client)

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, forward)
        if is_redis:
            yield f"redis://127.0.0.1:{port}/0"
        else:
            yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        tasks.cancel_scope.cancel()


async def pump(source: ByteStream, sink: ByteStream) -> None:
    """Send on what one stream says until it ends."""
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for piece in source:
            await sink.send(piece)
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await sink.send_eof()


def free_port() -> int:
    """A loopback port that no program uses now, below those that the system gives to connections (from 32768)."""
    while True:
        port = random.SystemRandom().randrange(*_PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _folder(query: str) -> Path:
    return Path(parse_qs(query)["host"][0])
