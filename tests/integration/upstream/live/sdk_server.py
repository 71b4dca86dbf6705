"""A server of the SDK on a socket: tools, a resource with updates, a prompt; in both eras or only the older one."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
import jwt
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.types import ResourceLink, ToolAnnotations
from pydantic import BaseModel

from tests.support.serving import Server

Scope = MutableMapping[str, Any]
NEWEST = b"2026-07-28"


class Colour(BaseModel):
    """Form that the tool `paint` requests."""

    name: str


@dataclass(slots=True)
class SdkServer:
    """The running server, and what it saw."""

    port: int
    mcp: MCPServer
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    refused: set[str] = field(default_factory=set[str])
    """Values of `authorization` that are answered with 401."""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    sessions: list[Any] = field(default_factory=list[Any])
    released: asyncio.Event = field(default_factory=asyncio.Event)
    end: Callable[[], None] = lambda: None
    """Ends the server as a crash does: its connections break."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


async def ask_colour() -> Elicit[Colour]:
    """The question of the tool `paint`."""
    return Elicit("Which colour?", Colour)


def register_tools(server: SdkServer) -> None:
    """Register the tools that the tests call."""
    mcp = server.mcp

    @mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    async def count(ctx: Context[Any, Any]) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.report_progress(2, 2)
        return "counted"

    @mcp.tool()
    async def paint(colour: Annotated[Colour, Resolve(ask_colour)]) -> str:
        return f"painted {colour.name}"

    @mcp.tool()
    async def wait() -> str:
        server.started.set()
        try:
            await server.released.wait()
        except asyncio.CancelledError:
            server.cancelled.set()
            raise
        return "released"

    @mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def whoami(ctx: Context[Any, Any]) -> str:
        """The caller whom the credential of this request names; the credential itself would be redacted."""
        request: Any = ctx.request_context.request
        value = str(request.headers.get("authorization", "")).removeprefix("Bearer ")
        if not value.startswith("ey"):
            return ".".join(value.split(".")[:2])
        claims = jwt.decode(value, options={"verify_signature": False})
        assert claims["exp"] > claims["iat"]
        return f"{claims['tenant']}.{claims['sub'].removeprefix('corp:')}"

    @mcp.tool()
    async def raises() -> str:
        raise ValueError("no luck")


def register_stateful(server: SdkServer) -> None:
    """Register tools with a state for each session, and tools that ask the client in other ways."""
    mcp, counts, kept = server.mcp, Counter[str](), list[tuple[str, str]]()

    def session_of(ctx: Context[Any, Any]) -> str:
        request: Any = ctx.request_context.request
        return str(request.headers.get("mcp-session-id", ""))

    @mcp.tool()
    async def count_calls(ctx: Context[Any, Any]) -> str:
        """Count the calls in the session."""
        counts[session_of(ctx)] += 1
        return str(counts[session_of(ctx)])

    @mcp.tool()
    async def ask_aside(ctx: Context[Any, Any]) -> str:
        """Ask on the session's GET stream, naming no request."""
        found = await ctx.session.elicit_form("Which colour?", {"type": "object", "properties": {}})
        return f"user: {found.action}"

    @mcp.tool()
    async def ask_inside(ctx: Context[Any, Any]) -> str:
        """Ask within the call, as servers did before 2026-07-28."""
        found = await ctx.elicit("Which colour?", Colour)
        return f"user: {found.action}"

    @mcp.tool()
    async def keep(ctx: Context[Any, Any], text: str) -> ResourceLink:
        """Keep a text for the session; no list has its resource."""
        kept.append((session_of(ctx), text))
        return ResourceLink(type="resource_link", uri=f"kept://{len(kept) - 1}", name="kept")

    @mcp.resource("kept://help")
    async def about() -> str:
        return "what tools keep"

    @mcp.resource("kept://{number}")
    async def kept_text(ctx: Context[Any, Any], number: str) -> str:
        session, text = kept[int(number)]
        return text if session == session_of(ctx) else "of another session"


def register_others(server: SdkServer) -> None:
    """Register what can be read, and tools that change something."""
    mcp = server.mcp

    @mcp.tool()
    async def grow(ctx: Context[Any, Any]) -> str:
        mcp.add_tool(one, name=f"grown_{len(await mcp.list_tools())}")
        await ctx.notify_tools_changed()
        for session in server.sessions:
            await session.send_tool_list_changed()
        return "grown"

    @mcp.tool()
    async def touch(ctx: Context[Any, Any]) -> str:
        await ctx.notify_resource_updated("notes://one")
        for session in server.sessions:
            await session.send_resource_updated("notes://one")
        return "touched"

    @mcp.resource("notes://one", mime_type="text/plain")
    async def one() -> str:
        return "first note"

    @mcp.resource("notes://by/{name}")
    async def named(name: str) -> str:
        return f"note {name}"

    @mcp.prompt()
    async def greet(name: str) -> str:
        return f"Greet {name}."


@asynccontextmanager
async def running_sdk_server(*, is_older: bool = False, port: int = 0, **options: Any) -> AsyncGenerator[SdkServer]:
    """The server for as long as the block runs; an older one refuses the newest revision, as servers of its time do."""
    listener = socket.create_server(("127.0.0.1", port))
    sessions: list[Any] = []

    async def remember(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/list" and is_older:
            sessions.append(ctx.session)
        result = await call_next(ctx)
        if ctx.method == "resources/templates/list":
            listed = result["resourceTemplates"]
            result["resourceTemplates"] = [one for one in listed if not one["uriTemplate"].startswith("kept:")]
        return result

    mcp = MCPServer("sdk", version="3", middleware=[remember])
    state = SdkServer(listener.getsockname()[1], mcp, sessions=sessions)
    register_tools(state)
    register_others(state)
    register_stateful(state)
    async with serving(state, listener, is_older=is_older, **options):
        yield state


@asynccontextmanager
async def serving(
    state: SdkServer, listener: socket.socket, *, is_older: bool = False, **options: Any
) -> AsyncGenerator[None]:
    """Serve on the listener while the block runs; an older server refuses the newest revision."""
    app = state.mcp.streamable_http_app(**options)

    async def recording(scope: Scope, receive: Any, send: Callable[[Scope], Awaitable[None]]) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            state.headers.append(headers)
            if headers.get("authorization") in state.refused:
                await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
                await send({"type": "http.response.body", "body": b""})
                return
            if is_older and headers.get("mcp-protocol-version", "").encode() == NEWEST:
                head = [(b"content-type", b"text/plain"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 400, "headers": head})
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    server = Server(
        uvicorn.Config(
            recording,
            lifespan="on",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    )

    def end() -> None:
        server.force_exit = True
        server.leave()
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()

    state.end = end
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        try:
            with anyio.fail_after(30):
                await server.answering.wait()
            yield
        finally:
            state.released.set()
            end()
