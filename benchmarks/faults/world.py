"""The measured installation: two replicas with their own servers, two tenants, and clients that speak plain HTTP.

A client of 2026-07-28 uses the replicas in turn and knows nothing of their health. It retries a call once, at the other
replica, if no connection was made, or if the call only reads and its connection broke. A client of the handshake era
does the same in a session.
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
"""The tools of every tenant: a repeatable one and a non-repeatable one."""

_PATIENCE_S = 60.0
_LOOK_S = 0.01
_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: the promise, the measurement, its figure, and the target."""

    promise: str
    what: str
    figure: str
    bar: str = ""


@dataclass(slots=True)
class Asked:
    """One call and its outcome."""

    number: int
    tool: str
    at: str
    began: float
    seconds: float = 0.0
    is_ok: bool = False
    is_broken: bool = False
    """True if no response arrived."""
    was_sent: bool = True
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    output: str = ""


class HoldingUpstream(EchoingUpstream):
    """An upstream that does not respond for some tenants, or waits until the gateway closes the connection of a
    request.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.watched: set[str] = set()
        self.gate = asyncio.Event()
        self.arrived: set[int] = set()
        """The ids of watched requests that have arrived."""
        self.left: dict[int, float] = {}
        """The times at which the connections of watched requests were closed."""

    async def hold(self, arrived: Arrived, reader: asyncio.StreamReader) -> None:
        """Wait if the request's tenant is held or watched."""
        if arrived.slug in self.watched:
            self.arrived.add(arrived.id)
            await reader.read(1)
            self.left[arrived.id] = time.perf_counter()
        elif arrived.slug in self.held:
            await self.gate.wait()

    def release(self) -> None:
        """Respond to all held requests, and hold no more."""
        self.held.clear()
        self.gate.set()
        self.gate = asyncio.Event()


