"""A history of calls while everything fails in turn: clients, the upstream and the audit trail each keep a log.

Two tenants call through two replicas in both eras, every call with an id of its own. Meanwhile a nemesis kills and
stops replicas, kills Redis and PostgreSQL, and brings each back; another one does so to each tenant's MCP server and
editor. Afterwards the logs are laid side by side.
"""

import asyncio
import contextlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import httpx
import httpx2
import structlog
from mcp import Client, MCPError
from mcp_types import TextContent

from gateway.embedded.postgres import running_postgres
from gateway.embedded.redis import running_redis, socket_path
from gateway.embedded.servers import EmbeddedUrls
from gateway.embedded.state_directory import claim
from gateway.embedded.supervisor import Watched
from tests.support.events import Wire, request
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.live_programs import HELD, LivePrograms, running_programs
from tests.support.primitives import add, text_resource
from tests.support.replicas import URL, Mode, Replicas, grant_redis, running_replicas, until
from tests.support.servers import TestServers

log = structlog.get_logger(__name__)

SLUGS = ("acme", "globex")
MODES: tuple[Mode, ...] = ("2026-07-28", "legacy")
SILENCE_S = 40.0
"""No call may take longer than this to end, one way or the other."""
_PAUSE_S = 0.02
RUN = "RUN"
"""The method of a call that a live program ran; it may not be repeated."""


