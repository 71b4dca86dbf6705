"""An HTTP server for suites that only speak HTTP: each session, and each request without one, is a bridge on pipes.

What a suite sends goes through `gateway stdio --url` and back. Messages that answer no request go to the newest open
request, and to the standalone stream if there is none. Of HTTP there is as much as clients need to send messages.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from gateway.cli.stdio.bridge import Bridge
from gateway.protocol.stdio.messages import revision_of
from gateway.protocol.stdio.streams import StdioStreams
from tests.support.stdio import RawClient, raw_client

_LONG_S = 600.0
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_Messages = asyncio.Queue[dict[str, Any] | None]


@dataclass(slots=True, eq=False, kw_only=True)
class _Line:
    """One client on pipes, and what waits for its messages."""

    client: RawClient
    open: dict[str, _Messages] = field(default_factory=dict[str, _Messages])
    alone: _Messages = field(default_factory=_Messages)

    async def follow(self) -> None:
        """Hand out what the server writes until it ends."""
        while line := await self.client.out.readline():
            message = json.loads(line)
            if "method" in message:
                target = next(reversed(self.open.values())) if self.open else self.alone
                target.put_nowait(message)
            elif (waiting := self.open.pop(json.dumps(message["id"]), None)) is not None:
                waiting.put_nowait(message)
                waiting.put_nowait(None)

    async def begin(self, message: dict[str, Any]) -> _Messages:
        """Send a request; what comes of it, up to None."""
        messages: _Messages = asyncio.Queue()
        self.open[json.dumps(message["id"])] = messages
        await self.client.send(message)
        return messages


class StdioProxy:
    """The proxy of one tenant's URL."""

    def __init__(self, url: str, key: str, group: TaskGroup) -> None:
        self._url = url
        self._key = key
        self._group = group
        self._sessions: dict[str, _Line] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one HTTP request."""
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_at_end, reader, group)
                await self._answer(first.split(" ")[0], headers, body, writer)
                group.cancel_scope.cancel()
        except* (ConnectionError, asyncio.IncompleteReadError):
            pass  # one side has left
        finally:
            writer.close()

    async def _answer(self, method: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        line = self._sessions.get(headers.get("mcp-session-id", ""))
        message: dict[str, Any] = json.loads(body) if body else {}
        if method == "POST" and (revision_of(message) or message.get("method") == "initialize"):
            await self._open(message, writer)
        elif line is None:
            writer.write(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif method == "GET":
            await _stream(line.alone, writer)
        elif method == "POST" and "id" in message and "method" in message:
            await _stream(await line.begin(message), writer)
        else:
            if method == "POST":
                await line.client.send(message)
            else:
                del self._sessions[headers["mcp-session-id"]]
                line.client.end()
            writer.write(b"HTTP/1.1 202 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async def _open(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        line: _Line = await self._group.start(self._run)
        messages = await line.begin(message)
        if revision_of(message):
            try:
                await _stream(messages, writer)
            finally:
                line.client.end()
            return
        session = secrets.token_hex(8)
        self._sessions[session] = line
        response = json.dumps(await messages.get()).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(response)}\r\n"
        writer.write(f"{head}Mcp-Session-Id: {session}\r\nConnection: close\r\n\r\n".encode() + response)

    async def _run(self, *, task_status: TaskStatus[_Line]) -> None:
        async def serve(streams: StdioStreams) -> None:
            await Bridge(self._url, self._key, streams).serve()

        async with raw_client(serve, patience_s=_LONG_S) as client:
            line = _Line(client=client)
            task_status.started(line)
            await line.follow()


async def _stream(messages: _Messages, writer: asyncio.StreamWriter) -> None:
    writer.write(_STREAM)
    await writer.drain()
    while (message := await messages.get()) is not None:
        writer.write(b"data: " + json.dumps(message).encode() + b"\n\n")
        await writer.drain()


async def _cancel_at_end(reader: asyncio.StreamReader, group: TaskGroup) -> None:
    """Cancel the answer when the client has closed its connection."""
    await reader.read()
    group.cancel_scope.cancel()


@asynccontextmanager
async def running_stdio_proxy(url: str, key: str) -> AsyncGenerator[str]:
    """The URL of a proxy while the block runs."""
    async with anyio.create_task_group() as group:
        proxy = StdioProxy(url, key, group)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        group.cancel_scope.cancel()
