"""The audit trail while PostgreSQL is away: outcomes wait in Redis and come back in order, each as one row."""

import hmac
from collections.abc import AsyncGenerator, Sequence
from functools import partial

import anyio
import pytest
from msgspec.structs import replace

from gateway.domain.audit import AuditEntry, AuditKind
from gateway.domain.identifiers import TenantId
from gateway.errors import AuditUnavailable, RedisUnavailable
from gateway.redis.audit_spool import AuditSpool
from gateway.redis.event_bus import EventBus
from gateway.store.audit import entries as audit_entries
from gateway.store.audit.spool import SpoolDrain, pack
from gateway.store.audit.writer import AuditWriter
from gateway.store.database.connection import PostgresConnection, connect_app, connect_owner
from gateway.store.database.migrations import migrate
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from tests.integration.store.samples import CHAIN_KEY, append_change, faults_of, make_record, make_tenant
from tests.support.replicas import commanding, until
from tests.support.servers import TestDatabase, TestServers

_A, _B = TenantId("ten_a"), TenantId("ten_b")
_SECRET = b"o" * 32
_SHARED = "gw:audit"
_STREAM = f"{_SHARED}:{{}}"
_OF_WRITERS = "from pg_stat_activity where query like '%append_audit%' and pid <> pg_backend_pid()"


@pytest.fixture
async def installation(database_url: str) -> str:
    """The name of the database."""
    connection = await connect_app(database_url)
    try:
        return str(await connection.fetchval("select installation_id()"))
    finally:
        await connection.close()


@pytest.fixture
async def overflow(redis_url: str, installation: str) -> AsyncGenerator[AuditSpool]:
    """An empty overflow."""
    async with EventBus(redis_url, secret=_SECRET) as bus:
        yield _overflow(bus, installation)


@pytest.fixture
async def cut_off(database_url: str, overflow: AuditSpool) -> AsyncGenerator[AuditWriter]:
    """A writer whose PostgreSQL is away."""
    nowhere = database_url.replace("host=", "host=/nowhere")
    async with AuditWriter(nowhere, chain_key=CHAIN_KEY, overflow=overflow) as opened:
        yield opened


def _overflow(bus: EventBus, installation: str) -> AuditSpool:
    made = AuditSpool(bus, secret=_SECRET)
    made.belong_to(installation)
    return made


def _packed(number: int, tenant: TenantId = _A) -> bytes:
    return pack(make_record(tenant, number), f"aud_{number:020x}", 1_000_000 + number)


def _sealed(stream: str, entry: bytes, secret: bytes = _SECRET) -> bytes:
    """An entry as it lies in a stream."""
    return hmac.digest(secret, stream.encode() + b"\0" + entry, "sha256")[:16] + entry


async def _entries(store: Store, tenant: TenantId) -> Sequence[AuditEntry]:
    async with store.transaction(tenant) as db:
        return (await audit_entries.page(tenant, db, after=None, limit=1000))[::-1]


async def _drained(database_url: str, overflow: AuditSpool, store: Store) -> None:
    """Until nothing waits."""
    async with SpoolDrain(database_url, overflow, store=store, chain_key=CHAIN_KEY, pause_s=0.01):

        async def is_empty() -> bool:
            return not await overflow.peek(1)

        await until(is_empty, seconds=20)


async def test_outcomes_wait_and_come_back_in_order(
    cut_off: AuditWriter, overflow: AuditSpool, database_url: str, store: Store
) -> None:
    """Ours: each response has a row, also when PostgreSQL was away (SRV-4)."""
    with anyio.fail_after(20):
        for number in range(300):
            await cut_off.write(make_record(_A if number % 3 else _B, number))
    assert (cut_off.kept, cut_off.written, cut_off.failed) == (300, 0, 0)

    await _drained(database_url, overflow, store)

    assert [entry.target for entry in await _entries(store, _A)] == [f"tool_{n}" for n in range(300) if n % 3]
    assert [entry.target for entry in await _entries(store, _B)] == [f"tool_{n}" for n in range(0, 300, 3)]
    for tenant in (_A, _B):
        async with store.transaction(tenant) as db:
            assert await faults_of(tenant, db) == 0


async def test_an_intent_is_refused(cut_off: AuditWriter, overflow: AuditSpool) -> None:
    """Ours: a changing call is not begun without its row (SRV-4)."""
    with anyio.fail_after(10):
        with pytest.raises(AuditUnavailable):
            await cut_off.write(make_record(_A, 1, kind=AuditKind.CALL_INTENT))
        await cut_off.write(make_record(_A, 2))

    assert len(await overflow.peek(10)) == 1


