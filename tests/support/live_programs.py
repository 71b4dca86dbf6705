"""The live sources of a history: of each tenant a remote MCP server and an editor, which are killed and stopped.

Each program appends the calls that it ran to a file, so that what it did is known after it was killed.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Protocol

import anyio
import httpx
from mcp import Client, MCPError

from tests.deploy.sockets import free_port
from tests.support.forks import Forked
from tests.support.neovim import listening, running_editor, setup
from tests.support.primitives import add
from tests.support.replicas import Mode, Replicas, tool_names, until

ENDING_S = 5.0
"""Time in which the calls of a program end that was killed."""
_SEEN_S = 30.0
HELD = 1_000_000_000
"""Ids of calls that a program holds until it is killed; those of the clients are below."""

_LUA = """
NAME = {
  description = "x",
  async = ASYNC,
  parameters = { type = "object", properties = { id = { type = "integer" } }, required = { "id" } },
  handler = function(params)
    local log = io.open("LOG", "a")
    log:write(("NAME %d\\n"):format(params.id))
    log:close()
    return MCP.json({ id = params.id, of = "canary-of-SLUG" })
  end,
}
"""


class _Running(Protocol):
    @property
    def pid(self) -> int: ...


class LiveProgram:
    """One program of a tenant, which keeps its address when it is started again."""

    def __init__(self, kind: str, slug: str, folder: Path) -> None:
        self.kind = kind
        self.slug = slug
        self.is_up = False
        self._folder = folder / f"{slug}-{kind}"
        self._folder.mkdir()
        self._log = self._folder / "calls"
        self._port = free_port()
        self._lives = AsyncExitStack()
        self._running: _Running | None = None

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of its live source."""
        if self.kind == "neovim":
            return {"address": self.address}
        return {"url": f"http://{self.address}/mcp"}

    @property
    def address(self) -> str:
        """The address that the tenant's egress list names."""
        return f"unix:{self._folder / 'nvim.sock'}" if self.kind == "neovim" else f"127.0.0.1:{self._port}"

    @property
    def tools(self) -> Sequence[str]:
        """The names under which clients see its tools."""
        return tuple(f"{self.kind}_{name}" for name in ("note", "hold"))

    def ran(self) -> list[tuple[str, int]]:
        """The calls that it ran: tool and id."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [(f"{self.kind}_{tool}", int(number)) for tool, number in (line.split() for line in lines)]

    async def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        if self.kind == "neovim":
            tools = ",".join(
                _LUA.replace("NAME", name)
                .replace("ASYNC", has_no_result)
                .replace("LOG", str(self._log))
                .replace("SLUG", self.slug)
                for name, has_no_result in (("note", "false"), ("hold", "true"))
            )
            self._running = await self._lives.enter_async_context(running_editor(self._folder, setup(tools)))
        else:
            arguments = [str(self._port), self.slug, str(self._log)]
            environment = {"PATH": os.environ["PATH"]}
            forked = self._running = Forked(arguments, environment, module="tests.support.recording_server")
            self._lives.callback(forked.end)
            await listening(self.address, lambda: forked.poll() is not None)
        self.is_up = True

    async def kill(self) -> None:
        """End it without notice."""
        self.is_up = False
        self._signal(signal.SIGKILL)
        self._running = None
        await self._lives.aclose()

    async def pause(self, seconds: float) -> None:
        """Let it keep its connections and do nothing for a while."""
        self._signal(signal.SIGSTOP)
        try:
            await anyio.sleep(seconds)
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None:
            os.kill(self._running.pid, number)


class LivePrograms:
    """The programs of all tenants, and what a nemesis does to them."""

    def __init__(self, replicas: Replicas, programs: Sequence[LiveProgram], random: Random) -> None:
        self.all = programs
        self.faults: list[str] = []
        self._replicas = replicas
        self._random = random

    async def rage(self) -> None:
        """Kill or stop one program after another, beside whatever else fails."""
        while True:
            await anyio.sleep(self._random.uniform(0.3, 1.5))
            program = self._random.choice(self.all)
            if self._random.random() < 0.4:
                self.faults.append(f"{program.kind} stopped")
                await program.pause(self._random.uniform(0, 1))
                continue
            self.faults.append(f"{program.kind} killed")
            await program.kill()
            await anyio.sleep(self._random.uniform(0, 2))
            await program.start()
            with suppress(httpx.HTTPError, RuntimeError):  # an administrator does not wait for the next attempt
                await self._reattach(program)

    async def heal(self, slug: str) -> None:
        """Start the absent programs of a tenant, and wait until they are attached again, without earlier failures."""
        programs = [program for program in self.all if program.slug == slug]
        for program in programs:
            if not program.is_up:
                await program.kill()
                await program.start()
        with self._hurrying():
            for is_again in (False, True):
                before = {program: await self._since(program) if is_again else "" for program in programs}
                for program in programs:
                    (await self._reattach(program)).raise_for_status()
                for program, since in before.items():

                    async def is_attached(program: LiveProgram = program, since: str = since) -> bool:
                        return await self._since(program) not in {since, ""}

                    await until(is_attached, seconds=_SEEN_S, pause=0.1)

    async def lose(self, slug: str, key: str) -> None:
        """Kill a tenant's programs during calls of both eras; each call ends, the tools vanish and come back."""
        programs = [program for program in self.all if program.slug == slug]
        names = {name for program in programs for name in program.tools}
        async with AsyncExitStack() as stack:
            watches = [
                await stack.enter_async_context(_watching(self._replicas, slug, key, mode, names))
                for mode in ("legacy", "2026-07-28")
            ]
            calls = [
                asyncio.create_task(watch.hold(program, HELD + 10 * place + number))
                for place, watch in enumerate(watches)
                for number, program in enumerate(programs)
            ]
            for program in programs:

                async def has_all(program: LiveProgram = program) -> bool:
                    return sum(number >= HELD for _, number in program.ran()) == len(watches)

                await until(has_all, seconds=_SEEN_S)
            for program in programs:
                await program.kill()
            with anyio.fail_after(ENDING_S):
                await asyncio.gather(*calls)
            with self._hurrying():
                for watch in watches:
                    await watch.lists(names, is_gone=True)
            for program in programs:
                await program.start()
            for watch in watches:
                await watch.lists(names)

    @contextmanager
    def _hurrying(self) -> Generator[None]:
        """While the block runs, the pauses of the replicas are short; the times of Redis are not."""
        with ExitStack() as stack:
            for replica in self._replicas.all:
                stack.enter_context(replica.hurrying())
            yield

    async def _since(self, program: LiveProgram) -> str:
        """The moment since which a program is attached; empty if it is not."""
        admin = self._replicas.a.gateway.admin
        shown = await admin.get(f"/tenants/{program.slug}/live-sources/{program.kind}")
        status: dict[str, Any] = shown.raise_for_status().json()["status"]
        return str(status["since"]) if status["state"] == "attached" else ""

    async def _reattach(self, program: LiveProgram) -> httpx.Response:
        up = next((replica for replica in self._replicas.all if replica.is_up), self._replicas.a)
        return await up.gateway.admin.post(f"/tenants/{program.slug}/live-sources/{program.kind}/reattach")