@dataclass(slots=True)
class Called:
    """One call as its client knows it."""

    id: int
    slug: str
    tool: str
    mode: str
    outcome: str = "cut"
    """A call whose client was ended by its connection stays so."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Arrived:
    """One request as the upstream knows it."""

    method: str
    target: str
    accept: str

    @property
    def slug(self) -> str:
        """Its tenant."""
        return self.target.split("/")[1]

    @property
    def tool(self) -> str:
        """The tool of its call."""
        return self.target.split("/")[2]

    @property
    def id(self) -> int:
        """The id of its call."""
        return int(self.target.rpartition("/")[2])


@dataclass(slots=True)
class History:
    """The world, and what became of it."""

    replicas: Replicas
    upstream: "EchoingUpstream"
    servers: dict[str, Watched]
    redis_url: str
    superuser_url: str
    keys: dict[str, str]
    random: Random
    calls: list[Called] = field(default_factory=list[Called])
    received: dict[str, list[str]] = field(default_factory=lambda: {slug: [] for slug in SLUGS})
    faults: list[str] = field(default_factory=list[str])
    exits: list[int] = field(default_factory=list[int])
    is_over: bool = False
    programs: LivePrograms | None = None

    @property
    def tools(self) -> Sequence[str]:
        """The tools that clients call."""
        programs = () if self.programs is None else ("mcp_note", "neovim_note")
        return ("look", "act", *programs)

    @property
    def arrived(self) -> Sequence[Arrived]:
        """The calls that the upstream and the programs know."""
        ran = [] if self.programs is None else [(one.slug, *call) for one in self.programs.all for call in one.ran()]
        programs = [Arrived(RUN, f"/{slug}/{tool}/{number}", "") for slug, tool, number in ran if number < HELD]
        return [*self.upstream.seen, *programs]

    def summary(self) -> dict[str, int]:
        """Outcomes of calls, by era, and the faults that occurred."""
        ended = Counter(f"{call.mode} {call.outcome}" for call in self.calls)
        faults = self.faults + ([] if self.programs is None else self.programs.faults)
        return dict(sorted((ended + Counter(faults)).items()))


class EchoingUpstream:
    """An API that returns the caller and id of each request, and records both."""

    def __init__(self) -> None:
        self.seen: list[Arrived] = []
        self.port = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ", 2)
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                await reader.readexactly(int(headers.get("content-length", 0)))
                arrived = Arrived(method, target, headers.get("accept", ""))
                self.seen.append(arrived)
                await self.hold(arrived, reader)
                body = json.dumps({"id": arrived.id, "of": f"canary-of-{arrived.slug}"}).encode()
                start = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(start.encode() + body)
                await writer.drain()
        writer.close()

    async def hold(self, arrived: Arrived, reader: asyncio.StreamReader) -> None:
        """Action before a request is answered: none."""


@asynccontextmanager
async def running_history(seed: int, upstream: EchoingUpstream | None = None) -> AsyncGenerator[History]:
    """Servers of its own, two replicas and two tenants, for as long as the block runs."""
    upstream = upstream or EchoingUpstream()
    async with AsyncExitStack() as stack:
        listener = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
        stack.callback(listener.close)
        upstream.port = listener.sockets[0].getsockname()[1]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwh-", ignore_cleanup_errors=True)))
        folders = stack.enter_context(claim(folder))
        servers = {
            "redis": await stack.enter_async_context(running_redis(folders)),
            "postgres": await stack.enter_async_context(running_postgres(folders)),
        }
        host = f"host={folders.sockets}&port=5432"
        redis_url = f"unix://{socket_path(folders)}"
        urls = EmbeddedUrls(
            database_url=f"postgresql://gateway_app@/gateway?{host}",
            migration_database_url=f"postgresql://gateway_owner@/gateway?{host}",
            redis_url=redis_url,
        )
        database = stack.enter_context(stack.enter_context(closing(TestServers(urls))).database())
        replicas = await stack.enter_async_context(
            running_replicas(database.app_url, redis_url, folder, egress_allow=[f"127.0.0.1:{upstream.port}"])
        )
        history = History(replicas, upstream, servers, redis_url, database.superuser_url, {}, Random(seed))
        for slug in SLUGS:
            await _found(history, slug)
        yield history


@asynccontextmanager
async def running_whole_history(seed: int) -> AsyncGenerator[History]:
    """A history in which each tenant also has an MCP server and an editor."""
    async with running_history(seed) as history:
        with tempfile.TemporaryDirectory(prefix="gwl-") as folder:
            async with running_programs(history.replicas, SLUGS, Path(folder), history.random) as programs:
                history.programs = programs
                yield history


async def _found(history: History, slug: str) -> None:
    """A tenant with an operation that may be repeated, one that may not, and a resource."""
    gateway = history.replicas.a.gateway
    await gateway.create_tenant(slug)
    number = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    answer = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}
    paths = {
        f"/{slug}/{name}/{{id}}": {method: {"operationId": name, "parameters": [number], "responses": answer}}
        for name, method in (("look", "get"), ("act", "post"))
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": slug, "version": "1"},
        "servers": [{"url": history.upstream.url}],
        "paths": paths,
    }
    await gateway.import_document(slug, document)
    await add(gateway, slug, "resources", text_resource(f"note://{slug}"))
    limits = {"limits": {"calls_per_second": 10_000, "burst": 10_000, "concurrency": 1_000, "streams": 1_000}}
    (await gateway.admin.put(f"/tenants/{slug}/policy", json=limits)).raise_for_status()
    history.keys[slug] = await gateway.create_key(slug)


async def live_through(history: History, *, seconds: float, clients: int = 2) -> None:
    """Clients call, listeners listen and the nemesis rages for so long; then everything is well again."""
    wires = [await _subscribed(history, slug) for slug in SLUGS]
    try:
        async with anyio.create_task_group() as tasks:
            for slug in SLUGS:
                tasks.start_soon(_listen, history, slug)
                for mode in MODES:
                    for _ in range(clients):
                        tasks.start_soon(_call, history, slug, mode)
            async with anyio.create_task_group() as beside:
                if history.programs is not None:
                    beside.start_soon(history.programs.rage)
                await _rage(history, seconds)
                beside.cancel_scope.cancel()
            if history.programs is not None:
                slug = history.random.choice(SLUGS)
                await history.programs.heal(slug)
                await history.programs.lose(slug, history.keys[slug])
            history.is_over = True
            await _receive_again(history, wires)
            tasks.cancel_scope.cancel()
    finally:
        for wire in wires:
            await wire.close()


async def _rage(history: History, seconds: float) -> None:
    """One fault after another, each healed before the next."""
    until_s = time.monotonic() + seconds
    evils: tuple[Callable[[History], Awaitable[None]], ...] = (
        _kill_replica,
        _stop_replica,
        _kill_redis,
        _kill_postgres,
    )
    order: list[Callable[[History], Awaitable[None]]] = []
    while time.monotonic() < until_s:
        order = order or history.random.sample(evils, len(evils))
        await anyio.sleep(history.random.uniform(0.3, 1.5))
        await order.pop()(history)
    await anyio.sleep(1)


async def _kill_replica(history: History) -> None:
    replica = history.random.choice(history.replicas.all)
    history.faults.append("replica killed")
    replica.kill()
    await anyio.sleep(history.random.uniform(0, 2))
    await replica.start()


async def _stop_replica(history: History) -> None:
    replica = history.random.choice(history.replicas.all)
    history.faults.append("replica stopped")
    history.exits.append(await replica.stop())
    await replica.start()


async def _kill_redis(history: History) -> None:
    await _bounce(history, "redis")
    grant_redis(history.redis_url, [replica.redis_user for replica in history.replicas.all])


async def _kill_postgres(history: History) -> None:
    await _bounce(history, "postgres")


async def _bounce(history: History, name: str) -> None:
    history.faults.append(f"{name} killed")
    server = history.servers[name]
    end_server(server)
    await anyio.sleep(history.random.uniform(0, 3))
    await server.revive()


def end_server(server: Watched) -> None:
    """End a server as a power cut does; a caller may start it again."""
    running = server.child._process  # pyright: ignore[reportPrivateUsage]  # no other module kills servers
    assert running is not None
    running.kill()
    running.wait()


async def _call(history: History, slug: str, mode: Mode) -> None:
    """A client that calls, and connects again whenever its connection is gone."""
    while not history.is_over:
        try:
            async with history.replicas.client(slug, history.keys[slug], mode) as client:
                while not history.is_over:
                    await _call_once(history, client, slug, mode)
        except Exception as error:  # whatever ends a client's connection, it comes again
            log.info("client_comes_again", mode=mode, error=repr(error)[:200])
        await anyio.sleep(_PAUSE_S * 5)


async def _call_once(history: History, client: Client, slug: str, mode: Mode) -> None:
    tool = history.random.choice(history.tools)
    call = Called(len(history.calls) + 1, slug, tool, mode)
    history.calls.append(call)
    try:
        with anyio.fail_after(SILENCE_S):
            result = await client.call_tool(tool, {"id": call.id})
    except MCPError as error:
        call.outcome, call.detail = "refused", str(error)[:300]
    except TimeoutError:
        call.outcome = "silent"
        raise
    except Exception as error:
        call.outcome, call.detail = "broken", repr(error)[:300]
        raise
    else:
        call.detail = "".join(block.text for block in result.content if isinstance(block, TextContent))
        call.outcome = "failed" if result.is_error else "ok"
    await anyio.sleep(_PAUSE_S)


async def _listen(history: History, slug: str) -> None:
    """A listener of 2026-07-28 that listens again whenever its stream is gone."""
    headers = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen"}
    params = {"notifications": {"resourceSubscriptions": [f"note://{slug}"]}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    while True:
        with contextlib.suppress(httpx2.HTTPError):
            async with (
                history.replicas.http(history.keys[slug]) as http,
                http.stream("POST", f"{URL}/t/{slug}/mcp", json=body, headers=headers) as answer,
            ):
                async for line in answer.aiter_lines():
                    if line.startswith("data:") and "resources/updated" in line:
                        history.received[slug].append(json.loads(line[5:])["params"]["uri"])
        await anyio.sleep(_PAUSE_S * 5)


async def _subscribed(history: History, slug: str) -> Wire:
    """A session that was subscribed before anything failed."""
    wire = Wire(history.replicas, slug, history.keys[slug])
    await wire.initialize(history.replicas.a)
    answer = await wire.post(history.replicas.b, request("resources/subscribe", {"uri": f"note://{slug}"}))
    assert answer.json()["result"] == {}, answer.text
    return wire


async def _receive_again(history: History, wires: Sequence[Wire]) -> None:
    """After all of it updates arrive: at new listeners, and in the earlier sessions."""
    for slug, wire in zip(SLUGS, wires, strict=True):
        before = len(history.received[slug])

        async def is_received(slug: str = slug, before: int = before) -> bool:
            await _touch(history, slug)
            return len(history.received[slug]) > before

        await until(is_received, seconds=30, pause=0.5)
        async with wire.listening(history.replicas.b) as events:
            await _touch(history, slug)
            reported = await events.message()
            while not reported["method"].endswith("resources/updated"):
                reported = await events.message()
            assert reported["params"]["uri"] == f"note://{slug}"


async def _touch(history: History, slug: str) -> None:
    with contextlib.suppress(httpx.HTTPError):
        await history.replicas.a.gateway.admin.post(
            f"/tenants/{slug}/resources/updated", json={"uri": f"note://{slug}"}
        )
