"""Fair shares: a quarter for each tenant, round-robin between tenants, bounded waits, no place lost."""

import asyncio
from random import Random

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.fairness.share import FairSlotPool, share_of
from gateway.errors import LimitExceeded


class Bench:
    """Work that holds a place until its event is set, and the order in which it began."""

    def __init__(self, gate: FairSlotPool) -> None:
        self.gate = gate
        self.began: list[str] = []
        self.ends: dict[str, anyio.Event] = {}

    async def work(self, name: str) -> None:
        async with self.gate.hold(name[0]):
            self.began.append(name)
            self.ends[name] = anyio.Event()
            await self.ends[name].wait()


def test_the_share_is_a_quarter_and_at_least_one() -> None:
    """ISO-3: no tenant holds more than a quarter of a pool; a small pool still serves everyone."""
    assert [share_of(size) for size in (1, 2, 3, 4, 7, 8, 32, 1024)] == [1, 1, 1, 1, 1, 2, 8, 256]


async def test_one_tenant_holds_a_quarter_while_places_are_free() -> None:
    """ISO-3: the places above its share stay free for others, however many of its own wait."""
    bench = Bench(FairSlotPool("workers", slots=8))
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(bench.work, f"a{number}")
        await anyio.wait_all_tasks_blocked()
        assert (bench.gate.held("a"), bench.gate.busy, bench.gate.waiting) == (2, 2, 6)
        for name in ("b1", "c1", "b2", "d1", "d2", "c2"):
            group.start_soon(bench.work, name)
        await anyio.wait_all_tasks_blocked()
        assert bench.began[2:] == ["b1", "c1", "b2", "d1", "d2", "c2"]
        bench.ends["a0"].set()
        await anyio.wait_all_tasks_blocked()
        assert bench.began[-1] == "a2"
        group.cancel_scope.cancel()

    assert (bench.gate.busy, bench.gate.waiting) == (0, 0)


async def test_waiters_are_served_round_robin_by_tenant() -> None:
    """Ours: a tenant with many waiters waits behind itself, not before another tenant (TEN-5)."""
    bench = Bench(FairSlotPool("workers", slots=1, queue=40))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
                group.start_soon(bench.work, name)
                await anyio.wait_all_tasks_blocked()
            for name in ("a1", "b1", "c1", "a2", "b2", "a3", "a4"):
                await anyio.wait_all_tasks_blocked()
                assert bench.began[-1] == name
                bench.ends[name].set()

    assert (bench.gate.busy, bench.gate.waiting) == (0, 0)

    several = Bench(FairSlotPool("workers", slots=8))  # one tenant may hold two
    async with anyio.create_task_group() as group:
        for name in ("c1", "c2", "d1", "d2", "e1", "e2", "f1", "f2", "a1", "a2", "b1"):
            group.start_soon(several.work, name)
        await anyio.wait_all_tasks_blocked()
        for name in ("c1", "c2", "d1"):
            several.ends[name].set()
        await anyio.wait_all_tasks_blocked()
        assert several.began[8:] == ["a1", "b1", "a2"]
        group.cancel_scope.cancel()


async def test_the_queue_is_shared_like_the_places() -> None:
    """ISO-3: a tenant fills a quarter of the queue; the refusal names the pool and the share."""
    bench = Bench(FairSlotPool("workers", slots=4, queue=8))
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(bench.work, f"a{number}")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(LimitExceeded, match=r"its share of the workers of this replica \(1 of 4\)") as caught:
            await bench.work("a3")
        assert caught.value.retry_after_s == 5
        for name in ("b1", "b2", "c1", "c2", "d1", "d2", "e1", "e2", "f1"):
            group.start_soon(bench.work, name)
        await anyio.wait_all_tasks_blocked()
        assert bench.gate.waiting == 8
        with pytest.raises(LimitExceeded, match=r"all workers of this replica are in use \(4\)"):
            await bench.work("h1")
        assert bench.gate.refused == 2
        group.cancel_scope.cancel()

    assert (bench.gate.busy, bench.gate.waiting) == (0, 0)


async def test_a_wait_ends_with_a_refusal() -> None:
    """Ours: work that cannot begin in time holds no memory; the place goes to the next tenant."""
    gate = FairSlotPool("workers", slots=1, timeout_s=0)
    async with gate.hold("a"):
        with pytest.raises(LimitExceeded, match="retry later"):
            await gate.take("b")
        assert (gate.held("b"), gate.waiting, gate.refused) == (0, 0, 1)
    async with gate.hold("b"):
        assert gate.held("b") == 1


