"""A remote MCP server that writes whatever bytes a test wants."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request."""

    method: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """Its JSON-RPC message."""
        found: dict[str, Any] = json.loads(self.body or b"{}")
        return found


Answer = Callable[[Received], Awaitable[bytes]]


@dataclass(slots=True, kw_only=True)
class ScriptedRemote:
    """The server; a connection is closed after each answer."""

    answer: Answer
    port: int = 0
    received: list[Received] = field(default_factory=list[Received])

    @property
    def url(self) -> str:
        """Its MCP URL."""
        return f"http://127.0.0.1:{self.port}/t/acme/mcp"

    def named(self, method: str) -> list[Received]:
        """The requests with this HTTP method or JSON-RPC method."""
        return [one for one in self.received if method in {one.method, one.message.get("method")}]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Received(method=first.split(" ")[0], headers=headers, body=body)
            self.received.append(request)
            writer.write(await self.answer(request))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def reply(body: object, *, status: int = 200, **headers: str) -> bytes:
    """A whole answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + content


def result(request: Received, **members: object) -> dict[str, Any]:
    """The response to a request."""
    return {"jsonrpc": "2.0", "id": request.message.get("id"), "result": members}


def initialized(request: Received, session: str = "s1") -> bytes:
    """The answer to `initialize`."""
    capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    begun = result(
        request, protocolVersion="2025-11-25", capabilities=capabilities, serverInfo={"name": "x", "version": "1"}
    )
    return reply(begun, Mcp_Session_Id=session)


@asynccontextmanager
async def scripted_remote(answer: Answer) -> AsyncGenerator[ScriptedRemote]:
    """One while the block runs."""
    remote = ScriptedRemote(answer=answer)
    server = await asyncio.start_server(remote.serve, "127.0.0.1", 0)
    remote.port = server.sockets[0].getsockname()[1]
    try:
        yield remote
    finally:
        server.close()
