"""R14, R19 and R20: delay until a change, a client's disconnect and a revoked key take effect everywhere."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from functools import partial

import anyio
import httpx

from benchmarks.faults.world import READS, Caller, Row, World, milliseconds, reached, running_world
from benchmarks.figures import percentile
from tests.support.history import SLUGS
from tests.support.primitives import static_tool
from tests.support.replicas import Replica

SLUG = SLUGS[0]
_PAUSE_S = 0.01
_AT_ONCE = 4
_NAME = "added"
_PATIENCE_S = 30.0
_SETTLED_S = 0.3
"""Pause between changes: list notifications are debounced for a quarter of a second, and each must arrive first."""


async def measure_changes(count: int) -> Sequence[Row]:
    """Add and delete a tool at one replica in turn; measure when the other lists the change and notifies of it."""
    shown: list[float] = []
    reported: list[float] = []
    async with running_world() as world:
        caller = Caller(world, SLUG)
        async with caller.listening(world.replicas[1], toolsListChanged=True) as received:
            for number in range(count):
                began = time.perf_counter()
                before = len(received.messages)
                is_added = number % 2 == 0
                answer = await (_add(world) if is_added else world.admin("DELETE", f"/tenants/{SLUG}/tools/{_NAME}"))
                answer.raise_for_status()
                shown.append(await _shown(caller, world.replicas[1], is_listed=is_added) - began)
                await reached(partial(received.has_more_than, before))
                reported.append(received.messages[before][0] - began)
                await anyio.sleep(_SETTLED_S)
    return [
        Row(
            promise="R14",
            what=f"asked for at one replica → {what} the other, {count} changes",
            figure=_spread(values),
            bar="99th ≤ 1 s",
        )
        for what, values in (("listed by", shown), ("list_changed from", reported))
    ]


async def _add(world: World) -> httpx.Response:
    return await world.admin("POST", f"/tenants/{SLUG}/tools", static_tool(_NAME))


async def _shown(caller: Caller, at: Replica, *, is_listed: bool) -> float:
    with anyio.fail_after(_PATIENCE_S):
        while True:
            answer = await caller.ask("tools/list", at=at)
            if any(tool["name"] == _NAME for tool in answer.json()["result"]["tools"]) is is_listed:
                return time.perf_counter()
            await anyio.sleep(_PAUSE_S)


async def measure_hangups(count: int) -> Sequence[Row]:
    """Disconnect clients of 2026-07-28 while the upstream works for them; measure when its connection is closed."""
    late: list[float] = []
    async with running_world() as world:
        world.upstream.watched.add(SLUG)
        async with anyio.create_task_group() as tasks:
            for number in range(_AT_ONCE):
                tasks.start_soon(_hang_up, world, count // _AT_ONCE, world.replicas[number % 2], late)
        world.upstream.watched.clear()
        after = [await Caller(world, SLUG).call(READS) for _ in range(10)]
    figure = f"{sum(call.is_ok for call in after)} of {len(after)}"
    return [
        Row(
            promise="R19",
            what=f"client gone → the upstream's connection closed, {len(late)} calls",
            figure=_spread(late),
            bar="99th ≤ 1 s",
        ),
        Row(promise="R19", what="calls that succeed afterwards", figure=figure, bar="all"),
    ]


async def _hang_up(world: World, count: int, at: Replica, late: list[float]) -> None:
    """Call, wait until the request has reached the upstream, then disconnect; `count` times."""
    caller = Caller(world, SLUG)
    for _ in range(count):
        number, gone = world.number(), 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(caller.call, READS, at, number=number))
            await reached(partial(world.upstream.arrived.__contains__, number))
            gone = time.perf_counter()
            tasks.cancel_scope.cancel()
        await reached(partial(world.upstream.left.__contains__, number))
        late.append(world.upstream.left[number] - gone)


async def measure_revocations(count: int) -> Sequence[Row]:
    """Revoke keys at one replica, every second key with its event lost; measure refused calls and ended streams."""
    rows: list[Row] = []
    async with running_world() as world:
        for what, is_muted in (("told", False), ("its event lost", True)):
            calls: list[float] = []
            streams: list[float] = []
            for _ in range(count // 2):
                refused, ended = await _revoke(world, is_muted=is_muted)
                calls.append(refused)
                streams.append(ended)
            figures = (
                ("the last call answered, at both replicas", calls, "worst ≤ 5 s"),
                ("streams ended at both", streams, "worst ≤ 10 s"),
            )
            for name, values, bar in figures:
                figure = f"worst {max(values):.2f} s, median {percentile(values, 50):.2f} s"
                rows.append(
                    Row(promise="R20", what=f"revoked, {what} → {name}, {len(values)} keys", figure=figure, bar=bar)
                )
    return rows


async def _revoke(world: World, *, is_muted: bool) -> tuple[float, float]:
    """Revoke a key; return the seconds until the last successful call and until the last stream ended."""
    key = await world.replicas[0].gateway.create_key(SLUG)
    caller = Caller(world, SLUG, key=key)
    last: list[float] = []
    async with AsyncExitStack() as stack:
        received = [
            await stack.enter_async_context(caller.listening(replica, toolsListChanged=True))
            for replica in world.replicas
        ]
        for replica in world.replicas:
            assert (await caller.call(READS, replica)).is_ok
        with world.history.replicas.a.muted() if is_muted else nullcontext():
            began = time.perf_counter()
            path = f"/tenants/{SLUG}/keys/key_{key.split('_')[2]}/revoke"
            (await world.admin("POST", path)).raise_for_status()
            async with anyio.create_task_group() as tasks:
                for replica in world.replicas:
                    tasks.start_soon(_refused, caller, replica, last)
            await reached(lambda: all(one.ended is not None for one in received))
    return max(last) - began, max(one.ended or 0 for one in received) - began


async def _refused(caller: Caller, at: Replica, moments: list[float]) -> None:
    """Call until a call is refused, and record the time of the last successful one."""
    last = time.perf_counter()
    with anyio.fail_after(_PATIENCE_S):
        while (await caller.call(READS, at)).is_ok:
            last = time.perf_counter()
            await anyio.sleep(_PAUSE_S)
    moments.append(last)


def _spread(values: Sequence[float]) -> str:
    shown = " / ".join(milliseconds(percentile(values, share)) for share in (50, 99))
    return f"50th / 99th percentile {shown}, worst {milliseconds(max(values))}"
