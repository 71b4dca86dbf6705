"""Lanes: admitted, waiting and refused calls, and that nothing is used up."""

import asyncio
from random import Random

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.refusals import UpstreamSuspended
from gateway.errors import UpstreamBusy
from gateway.upstream.bulkhead import Bulkhead, BulkheadLimits, Bulkheads
from gateway.upstream.egress.origins import Origin, read_url


def origin(url: str) -> Origin:
    """Destination of this URL."""
    found = read_url(url)
    assert found is not None
    return found[0]


A = origin("https://a.example/v1")


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def _rests(bulkhead: Bulkhead) -> UpstreamSuspended:
    assert not bulkhead.admit()
    with pytest.raises(UpstreamSuspended) as caught:
        await bulkhead.wait(_loop())
    return caught.value


async def test_so_many_are_let_in_and_the_next_waits_its_turn() -> None:
    """Ours: a free place goes to the longest waiter, and a call is counted once."""
    bulkhead, order = Bulkhead(BulkheadLimits(at_once=2, wait_s=60)), list[int]()
    assert bulkhead.admit()
    assert bulkhead.admit()

    async def call(number: int) -> None:
        assert not bulkhead.admit()
        await bulkhead.wait(_loop())
        order.append(number)
        await anyio.lowlevel.checkpoint()
        bulkhead.leave()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(call, number)
                await anyio.wait_all_tasks_blocked()
            assert (order, bulkhead.running) == ([], 2)
            bulkhead.leave()
            bulkhead.leave()
    assert (order, bulkhead.running) == ([0, 1, 2, 3, 4], 0)


async def test_waiting_is_bounded_in_number_and_time() -> None:
    """Ours: a slow upstream queues no call without end; the refusal has the time to retry."""
    bulkhead = Bulkhead(BulkheadLimits(at_once=1, waiting=1, wait_s=0.02))
    assert bulkhead.admit()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:

            async def wait_in_vain() -> None:
                with pytest.raises(UpstreamBusy):
                    await bulkhead.wait(_loop())

            group.start_soon(wait_in_vain)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(UpstreamBusy) as caught:
                await bulkhead.wait(_loop())
            assert caught.value.retry_after_s == 1
    bulkhead.leave()
    assert bulkhead.running == 0
    assert bulkhead.admit()


async def test_a_cancelled_waiter_takes_no_slot() -> None:
    """Ours: also when the place and the cancellation come in the same moment."""
    for given_first in (True, False):
        bulkhead = Bulkhead(BulkheadLimits(at_once=1, wait_s=60))
        assert bulkhead.admit()
        waiting = asyncio.create_task(bulkhead.wait(_loop()))
        await anyio.lowlevel.checkpoint()
        for step in (bulkhead.leave, waiting.cancel) if given_first else (waiting.cancel, bulkhead.leave):
            step()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert bulkhead.running == 0
        assert bulkhead.admit()


async def test_any_mix_of_calls_ends_with_nothing_in_use() -> None:
    """Ours: ends, failures and cancellations at random moments leave no place taken and never more at once."""
    random, bulkhead = Random(7), Bulkhead(BulkheadLimits(at_once=3, waiting=10, wait_s=0.01, failures=10_000))
    most = 0

    async def call() -> None:
        nonlocal most
        with anyio.move_on_after(random.choice((0, 0.001, 0.01, 1))):
            try:
                if not bulkhead.admit():
                    await bulkhead.wait(_loop())
            except UpstreamBusy:
                return
            try:
                most = max(most, bulkhead.running)
                await anyio.sleep(random.choice((0, 0.001, 0.002)))
            finally:
                (bulkhead.succeed if random.random() < 0.5 else lambda: bulkhead.fail(_loop()))()
                bulkhead.leave()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(2000):
                group.start_soon(call)
                if random.random() < 0.3:
                    await anyio.lowlevel.checkpoint()
    assert (bulkhead.running, most) == (0, 3)


class _StillLoop(asyncio.SelectorEventLoop):
    """A loop whose clock does not advance, as uvloop's does within one iteration."""

    now = 0.0

    def time(self) -> float:
        return self.now


