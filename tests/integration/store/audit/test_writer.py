"""The audit writer against PostgreSQL: every answered call has its row, in order and chained, whatever happens."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence

import anyio
import pytest
import structlog
from msgspec.structs import replace

from gateway.domain.audit import AuditEntry, AuditKind, CallRecord
from gateway.domain.identifiers import TenantId
from gateway.errors import AuditUnavailable
from gateway.store.audit import entries as audit_entries
from gateway.store.audit.chain_writer import ChainWriter, StoredRow
from gateway.store.audit.writer import AuditWriter
from gateway.store.database.connection import PostgresConnection, connect_owner
from gateway.store.engine import Store
from tests.integration.store.samples import CHAIN_KEY, faults_of, make_record
from tests.support.servers import TestDatabase

_A, _B = TenantId("ten_a"), TenantId("ten_b")
_OF_WRITERS = "from pg_stat_activity where query like '%append_audit%' and pid <> pg_backend_pid()"
_CUT_OFF = f"select pg_terminate_backend(pid, 5000) {_OF_WRITERS}"


@pytest.fixture
async def writer(database_url: str) -> AsyncGenerator[AuditWriter]:
    """An open writer."""
    async with AuditWriter(database_url, chain_key=CHAIN_KEY) as opened:
        yield opened


@pytest.fixture
async def superuser(database: TestDatabase) -> AsyncGenerator[PostgresConnection]:
    """A replica that can stop and disconnect others."""
    connection = await connect_owner(database.superuser_url)
    yield connection
    await connection.close()


async def test_a_record_reads_back_as_it_was_written(writer: AuditWriter, store: Store) -> None:
    """Ours: caller, tool and outcome; the arguments only as a digest."""
    await writer.write(make_record(_A, 7, kind=AuditKind.CALL_INTENT))

    (entry,) = await _entries(store, _A)
    assert (entry.kind, entry.principal, entry.action, entry.target) == (
        AuditKind.CALL_INTENT,
        "key:key_x",
        "call",
        "tool_7",
    )
    assert (entry.outcome, entry.correlation_id) == ("ok", "cor_7")
    assert entry.detail == {
        "subject": "somebody",
        "digest": "0102",
        "status": 200,
        "duration_us": 1234,
        "result_bytes": 567,
    }


async def test_many_calls_of_many_tenants_make_one_row_each(
    writer: AuditWriter, store: Store, superuser: PostgresConnection
) -> None:
    """Ours: a group holds rows of any tenants; each tenant sees its own, in order and whole."""
    tenants = [TenantId(f"ten_{number}") for number in range(20)]
    async with anyio.create_task_group() as tasks:
        for number in range(600):
            tasks.start_soon(writer.write, make_record(tenants[number % 20], number))

    for index, tenant in enumerate(tenants):
        entries = await _entries(store, tenant)
        assert [entry.target for entry in entries] == [f"tool_{number}" for number in range(index, 600, 20)]
        async with store.transaction(tenant) as db:
            assert await faults_of(tenant, db) == 0
    groups = await superuser.fetchval("select count(distinct xmin::text) from audit_entries")
    assert isinstance(groups, int)
    assert groups < 20


async def test_a_group_waits_for_company_where_the_one_before_had_some(
    writer: AuditWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: concurrent calls share commits, and a lone one does not wait."""
    sizes: list[int] = []
    rows = ChainWriter.rows

    def counted(chains: ChainWriter, records: Iterable[CallRecord]) -> list[StoredRow]:
        made = rows(chains, records)
        sizes.append(len(made))
        return made

    async def later(number: int) -> None:
        await anyio.lowlevel.checkpoint()  # the writer sees the one before, which therefore waits for this one
        await writer.write(make_record(_A, number))

    monkeypatch.setattr(ChainWriter, "rows", counted)
    monkeypatch.setattr("gateway.store.audit.writer.LINGER_S", 0.2)
    await writer.write(make_record(_A, 0))
    await asyncio.gather(writer.write(make_record(_A, 1)), writer.write(make_record(_A, 2)))
    await asyncio.gather(writer.write(make_record(_A, 3)), later(4))
    await writer.write(make_record(_A, 5))
    await writer.write(make_record(_A, 6))

    assert sizes == [1, 2, 2, 1, 1]


async def test_a_row_is_committed_before_write_returns(writer: AuditWriter, store: Store) -> None:
    """Ours: each response has a committed row."""
    for number in range(20):
        await writer.write(make_record(_A, number))
        assert len(await _entries(store, _A)) == number + 1


async def test_a_caller_that_disconnects_still_gets_its_row(writer: AuditWriter, store: Store) -> None:
    """Ours: a disconnect leaves a trace, and disturbs no other call of the group."""
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as impatient:
            for number in range(10):
                impatient.start_soon(writer.write, make_record(_A, number))
            await anyio.lowlevel.checkpoint()
            impatient.cancel_scope.cancel()
        tasks.start_soon(writer.write, make_record(_A, 10))

    entries = await _entries(store, _A)
    assert {entry.target for entry in entries} == {f"tool_{number}" for number in range(11)}


async def test_a_connection_lost_while_idle_costs_nothing(
    writer: AuditWriter, store: Store, superuser: PostgresConnection
) -> None:
    """Ours: PostgreSQL restarts, and the next call does not notice."""
    await writer.write(make_record(_A, 1))
    await superuser.execute(_CUT_OFF)
    # That backend is gone for good, so one more round trip lets our loop read its end.
    await superuser.fetchval("select 1")

    await writer.write(make_record(_A, 2))
    assert [entry.target for entry in await _entries(store, _A)] == ["tool_1", "tool_2"]
    async with store.transaction(_A) as db:
        assert await faults_of(_A, db) == 0


