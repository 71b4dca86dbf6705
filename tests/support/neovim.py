"""Editors for tests: Debian's Neovim, headless, with the plugin of `deploy/neovim` and a configuration of the test."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.sessions import SessionOwner
from gateway.domain.tenancy.principals import ToolCaller
from gateway.upstream.byte_streams import dial_unix
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import LiveAttachment, LiveMethod
from gateway.upstream.live.neovim.connector import NeovimConnector
from gateway.upstream.live.neovim.msgpack_rpc import MsgpackRpc
from tests.deploy.programs import find_program, library_path
from tests.support.replicas import until

PLUGIN = Path(__file__).parents[2] / "deploy" / "neovim"
ACME = TenantId("ten_acme")
_PATIENCE_S = 20


@dataclass(frozen=True, slots=True)
class Editor:
    """One running editor."""

    socket: Path
    pid: int

    @property
    def address(self) -> str:
        """Its address, as a live source names it."""
        return f"unix:{self.socket}"

    def kill(self) -> None:
        """End it without notice."""
        os.kill(self.pid, signal.SIGKILL)

    async def lua(self, code: str) -> Any:
        """Run Lua in the editor, over a connection of its user; texts are bytes."""
        rpc = MsgpackRpc(await dial_unix(str(self.socket)), _ignore)
        async with asyncio.timeout(_PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(rpc.read())
            try:
                return await rpc.request("nvim_exec_lua", code, [])
            finally:
                rpc.close("done")


@dataclass(slots=True)
class RecordingListener:
    """Reports of an attachment."""

    changes: int = 0
    updates: list[str] = field(default_factory=list[str])
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self) -> None:
        """Note a change of the list."""
        self.changes += 1
        self._moved.set()

    def updated(self, uri: str) -> None:
        """Note an update."""
        self.updates.append(uri)
        self._moved.set()

    def noticed(self, notice: str) -> None:
        """An editor reports no faults."""
        raise AssertionError(notice)

    async def wait(self, *, changes: int = 0, uri: str | None = None) -> None:
        """Wait for so many changes, and for an update of the URI."""
        async with asyncio.timeout(_PATIENCE_S):
            while self.changes < changes or (uri is not None and uri not in self.updates):
                self._moved.clear()
                await self._moved.wait()


class SilentClient:
    """A client that declared nothing and is sent nothing."""

    @property
    def caller(self) -> ToolCaller | None:
        return None

    @property
    def owner(self) -> SessionOwner | None:
        return SessionOwner("ann", "s")

    @property
    def mirrored(self) -> object:
        return None

    def can(self, kind: str) -> bool:
        """It can nothing."""
        return False

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Editors send no progress."""
        raise NotImplementedError

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Editors send no logs."""
        raise NotImplementedError

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Editors ask nothing."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Attached:
    """An attachment to an editor, and what it reported."""

    attachment: LiveAttachment
    listener: RecordingListener

    async def call(self, tool: str, **arguments: object) -> Mapping[str, Any]:
        """The result of a tool."""
        params = {"name": tool, "arguments": arguments}
        return await self.attachment.request("tools/call", params, SilentClient())

    async def text(self, tool: str, **arguments: object) -> str:
        """The text of the result of a tool."""
        return str((await self.call(tool, **arguments))["content"][0]["text"])

    async def read(self, uri: str) -> Mapping[str, Any]:
        """The content of a resource."""
        result = await self.attachment.request("resources/read", {"uri": uri}, SilentClient())
        content: Mapping[str, Any] = result["contents"][0]
        return content

    async def subscribe(self, uri: str, *, ends: bool = False) -> None:
        """Subscribe to a resource, or end that."""
        method: LiveMethod = "resources/unsubscribe" if ends else "resources/subscribe"
        assert await self.attachment.request(method, {"uri": uri}, SilentClient()) == {}

    async def tools(self) -> dict[str, Mapping[str, object]]:
        """The definitions of its tools by name."""
        found = await self.attachment.discover()
        return {one.name: one.definition for one in found.primitives if one.family == "tool"}


def source_of(address: str, *, name: str = "editor", timeout_s: float = 10, tenant: TenantId = ACME) -> LiveSource:
    """A live source at this address."""
    now = datetime.now(UTC)
    return LiveSource(
        tenant=tenant,
        id=LiveSourceId(f"liv_{name}"),
        name=name,
        kind=LiveKind.NEOVIM,
        settings={"address": address, "timeout_s": timeout_s},
        created_at=now,
        updated_at=now,
    )


@asynccontextmanager
async def attached(
    address: str, *, name: str = "editor", timeout_s: float = 10, upstream: UpstreamClient | None = None
) -> AsyncGenerator[Attached]:
    """An attachment to what is at an address, which `upstream` or else the installation allows."""
    listener = RecordingListener()
    async with AsyncExitStack() as stack:
        if upstream is None:
            upstream = await stack.enter_async_context(UpstreamClient(egress_allow=[address.removeprefix("tcp:")]))
        source = source_of(address, name=name, timeout_s=timeout_s)
        attachment = await stack.enter_async_context(NeovimConnector(upstream).attach(source, listener))
        with anyio.fail_after(_PATIENCE_S * 3):
            yield Attached(attachment, listener)


def _ignore(_: bytes, __: Sequence[object]) -> bool:
    return True


def command_of() -> tuple[list[str], dict[str, str]]:
    """The program with the arguments of every editor, and its environment variables."""
    program = find_program("neovim", "nvim", with_libraries=True)
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    if libraries := library_path(program):
        runtime = program.parents[1] / "share/nvim/runtime"
        variables |= {"VIMRUNTIME": str(runtime), **libraries}
    return [str(program), "--headless", "--clean", "-n"], variables


@asynccontextmanager
async def running_editor(
    folder: Path, configuration: str = "", *, plugin: bool = True, listen: str = ""
) -> AsyncGenerator[Editor]:
    """An editor that has read this configuration (Lua); it is killed when the block ends."""
    folder.mkdir(exist_ok=True)
    socket, init = folder / "nvim.sock", folder / "init.lua"
    socket.unlink(missing_ok=True)  # of an editor that was killed
    begins = f"vim.opt.runtimepath:prepend([[{PLUGIN}]])\n" if plugin else ""
    init.write_text(f"{begins}{configuration}\n")
    command, variables = command_of()
    command += ["--listen", listen or str(socket), "-u", str(init)]
    null = subprocess.DEVNULL
    started = await asyncio.create_subprocess_exec(
        *command, env=variables, cwd=folder, stdin=null, stdout=null, stderr=null
    )
    try:
        await listening(listen or str(socket), lambda: started.returncode is not None)
        yield Editor(socket, started.pid)
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def listening(place: str, has_ended: Callable[[], bool]) -> None:
    """Wait until a program accepts at a path or `HOST:PORT`; it gives no other sign of being ready."""

    async def accepts() -> bool:
        assert not has_ended(), "the program ended"
        try:
            if place.startswith("/"):
                _, writer = await asyncio.open_unix_connection(place)
            else:
                _, writer = await asyncio.open_connection(*place.rsplit(":", 1))
        except OSError:
            return False
        writer.close()
        return True

    await until(accepts, seconds=_PATIENCE_S)


def setup(tools: str, more: str = "") -> str:
    """A configuration with these tools (Lua)."""
    return f'local MCP = require("mcp_gateway")\nMCP.setup({{ custom_tools = {{ {tools} }}, {more} }})'
