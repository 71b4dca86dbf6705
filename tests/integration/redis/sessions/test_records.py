"""Sessions in a real Redis, seen from two replicas."""

import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import anyio
import msgspec
import pytest

from gateway.domain.events import TenantRemoved
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, DocumentTooLarge, LimitExceeded, RedisUnavailable
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.records import Sessions, new_session_id
from tests.integration.redis.conftest import OwnRedis, follow
from tests.support.replicas import until

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SECRET = b"the secret of all replicas"


def _record(tenant: TenantId = ACME) -> SessionRecord:
    return SessionRecord(
        id=new_session_id(),
        tenant=tenant,
        subject="somebody",
        profile=None,
        protocol_version="2025-11-25",
        client={"clientInfo": {"name": "ünï", "version": "1"}, "capabilities": {"n": 1 << 70}},
    )


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    async with EventBus(redis_url, secret=SECRET) as opened:
        yield opened


@pytest.fixture
async def tasks(bus: EventBus) -> AsyncGenerator[TaskSupervisor]:
    async with TaskSupervisor() as opened:
        yield opened


@pytest.fixture
async def other_bus(redis_url: str) -> AsyncGenerator[EventBus]:
    async with EventBus(redis_url, secret=SECRET) as opened:
        yield opened


async def _until_gone(sessions: Sessions, record: SessionRecord) -> None:
    await until(lambda: not sessions.is_leased(record.tenant, record.id), seconds=2)  # well below the lease
    assert await sessions.find(record.tenant, record.id) is None


