"""Limits on calls over a real Redis, counted on two replicas."""

import math
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.policy import Limits
from gateway.errors import LimitExceeded
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.call_limiter import CallLimiter
from tests.integration.redis.conftest import OwnRedis
from tests.support.replicas import until

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
KEY, OTHER_KEY = KeyId("key_1"), KeyId("key_2")
SECRET = b"the secret of all replicas"


@dataclass
class Count:
    """Outcomes of calls, and the largest number of concurrent ones."""

    admitted: int = 0
    refused: list[LimitExceeded] = field(default_factory=list[LimitExceeded])
    running: int = 0
    most: int = 0

    async def call(self, buckets: CallLimiter, limits: Limits, tenant: TenantId = ACME, key: KeyId = KEY) -> bool:
        try:
            async with buckets.admit(tenant, key, limits):
                self.admitted += 1
                self.running += 1
                self.most = max(self.most, self.running)
                await anyio.lowlevel.checkpoint()
                self.running -= 1
        except LimitExceeded as error:
            self.refused.append(error)
            return False
        return True


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    async with EventBus(redis_url, secret=SECRET) as opened:
        yield opened


@pytest.fixture
async def tasks(bus: EventBus) -> AsyncGenerator[TaskSupervisor]:
    async with TaskSupervisor() as opened:
        yield opened


@pytest.fixture
async def replicas(redis_url: str, bus: EventBus) -> AsyncGenerator[tuple[CallLimiter, CallLimiter]]:
    async with EventBus(redis_url, secret=SECRET) as other, TaskSupervisor() as tasks:
        yield CallLimiter(bus, spawn=tasks.spawn), CallLimiter(other, spawn=tasks.spawn)


async def _hammer(count: Count, buckets: CallLimiter, limits: Limits, key: KeyId, until_time: float) -> None:
    while time.monotonic() < until_time:
        if not await count.call(buckets, limits, key=key):
            await anyio.sleep(0.002)


@pytest.mark.parametrize("limits", [Limits(calls_per_second=200, burst=50), Limits(calls_per_second=20, burst=5)])
async def test_all_keys_on_all_replicas_share_one_rate(
    replicas: tuple[CallLimiter, CallLimiter], limits: Limits
) -> None:
    """Ours: ten keys on two replicas get no more than the tenant's rate, and no less than its burst (TEN-3)."""
    count = Count()
    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        for number in range(10):
            for buckets in replicas:
                tasks.start_soon(_hammer, count, buckets, limits, KeyId(f"key_{number}"), began + 1)
    allowed = limits.burst + limits.calls_per_second * (time.monotonic() - began)

    assert count.admitted <= allowed * 1.05
    assert count.admitted >= min(limits.burst, allowed * 0.7)
    assert count.refused


