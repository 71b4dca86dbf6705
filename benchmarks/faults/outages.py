"""R7 and R8: Redis, then PostgreSQL, is down for a minute while clients of both eras call, list, listen and change."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

import anyio
import httpx
from anyio.abc import TaskGroup

from benchmarks.faults.world import (
    CHANGES,
    READS,
    Asked,
    Caller,
    Received,
    Row,
    World,
    milliseconds,
    paced,
    reached,
    running_world,
)
from gateway.store.database.connection import connect_owner
from tests.support.history import SLUGS, end_server
from tests.support.replicas import grant_redis

SLUG = SLUGS[0]
_PER_SECOND = 10.0
_PROBES_PER_SECOND = 2.0
_FOREVER_S = 3600.0
_BEFORE_S = 3.0
_AFTER_S = 6.0
_PATIENCE_S = 60.0
_PAUSE_S = 0.05
_WATCHED_S = 10.0
"""Time for which listeners are watched after the recovery; duplicate notifications would arrive in it."""


@dataclass(slots=True)
class _Watch:
    """Observations of clients during an outage, and the times of the recovery."""

    away_at: float = 0.0
    returns_at: float = 0.0
    """The time at which the server is started again; it accepts requests some time before `back_at`."""
    back_at: float = 0.0
    reads: list[Asked] = field(default_factory=list[Asked])
    changes: list[Asked] = field(default_factory=list[Asked])
    lists: list[int] = field(default_factory=list[int])
    answers: list[tuple[float, float, int, bool]] = field(default_factory=list[tuple[float, float, int, bool]])
    """Of a session or the admin API: start, seconds, status, and True if the response had Retry-After."""
    created: list[str] = field(default_factory=list[str])

    def while_away(self, calls: Sequence[Asked]) -> Sequence[Asked]:
        """Return the calls that began during the outage."""
        return [call for call in calls if self.away_at <= call.began < self.returns_at]


async def measure_redis(seconds: float) -> Sequence[Row]:
    """Stop Redis for this many seconds."""
    async with running_world() as world, AsyncExitStack() as stack:
        session = Caller(world, SLUG)
        await session.open_session(world.replicas[0])
        wanted = {"toolsListChanged": True, "resourceSubscriptions": [f"note://{SLUG}"]}
        listeners = [
            await stack.enter_async_context(Caller(world, SLUG).listening(replica, **wanted))
            for replica in world.replicas
        ]
        watch = _Watch()
        async with _clients(world, watch) as tasks:
            tasks.start_soon(_probe_session, session, watch)
            await anyio.sleep(_BEFORE_S)
            await _away(world, watch, "redis", seconds)
            received = await _received_again(world, listeners)
            goes_on = max([await session.until(READS, replica, is_ok=True) for replica in world.replicas])
            await anyio.sleep(max(0.0, watch.back_at + _WATCHED_S - time.perf_counter()))
            tasks.cancel_scope.cancel()
        return _redis_rows(watch, listeners, received, goes_on)


async def measure_postgresql(seconds: float) -> Sequence[Row]:
    """Stop PostgreSQL for this many seconds."""
    async with running_world() as world:
        watch = _Watch()
        async with _clients(world, watch) as tasks:
            tasks.start_soon(_change, world, watch)
            tasks.start_soon(_administer, world, watch)
            await anyio.sleep(_BEFORE_S)
            await _away(world, watch, "postgres", seconds)
            changing = Caller(world, SLUG)
            recovered = [await changing.until(CHANGES, replica, is_ok=True) for replica in world.replicas]
            await anyio.sleep(_AFTER_S)
            tasks.cancel_scope.cancel()
        kept = await _names(world)
        return _postgresql_rows(watch, max(recovered), kept, await _unrecorded(world, watch))


@asynccontextmanager
async def _clients(world: World, watch: _Watch) -> AsyncGenerator[TaskGroup]:
    """Run clients of 2026-07-28 of both tenants that call and list, until they are cancelled."""
    async with anyio.create_task_group() as tasks:
        for slug in SLUGS:
            for _ in range(2):
                tasks.start_soon(_read, Caller(world, slug), watch)
        tasks.start_soon(_list, Caller(world, SLUG), watch)
        yield tasks


async def _away(world: World, watch: _Watch, name: str, seconds: float) -> None:
    server = world.history.servers[name]
    watch.away_at = time.perf_counter()
    end_server(server)
    await anyio.sleep(seconds)
    watch.returns_at = time.perf_counter()
    await server.revive()
    if name == "redis":
        grant_redis(world.history.redis_url, [replica.redis_user for replica in world.replicas])
    watch.back_at = time.perf_counter()


async def _read(caller: Caller, watch: _Watch) -> None:
    async def once() -> None:
        watch.reads.append(await caller.call(READS))

    await paced(_PER_SECOND, _FOREVER_S, once)


async def _change(world: World, watch: _Watch) -> None:
    caller = Caller(world, SLUG)

    async def once() -> None:
        watch.changes.append(await caller.call(CHANGES))

    await paced(_PROBES_PER_SECOND, _FOREVER_S, once)


async def _list(caller: Caller, watch: _Watch) -> None:
    async def once() -> None:
        watch.lists.append((await caller.ask("tools/list", at=caller.next())).status_code)

    await paced(_PROBES_PER_SECOND, _FOREVER_S, once)


async def _probe_session(session: Caller, watch: _Watch) -> None:
    async def once() -> None:
        began = time.perf_counter()
        answer = await session.ask("tools/list", at=session.next())
        taken = time.perf_counter() - began
        watch.answers.append((began, taken, answer.status_code, "retry-after" in answer.headers))

    await paced(_PROBES_PER_SECOND, _FOREVER_S, once)


async def _administer(world: World, watch: _Watch) -> None:
    """Create keys at the replicas in turn, and record those whose creation was confirmed."""

    async def once() -> None:
        began, name = time.perf_counter(), f"key-{len(watch.answers)}"
        answer = await world.admin(
            "POST", f"/tenants/{SLUG}/keys", {"name": name, "scopes": ["mcp"]}, at=len(watch.answers) % 2
        )
        taken = time.perf_counter() - began
        watch.answers.append((began, taken, answer.status_code, "retry-after" in answer.headers))
        if answer.is_success:
            watch.created.append(name)

    await paced(_PROBES_PER_SECOND, _FOREVER_S, once)


async def _received_again(world: World, listeners: Sequence[Received]) -> float:
    """Report updates of the resource until each listener received one; return the time at which the last did."""
    began = time.perf_counter()

    async def touch() -> None:
        while True:
            with anyio.move_on_after(2):
                await _touch(world)
            await anyio.sleep(_PAUSE_S * 2)

    def is_received() -> bool:
        return all(any(moment > began for moment in received.moments("resources/updated")) for received in listeners)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(touch)
        await reached(is_received)
        tasks.cancel_scope.cancel()
    return max(min(moment for moment in one.moments("resources/updated") if moment > began) for one in listeners)


async def _touch(world: World) -> None:
    try:
        await world.admin("POST", f"/tenants/{SLUG}/resources/updated", {"uri": f"note://{SLUG}"})
    except httpx.TransportError:
        return


async def _names(world: World) -> set[str]:
    """Return the names of the tenant's keys."""
    names: set[str] = set()
    path = f"/tenants/{SLUG}/keys?limit=100"
    cursor: str | None = None
    while True:
        answer = await world.admin("GET", path if cursor is None else f"{path}&cursor={cursor}")
        answer.raise_for_status()
        names |= {each["name"] for each in answer.json()["items"]}
        cursor = answer.json().get("next_cursor")
        if cursor is None:
            return names