async def test_with_both_away_there_is_no_answer(database_url: str, installation: str) -> None:
    """Ours: no audit, no answer (SRV-4)."""
    nowhere = database_url.replace("host=", "host=/nowhere")
    async with (
        EventBus("redis://127.0.0.1:1", secret=_SECRET) as bus,
        AuditWriter(nowhere, chain_key=CHAIN_KEY, overflow=_overflow(bus, installation)) as writer,
    ):
        with anyio.fail_after(10), pytest.raises(AuditUnavailable):
            await writer.write(make_record(_A))


async def test_an_entry_that_was_stored_after_all_is_one_row(
    database: TestDatabase, overflow: AuditSpool, store: Store, database_url: str
) -> None:
    """Ours: a commit whose answer was lost, and an entry that is brought back twice, are not two rows."""
    superuser: PostgresConnection = await connect_owner(database.superuser_url)
    async with AuditWriter(database_url, chain_key=CHAIN_KEY, overflow=overflow) as writer:
        await writer.write(make_record(_A, 0))
        await superuser.execute("begin; lock table audit_entries")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.write, make_record(_A, 1))
            with anyio.fail_after(10):
                while not await superuser.fetchval(f"select count(*) {_OF_WRITERS} and wait_event_type = 'Lock'"):
                    pass
            await superuser.execute(f"select pg_terminate_backend(pid, 5000) {_OF_WRITERS}")
            await superuser.execute("rollback")
    await superuser.close()
    (waiting,) = await overflow.peek(10)
    twice = [waiting[1], waiting[1], _packed(2)]
    await overflow.keep(twice[1:])

    for _ in range(2):
        await _drained(database_url, overflow, store)
        await overflow.keep(twice)
    await _drained(database_url, overflow, store)

    assert sorted(entry.target for entry in await _entries(store, _A)) == ["tool_0", "tool_1", "tool_2"]
    async with store.transaction(_A) as db:
        assert await faults_of(_A, db) == 0


async def test_a_foreign_entry_is_refused(
    overflow: AuditSpool, installation: str, redis_url: str, database_url: str, store: Store
) -> None:
    """Ours: a writer to Redis writes no audit trail (AUD-1)."""
    await overflow.keep([_packed(1)])
    with commanding(redis_url) as command:
        stream = _STREAM.format(installation)
        command("XADD", stream, "*", "e", b"\0" * 16 + _packed(666))
        command("XADD", stream, "*", "e", _sealed(_STREAM.format("another"), _packed(667)))
    await overflow.keep([_packed(2)])

    await _drained(database_url, overflow, store)

    assert [entry.target for entry in await _entries(store, _A)] == ["tool_1", "tool_2"]


async def test_odd_text_waits_too(cut_off: AuditWriter, overflow: AuditSpool, database_url: str, store: Store) -> None:
    """Ours: a text that PostgreSQL or Redis cannot hold is replaced, not refused."""
    odd = make_record(_A)
    odd = replace(odd, **dict.fromkeys(("principal", "subject", "tool", "outcome", "correlation_id"), "a\x00b\ud800"))
    await cut_off.write(odd)
    await _drained(database_url, overflow, store)

    (entry,) = await _entries(store, _A)
    assert (entry.target, entry.principal) == ("a\ufffdb?", "a\ufffdb?")


async def test_one_replica_takes_out_at_a_time(overflow: AuditSpool, installation: str, redis_url: str) -> None:
    """Ours: in order, so not by two at once; a replica that died gives up its turn."""
    await overflow.keep([_packed(number) for number in range(3)])
    async with EventBus(redis_url, secret=_SECRET) as bus:
        other = _overflow(bus, installation)
        mine = await overflow.peek(2)
        assert (len(mine), len(await other.peek(2))) == (2, 0)
        await overflow.forget([place for place, _ in mine])
        assert len(await overflow.peek(2)) == 1
        with commanding(redis_url) as command:
            command("DEL", f"{_STREAM.format(installation)}:turn")
        assert len(await other.peek(2)) == 1


