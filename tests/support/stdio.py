"""Raw clients of servers on standard streams: lines on pipes, to a task of this process or to a process."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from gateway.protocol.stdio.streams import ClaimedStreams, StdioStreams
from tests.behaviour.cli.conftest import environment
from tests.support.forks import Forked
from tests.support.gateway import META

PATIENCE_S = 60.0
_LINE = 128 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class RawClient:
    """The client's ends of the pipes. What it has read while it waited for something else is kept in `others`."""

    out: asyncio.StreamReader
    to: asyncio.StreamWriter
    close_output: Callable[[], None]
    """Closes the end from which the server's output is read."""
    others: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    last_id: int = 0

    async def send(self, *messages: object) -> None:
        """Write lines: bytes as they are, anything else as JSON."""
        for message in messages:
            self.to.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        await self.to.drain()

    async def next(self) -> dict[str, Any]:
        """The next line, which must be JSON."""
        with anyio.fail_after(PATIENCE_S):
            line = await self.out.readline()
        assert line.endswith(b"\n"), "the server has ended its output"
        found: dict[str, Any] = json.loads(line)
        return found

    async def response_to(self, request_id: object) -> dict[str, Any]:
        """The response to a request."""
        while True:
            found = await self.next()
            if "method" not in found and found.get("id") == request_id:
                return found
            self.others.append(found)

    async def ask(self, method: str, params: dict[str, Any] | None = None, *, modern: bool = False) -> dict[str, Any]:
        """Send a request and return its response."""
        return await self.response_to(await self.begin(method, params, modern=modern))

    async def begin(self, method: str, params: dict[str, Any] | None = None, *, modern: bool = False) -> int:
        """Send a request and return its id."""
        self.last_id += 1
        whole = {**(params or {}), **({"_meta": META} if modern else {})}
        await self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": whole})
        return self.last_id

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, *, modern: bool = False) -> dict[str, Any]:
        """The result of a tool."""
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, modern=modern)
        assert "result" in response, response
        result: dict[str, Any] = response["result"]
        return result

    async def shake_hands(self, revision: str = "2025-11-25", **capabilities: object) -> dict[str, Any]:
        """Open a session."""
        client = {"name": "raw", "version": "1"}
        asked = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
        response = await self.ask("initialize", asked)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = response["result"]
        return result

    def end(self) -> None:
        """End the server's input."""
        self.to.close()


@asynccontextmanager
async def raw_client(
    serve: Callable[[StdioStreams], Awaitable[None]], *, patience_s: float = PATIENCE_S
) -> AsyncGenerator[RawClient]:
    """A client of a server in this process; the server must end by itself once its input ends."""
    (source, given), (taken, sink) = os.pipe(), os.pipe()

    async def run() -> None:
        async with StdioStreams(ClaimedStreams(source=source, sink=sink)) as streams:
            await serve(streams)

    async with _client_on(given, taken) as client:
        with anyio.fail_after(patience_s):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                yield client
                client.end()


@asynccontextmanager
async def _client_on(given: int, taken: int) -> AsyncGenerator[RawClient]:
    """A client that writes to one end of a pipe and reads from one of another; it closes both."""
    loop = asyncio.get_running_loop()
    out = asyncio.StreamReader(_LINE)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(out), os.fdopen(taken, "rb"))
    writing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(given, "wb")
    )
    to = asyncio.StreamWriter(writing, protocol, None, loop)
    try:
        yield RawClient(out=out, to=to, close_output=reading.close)
    finally:
        to.close()
        reading.close()


@asynccontextmanager
async def stdio_fork(
    arguments: Sequence[str], *, folder: Path, errors: Path, **variables: str
) -> AsyncGenerator[tuple[Forked, RawClient]]:
    """A client of `gateway stdio` in a fork, which is killed at the end if it still runs."""
    (source, given), (taken, sink) = os.pipe(), os.pipe()
    environ = environment(**variables)
    async with _client_on(given, taken) as client:
        with Connection(source, writable=False) as stdin, Connection(sink, readable=False) as stdout:
            child = await anyio.to_thread.run_sync(
                lambda: Forked(["stdio", *arguments], environ, folder=folder, given=stdin, output=stdout, errors=errors)
            )
        try:
            yield child, client
        finally:
            await anyio.to_thread.run_sync(child.end)


@asynccontextmanager
async def stdio_process(
    arguments: Sequence[str], *, folder: Path, stderr: int = asyncio.subprocess.PIPE, **variables: str
) -> AsyncGenerator[tuple[asyncio.subprocess.Process, RawClient]]:
    """A client of `gateway stdio` as a person starts it, killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "stdio", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        cwd=folder,
        env=environment(**variables),
        limit=_LINE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process, RawClient(out=process.stdout, to=process.stdin, close_output=process.kill)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """The exit code and standard error of a process that ends by itself."""
    assert process.stderr is not None
    with anyio.fail_after(PATIENCE_S):
        errors = await process.stderr.read()
        return await process.wait(), errors.decode()