async def _unrecorded(world: World, watch: _Watch) -> int:
    """Return the number of successful calls without an audit entry, after waiting for entries that were spooled."""
    wanted = {call.headers["x-request-id"] for call in (*watch.reads, *watch.changes) if call.is_ok}
    connection = await connect_owner(world.history.superuser_url)
    query = "select correlation_id from audit_entries where kind = 'call' and outcome = 'ok'"
    try:
        with anyio.move_on_after(_PATIENCE_S):
            while wanted:
                wanted -= {str(row["correlation_id"]) for row in await connection.fetch(query)}
                await anyio.sleep(_PAUSE_S * 4)
    finally:
        await connection.close()
    return len(wanted)


def _redis_rows(watch: _Watch, received: Sequence[Received], received_at: float, goes_on_at: float) -> Sequence[Row]:
    asked = [one for one in watch.answers if watch.away_at <= one[0] < watch.returns_at]
    refused = [one for one in asked if one[2] == HTTPStatus.SERVICE_UNAVAILABLE and one[3]]
    reported = [[moment for moment in one.moments("tools/list_changed") if moment > watch.back_at] for one in received]
    figures = (
        ("calls of 2026-07-28 that succeeded meanwhile", _share(watch.while_away(watch.reads)), "≥ 99.9 %"),
        ("lists served from beginning to end", f"{watch.lists.count(200)} of {len(watch.lists)}", "all"),
        ("requests in sessions answered 503 with Retry-After", f"{len(refused)} of {len(asked)}", "all"),
        ("requests in sessions by status", _by_status(asked), ""),
        ("the slowest of them", milliseconds(max(one[1] for one in asked)), ""),
        ("back → the session goes on", f"{goes_on_at - watch.back_at:.1f} s", ""),
        ("back → every listener receives updates", f"{received_at - watch.back_at:.1f} s", "≤ 5 s"),
        ("list_changed for each listener after the return", ", ".join(str(len(one)) for one in reported), "1"),
    )
    return [Row(promise="R7", what=what, figure=figure, bar=bar) for what, figure, bar in figures]