async def test_a_full_overflow_takes_no_more(overflow: AuditSpool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: nothing that was promised is dropped for something new."""
    monkeypatch.setattr("gateway.redis.audit_spool.MAX_SPOOLED", 2)
    await overflow.keep([b"1", b"2"])
    with pytest.raises(RedisUnavailable):
        await overflow.keep([b"3"])
    assert [entry for _, entry in await overflow.peek(5)] == [b"1", b"2"]


async def test_the_number_of_waiting_entries_is_known_to_every_replica(
    overflow: AuditSpool, installation: str, redis_url: str, database_url: str, store: Store
) -> None:
    """Ours: an operator sees at each replica that entries wait; while Redis is away the number is unknown."""
    async with EventBus(redis_url, secret=_SECRET) as bus:
        other = _overflow(bus, installation)
        assert overflow.waiting is None
        await overflow.keep([_packed(1), _packed(2)])
        assert overflow.waiting == 2
        await overflow.peek(1)
        await other.peek(1)
        assert other.waiting == 2
        async with AuditWriter(database_url, chain_key=CHAIN_KEY, overflow=overflow) as writer:
            assert writer.kept_waiting == 2
            await _drained(database_url, overflow, store)
            assert writer.kept_waiting == 0
    async with EventBus("redis://127.0.0.1:1", secret=_SECRET) as unreachable:
        away = _overflow(unreachable, installation)
        away.waiting = 7
        with pytest.raises(RedisUnavailable):
            await away.peek(1)
        assert away.waiting is None


async def test_no_entry_waits_before_its_database_is_known(redis_url: str, cut_off: AuditWriter) -> None:
    """Ours: a replica that never saw its database keeps nothing where no replica would look for it."""
    async with EventBus(redis_url, secret=_SECRET) as bus:
        nameless = AuditSpool(bus, secret=_SECRET)
        with pytest.raises(RedisUnavailable):
            await nameless.keep([_packed(1)])
        with pytest.raises(RedisUnavailable):
            await nameless.peek(1)


async def test_nothing_is_left_in_redis_of_returned_entries(
    overflow: AuditSpool, database_url: str, redis_url: str, store: Store
) -> None:
    """Ours: an empty overflow is no key."""
    await overflow.keep([_packed(1), _packed(2)])
    await _drained(database_url, overflow, store)
    with commanding(redis_url) as command:
        assert command("KEYS", "*") == []


async def test_two_installations_share_a_redis(
    overflow: AuditSpool, servers: TestServers, redis_url: str, database_url: str, store: Store
) -> None:
    """Ours: entries that wait for one database are never brought into another, with the same secret keys or not
    (SRV-4).
    """
    await overflow.keep([_packed(1)])
    with servers.empty_database() as elsewhere:
        await migrate(elsewhere.owner_url)
        for secret in (_SECRET, b"x" * 32):
            async with EventBus(redis_url, secret=secret) as bus, Store(elsewhere.app_url) as theirs:
                other = AuditSpool(bus, secret=secret)
                async with SpoolDrain(
                    elsewhere.app_url, other, store=theirs, chain_key=CHAIN_KEY, pause_s=0.01
                ) as drain:
                    await other.keep([_packed(2, _B)])
                    await until(partial(_has_brought_back, drain, 1))  # it has gone round
                assert not await _entries(theirs, _A)
                assert [entry.target for entry in await _entries(theirs, _B)] == ["tool_2"]

    await _drained(database_url, overflow, store)
    assert [entry.target for entry in await _entries(store, _A)] == ["tool_1"]
    assert not await _entries(store, _B)


async def test_entries_of_the_former_release_are_brought_back(
    overflow: AuditSpool, redis_url: str, database_url: str, store: Store
) -> None:
    """Ours: all installations left entries in one stream; each takes out what belongs to its own tenants (SRV-4)."""
    tenant = make_tenant()
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
        await append_change(tenant.id, db)
    of_others = [
        _sealed(_SHARED, _packed(1, TenantId("ten_elsewhere"))),
        _sealed(_SHARED, _packed(2, tenant.id), b"x" * 32),
    ]
    with commanding(redis_url) as command:
        for number in range(300):
            for sealed in of_others:
                command("XADD", _SHARED, "*", "e", sealed)
            command("XADD", _SHARED, "*", "e", _sealed(_SHARED, _packed(number + 10, tenant.id)))
    async with SpoolDrain(database_url, overflow, store=store, chain_key=CHAIN_KEY, pause_s=0.01) as drain:
        await until(partial(_has_brought_back, drain, 300), seconds=20)
        with commanding(redis_url) as command:
            command("XADD", _SHARED, "*", "e", _sealed(_SHARED, _packed(1000, tenant.id)))
        await until(partial(_has_brought_back, drain, 301), seconds=20)

    written = [entry.target for entry in await _entries(store, tenant.id)]
    assert written[:300] == [f"tool_{number + 10}" for number in range(300)]
    assert sorted(written[300:]) == ["source:petstore", "tool_1000"]
    assert not await _entries(store, TenantId("ten_elsewhere"))
    with commanding(redis_url) as command:
        assert command("XLEN", _SHARED) == 600
    async with store.transaction(tenant.id) as db:
        assert await faults_of(tenant.id, db) == 0


async def _has_brought_back(drain: SpoolDrain, entries: int) -> bool:
    return drain.brought_back >= entries
