"""R5: replicas are killed repeatedly while clients of both eras call; each kill breaks requests in flight there."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import anyio

from benchmarks.faults.world import CHANGES, READS, Asked, Caller, Row, World, paced, running_world
from tests.support.history import SLUGS

_PER_SECOND = 10.0
_SESSIONS_PER_SECOND = 5.0
_CLIENTS = 3
_FOREVER_S = 3600.0


@dataclass(slots=True)
class _Work:
    """The clients' calls, each with its retry if there was one."""

    modern: list[tuple[Asked, Asked | None]] = field(default_factory=list[tuple[Asked, Asked | None]])
    sessions: list[tuple[Asked, Asked | None]] = field(default_factory=list[tuple[Asked, Asked | None]])


async def measure_crashes(kills: int) -> Sequence[Row]:
    """Kill the replicas in turn, `kills` times in all."""
    async with running_world() as world:
        return await _measure(world, kills)


async def _measure(world: World, kills: int) -> Sequence[Row]:
    random, work = Random(5), _Work()
    under_way: list[int] = []
    back: list[float] = []
    async with anyio.create_task_group() as tasks:
        for slug in SLUGS:
            for number in range(_CLIENTS):
                tasks.start_soon(_call, Caller(world, slug), work.modern, _PER_SECOND, (READS, CHANGES)[number % 2])
            session = Caller(world, slug)
            await session.open_session(world.replicas[0])
            tasks.start_soon(_call, session, work.sessions, _SESSIONS_PER_SECOND, READS)
        for number in range(kills):
            await anyio.sleep(random.uniform(0.5, 1.5))
            replica = world.replicas[number % 2]
            under_way.append(world.under_way[replica.name])
            killed_at = time.perf_counter()
            replica.kill()
            await replica.start()
            back.append(await Caller(world, SLUGS[0]).until(READS, replica, is_ok=True) - killed_at)
        await anyio.sleep(1)
        tasks.cancel_scope.cancel()
    return _rows(work, under_way, back)


async def _call(caller: Caller, calls: list[tuple[Asked, Asked | None]], per_second: float, tool: str) -> None:
    async def once() -> None:
        calls.append(await caller.call_again(tool))

    await paced(per_second, _FOREVER_S, once)


def _rows(work: _Work, under_way: Sequence[int], back: Sequence[float]) -> Sequence[Row]:
    everything = [*work.modern, *work.sessions]
    broken = sum(first.is_broken and first.was_sent for first, _ in everything)
    failed = sum(not (again or first).is_ok for first, again in everything)
    rows = [
        Row(promise="R5", what="kills, one replica after the other", figure=str(len(under_way))),
        Row(promise="R5", what="requests under way at the killed, all kills", figure=str(sum(under_way))),
        Row(promise="R5", what="requests that broke", figure=str(broken), bar="≤ those under way"),
        Row(promise="R5", what="calls that failed after one retry", figure=str(failed), bar="≤ those under way"),
    ]
    for name, calls in (("2026-07-28", work.modern), ("2025-11-25, in sessions", work.sessions)):
        good = sum((again or first).is_ok for first, again in calls)
        figure = f"{100 * good / len(calls):.2f} % of {len(calls):,}"
        rows.append(Row(promise="R5", what=f"calls that succeeded, {name}", figure=figure, bar="≥ 99.5 %"))
    figure = f"{sorted(back)[len(back) // 2]:.1f} s, the slowest {max(back):.1f} s"
    what = "killed → answers again (started at once), median"
    return [*rows, Row(promise="R5", what=what, figure=figure, bar="≤ 5 s")]