def _postgresql_rows(watch: _Watch, recovered_at: float, kept: set[str], unrecorded: int) -> Sequence[Row]:
    asked = [one for one in watch.answers if watch.away_at <= one[0] < watch.returns_at]
    changes = watch.while_away(watch.changes)
    done = sum(call.is_ok for call in changes)
    lost = len(set(watch.created) - kept)
    refusals = [call.began - watch.away_at for call in watch.while_away(watch.reads) if not call.is_ok]
    figures = (
        ("calls that only read and succeeded meanwhile", _share(watch.while_away(watch.reads)), ""),
        ("the first of them refused after", f"{min(refusals):.0f} s" if refusals else "none was", "≤ 60 s stale"),
        ("calls that change something, done meanwhile", f"{done} of {len(changes)}", "0"),
        ("the slowest refusal of those", milliseconds(max(call.seconds for call in changes)), "≤ 2 s"),
        ("requests of the admin API by status", _by_status(asked), "503"),
        ("the slowest of them", milliseconds(max(one[1] for one in asked)), "≤ 2 s"),
        ("back → changes are made at both replicas", f"{recovered_at - watch.back_at:.1f} s", "≤ 5 s"),
        ("answered calls that are not in the trail", str(unrecorded), "0"),
        ("committed writes that were lost", f"{lost} of {len(watch.created)}", "0"),
    )
    return [Row(promise="R8", what=what, figure=figure, bar=bar) for what, figure, bar in figures]


def _by_status(answers: Sequence[tuple[float, float, int, bool]]) -> str:
    counted = Counter(status for _, _, status, _ in answers)
    return ", ".join(f"{count} × {status}" for status, count in sorted(counted.items()))


def _share(calls: Sequence[Asked]) -> str:
    good = sum(call.is_ok for call in calls)
    return f"{100 * good / len(calls):.2f} % of {len(calls):,}"