class _Watch:
    """A client that waits for changes of its list."""

    def __init__(self, client: Client, changed: asyncio.Event) -> None:
        self._client = client
        self._changed = changed

    async def hold(self, program: LiveProgram, number: int) -> None:
        """Make a call that does not end before its program; it has to end with an error."""
        try:
            result = await self._client.call_tool(f"{program.kind}_hold", {"id": number})
        except MCPError:
            return
        assert result.is_error, result

    async def lists(self, names: set[str], *, is_gone: bool = False) -> None:
        """Wait until the client lists these tools, or none of them, by nothing but its notifications."""
        with anyio.fail_after(_SEEN_S):
            while (names & {*await tool_names(self._client)}) != (set() if is_gone else names):
                await self._changed.wait()
                self._changed.clear()


@asynccontextmanager
async def _watching(replicas: Replicas, slug: str, key: str, mode: Mode, names: set[str]) -> AsyncGenerator[_Watch]:
    changed = asyncio.Event()

    async def receive(message: Any) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            changed.set()

    async with replicas.client(slug, key, mode, message_handler=receive) as client, AsyncExitStack() as stack:
        if mode != "legacy":
            events = await stack.enter_async_context(client.listen(tools_list_changed=True))

            async def follow() -> None:
                async for _ in events:
                    changed.set()

            following = asyncio.create_task(follow())
            stack.callback(following.cancel)
        watch = _Watch(client, changed)
        await watch.lists(names)
        yield watch


@asynccontextmanager
async def running_programs(
    replicas: Replicas, slugs: Sequence[str], folder: Path, random: Random
) -> AsyncGenerator[LivePrograms]:
    """A remote MCP server and an editor of each tenant, attached as its live sources."""
    programs = LivePrograms(
        replicas, [LiveProgram(kind, slug, folder) for slug in slugs for kind in ("mcp", "neovim")], random
    )
    gateway = replicas.a.gateway
    try:
        for slug in slugs:
            allowed = [program.address for program in programs.all if program.slug == slug]
            (await gateway.admin.put(f"/tenants/{slug}/egress", json={"allow": allowed})).raise_for_status()
        for program in programs.all:
            await program.start()
            body = {"name": program.kind, "kind": program.kind, "settings": program.settings}
            await add(gateway, program.slug, "live-sources", {**body, "prefix": f"{program.kind}_"})
        yield programs
    finally:
        for program in programs.all:
            await program.kill()
