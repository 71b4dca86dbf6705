"""The audit trail while PostgreSQL is away: outcomes wait in Redis and come back in order, each as one row."""

from collections.abc import AsyncGenerator, Sequence

import anyio
import pytest

from gateway.bus.bus import Bus
from gateway.bus.overflow import Overflow
from gateway.domain.audit import AuditEntry, AuditKind
from gateway.domain.identifiers import TenantId
from gateway.errors import AuditUnavailable, RedisUnavailable
from gateway.store import audit
from gateway.store.audit_overflow import AuditDrain, pack
from gateway.store.audit_writer import AuditWriter
from gateway.store.connect import Connection, connect_owner
from gateway.store.engine import Store
from tests.integration.store.samples import CHAIN_KEY, faults_of, make_record
from tests.support.replicas import commanding, until
from tests.support.servers import TestDatabase

_A, _B = TenantId("ten_a"), TenantId("ten_b")
_SECRET = b"o" * 32
_STREAM = "gw:audit"
_OF_WRITERS = "from pg_stat_activity where query like '%append_audit%' and pid <> pg_backend_pid()"


@pytest.fixture
async def overflow(redis_url: str) -> AsyncGenerator[Overflow]:
    """An empty overflow."""
    async with Bus(redis_url, secret=_SECRET) as bus:
        yield Overflow(bus, secret=_SECRET)


@pytest.fixture
async def cut_off(database_url: str, overflow: Overflow) -> AsyncGenerator[AuditWriter]:
    """A writer whose PostgreSQL is away."""
    nowhere = database_url.replace("host=", "host=/nowhere")
    async with AuditWriter(nowhere, chain_key=CHAIN_KEY, overflow=overflow) as opened:
        yield opened


def _packed(number: int) -> bytes:
    return pack(make_record(_A, number), f"aud_{number:020x}", 1_000_000 + number)


async def _entries(store: Store, tenant: TenantId) -> Sequence[AuditEntry]:
    async with store.transaction(tenant) as db:
        return (await audit.page(tenant, db, after=None, limit=1000))[::-1]


async def _drained(database_url: str, overflow: Overflow) -> None:
    """Until nothing waits."""
    async with AuditDrain(database_url, overflow, chain_key=CHAIN_KEY, pause_s=0.01):

        async def is_empty() -> bool:
            return not await overflow.peek(1)

        await until(is_empty, seconds=20)


async def test_outcomes_wait_and_come_back_in_order(
    cut_off: AuditWriter, overflow: Overflow, database_url: str, store: Store
) -> None:
    """Ours: whoever has an answer has a row, also when PostgreSQL was away (SRV-4)."""
    with anyio.fail_after(20):
        for number in range(300):
            await cut_off.write(make_record(_A if number % 3 else _B, number))
    assert (cut_off.kept, cut_off.written, cut_off.failed) == (300, 0, 0)

    await _drained(database_url, overflow)

    assert [entry.target for entry in await _entries(store, _A)] == [f"tool_{n}" for n in range(300) if n % 3]
    assert [entry.target for entry in await _entries(store, _B)] == [f"tool_{n}" for n in range(0, 300, 3)]
    for tenant in (_A, _B):
        async with store.transaction(tenant) as db:
            assert await faults_of(tenant, db) == 0


async def test_an_intent_is_refused(cut_off: AuditWriter, overflow: Overflow) -> None:
    """Ours: what changes something is not begun without its row (SRV-4)."""
    with anyio.fail_after(10):
        with pytest.raises(AuditUnavailable):
            await cut_off.write(make_record(_A, 1, kind=AuditKind.CALL_INTENT))
        await cut_off.write(make_record(_A, 2))

    assert len(await overflow.peek(10)) == 1


async def test_with_both_away_there_is_no_answer(database_url: str) -> None:
    """Ours: no audit, no answer (SRV-4)."""
    nowhere = database_url.replace("host=", "host=/nowhere")
    async with (
        Bus("redis://127.0.0.1:1", secret=_SECRET) as bus,
        AuditWriter(nowhere, chain_key=CHAIN_KEY, overflow=Overflow(bus, secret=_SECRET)) as writer,
    ):
        with anyio.fail_after(10), pytest.raises(AuditUnavailable):
            await writer.write(make_record(_A))


