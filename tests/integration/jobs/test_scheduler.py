"""Work that is due: each piece done by one replica, and no tenant's slow work in the way of another's."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from gateway.domain.identifiers import TenantId
from gateway.jobs.limits import AT_ONCE_EACH
from gateway.jobs.scheduler import JobScheduler
from gateway.store import jobs
from gateway.store.engine import Store
from gateway.store.jobs import Job
from gateway.store.kinds.tenants import TENANTS
from tests.integration.store.samples import make_tenant
from tests.support.replicas import until
from tests.support.servers import TestDatabase, execute

_KIND = "count"


@pytest.fixture
async def store(database_url: str) -> Store:
    """The store, opened by each test."""
    return Store(database_url, pool_size=16)


async def _due(store: Store, slug: str, count: int) -> TenantId:
    """A tenant with this much to do now."""
    tenant = make_tenant(slug)
    now = datetime.now(UTC) - timedelta(seconds=1)
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
        for number in range(count):
            work = Job(tenant=tenant.id, id=f"{slug}_{number}", kind=_KIND, due_at=now)
            await jobs.schedule(tenant.id, db, work)
    return tenant.id


async def test_each_piece_is_done_by_one_replica(store: Store) -> None:
    """Ours: the replica that moves it first runs it, whatever the others saw (RES-5)."""
    done: Counter[str] = Counter()

    async def perform(due: Job) -> None:
        later = datetime.now(UTC) + timedelta(hours=1)
        async with store.transaction(due.tenant) as db:
            if await jobs.reschedule(due.tenant, db, due.id, seen=due.due_at, to=later):
                done[due.id] += 1

    async with store:
        for slug in ("acme", "globex"):
            await _due(store, slug, 30)
        one, other = (JobScheduler(store, {_KIND: perform}, pause_s=0.01) for _ in range(2))
        async with one, other:

            async def is_done() -> bool:
                return len(done) == 60

            await until(is_done, seconds=30)

    assert set(done.values()) == {1}


async def test_a_tenants_slow_work_delays_no_other(store: Store) -> None:
    """Ours: of one tenant only so much is done at once, and others go on meanwhile (RES-5, SRV-4)."""
    slow, running, done = anyio.Event(), Counter[TenantId](), set[str]()
    most = 0

    async with store:
        stuck = await _due(store, "acme", 20)
        await _due(store, "globex", 20)

        async def perform(due: Job) -> None:
            nonlocal most
            running[due.tenant] += 1
            most = max(most, running[due.tenant])
            if due.tenant == stuck:
                await slow.wait()
            async with store.transaction(due.tenant) as db:
                await jobs.remove(due.tenant, db, due.id)
            running[due.tenant] -= 1
            done.add(due.id)  # what was seen before it was removed may be done again

        async with JobScheduler(store, {_KIND: perform}, pause_s=0.01):

            async def is_done() -> bool:
                return sum(name.startswith("globex") for name in done) == 20

            await until(is_done, seconds=30)
            assert running[stuck] == AT_ONCE_EACH
            slow.set()

            async def are_all_done() -> bool:
                return len(done) == 40

            await until(are_all_done, seconds=30)

    assert most == AT_ONCE_EACH


async def test_a_tenants_backlog_hides_no_other_work(store: Store, database: TestDatabase) -> None:
    """Ours: with 5,000 older pieces of one tenant due, what another has is in the first answer (RES-5, SRV-4)."""
    async with store:
        crowded, small = await _due(store, "acme", 0), await _due(store, "globex", 1)
        await execute(
            database.superuser_url,
            f"insert into due_work select '{crowded}', 'w' || n, '{_KIND}', now() - (n + 60) * interval '1 second' "
            "from generate_series(1, 5000) n",
        )
        done = anyio.Event()

        async def perform(due: Job) -> None:
            if due.tenant == small:
                done.set()
            await anyio.sleep_forever()

        async with store.unscoped() as db:
            seen = await jobs.page(db, until=datetime.now(UTC), limit=10, of_each=3)
        async with JobScheduler(store, {_KIND: perform}, pause_s=600):
            with anyio.fail_after(30):
                await done.wait()

    assert [work.id for work in seen] == ["w5000", "globex_0", "w4999", "w4998"]


async def test_tenants_take_turns_when_not_all_are_seen(store: Store) -> None:
    """Ours: the oldest of everyone comes before the second of anyone (RES-5)."""
    async with store:
        for number in range(4):
            await _due(store, f"tenant-{number}", 3)
        async with store.unscoped() as db:
            seen = await jobs.page(db, until=datetime.now(UTC), limit=5, of_each=3)

    assert [work.id for work in seen] == [*(f"tenant-{number}_0" for number in range(4)), "tenant-0_1"]


async def test_work_that_fails_is_due_again_and_other_kinds_continue(store: Store) -> None:
    """Ours: a round survives whatever a piece of work raises (SRV-4)."""
    tried: Counter[str] = Counter()

    async def perform(due: Job) -> None:
        tried[due.id] += 1
        raise RuntimeError("broken")

    async with store:
        tenant = await _due(store, "acme", 1)
        async with store.transaction(tenant) as db:
            other = Job(tenant=tenant, id="other", kind="of another version", due_at=datetime.now(UTC))
            await jobs.schedule(tenant, db, other)
        async with JobScheduler(store, {_KIND: perform}, pause_s=0.01):

            async def is_tried_again() -> bool:
                return tried["acme_0"] > 2

            await until(is_tried_again, seconds=30)

    assert set(tried) == {"acme_0"}