@pytest.mark.parametrize("is_granted_first", [True, False])
async def test_a_cancelled_waiter_passes_its_place_on(is_granted_first: bool) -> None:
    """Ours: also when the grant and the cancellation come in the same step of the loop."""
    gate = FairSlotPool("workers", slots=1)
    assert gate.try_take("a")
    waiter = asyncio.create_task(gate.take("b"))
    await anyio.lowlevel.checkpoint()
    if is_granted_first:
        gate.free("a")
        waiter.cancel()
    else:
        waiter.cancel()
        gate.free("a")
    with pytest.raises(asyncio.CancelledError):
        await waiter

    assert (gate.busy, gate.waiting) == (0, 0)
    assert gate.try_take("c")


async def test_a_holder_takes_several_places_at_once() -> None:
    """ISO-3: units of memory are shared like places; they are saved up for a large request, and given back in parts."""
    gate, got = FairSlotPool("units", slots=16), list[str]()

    async def take(tenant: str, count: int) -> None:
        await gate.take(tenant, count)
        got.append(f"{tenant}{count}")

    assert gate.try_take("a", 3)
    assert not gate.try_take("a", 2)  # the share is 4
    assert gate.try_take("b", 9)  # a tenant that holds nothing may have more than its share
    assert gate.try_take("c", 3)
    async with anyio.create_task_group() as group:
        for tenant, count in (("a", 2), ("d", 4), ("e", 1)):
            group.start_soon(take, tenant, count)
            await anyio.wait_all_tasks_blocked()
        assert (gate.busy, gate.waiting, got) == (15, 3, [])
        assert not gate.try_take("f")  # one unit is free, but it is saved up for `d`
        gate.free("c", 2)
        await anyio.wait_all_tasks_blocked()
        assert got == []
        gate.free("b", 1)
        await anyio.wait_all_tasks_blocked()
        assert (gate.busy, gate.held("d"), got) == (16, 4, ["d4"])
        gate.free("a", 2)  # leaves one, so that two more fit into the share
        await anyio.wait_all_tasks_blocked()
        assert got == ["d4", "e1"]
        gate.free("b", 8)
        await anyio.wait_all_tasks_blocked()
        assert got == ["d4", "e1", "a2"]
    for tenant, count in (("a", 3), ("c", 1), ("d", 4), ("e", 1)):
        gate.free(tenant, count)
    assert (gate.busy, gate.waiting) == (0, 0)


async def test_a_large_request_that_is_cancelled_lets_smaller_ones_pass() -> None:
    """Ours: units that were saved up for a request are free when it ends (ISO-3)."""
    gate = FairSlotPool("units", slots=8, timeout_s=60)
    assert gate.try_take("a", 7)
    large, small = asyncio.create_task(gate.take("b", 2)), asyncio.create_task(gate.take("c"))
    await anyio.wait_all_tasks_blocked()
    assert (small.done(), gate.waiting) == (False, 2)
    large.cancel()
    with anyio.fail_after(30):
        await small
    with pytest.raises(LimitExceeded):
        await gate.take("b", within_s=0)

    assert (gate.held("c"), gate.busy, gate.waiting) == (1, 8, 0)


@pytest.mark.parametrize("most", [1, 2])
async def test_any_mix_of_ends_leaves_every_place_free(most: int) -> None:
    """Ours: 2,000 tries with random ends lose no place, and no tenant is ever above its share."""
    random, gate = Random(3), FairSlotPool("workers", slots=8, queue=24, timeout_s=0.05)
    above: list[str] = []

    async def work(tenant: str) -> None:
        count = random.randint(1, most)
        with anyio.move_on_after(random.choice((0, 0.001, 0.005, 5))):
            try:
                await gate.take(tenant, count)
            except LimitExceeded:
                return
            try:
                if gate.held(tenant) > gate.share or gate.busy > gate.slots:
                    above.append(tenant)
                await anyio.sleep(random.choice((0, 0.001)))
            finally:
                gate.free(tenant, count)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(2000):
                group.start_soon(work, random.choice("abcdef"))
                if random.random() < 0.3:
                    await anyio.lowlevel.checkpoint()

    assert (above, gate.busy, gate.waiting) == ([], 0, 0)
    for tenant in "abcd":
        assert gate.try_take(tenant)
        assert gate.try_take(tenant)
        assert not gate.try_take(tenant)