async def test_what_was_stored_after_all_is_one_row(
    database: TestDatabase, overflow: Overflow, store: Store, database_url: str
) -> None:
    """Ours: a commit whose answer was lost, and an entry that is brought back twice, are not two rows."""
    superuser: Connection = await connect_owner(database.superuser_url)
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
        await _drained(database_url, overflow)
        await overflow.keep(twice)
    await _drained(database_url, overflow)

    assert sorted(entry.target for entry in await _entries(store, _A)) == ["tool_0", "tool_1", "tool_2"]
    async with store.transaction(_A) as db:
        assert await faults_of(_A, db) == 0


async def test_an_entry_that_we_did_not_write_is_none(
    overflow: Overflow, redis_url: str, database_url: str, store: Store
) -> None:
    """Ours: whoever can write into Redis writes no audit trail (AUD-1)."""
    await overflow.keep([_packed(1)])
    with commanding(redis_url) as command:
        command("XADD", _STREAM, "*", "e", b"\0" * 16 + _packed(666))
    await overflow.keep([_packed(2)])

    await _drained(database_url, overflow)

    assert [entry.target for entry in await _entries(store, _A)] == ["tool_1", "tool_2"]


async def test_odd_text_waits_too(cut_off: AuditWriter, overflow: Overflow, database_url: str, store: Store) -> None:
    """Ours: what PostgreSQL or Redis cannot hold is replaced, not refused."""
    odd = make_record(_A)
    for name in ("principal", "subject", "tool", "outcome", "correlation_id"):
        object.__setattr__(odd, name, "a\x00b\ud800")
    await cut_off.write(odd)
    await _drained(database_url, overflow)

    (entry,) = await _entries(store, _A)
    assert (entry.target, entry.principal) == ("a\ufffdb?", "a\ufffdb?")


async def test_one_replica_takes_out_at_a_time(overflow: Overflow, redis_url: str) -> None:
    """Ours: in order, so not by two at once; a replica that died gives up its turn."""
    await overflow.keep([_packed(number) for number in range(3)])
    async with Bus(redis_url, secret=_SECRET) as bus:
        other = Overflow(bus, secret=_SECRET)
        mine = await overflow.peek(2)
        assert (len(mine), len(await other.peek(2))) == (2, 0)
        await overflow.forget([place for place, _ in mine])
        assert len(await overflow.peek(2)) == 1
        with commanding(redis_url) as command:
            command("DEL", f"{_STREAM}:turn")
        assert len(await other.peek(2)) == 1


async def test_a_full_overflow_takes_no_more(overflow: Overflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: nothing that was promised is dropped for something new."""
    monkeypatch.setattr("gateway.bus.overflow.MOST", 2)
    await overflow.keep([b"1", b"2"])
    with pytest.raises(RedisUnavailable):
        await overflow.keep([b"3"])
    assert [entry for _, entry in await overflow.peek(5)] == [b"1", b"2"]


async def test_how_many_wait_is_known_to_every_replica(overflow: Overflow, redis_url: str, database_url: str) -> None:
    """Ours: an operator sees that entries wait, at whatever replica he looks; nobody guesses while Redis is away."""
    async with Bus(redis_url, secret=_SECRET) as bus:
        other = Overflow(bus, secret=_SECRET)
        assert overflow.waiting is None
        await overflow.keep([_packed(1), _packed(2)])
        assert overflow.waiting == 2
        await overflow.peek(1)
        await other.peek(1)
        assert other.waiting == 2
        async with AuditWriter(database_url, chain_key=CHAIN_KEY, overflow=overflow) as writer:
            assert writer.kept_waiting == 2
            await _drained(database_url, overflow)
            assert writer.kept_waiting == 0
    async with Bus("redis://127.0.0.1:1", secret=_SECRET) as nobody:
        away = Overflow(nobody, secret=_SECRET)
        away.waiting = 7
        with pytest.raises(RedisUnavailable):
            await away.peek(1)
        assert away.waiting is None