async def test_the_time_to_retry_after_never_exceeds_the_rest_time() -> None:
    """Ours: a call in the moment of the last failure reads 30 s, at any time of the clock (a fixed bug: 31)."""
    loop = _StillLoop()
    try:
        for moment in (8167.663, 244.638, 65519.005):  # (moment + 30) - moment is more than 30
            bulkhead, loop.now = Bulkhead(BulkheadLimits(failures=1)), moment
            bulkhead.fail(loop)
            with pytest.raises(UpstreamSuspended) as caught:
                await bulkhead.wait(loop)
            assert caught.value.retry_after_s == 30
    finally:
        loop.close()


async def test_an_upstream_that_fails_in_a_row_is_not_called() -> None:
    """Ours: five failures in a row, no fewer, and waiting calls are refused at once."""
    bulkhead = Bulkhead(BulkheadLimits(at_once=1, wait_s=60))
    for _ in range(4):
        bulkhead.fail(_loop())
    bulkhead.succeed()
    for _ in range(4):
        bulkhead.fail(_loop())
    assert bulkhead.admit()
    notified: list[float | None] = []

    async def wait() -> None:
        with pytest.raises(UpstreamSuspended) as caught:
            await bulkhead.wait(_loop())
        notified.append(caught.value.retry_after_s)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            bulkhead.fail(_loop())
            bulkhead.leave()
    assert notified == [30]
    assert (await _rests(bulkhead)).retry_after_s == pytest.approx(30, abs=1)  # pyright: ignore[reportUnknownMemberType]
    assert bulkhead.running == 0


async def test_one_call_at_a_time_probes_the_upstream() -> None:
    """Ours: a failed try means another rest, a good one opens the lane, a cancelled one leaves it to the next."""
    bulkhead = Bulkhead(BulkheadLimits(failures=1, rest_s=0))
    bulkhead.fail(_loop())
    assert not bulkhead.admit()
    await bulkhead.wait(_loop())
    await _rests(bulkhead)
    bulkhead.leave()  # cancelled: no evidence about the upstream

    await bulkhead.wait(_loop())
    bulkhead.fail(_loop())
    bulkhead.leave()
    await bulkhead.wait(_loop())
    bulkhead.succeed()
    bulkhead.leave()

    assert bulkhead.admit()
    assert bulkhead.admit()


async def test_sending_again_is_paid_for_by_calls_and_by_time() -> None:
    """Ours: a tenth of the calls may be repeated, a few more after a pause, none while the upstream rests."""
    bulkhead, now = Bulkhead(BulkheadLimits(reserve=3)), 1000.0
    assert [bulkhead.pay(now) for _ in range(5)] == [True, True, True, False, False]
    for _ in range(25):
        assert bulkhead.admit()
        bulkhead.leave()
    assert [bulkhead.pay(now) for _ in range(3)] == [True, True, False]
    assert [bulkhead.pay(now + 5), bulkhead.pay(now + 5)] == [True, False]
    assert [bulkhead.pay(now + 10**6) for _ in range(4)] == [True, True, True, False]
    for _ in range(5):
        bulkhead.fail(_loop())
    assert not bulkhead.pay(now + 10**7)


async def test_every_tenant_has_its_own_bulkhead_for_every_origin() -> None:
    """Ours: a fault that one tenant meets at an upstream affects no other tenant, and no other upstream (TEN-5)."""
    bulkheads = Bulkheads(BulkheadLimits(failures=1))
    bulkheads.find("ten_a", A).fail(_loop())

    assert bulkheads.find("ten_a", origin("https://A.example:443/other?x=1")) is bulkheads.find("ten_a", A)
    assert not bulkheads.find("ten_a", A).admit()
    for tenant, url in [
        ("ten_b", "https://a.example/"),
        ("", "https://a.example/"),
        ("ten_a", "http://a.example/"),
        ("ten_a", "https://b.example/"),
        ("ten_a", "https://a.example:8443/"),
    ]:
        assert bulkheads.find(tenant, origin(url)).admit()


async def test_unused_bulkheads_are_forgotten_and_others_are_not() -> None:
    """Ours: a tenant that names a new upstream in every call fills no memory and is not let off."""
    bulkheads = Bulkheads(BulkheadLimits(failures=1))
    busy, resting = bulkheads.find("ten_a", A), bulkheads.find("ten_b", A)
    assert busy.admit()
    resting.fail(_loop())
    for number in range(20_000):
        bulkheads.find("ten_a", origin(f"https://h{number}.example/"))

    assert len(bulkheads) <= 4096
    assert bulkheads.find("ten_a", A) is busy
    assert bulkheads.find("ten_b", A) is resting