@dataclass(slots=True)
class World:
    """Replicas, servers and upstream, and the number of requests in flight by replica."""

    history: History
    upstream: HoldingUpstream
    http: httpx.AsyncClient
    under_way: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    _numbers: int = 0

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Both replicas."""
        return self.history.replicas.all

    def other(self, replica: Replica) -> Replica:
        """Return the other replica."""
        return next(one for one in self.replicas if one is not replica)

    def number(self) -> int:
        """Return the id of the next call."""
        self._numbers += 1
        return self._numbers

    async def admin(self, method: str, path: str, body: object = None, *, at: int = 0) -> httpx.Response:
        """Send a request as the operator to one replica."""
        return await self.replicas[at].gateway.admin.request(method, path, json=body)

    async def limit(self, slug: str, **limits: float) -> None:
        """Set these limits of a tenant, and the others too high to matter."""
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
        """Open a session and become a client of the handshake era."""
        answer = await self._post(at, "initialize", INITIALIZE)
        answer.raise_for_status()
        self.session = answer.headers["mcp-session-id"]
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        (await self.world.http.post(self._url(at), json=note, headers=self._headers(""))).raise_for_status()

    def next(self) -> Replica:
        """Return the next replica in turn."""
        self._turns += 1
        return self.world.replicas[self._turns % len(self.world.replicas)]

    async def call(self, tool: str, at: Replica | None = None, *, number: int | None = None) -> Asked:
        """Make one call and record its outcome."""
        at = at or self.next()
        asked = Asked(number or self.world.number(), tool, at.name, time.perf_counter())
        self.world.under_way[at.name] += 1
        try:
            answer = await self._post(at, "tools/call", {"name": tool, "arguments": {"id": asked.number}})
        except httpx.TransportError as error:
            asked.is_broken, asked.output = True, repr(error)
            asked.was_sent = not isinstance(error, httpx.ConnectError)
        else:
            asked.status, asked.headers, asked.output = answer.status_code, answer.headers, answer.text[:500]
            output = _message(answer)
            asked.is_ok = answer.status_code == 200 and "result" in output and not output["result"].get("isError")
        finally:
            self.world.under_way[at.name] -= 1
        asked.seconds = time.perf_counter() - asked.began
        return asked

    async def until(self, tool: str, at: Replica, *, is_ok: bool) -> float:
        """Call at one replica until the outcome is `is_ok`; return the time."""
        with anyio.fail_after(_PATIENCE_S):
            asked = await self.call(tool, at)
            while asked.is_ok is not is_ok:
                await anyio.sleep(_AGAIN_S)
                asked = await self.call(tool, at)
        return time.perf_counter()

    async def call_again(self, tool: str) -> tuple[Asked, Asked | None]:
        """Make one call, and retry it once at the next replica if it was not sent, or if it broke and only reads."""
        first = await self.call(tool)
        if first.is_broken and (tool == READS or not first.was_sent):
            return first, await self.call(tool)
        return first, None

    async def ask(self, method: str, params: dict[str, Any] | None = None, *, at: Replica) -> httpx.Response:
        """Send a request of any method."""
        return await self._post(at, method, params or {})

    @asynccontextmanager
    async def listening(self, at: Replica, **wanted: Any) -> AsyncGenerator["Received"]:
        """Open a stream of 2026-07-28; yield after its acknowledgement."""
        method, params = "subscriptions/listen", {"notifications": wanted, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with (
            self.world.http.stream("POST", self._url(at), json=body, headers=self._headers(method)) as answer,
            anyio.create_task_group() as tasks,
        ):
            answer.raise_for_status()
            received = Received()
            tasks.start_soon(received.read, answer)
            await reached(lambda: bool(received.messages))
            yield received
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
class Received:
    """The messages of a stream, each with its time, and the time of its end."""

    messages: list[tuple[float, dict[str, Any]]] = field(default_factory=list[tuple[float, dict[str, Any]]])
    ended: float | None = None

    async def read(self, answer: httpx.Response) -> None:
        """Record messages until the stream ends."""
        try:
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    self.messages.append((time.perf_counter(), json.loads(line[5:])))
        except httpx.TransportError:
            pass
        self.ended = time.perf_counter()

    def has_more_than(self, count: int) -> bool:
        """True if more messages than `count` have arrived."""
        return len(self.messages) > count

    def moments(self, method: str) -> list[float]:
        """Return the times of the messages of this method."""
        return [moment for moment, output in self.messages if str(output.get("method", "")).endswith(method)]


@asynccontextmanager
async def running_world() -> AsyncGenerator[World]:
    """Run the whole installation while the block runs."""
    upstream = HoldingUpstream()
    async with running_history(0, upstream) as history:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
        async with httpx.AsyncClient(timeout=_PATIENCE_S, trust_env=False, limits=limits) as http:
            world = World(history, upstream, http)
            for replica in world.replicas:  # first calls open connections, which must not count
                for slug in history.keys:
                    await Caller(world, slug).call(READS, replica)
            yield world


async def paced(per_second: float, seconds: float, ask: Callable[[], Awaitable[Any]]) -> None:
    """Run `ask` at a rate for some time; after a late response the next one starts at once, without catching up."""
    ends_at = time.perf_counter() + seconds
    while (now := time.perf_counter()) < ends_at:
        await ask()
        await anyio.sleep(max(0.0, now + 1 / per_second - time.perf_counter()))


async def reached(claim: Callable[[], bool], *, seconds: float = _PATIENCE_S) -> float:
    """Wait until the claim holds; return the time at which that was observed."""
    with anyio.fail_after(seconds):
        while not claim():  # noqa: ASYNC110  # the code that fulfils the claim has no event to set
            await anyio.sleep(_LOOK_S)
    return time.perf_counter()


def load() -> str:
    """Return the machine's load average over one minute."""
    return f"{os.getloadavg()[0]:.1f}"


def milliseconds(seconds: float) -> str:
    """Format seconds as milliseconds for a table cell."""
    return f"{seconds * 1000:,.0f} ms"


def _message(answer: httpx.Response) -> dict[str, Any]:
    """Return the response message, from JSON or from the last event of a stream; empty if there is none."""
    lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    try:
        output: Any = json.loads(lines[-1] if lines else answer.text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", output) if isinstance(output, dict) else {}
