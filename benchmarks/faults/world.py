"""What is measured: two replicas over servers of their own, two tenants, and clients that speak HTTP by themselves.

A client of 2026-07-28 asks the replicas in turn and knows nothing of their health: what cannot reach one, or only
reads and broke on its way, it sends once more, to the other. A client of the handshake era does the same in a session.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import httpx

from benchmarks.requests import ACCEPT, HANDSHAKE, INITIALIZE, MODERN, PROTOCOL
from tests.support.history import Arrived, EchoingUpstream, History, running_history
from tests.support.replicas import Replica

META: dict[str, Any] = {f"{PROTOCOL}/protocolVersion": MODERN, f"{PROTOCOL}/clientCapabilities": {}}
READS, CHANGES = "look", "act"
"""The tools of every tenant: one that may be repeated and one that may not."""

_PATIENCE_S = 60.0
_LOOK_S = 0.01
_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: the promise, what was measured, what came out, and what is wanted of it."""

    promise: str
    what: str
    figure: str
    bar: str = ""


@dataclass(slots=True)
class Asked:
    """One call, and how it ended."""

    number: int
    tool: str
    at: str
    began: float
    seconds: float = 0.0
    is_ok: bool = False
    is_broken: bool = False
    """No answer came."""
    was_sent: bool = True
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    said: str = ""


class HoldingUpstream(EchoingUpstream):
    """An upstream that answers nothing of some tenants, or waits until whoever asked for them has hung up."""

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.watched: set[str] = set()
        self.gate = asyncio.Event()
        self.arrived: set[int] = set()
        """The watched requests."""
        self.left: dict[int, float] = {}
        """When the connection of a watched request was closed."""

    async def hold(self, arrived: Arrived, reader: asyncio.StreamReader) -> None:
        """Wait, if it is of those."""
        if arrived.slug in self.watched:
            self.arrived.add(arrived.id)
            await reader.read(1)
            self.left[arrived.id] = time.perf_counter()
        elif arrived.slug in self.held:
            await self.gate.wait()

    def release(self) -> None:
        """Answer whatever is held, and hold nothing more."""
        self.held.clear()
        self.gate.set()
        self.gate = asyncio.Event()


@dataclass(slots=True)
class World:
    """Replicas, servers and upstream, and what is under way at which replica."""

    history: History
    upstream: HoldingUpstream
    http: httpx.AsyncClient
    under_way: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    _numbers: int = 0

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Both of them."""
        return self.history.replicas.all

    def other(self, replica: Replica) -> Replica:
        """The one that is not this."""
        return next(one for one in self.replicas if one is not replica)

    def number(self) -> int:
        """The next call's."""
        self._numbers += 1
        return self._numbers

    async def admin(self, method: str, path: str, body: object = None, *, at: int = 0) -> httpx.Response:
        """One request of the operator at one replica."""
        return await self.replicas[at].gateway.admin.request(method, path, json=body)

    async def limit(self, slug: str, **limits: float) -> None:
        """Give a tenant these limits and no others that matter."""
        plenty = {"calls_per_second": 10_000, "burst": 10_000, "concurrency": 1_000, "streams": 1_000}
        (await self.admin("PUT", f"/tenants/{slug}/policy", {"limits": {**plenty, **limits}})).raise_for_status()


