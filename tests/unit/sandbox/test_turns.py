"""Turns: fair between tenants, bounded, and nothing is used up."""

import asyncio
from random import Random

import anyio
import anyio.lowlevel
import pytest

from gateway.errors import LimitExceeded
from gateway.sandbox.turns import Bounds, Turns


class Desk:
    """Work that goes on until it is told to end, and in which order it began."""

    def __init__(self, bounds: Bounds) -> None:
        self.turns = Turns(bounds)
        self.began: list[str] = []
        self.now = self.most = 0
        self.ends: dict[str, anyio.Event] = {}

    async def work(self, name: str) -> None:
        async with self.turns.place(name[0]):
            self.began.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            self.ends[name] = anyio.Event()
            await self.ends[name].wait()
            self.now -= 1


async def test_tenants_take_turns_and_each_waits_behind_itself() -> None:
    """Ours: whoever asks for one thing is not behind the ten of another (TEN-5)."""
    desk = Desk(Bounds(at_once=1, waiting_each=10))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
                group.start_soon(desk.work, name)
                await anyio.wait_all_tasks_blocked()
            for name in ("a1", "a2", "b1", "c1", "a3", "b2", "a4"):
                await anyio.wait_all_tasks_blocked()
                assert desk.began[-1] == name
                desk.ends[name].set()

    assert (desk.most, desk.turns.waiting_count) == (1, 0)


async def test_waiting_is_bounded_for_each_tenant_and_in_all() -> None:
    """Ours: what waits holds memory, so it is refused early, with a hint when to come again."""
    desk = Desk(Bounds(at_once=1, waiting=3, waiting_each=2))
    async with anyio.create_task_group() as group:
        for name in ("a1", "a2", "a3"):
            group.start_soon(desk.work, name)
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(LimitExceeded, match="of the tenant") as caught:
            await desk.work("a4")
        assert caught.value.retry_after_s == 5
        group.start_soon(desk.work, "b1")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(LimitExceeded, match="3 documents"):
            await desk.work("c1")
        group.cancel_scope.cancel()

    assert desk.turns.waiting_count == 0
    async with desk.turns.place("d"):
        pass


async def test_whoever_is_cancelled_passes_the_place_on() -> None:
    """Ours: also when the place and the cancellation come in the same moment."""
    for given_first in (True, False):
        turns = Turns(Bounds(at_once=1))
        held = turns.place("a")
        await held.__aenter__()

        async def wait() -> None:
            async with turns.place("b"):  # noqa: B023  # runs in this round
                pass

        waiting = asyncio.create_task(wait())
        await anyio.lowlevel.checkpoint()
        if given_first:
            await held.__aexit__(None, None, None)
            waiting.cancel()
        else:
            waiting.cancel()
            await held.__aexit__(None, None, None)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with anyio.fail_after(30):
            async with turns.place("c"):
                assert turns.waiting_count == 0


async def test_any_mix_of_ends_leaves_every_place_free() -> None:
    """Ours: after two thousand tries with random ends nobody is left waiting and no place is lost."""
    random, turns, now, most = Random(3), Turns(Bounds(at_once=2, waiting=12, waiting_each=4)), 0, 0

    async def work(tenant: str) -> None:
        nonlocal now, most
        with anyio.move_on_after(random.choice((0, 0.001, 0.005, 5))):
            try:
                async with turns.place(tenant):
                    now += 1
                    most = max(most, now)
                    try:
                        await anyio.sleep(random.choice((0, 0.001)))
                    finally:
                        now -= 1
            except LimitExceeded:
                pass

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(2000):
                group.start_soon(work, random.choice("abcdef"))
                if random.random() < 0.3:
                    await anyio.lowlevel.checkpoint()
        assert (now, most, turns.waiting_count) == (0, 2, 0)
        async with turns.place("a"), turns.place("b"):
            pass


async def test_a_tenant_has_no_more_than_its_share_at_once() -> None:
    """Ours: free places are for others when a tenant has its own (ISO-3)."""
    desk = Desk(Bounds(at_once=4, at_once_each=1, waiting_each=3))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in ("a1", "a2", "a3", "b1", "c1"):
                group.start_soon(desk.work, name)
                await anyio.wait_all_tasks_blocked()
            assert desk.began == ["a1", "b1", "c1"]
            assert (desk.turns.working_count, desk.turns.waiting_count) == (3, 2)
            for name in ("a1", "b1", "a2", "c1", "a3"):
                desk.ends[name].set()
                await anyio.wait_all_tasks_blocked()

    assert desk.began == ["a1", "b1", "c1", "a2", "a3"]
    assert (desk.turns.working_count, desk.turns.waiting_count) == (0, 0)


async def test_one_who_left_the_line_holds_nobody_up() -> None:
    """Ours: a place goes to the next in line, also where the first one was cancelled."""
    desk = Desk(Bounds(at_once=2, at_once_each=1))
    left = anyio.CancelScope()

    async def leave() -> None:
        with left:
            await desk.work("a2")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(desk.work, "a1")
            await anyio.wait_all_tasks_blocked()
            group.start_soon(leave)
            await anyio.wait_all_tasks_blocked()
            for name in ("a3", "b1", "c1"):
                group.start_soon(desk.work, name)
                await anyio.wait_all_tasks_blocked()
            left.cancel()
            desk.ends["a1"].set()
            await anyio.wait_all_tasks_blocked()
            assert desk.began == ["a1", "b1", "a3"]
            for name in ("a3", "b1", "c1"):
                desk.ends[name].set()
                await anyio.wait_all_tasks_blocked()

    assert desk.turns.working_count == 0