async def test_a_commit_that_fails_fails_its_callers_only(
    writer: AuditWriter, store: Store, superuser: PostgresConnection
) -> None:
    """Ours: without a row there is no answer; afterwards connection and chain are new."""
    await writer.write(make_record(_A, 0))
    await superuser.execute("begin; lock table audit_entries")
    failed: list[int] = []

    async def write(number: int) -> None:
        try:
            await writer.write(make_record(_A, number))
        except AuditUnavailable:
            failed.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(1, 6):
            tasks.start_soon(write, number)
        await _until_waiting(superuser)
        await superuser.execute(_CUT_OFF)
        await superuser.execute("rollback")

    assert len(failed) >= 1
    await writer.write(make_record(_A, 6))
    stored = {entry.target for entry in await _entries(store, _A)}
    assert stored == {f"tool_{number}" for number in range(7) if number not in failed}
    async with store.transaction(_A) as db:
        assert await faults_of(_A, db) == 0


async def test_a_log_that_fails_leaves_the_writer_open(
    writer: AuditWriter, store: Store, superuser: PostgresConnection
) -> None:
    """A fixed bug: a full disk that hit log and database left every later call without an entry (SAF-4)."""

    def refuse(*_: object) -> str:
        raise OSError("no space left on device")

    before = structlog.get_config()
    await writer.write(make_record(_A, 0))
    await superuser.execute("begin; lock table audit_entries")
    try:
        structlog.configure(processors=[refuse])
        async with anyio.create_task_group() as tasks:
            for number in range(1, 4):
                tasks.start_soon(_write_quietly, writer, number)
            await _until_waiting(superuser)
            await superuser.execute(_CUT_OFF)
            await superuser.execute("rollback")
        with anyio.fail_after(10):  # the task that writes starts again
            await writer.write(make_record(_A, 4))
    finally:
        structlog.configure(**before)

    assert "tool_4" in {entry.target for entry in await _entries(store, _A)}


async def test_without_a_database_every_caller_gets_an_error(database_url: str) -> None:
    """Ours: no audit, no answer; and the driver's error stays inside."""
    nowhere = database_url.replace("host=", "host=/nowhere")
    async with AuditWriter(nowhere, chain_key=CHAIN_KEY) as writer:
        for number in range(3):
            with anyio.fail_after(10):
                with pytest.raises(AuditUnavailable):
                    await writer.write(make_record(_A, number))


async def test_unstorable_text_costs_no_entry(writer: AuditWriter, store: Store) -> None:
    """Ours: a text that PostgreSQL cannot hold is replaced, not refused."""
    odd = make_record(_A)
    odd = replace(odd, **dict.fromkeys(("principal", "subject", "tool", "outcome", "correlation_id"), "a\x00b\ud800"))
    await writer.write(odd)

    (entry,) = await _entries(store, _A)
    assert (entry.target, entry.principal) == ("a\ufffdb?", "a\ufffdb?")


async def test_a_record_that_cannot_be_stored_fails_alone(writer: AuditWriter, store: Store) -> None:
    """Ours: one bad record does not cost its neighbours their answers."""
    bad = replace(make_record(_A, 1), status=2**40)
    results = await asyncio.gather(
        writer.write(make_record(_A, 0)), writer.write(bad), writer.write(make_record(_B, 2)), return_exceptions=True
    )

    assert [type(result) for result in results] == [type(None), AuditUnavailable, type(None)]
    assert [entry.target for entry in await _entries(store, _A)] == ["tool_0"]
    assert [entry.target for entry in await _entries(store, _B)] == ["tool_2"]


async def test_closing_waits_for_queued_entries(database_url: str, store: Store) -> None:
    """Ours: a draining replica loses no row, and refuses late ones."""
    async with anyio.create_task_group() as tasks, AuditWriter(database_url, chain_key=CHAIN_KEY) as writer:
        for number in range(300):
            tasks.start_soon(writer.write, make_record(_A, number))
        await anyio.lowlevel.checkpoint()

    assert len(await _entries(store, _A)) == 300
    with pytest.raises(AuditUnavailable):
        await writer.write(make_record(_A))


async def test_one_chain_may_be_followed_by_another(database_url: str, store: Store) -> None:
    """Ours: every replica and every connection has a chain of its own; the trail is whole all the same."""
    for _ in range(3):
        async with (
            AuditWriter(database_url, chain_key=CHAIN_KEY) as one,
            AuditWriter(database_url, chain_key=CHAIN_KEY) as other,
        ):
            await one.write(make_record(_A))
            await other.write(make_record(_A))

    assert len(await _entries(store, _A)) == 6
    async with store.transaction(_A) as db:
        assert await faults_of(_A, db) == 0


async def _entries(store: Store, tenant: TenantId) -> Sequence[AuditEntry]:
    """The tenant's entries, oldest first."""
    async with store.transaction(tenant) as db:
        return (await audit_entries.page(tenant, db, after=None, limit=1000))[::-1]


async def _write_quietly(writer: AuditWriter, number: int) -> None:
    with contextlib.suppress(AuditUnavailable):
        await writer.write(make_record(_A, number))


async def _until_waiting(superuser: PostgresConnection) -> None:
    """Until the writer's commit waits at the locked table."""
    waiting = f"select count(*) {_OF_WRITERS} and wait_event_type = 'Lock'"
    with anyio.fail_after(10):
        while not await superuser.fetchval(waiting):
            pass