class Caller:
    """One client of a tenant; with a session it is one of the handshake era."""

    def __init__(self, world: World, slug: str, *, key: str | None = None) -> None:
        self.world = world
        self.slug = slug
        self.session = ""
        self._key = key or world.history.keys[slug]
        self._turns = 0

    async def open_session(self, at: Replica) -> None:
        """Become a client of the handshake era."""
        answer = await self._post(at, "initialize", INITIALIZE)
        answer.raise_for_status()
        self.session = answer.headers["mcp-session-id"]
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        (await self.world.http.post(self._url(at), json=note, headers=self._headers(""))).raise_for_status()

    def next(self) -> Replica:
        """Whose turn it is."""
        self._turns += 1
        return self.world.replicas[self._turns % len(self.world.replicas)]

    async def call(self, tool: str, at: Replica | None = None, *, number: int | None = None) -> Asked:
        """One call, however it ends."""
        at = at or self.next()
        asked = Asked(number or self.world.number(), tool, at.name, time.perf_counter())
        self.world.under_way[at.name] += 1
        try:
            answer = await self._post(at, "tools/call", {"name": tool, "arguments": {"id": asked.number}})
        except httpx.TransportError as error:
            asked.is_broken, asked.said = True, repr(error)
            asked.was_sent = not isinstance(error, httpx.ConnectError)
        else:
            asked.status, asked.headers, asked.said = answer.status_code, answer.headers, answer.text[:500]
            said = _message(answer)
            asked.is_ok = answer.status_code == 200 and "result" in said and not said["result"].get("isError")
        finally:
            self.world.under_way[at.name] -= 1
        asked.seconds = time.perf_counter() - asked.began
        return asked

    async def until(self, tool: str, at: Replica, *, is_ok: bool) -> float:
        """Call at one replica until it goes well, or does no longer; the moment."""
        with anyio.fail_after(_PATIENCE_S):
            asked = await self.call(tool, at)
            while asked.is_ok is not is_ok:
                await anyio.sleep(_AGAIN_S)
                asked = await self.call(tool, at)
        return time.perf_counter()

    async def call_again(self, tool: str) -> tuple[Asked, Asked | None]:
        """One call, and once more at the other replica when it was not sent, or broke and only reads."""
        first = await self.call(tool)
        if first.is_broken and (tool == READS or not first.was_sent):
            return first, await self.call(tool)
        return first, None

    async def ask(self, method: str, params: dict[str, Any] | None = None, *, at: Replica) -> httpx.Response:
        """One request of another method."""
        return await self._post(at, method, params or {})

    @asynccontextmanager
    async def listening(self, at: Replica, **wanted: Any) -> AsyncGenerator["Heard"]:
        """A stream of 2026-07-28, from its acknowledgement on."""
        method, params = "subscriptions/listen", {"notifications": wanted, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with (
            self.world.http.stream("POST", self._url(at), json=body, headers=self._headers(method)) as answer,
            anyio.create_task_group() as tasks,
        ):
            answer.raise_for_status()
            heard = Heard()
            tasks.start_soon(heard.read, answer)
            await reached(lambda: bool(heard.messages))
            yield heard
            tasks.cancel_scope.cancel()

    async def _post(self, at: Replica, method: str, params: Mapping[str, Any]) -> httpx.Response:
        envelope: dict[str, Any] = {} if self.session or method == "initialize" else {"_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **envelope}}
        headers = self._headers("" if method == "initialize" else method)
        if "name" in params and not self.session:
            headers["mcp-name"] = params["name"]
        return await self.world.http.post(self._url(at), json=body, headers=headers)

    def _headers(self, method: str) -> dict[str, str]:
        headers = {"authorization": f"Bearer {self._key}", "accept": ACCEPT}
        if self.session:
            return headers | {"mcp-session-id": self.session, "mcp-protocol-version": HANDSHAKE}
        return headers | {"mcp-protocol-version": MODERN, "mcp-method": method} if method else headers

    def _url(self, at: Replica) -> str:
        return f"{at.gateway.url}/t/{self.slug}/mcp"


@dataclass(slots=True)
class Heard:
    """What a stream has said, each with its moment, and the moment of its end."""

    messages: list[tuple[float, dict[str, Any]]] = field(default_factory=list[tuple[float, dict[str, Any]]])
    ended: float | None = None

    async def read(self, answer: httpx.Response) -> None:
        """Note what comes until the end."""
        try:
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    self.messages.append((time.perf_counter(), json.loads(line[5:])))
        except httpx.TransportError:
            pass
        self.ended = time.perf_counter()

    def has_more_than(self, count: int) -> bool:
        """Whether so much has been said, and more."""
        return len(self.messages) > count

    def moments(self, method: str) -> list[float]:
        """When something of this name was said."""
        return [moment for moment, said in self.messages if str(said.get("method", "")).endswith(method)]


@asynccontextmanager
async def running_world() -> AsyncGenerator[World]:
    """Everything, for as long as the block runs."""
    upstream = HoldingUpstream()
    async with running_history(0, upstream) as history:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
        async with httpx.AsyncClient(timeout=_PATIENCE_S, trust_env=False, limits=limits) as http:
            world = World(history, upstream, http)
            for replica in world.replicas:  # what connects first pays for it
                for slug in history.keys:
                    await Caller(world, slug).call(READS, replica)
            yield world


async def paced(per_second: float, seconds: float, ask: Callable[[], Awaitable[Any]]) -> None:
    """Ask so often for so long; whoever is answered late asks at once, and does not catch up."""
    ends_at = time.perf_counter() + seconds
    while (now := time.perf_counter()) < ends_at:
        await ask()
        await anyio.sleep(max(0.0, now + 1 / per_second - time.perf_counter()))


async def reached(claim: Callable[[], bool], *, seconds: float = _PATIENCE_S) -> float:
    """Wait until it is so; the moment at which that was seen."""
    with anyio.fail_after(seconds):
        while not claim():  # noqa: ASYNC110  # who makes it so does not know that it is waited for
            await anyio.sleep(_LOOK_S)
    return time.perf_counter()


def load() -> str:
    """How much the machine has to do just now."""
    return f"{os.getloadavg()[0]:.1f}"


def milliseconds(seconds: float) -> str:
    """For a cell of the table."""
    return f"{seconds * 1000:,.0f} ms"


def _message(answer: httpx.Response) -> dict[str, Any]:
    """The message that answers a request, as JSON or as the last event of a stream; empty when there is none."""
    lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    try:
        said: Any = json.loads(lines[-1] if lines else answer.text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}