async def test_a_burst_is_admitted_whole(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: a quiet caller may call as often as the burst permits at once, from one key on one replica."""
    limits = Limits(calls_per_second=1, burst=40)
    count = Count()
    for _ in range(60):
        await count.call(replicas[0], limits)

    assert 40 <= count.admitted <= 42
    assert all(error.retry_after_s is not None and 0 < error.retry_after_s <= 1 for error in count.refused)


async def test_many_callers_at_once_share_a_lease(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: calls that arrive together are admitted together, up to the burst."""
    limits = Limits(calls_per_second=0.1, burst=50, concurrency=1000)
    count = Count()
    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(count.call, replicas[0], limits)

    assert (count.admitted, len(count.refused)) == (50, 50)


@pytest.mark.refill
async def test_the_hint_is_true(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: a caller that waits for the stated time is admitted."""
    limits = Limits(calls_per_second=5, burst=1)
    count = Count()
    await count.call(replicas[0], limits)
    assert not await count.call(replicas[0], limits)
    wait = count.refused[0].retry_after_s
    assert wait is not None
    await anyio.sleep(wait + 0.01)  # timers of the loop may be early by some of this

    assert await count.call(replicas[0], limits)


async def test_one_tenants_use_does_not_count_for_another(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: a tenant beyond its limit locks out no other (TEN-3)."""
    limits = Limits(calls_per_second=0.1, burst=1, concurrency=1)
    count = Count()
    await count.call(replicas[0], limits)
    assert not await count.call(replicas[0], limits)

    assert await count.call(replicas[0], limits, tenant=GLOBEX)


@pytest.mark.parametrize("limits", [Limits(calls_per_second=0), Limits(burst=0), Limits(concurrency=0)])
async def test_zero_means_none(replicas: tuple[CallLimiter, CallLimiter], limits: Limits) -> None:
    """Ours: a limit of nothing admits nothing and breaks nothing."""
    assert not await Count().call(replicas[0], limits)


@pytest.mark.refill
async def test_a_changed_limit_counts_from_now_on(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: no restart for a new policy."""
    count = Count()
    await count.call(replicas[0], Limits(calls_per_second=0.1, burst=1))
    assert not await count.call(replicas[0], Limits(calls_per_second=0.1, burst=1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hammer, count, replicas[0], Limits(calls_per_second=1000, burst=100), KEY, math.inf)
        await until(lambda: count.admitted > 10)
        tasks.cancel_scope.cancel()


async def test_most_calls_send_no_request_to_redis(replicas: tuple[CallLimiter, CallLimiter], raw: Any) -> None:
    """Ours: a call costs a subtraction; Redis is asked once for many."""
    limits = Limits(calls_per_second=10_000, burst=5_000)
    count = Count()
    for _ in range(1000):  # so that leases have grown
        await count.call(replicas[0], limits)
    before = (await raw.info("stats"))["total_commands_processed"]
    for _ in range(1000):
        await count.call(replicas[0], limits)
    after = (await raw.info("stats"))["total_commands_processed"]

    assert not count.refused
    assert after - before < 300


async def test_a_call_now_and_then_keeps_its_slot(
    bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor
) -> None:
    """Ours: a tenant that calls a few times a second does not take a place and give it back each time."""
    monkeypatch.setattr("gateway.redis.limits.concurrency_limit.RENEW_DELAY_S", 0.01)
    monkeypatch.setattr("gateway.redis.limits.call_limiter.RENEW_S", 60)
    buckets, limits = CallLimiter(bus, spawn=tasks.spawn), Limits(calls_per_second=10_000, burst=10_000, concurrency=64)
    await raw.config_resetstat()
    for _ in range(10):
        async with buckets.admit(ACME, KEY, limits):
            pass
        await anyio.sleep(0.05)  # longer than what is held in excess is held

    stats = await raw.info("commandstats")
    assert stats["cmdstat_hgetall"]["calls"] == 1  # nothing else reads a whole hash


async def test_used_slots_outlast_renewals(
    bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor
) -> None:
    """Ours: a renewal gives back what was not used since the one before, and no more; nothing is asked for twice."""
    monkeypatch.setattr("gateway.redis.limits.call_limiter.RENEW_S", 3600)  # renewed by hand
    buckets, limits = CallLimiter(bus, spawn=tasks.spawn), Limits(calls_per_second=10_000, burst=10_000, concurrency=64)
    slots = buckets.slots_of(ACME)
    for _ in range(3):
        async with buckets.admit(ACME, KEY, limits), buckets.admit(ACME, KEY, limits):
            pass
        await slots.renew()
        await raw.config_resetstat()
        async with buckets.admit(ACME, KEY, limits), buckets.admit(ACME, KEY, limits):
            pass
        assert "cmdstat_hgetall" not in await raw.info("commandstats")  # nothing else reads a whole hash

    await slots.renew()
    await slots.renew()

    assert slots.is_idle
    assert not await raw.exists(f"gw:t:{ACME}:slots")


async def test_a_slow_caller_wastes_no_tokens(replicas: tuple[CallLimiter, CallLimiter], raw: Any) -> None:
    """Ours: leases are as small as recent use, so that idle keys do not drain the tenant's bucket."""
    limits = Limits(calls_per_second=0.001, burst=1000)
    count = Count()
    for number in range(20):
        await count.call(replicas[number % 2], limits, key=KeyId(f"key_{number}"))
    level = await raw.hget(f"gw:t:{ACME}:rate", "level")

    assert level is not None
    assert 975 <= float(level) <= 981


async def test_calls_at_once_are_bounded_over_replicas(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: two replicas together run no more calls of a tenant than may (TEN-3)."""
    limits = Limits(calls_per_second=100_000, burst=100_000, concurrency=10)
    entered, refused = 0, 0
    leave = anyio.Event()

    async def call(buckets: CallLimiter) -> None:
        nonlocal entered, refused
        try:
            async with buckets.admit(ACME, KEY, limits):
                entered += 1
                await leave.wait()
        except LimitExceeded:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for index in range(40):
            tasks.start_soon(call, replicas[index % 2])
        await until(lambda: entered + refused == 40)
        assert (entered, refused) == (10, 30)
        leave.set()

    for buckets in replicas:
        await _until_admitted(buckets, limits)


async def test_a_small_limit_follows_the_caller_from_replica_to_replica(
    replicas: tuple[CallLimiter, CallLimiter],
) -> None:
    """Ours: with two calls at a time allowed, a caller that waits for each answer is refused by no replica."""
    limits = Limits(calls_per_second=100_000, burst=100_000, concurrency=2)
    refused = 0
    for index in range(50):
        count = Count()
        await count.call(replicas[index % 2], limits)
        refused += len(count.refused)

    assert refused == 0


@pytest.mark.parametrize("concurrency", [1, 3, 8, 64])
async def test_a_slot_that_is_free_can_be_taken_elsewhere(
    replicas: tuple[CallLimiter, CallLimiter], concurrency: int
) -> None:
    """Ours: slots that one replica used and released are soon there for the other, up to the limit."""
    limits = Limits(calls_per_second=100_000, burst=100_000, concurrency=concurrency)

    async def fill(buckets: CallLimiter) -> None:
        async with anyio.create_task_group() as tasks:
            held = 0

            async def hold() -> None:
                nonlocal held
                while True:
                    try:
                        async with buckets.admit(ACME, KEY, limits):
                            held += 1
                            await anyio.sleep_forever()
                    except LimitExceeded:
                        await anyio.sleep(0.02)

            for _ in range(concurrency):
                tasks.start_soon(hold)
            await until(lambda: held == concurrency)
            tasks.cancel_scope.cancel()

    for buckets in (*replicas, *replicas):
        await fill(buckets)


async def test_the_slots_of_a_dead_replica_come_back(
    redis_url: str, bus: EventBus, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor
) -> None:
    """Ours: slots of a killed replica are free again after their time; those of a living one are not (SRV-3)."""
    monkeypatch.setattr("gateway.redis.limits.concurrency_limit.SLOTS_TTL_S", 0.5)
    monkeypatch.setattr("gateway.redis.limits.call_limiter.RENEW_S", 0.1)
    limits = Limits(concurrency=2)
    buckets = CallLimiter(bus, spawn=tasks.spawn)
    async with buckets.admit(ACME, KEY, limits):
        async with EventBus(redis_url, secret=SECRET) as doomed, TaskSupervisor() as ending:
            await CallLimiter(doomed, spawn=ending.spawn).admit(ACME, KEY, limits).__aenter__()
        count = Count()
        assert not await count.call(buckets, limits)
        await _until_admitted(buckets, limits)

        second = buckets.admit(ACME, KEY, limits)
        await second.__aenter__()
        await anyio.sleep(0.7)  # longer than a slot lives without being renewed
        async with EventBus(redis_url, secret=SECRET) as other, TaskSupervisor() as others:
            assert not await count.call(CallLimiter(other, spawn=others.spawn), limits)
        await second.__aexit__(None, None, None)


async def test_an_idle_tenant_costs_nothing(
    bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor
) -> None:
    """Ours: slots of a tenant that does not call are given back and forgotten, and found again."""
    monkeypatch.setattr("gateway.redis.limits.call_limiter.RENEW_S", 0.05)
    buckets = CallLimiter(bus, spawn=tasks.spawn)
    count = Count()
    for _ in range(3):
        assert await count.call(buckets, Limits())
        await until(lambda: buckets.is_idle)
        assert not await raw.exists(f"gw:t:{ACME}:slots")


async def test_a_cancelled_or_broken_call_gives_its_slot_back(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: however a call ends, it is no longer counted."""
    limits = Limits(concurrency=1)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            async with replicas[0].admit(ACME, KEY, limits):
                raise ValueError("broken")
        with anyio.move_on_after(0.01):
            async with replicas[0].admit(ACME, KEY, limits):
                await anyio.sleep_forever()


async def test_a_refused_rate_gives_the_slot_back(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: calls beyond the rate do not use up the calls at once."""
    limits = Limits(calls_per_second=0.1, burst=1, concurrency=4)
    count = Count()
    for _ in range(20):
        await count.call(replicas[0], limits)

    assert {error.message for error in count.refused} == {"the tenant exceeds its rate of calls; retry later"}


async def test_waiting_for_redis_can_be_cancelled(replicas: tuple[CallLimiter, CallLimiter]) -> None:
    """Ours: a caller that leaves while a lease is on its way leaves nothing behind."""
    limits = Limits(calls_per_second=100_000, burst=100_000, concurrency=100)
    for _ in range(50):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(Count().call, replicas[0], limits)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    assert replicas[0].running(ACME) == 0
    assert await Count().call(replicas[0], limits)


async def test_without_redis_a_replica_continues_at_half_the_limit(own_redis: OwnRedis) -> None:
    """Ours: Redis away means a smaller limit, not none and not an outage; and back is back (SRV-4)."""
    await own_redis.start()
    limits = Limits(calls_per_second=100, burst=20, concurrency=10)
    async with EventBus(own_redis.url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        buckets = CallLimiter(bus, spawn=tasks.spawn)
        count = Count()
        await _hammer(count, buckets, limits, KEY, time.monotonic() + 0.5)
        own_redis.kill()
        await until(lambda: not bus.is_live)

        alone = Count()
        began = time.monotonic()
        await _hammer(alone, buckets, limits, KEY, began + 1)
        allowed = 50 * (time.monotonic() - began)
        assert allowed * 0.4 <= alone.admitted <= allowed * 1.05 + 20
        assert await _most_at_once(buckets, limits) <= 10

        await own_redis.start()
        back = Count()
        with anyio.fail_after(10):
            while True:
                await _hammer(back, buckets, limits, KEY, time.monotonic() + 0.1)
                if not buckets.rate_of(ACME, KEY).is_alone:
                    break


async def test_a_full_limit_is_forgotten_when_redis_goes_away(own_redis: OwnRedis, tasks: TaskSupervisor) -> None:
    """Ours: half of the limit counts from the first call without Redis, whatever Redis granted before (SRV-4)."""
    await own_redis.start()
    limits = Limits(calls_per_second=1000, burst=1000, concurrency=4)
    async with EventBus(own_redis.url, secret=SECRET) as bus, EventBus(own_redis.url, secret=SECRET) as other:
        buckets, count = CallLimiter(bus, spawn=tasks.spawn), Count()
        lease, others = buckets.slots_of(ACME), CallLimiter(other, spawn=tasks.spawn).slots_of(ACME)
        for _ in range(limits.concurrency):
            await others.take(limits.concurrency)
        assert not await count.call(buckets, limits)
        own_redis.kill()
        await until(lambda: not bus.is_live)

        await lease.take(limits.concurrency)


async def test_a_redis_that_hangs_does_not_delay_calls(own_redis: OwnRedis) -> None:
    """Ours: one call finds out; those that follow do not wait for Redis."""
    await own_redis.start()
    limits = Limits(calls_per_second=1000, burst=1000, concurrency=10)
    async with EventBus(own_redis.url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        buckets = CallLimiter(bus, spawn=tasks.spawn)
        own_redis.freeze()
        count = Count()
        with anyio.fail_after(40):
            await count.call(buckets, limits)
            with anyio.fail_after(30):  # a hundred time-outs are more
                for _ in range(100):
                    await count.call(buckets, limits)
        own_redis.thaw()

    assert count.admitted + len(count.refused) == 101
    assert count.admitted >= 50


async def _until_admitted(buckets: CallLimiter, limits: Limits) -> None:
    with anyio.fail_after(10):
        while True:
            if await Count().call(buckets, limits):
                return
            await anyio.sleep(0.02)


async def _most_at_once(buckets: CallLimiter, limits: Limits) -> int:
    entered, refused = 0, 0
    leave = anyio.Event()

    async def call() -> None:
        nonlocal entered, refused
        try:
            async with buckets.admit(ACME, KEY, limits):
                entered += 1
                await leave.wait()
        except LimitExceeded:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(call)
        await until(lambda: entered + refused == 20)
        leave.set()
    return entered
