"""R9 and R10: effect on other tenants of one whose upstream hangs, or that calls at ten times its limit.

The other tenant calls at an even rate all the time. The fault is on in every second interval, so both figures are from
the same minute on the same machine.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anyio

from benchmarks.faults.world import READS, Row, World, milliseconds, paced, running_world
from benchmarks.figures import percentile
from benchmarks.load import LENGTH
from benchmarks.requests import modern
from tests.support.history import SLUGS

TROUBLED, NEIGHBOUR = SLUGS
_AT_ONCE = 64
_TOO_MANY = b'"code":42900'
_LIMIT = 10
_TIMES = 10
_ATTACKERS = 10
_SPELL_S = 8.0
"""Shorter than the first-byte deadline of an upstream: hanging calls are released before it, and no circuit breaker
opens.
"""
_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class _Answer:
    """The duration and outcome of a call."""

    seconds: float
    is_ok: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class _Pace:
    """A number of clients, and the rate and duration of their calls."""

    clients: int
    per_second: float
    seconds: float


@dataclass(slots=True)
class _Seen:
    """The neighbour's calls without and with the fault, and the calls of the tenant that causes it."""

    in_peace: list[_Answer] = field(default_factory=list[_Answer])
    in_trouble: list[_Answer] = field(default_factory=list[_Answer])
    of_trouble: list[_Answer] = field(default_factory=list[_Answer])


_EVEN = _Pace(4, 10.0, _SPELL_S)
_Trouble = Callable[[World, list[_Answer]], Coroutine[Any, Any, None]]


async def measure_slow_upstream(spells: int) -> Sequence[Row]:
    """One tenant's upstream does not respond while 64 calls to it wait."""
    async with running_world() as world:
        seen = await _alternate(world, spells, _hang)
    busy = sum(b"upstream.busy" in call.body for call in seen.of_trouble)
    what = f"calls of the tenant whose upstream hangs, {_AT_ONCE} at once"
    figure = f"{len(seen.of_trouble):,}, {busy:,} of them refused as upstream.busy"
    return [*_rows("R9", seen, "+ ≤ 20 %"), Row(promise="R9", what=what, figure=figure)]


async def measure_noisy_tenant(spells: int) -> Sequence[Row]:
    """One tenant calls at ten times its limit."""
    async with running_world() as world:
        await world.limit(TROUBLED, calls_per_second=_LIMIT, burst=_LIMIT)
        seen = await _alternate(world, spells, _hammer)
    refused = sum(_TOO_MANY in call.body for call in seen.of_trouble)
    what = f"calls of the noisy tenant, at {_TIMES} times its limit of {_LIMIT:.0f}/s"
    figure = f"{len(seen.of_trouble):,}, {refused:,} of them refused as too many"
    return [*_rows("R10", seen, "≤ 2 times"), Row(promise="R10", what=what, figure=figure)]


async def _alternate(world: World, spells: int, trouble: _Trouble) -> _Seen:
    seen = _Seen()
    for _ in range(spells):
        await _call_evenly(world, NEIGHBOUR, seen.in_peace, _EVEN)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trouble, world, seen.of_trouble)
            await anyio.sleep(_REST_S)
            await _call_evenly(world, NEIGHBOUR, seen.in_trouble, _EVEN)
            world.upstream.release()
        await anyio.sleep(_REST_S)
    return seen


class _Line:
    """One client of a tenant at one replica, on its own connection; it writes raw bytes, to need almost no CPU."""

    def __init__(self, world: World, slug: str, number: int) -> None:
        at = world.replicas[number % len(world.replicas)]
        arguments = {"name": READS, "arguments": {"id": 1}}
        self._raw = modern(f"/t/{slug}/mcp", "tools/call", arguments, key=world.history.keys[slug])
        self._port = urlsplit(at.gateway.url).port
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self) -> _Answer:
        """Make one call."""
        began = time.perf_counter()
        if self._ends is None:
            self._ends = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._ends
        writer.write(self._raw)
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        assert length is not None, head
        body = await reader.readexactly(int(length[1]))
        is_ok = head[9:12] == b"200" and b'"result"' in body and b'"isError":true' not in body
        return _Answer(time.perf_counter() - began, is_ok, body)

    def close(self) -> None:
        """Close the connection."""
        if self._ends is not None:
            self._ends[1].close()


async def _call_evenly(world: World, slug: str, answers: list[_Answer], pace: _Pace) -> None:
    """Call from several clients at both replicas, each at the same rate, with staggered starts."""

    async def call(number: int) -> None:
        line = _Line(world, slug, number)
        await anyio.sleep(number / pace.clients / pace.per_second)

        async def once() -> None:
            answers.append(await line.call())

        await paced(pace.per_second, pace.seconds, once)
        line.close()

    async with anyio.create_task_group() as tasks:
        for number in range(pace.clients):
            tasks.start_soon(call, number)


async def _hang(world: World, answers: list[_Answer]) -> None:
    """Make 64 concurrent calls that get no response; a refused client retries."""
    world.upstream.held.add(TROUBLED)

    async def call(number: int) -> None:
        line = _Line(world, TROUBLED, number)
        while TROUBLED in world.upstream.held:
            answers.append(await line.call())
            await anyio.sleep(_REST_S)
        line.close()

    async with anyio.create_task_group() as tasks:
        for number in range(_AT_ONCE):
            tasks.start_soon(call, number)


async def _hammer(world: World, answers: list[_Answer]) -> None:
    pace = _Pace(_ATTACKERS, _LIMIT * _TIMES / _ATTACKERS, _SPELL_S + _REST_S)
    await _call_evenly(world, TROUBLED, answers, pace)


def _rows(promise: str, seen: _Seen, bar: str) -> Sequence[Row]:
    rows: list[Row] = []
    for share in (50, 99):
        calm, loud = (percentile([call.seconds for call in calls], share) for calls in (seen.in_peace, seen.in_trouble))
        figure = f"{milliseconds(calm)} without, {milliseconds(loud)} with ({loud / calm:.2f} times)"
        what = f"the neighbour's calls, {share}th percentile"
        rows.append(Row(promise=promise, what=what, figure=figure, bar=bar if share == 99 else ""))
    neighbours = [*seen.in_peace, *seen.in_trouble]
    failed = sum(not call.is_ok for call in neighbours)
    rows.append(
        Row(promise=promise, what="the neighbour's errors", figure=f"{failed} of {len(neighbours):,} calls", bar="0")
    )
    return rows
