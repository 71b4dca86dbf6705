"""The clock that a test moves in a forked gateway."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import closing
from types import FunctionType
from typing import Any

import anyio
import pytest

from tests.support.movable_clock import Clock, Lead, MovableLoop
from tests.support.replicas import until

LATER_S = 5.0
"""The clock reaches it in a quarter of a second."""
FAR_S = 1e9
PATIENCE_S = 3.0
"""Less than LATER_S: a wait in real time is not over by then."""

Wait = Callable[[], Coroutine[Any, Any, None]]


async def _sleep() -> None:
    await anyio.sleep(LATER_S)


async def _time_out() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LATER_S):
            await anyio.sleep_forever()


async def _move_on() -> None:
    with anyio.move_on_after(LATER_S):
        await anyio.sleep_forever()


async def _be_called() -> None:
    called = asyncio.Event()
    asyncio.get_running_loop().call_later(LATER_S, called.set)
    await called.wait()


waits = pytest.mark.parametrize("wait", [_sleep, _time_out, _move_on, _be_called])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of this process."""
    clock = Clock(Lead())
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    return clock


@pytest.fixture
def loop(clock: Clock) -> Generator[MovableLoop]:
    """An event loop that goes by it."""
    with closing(clock.new_loop()) as loop:
        yield loop


def _as_if_in(module: str, wait: Wait) -> Coroutine[Any, Any, None]:
    """The coroutine of a function as though a module had it."""
    assert isinstance(wait, FunctionType)
    own = FunctionType(wait.__code__, {**wait.__globals__, "__name__": module})
    coroutine: Coroutine[Any, Any, None] = own()
    return coroutine


async def _reached(clock: Clock, seconds: float) -> None:
    async def is_reached() -> bool:
        return clock.lead.reached_s >= seconds

    await until(is_reached)


async def _all_but(waiting: "asyncio.Task[None]", clock: Clock) -> None:
    """Move the clock to a moment before the time of a waiting task, then past it."""
    for goal in (LATER_S - 1, LATER_S + 0.2):
        assert not waiting.done()
        clock.lead.goal_s = goal
        clock.begin()
        await _reached(clock, goal)


@waits
def test_waits_of_the_gateway_follow_the_clock(clock: Clock, loop: MovableLoop, wait: Wait) -> None:
    """Ours: not before its time on the clock, whatever primitive it waits with, and soon in real time."""

    async def run() -> None:
        began, before = time.monotonic(), asyncio.get_running_loop().time()
        waiting = asyncio.create_task(_as_if_in("gateway.sample", wait))
        await _all_but(waiting, clock)
        await asyncio.wait_for(waiting, PATIENCE_S)
        assert time.monotonic() - began >= LATER_S <= asyncio.get_running_loop().time() - before

    loop.run_until_complete(run())


@waits
def test_waits_of_a_library_keep_real_time(clock: Clock, loop: MovableLoop, wait: Wait) -> None:
    """Ours: a command to Redis does not time out because a test lets time pass."""

    async def run() -> None:
        waiting = asyncio.create_task(_as_if_in("redis.sample", wait))
        beside = asyncio.create_task(_as_if_in("gateway.sample", wait))
        await _all_but(beside, clock)
        await asyncio.wait_for(beside, PATIENCE_S)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])

    loop.run_until_complete(run())


def test_a_goal_that_is_taken_back_stops_the_clock(clock: Clock, loop: MovableLoop) -> None:
    """Ours: so a test moves time for as long as it waits for something, and no longer."""

    async def is_still() -> bool:
        return not loop.is_moving

    async def run() -> None:
        clock.lead.goal_s = FAR_S
        clock.begin()
        await _reached(clock, 1.0)
        assert loop.is_moving
        clock.lead.goal_s = 0.0
        await until(is_still)
        assert clock.lead.reached_s < FAR_S

    loop.run_until_complete(run())