async def test_a_session_is_found_on_every_replica(bus: EventBus, other_bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a session made here is served there, as it was made (SRV-3)."""
    record = _record()
    await Sessions(bus, spawn=tasks.spawn).create(record, cap=10)

    assert await Sessions(other_bus, spawn=tasks.spawn).find(ACME, record.id) == record


async def test_a_session_of_another_tenant_is_not_found(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: with a session's id in hand, another tenant still finds nothing (TEN-1)."""
    sessions = Sessions(bus, spawn=tasks.spawn)
    record = _record()
    await sessions.create(record, cap=10)
    await sessions.find(ACME, record.id)

    assert await sessions.find(GLOBEX, record.id) is None
    await sessions.remove(GLOBEX, record.id)
    assert await Sessions(bus, spawn=tasks.spawn).find(ACME, record.id) == record


@pytest.mark.parametrize(
    "session", ["", "x", "../" * 20, "a:b", "*", "\n" * 43, "é" * 43, "x" * 44, "x" * 10_000, "ten_acme:s:" + "x" * 32]
)
async def test_a_malformed_session_id_is_not_looked_up(bus: EventBus, session: str, tasks: TaskSupervisor) -> None:
    """Ours: an id that a client made up never becomes part of a Redis key, nor a session."""
    sessions = Sessions(bus, spawn=tasks.spawn)

    assert await sessions.find(ACME, session) is None
    await sessions.remove(ACME, session)


async def test_an_id_that_we_never_made_is_none_even_if_it_is_stored(
    bus: EventBus, raw: Any, tasks: TaskSupervisor
) -> None:
    """Ours: the form of the id is checked, also while records of the release before are believed without a MAC."""
    bus.accept_unsealed(time.time() + 3600)
    planted = replace(_record(), id="x")
    await raw.set(f"gw:t:{ACME}:s:x", msgspec.json.encode(planted))

    assert await Sessions(bus, spawn=tasks.spawn).find(ACME, "x") is None


async def test_an_unknown_id_is_never_adopted(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: only the gateway makes session ids (session fixation)."""
    assert await Sessions(bus, spawn=tasks.spawn).find(ACME, new_session_id()) is None


async def test_an_id_is_used_once(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a session is never overwritten by another."""
    sessions = Sessions(bus, spawn=tasks.spawn)
    record = _record()
    await sessions.create(record, cap=10)

    with pytest.raises(Conflict):
        await sessions.create(replace(record, subject="another"), cap=10)
    assert await sessions.find(ACME, record.id) == record


async def test_a_removed_session_is_gone_everywhere_at_once(
    bus: EventBus, other_bus: EventBus, tasks: TaskSupervisor
) -> None:
    """Ours: the end of a session overtakes the leases of other replicas."""
    here, there = Sessions(bus, spawn=tasks.spawn), Sessions(other_bus, spawn=tasks.spawn)
    follow(other_bus, there)
    record = _record()
    await here.create(record, cap=10)
    assert await there.find(ACME, record.id) == record
    await here.remove(ACME, record.id)

    assert await here.find(ACME, record.id) is None
    await _until_gone(there, record)


async def test_a_removed_tenant_leaves_no_lease(bus: EventBus, other_bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a tenant's stored records end with it; other tenants are not touched."""
    sessions = Sessions(bus, spawn=tasks.spawn)
    follow(bus, sessions)
    gone, stays = _record(), _record(GLOBEX)
    for record in (gone, stays):
        await sessions.create(record, cap=10)
        await sessions.find(record.tenant, record.id)
    await other_bus.publish(TenantRemoved(tenant=ACME))

    await until(lambda: not sessions.is_leased(ACME, gone.id))
    assert sessions.is_leased(GLOBEX, stays.id)


async def test_a_leased_session_is_not_looked_up(bus: EventBus, raw: Any, tasks: TaskSupervisor) -> None:
    """Ours: a session in use costs Redis nothing for most requests."""
    sessions = Sessions(bus, spawn=tasks.spawn)
    record = _record()
    await sessions.create(record, cap=10)
    await sessions.find(ACME, record.id)
    before = (await raw.info("stats"))["total_commands_processed"]
    for _ in range(100):
        assert await sessions.find(ACME, record.id) == record
    after = (await raw.info("stats"))["total_commands_processed"]

    assert after - before < 20


async def test_a_session_in_use_lives_and_an_idle_one_dies(bus: EventBus, raw: Any, tasks: TaskSupervisor) -> None:
    """Ours: every use restarts the idle time, also one that a lease answered."""
    sessions = Sessions(bus, spawn=tasks.spawn, idle_s=1)
    used, idle = _record(), _record()
    await sessions.create(used, cap=10)
    await sessions.create(idle, cap=10)
    with anyio.fail_after(10):
        while await raw.exists(f"gw:t:{ACME}:s:{idle.id}"):
            assert await sessions.find(ACME, used.id) == used
            await anyio.sleep(0.02)

    assert await sessions.find(ACME, used.id) == used
    assert await sessions.find(ACME, idle.id) is None
    assert await raw.zrange(f"gw:t:{ACME}:sessions", 0, -1) == [used.id.encode()]


async def test_a_lease_is_renewed_before_it_ends(
    bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor
) -> None:
    """Ours: the requests of a busy session never wait for Redis, and its idle time still restarts."""
    monkeypatch.setattr("gateway.redis.sessions.records.RECORD_RENEW_S", 0.0)
    monkeypatch.setattr("gateway.redis.sessions.records.RECORD_LEASE_S", 600.0)
    sessions = Sessions(bus, spawn=tasks.spawn)
    record = _record()
    await sessions.create(record, cap=10)
    await sessions.find(ACME, record.id)
    before = await raw.zscore(f"gw:t:{ACME}:sessions", record.id)

    with anyio.fail_after(30):  # well below the lease
        while True:
            await sessions.find(ACME, record.id)
            if await raw.zscore(f"gw:t:{ACME}:sessions", record.id) > before:
                break


async def test_the_cap_holds_over_replicas(bus: EventBus, other_bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a tenant has at most its number of sessions, and no other tenant is touched (TEN-3)."""
    replicas = (Sessions(bus, spawn=tasks.spawn), Sessions(other_bus, spawn=tasks.spawn))
    made: list[SessionRecord] = []
    refused: list[LimitExceeded] = []

    async def create(sessions: Sessions) -> None:
        record = _record()
        try:
            await sessions.create(record, cap=5)
        except LimitExceeded as error:
            refused.append(error)
        else:
            made.append(record)

    async with anyio.create_task_group() as group:
        for index in range(20):
            group.start_soon(create, replicas[index % 2])

    assert (len(made), len(refused)) == (5, 15)
    assert all(error.retry_after_s is not None and 0 < error.retry_after_s <= 1800 for error in refused)
    await replicas[0].create(_record(GLOBEX), cap=5)
    await replicas[0].remove(ACME, made[0].id)
    await replicas[1].create(_record(), cap=5)


async def test_dead_sessions_do_not_count(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a session that was left without a DELETE releases its place when the idle time is over."""
    sessions = Sessions(bus, spawn=tasks.spawn, idle_s=1)
    await sessions.create(_record(), cap=1)
    with pytest.raises(LimitExceeded):
        await sessions.create(_record(), cap=1)

    with anyio.fail_after(10):
        while True:
            try:
                await sessions.create(_record(), cap=1)
            except LimitExceeded:
                await anyio.sleep(0.05)
            else:
                break


async def test_no_session_may_be_made_with_a_cap_of_zero(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: zero means none."""
    with pytest.raises(LimitExceeded):
        await Sessions(bus, spawn=tasks.spawn).create(_record(), cap=0)


async def test_a_huge_client_is_refused(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a session is small, whatever a client declares about itself."""
    with pytest.raises(DocumentTooLarge):
        await Sessions(bus, spawn=tasks.spawn).create(replace(_record(), client={"x": "y" * 70_000}), cap=10)


@pytest.mark.parametrize("planted", [b"", b"{}", b"\xff", b"[]", b"null"])
async def test_a_broken_record_is_no_session(bus: EventBus, raw: Any, planted: bytes, tasks: TaskSupervisor) -> None:
    """Ours: a record of another tenant or id is not served."""
    session = new_session_id()
    await raw.set(f"gw:t:{ACME}:s:{session}", planted)

    assert await Sessions(bus, spawn=tasks.spawn).find(ACME, session) is None


async def test_a_record_copied_to_another_tenant_is_no_session(bus: EventBus, raw: Any, tasks: TaskSupervisor) -> None:
    """Ours: a record counts only where it was made, also one of the release before, without a MAC (TEN-5)."""
    bus.accept_unsealed(time.time() + 3600)
    sessions = Sessions(bus, spawn=tasks.spawn)
    record = _record()
    await sessions.create(record, cap=10)
    stored = await raw.get(f"gw:t:{ACME}:s:{record.id}")
    assert stored is not None
    for copied in (stored, msgspec.json.encode(record)):
        await raw.set(f"gw:t:{GLOBEX}:s:{record.id}", copied)
        assert await sessions.find(GLOBEX, record.id) is None


async def test_without_redis_only_a_lease_continues(own_redis: OwnRedis) -> None:
    """Ours: a short outage does not affect a session in use; others get an error that Redis is away (SRV-4)."""
    await own_redis.start()
    async with EventBus(own_redis.url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        sessions = Sessions(bus, spawn=tasks.spawn)
        record = _record()
        await sessions.create(record, cap=10)
        await sessions.find(ACME, record.id)
        own_redis.kill()

        assert await sessions.find(ACME, record.id) == record
        with pytest.raises(RedisUnavailable):
            await sessions.find(ACME, new_session_id())
        with pytest.raises(RedisUnavailable):
            await sessions.create(_record(), cap=10)


async def test_a_gap_drops_every_lease(own_redis: OwnRedis) -> None:
    """Ours: a replica that may have missed the end of a session checks again."""
    await own_redis.start()
    async with EventBus(own_redis.url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        sessions = Sessions(bus, spawn=tasks.spawn)
        follow(bus, sessions)
        gap = anyio.Event()
        bus.subscribe_gaps(gap.set)
        record = _record()
        await sessions.create(record, cap=10)
        await sessions.find(ACME, record.id)
        own_redis.kill()
        await own_redis.start()
        with anyio.fail_after(10):
            await gap.wait()

        assert await sessions.find(ACME, record.id) is None


async def test_leases_are_bounded(bus: EventBus, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor) -> None:
    """Ours: many sessions do not fill a replica's memory."""
    monkeypatch.setattr("gateway.redis.sessions.records.MAX_LEASES", 3)
    sessions = Sessions(bus, spawn=tasks.spawn)
    records = [_record() for _ in range(5)]
    for record in records:
        await sessions.create(record, cap=10)
        await sessions.find(ACME, record.id)

    assert [sessions.is_leased(ACME, record.id) for record in records] == [False, False, True, True, True]


async def test_an_end_that_overtakes_a_reading_leaves_no_lease(bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: a session that ends while it is being read is not kept."""
    sessions = Sessions(bus, spawn=tasks.spawn)
    record = _record()
    await sessions.create(record, cap=10)
    async with anyio.create_task_group() as group:
        group.start_soon(sessions.find, ACME, record.id)
        await anyio.lowlevel.checkpoint()
        sessions.forget(ACME, record.id)

    assert not sessions.is_leased(ACME, record.id)


def test_session_ids_cannot_be_guessed() -> None:
    """MCP: session ids are random, unique and plain ASCII."""
    minted = {new_session_id() for _ in range(1000)}

    assert len(minted) == 1000
    assert all(len(session) == 43 and session.isascii() for session in minted)
