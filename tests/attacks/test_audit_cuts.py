"""Attacks on the retention of audit trails: by a writer of the database, a dying replica, and a second one.

The trail has entries of forty days ago, and of now. A writer of the database may change every row and has no key.
"""

import io
import json
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.catalog import tenants
from gateway.catalog.audit import trail_keys
from gateway.catalog.audit_export import TrailExporter
from gateway.catalog.audit_retention import CutBatch, cut_batch
from gateway.catalog.kinds.audit_sinks import SINKS
from gateway.catalog.kinds.singletons import RETENTION
from gateway.catalog.kinds.tenants import TENANTS
from gateway.cli.audit_verifier import ExportVerifier, Verified, verify_file
from gateway.domain.audit import AuditFilter, AuditKind, AuditTrail
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.audit_sinks import SinkKind
from gateway.errors import DatabaseUnavailable, InvalidBody, NotFound
from gateway.kinds.deliveries import SINK
from gateway.store.audit import cuts, places
from gateway.store.audit.cuts import Cut, CutRow, cut_line
from gateway.store.audit.export_lines import ExportKey, SealedLines, content_hash
from gateway.store.database.connection import connect_app, connect_owner
from gateway.store.encryption import EnvelopeCipher
from tests.support.catalog_options import with_options
from tests.support.servers import TestDatabase, TestServers
from tests.support.trails import BY, SECRET, History, Replica, TrailWorld, shared_history, trail_world

_OLD = 40
_DAYS = 30
_PUT_IN = (
    "insert into audit_entries select tenant_id, 'aud_x', writer, 2, at, kind, principal, subject, action, "
    "target, outcome, correlation_id, digest, status, duration_us, result_bytes, detail, mac "
    "from audit_entries where {t} and writer = 'catalog' and seq = 5"
)


@contextmanager
def clock_behind(days: int) -> Generator[None]:
    """The clock of the replica, so many days behind the one of the database."""
    now = time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() - days * 86_400 * 10**9)
        yield


@pytest.fixture(scope="module")
async def history(servers: TestServers) -> AsyncGenerator[History]:
    """A tenant with four old changes and five old calls; then one change and two calls of now."""
    async with shared_history(servers, _make_history) as history:
        yield history


@pytest.fixture
def world(history: History) -> TrailWorld:
    """The history as its replicas left it."""
    return history.restored()


async def _make_history(database: TestDatabase, redis_url: str) -> TenantId:
    with clock_behind(_OLD):
        async with trail_world(database, redis_url) as made, made.replica() as replica:
            for name in ("A", "B", "C"):
                await replica.change(name)
            await replica.call(5)
            await replica.sign()
    async with trail_world(database, redis_url, tenant=made.tenant) as world, world.replica() as replica:
        await replica.call(2)
        await replica.sign()
        await RETENTION.set(world.tenant, replica.catalog, partial(replace, days=_DAYS), by=BY)
    return made.tenant


async def _cut(world: TrailWorld, limit: int = 10_000) -> CutBatch:
    async with world.replica() as replica:
        batch = await cut_batch(world.tenant, replica.catalog, limit=limit)
        await replica.sign()
    return batch


def _removed(batch: CutBatch) -> int:
    return sum(one.row.last - one.row.first + 1 for one in batch.made)


def _faults(trail: AuditTrail) -> dict[str, tuple[str, int]]:
    return {one.writer: (one.fault.kind.value, one.fault.number) for one in trail.chains if one.fault is not None}


async def _export(world: TrailWorld, wanted: AuditFilter | None = None) -> bytes:
    exporter = TrailExporter(world.store, EnvelopeCipher([SECRET]))
    chunks = exporter.export(world.tenant) if wanted is None else exporter.export(world.tenant, wanted)
    return b"".join([chunk async for chunk in chunks])


def _key(tenant: TenantId, secret: str = SECRET) -> ExportKey:
    return ExportKey.of(tenant, EnvelopeCipher([secret]))[0]


def _verify(world: TrailWorld, text: bytes) -> Verified:
    return ExportVerifier([_key(world.tenant).public]).verify(io.BytesIO(text))


def _compared(world: TrailWorld, folder: Path, earlier: bytes, text: bytes) -> list[str]:
    (folder / "earlier").write_bytes(earlier)
    (folder / "now").write_bytes(text)
    key = _key(world.tenant).public.hex()
    found = verify_file(str(folder / "now"), [key], tenant=None, heads=None, earlier=folder / "earlier")
    return list(found.faults)


def _sealed(world: TrailWorld, lines: list[dict[str, Any]]) -> bytes:
    text = SealedLines(world.tenant, _key(world.tenant))
    return text.add([line for line in lines if line["type"] != "seal"]) + text.seal()


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_a_cut_trail_is_whole(world: TrailWorld, tmp_path: Path) -> None:
    """Ours: older entries go from the beginnings of the chains; what stays is verified, also elsewhere (SAF-8)."""
    before = await _export(world)

    batch = await _cut(world)
    trail, after = await world.verify(), await _export(world)

    assert (_removed(batch), batch.fault) == (4 + 5, None)
    assert _faults(trail) == {}
    assert trail.is_whole
    assert sorted(chain.cut for chain in trail.chains if chain.cut) == [4, 5]
    assert _verify(world, after).faults == []
    assert _compared(world, tmp_path, before, after) == []
    assert _removed(await _cut(world)) == 0
    calls = await _export(world, AuditFilter(kind=AuditKind.CALL))
    assert (_verify(world, calls).faults, _verify(world, calls).entries) == ([], 2)


async def test_a_later_cut_continues_the_first(world: TrailWorld, tmp_path: Path) -> None:
    """Ours: small batches, each its own transaction, leave a trail that is verified after every one of them (SAF-8)."""
    exports = [await _export(world)]
    sizes: list[int] = []
    while size := _removed(await _cut(world, limit=2)):
        sizes.append(size)
        assert _faults(await world.verify()) == {}
        exports.append(await _export(world))

    assert sum(sizes) == 4 + 5
    assert len(sizes) >= 4
    for earlier in exports:
        assert _compared(world, tmp_path, earlier, exports[-1]) == []
    newer = _compared(world, tmp_path, exports[-1], exports[1])
    assert newer != []


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("delete from audit_cuts where {t} and writer <> 'catalog'", "shortened"),
        ("delete from audit_cuts where {t} and writer = 'catalog'", "missing"),
        ("delete from audit_cuts where {t} and last = 2", "missing"),
        ("update audit_cuts set last = last + 1 where {t} and writer = 'catalog' and last = 4", "changed"),
        ("update audit_cuts set content = 'x' where {t}", "changed"),
        ("update audit_cuts set newest_us = 0 where {t} and last = 2", "changed"),
        ("update audit_cuts set anchor = '' where {t}", "changed"),
        ("update audit_cuts set writer = 'other' where {t} and writer <> 'catalog'", "changed"),
        ("update audit_cuts set signature = 'x' where {t}", "changed"),
        ("update audit_cuts set signer = 'x' where {t}", "changed"),
        ("delete from audit_entries where {t} and writer = 'catalog' and seq = 5", "missing"),
        ("delete from audit_entries where {t} and action = 'audit.cut'", "shortened"),
        (
            _PUT_IN,
            "changed",
        ),
        ("delete from audit_anchors where {t}", "anchor"),
    ],
)
async def test_an_edit_of_a_cut_is_found(world: TrailWorld, edit: str, fault: str) -> None:
    """Ours: a record that is gone, forged or moved, entries missing without one, or remaining below one (SAF-8)."""
    while _removed(await _cut(world, limit=2)):
        pass
    assert (await world.verify()).is_whole
    await world.edit(edit)

    trail = await world.verify()

    assert not trail.is_whole
    found = {kind for kind, _ in _faults(trail).values()}
    if fault == "anchor":
        assert trail.anchor.state == "missing"
    else:
        assert fault in found
    assert not _verify(world, await _export(world)).is_whole


async def test_a_record_of_another_tenant_does_not_verify(world: TrailWorld) -> None:
    """Ours: a signed record moved to another tenant's chain has the wrong signature (TEN-1)."""
    await _cut(world)
    async with world.replica() as replica:
        other = (await tenants.create_tenant(replica.catalog, "other", "Other", by=BY)).id
    foreign = replace(world, tenant=other)
    assert (await foreign.verify()).is_whole
    columns = "writer, first, last, revision, oldest_us, newest_us, head, content, anchor, at_us, signer, signature"
    await world.edit(f"insert into audit_cuts select '{other}', {columns} from audit_cuts where {{t}}")

    assert not (await foreign.verify()).is_whole


async def test_a_cut_that_was_made_without_the_keys_is_found(world: TrailWorld) -> None:
    """Ours: the application's role can remove what a record names, and an unsigned record shows (SAF-8)."""
    connection = await connect_app(world.database.app_url)
    try:
        await connection.execute(f"set app.tenant = '{world.tenant}'")
        assert await connection.fetchval("select cut_audit('catalog', 3)") == 0  # no record names them
        values = f"'{world.tenant}', 'catalog', 1, 99, 1, 0, 0, '', '', '', 0, 'x', 'x'"
        await connection.execute(f"insert into audit_cuts values ({values})")
        with pytest.raises(Exception, match="permission denied"):
            await connection.execute("delete from audit_entries")
        with pytest.raises(Exception, match="permission denied"):
            await connection.execute("update audit_cuts set last = 1")
        assert await connection.fetchval("select cut_audit('catalog', 99)") == 4  # none of the last day
    finally:
        await connection.close()

    assert not (await world.verify()).is_whole


async def test_a_holder_of_the_keys_is_contradicted_by_an_earlier_export(world: TrailWorld, tmp_path: Path) -> None:
    """Ours: a cut cannot hide that entries were rewritten before it, nor can a cut of the past vanish (SAF-8)."""
    before = await _export(world)
    await _cut(world)
    after = await _export(world)
    cut = {line["writer"]: line["last"] for line in _lines(after) if line["type"] == "cut"}

    for is_removed in (True, False):
        lines = _lines(before)
        entries = (line for line in lines if line["type"] == "entry" and line["writer"] != "catalog")
        edited = next(line for line in entries if (line["seq"] <= cut.get(line["writer"], 0)) is is_removed)
        edited["outcome"] = "denied"
        faults = _compared(world, tmp_path, _sealed(world, lines), after)
        assert faults, edited
    uncut = [line for line in _lines(after) if line["type"] != "cut"]
    assert _verify(world, _sealed(world, uncut)).faults != []
    moved = _lines(after)
    next(line for line in moved if line["type"] == "cut")["writer"] = "other"
    assert any("not signed" in fault for fault in _verify(world, _sealed(world, moved)).faults)
    assert any("a cut of catalog" in fault for fault in _compared(world, tmp_path, after, before))


def _signed_again(world: TrailWorld, line: dict[str, Any], **changes: object) -> dict[str, Any]:
    """This record with other values, as a holder of the secret keys signs it."""
    values: dict[str, Any] = {name: line[name] for name in CutRow._fields} | changes
    values |= {name: bytes.fromhex(values[name]) for name in ("head", "content")}
    return cut_line(Cut.sign(CutRow(**values), _key(world.tenant)))


def _edit_lines(world: TrailWorld, lines: list[dict[str, Any]], edit: str) -> list[dict[str, Any]]:
    cuts_ = [index for index, line in enumerate(lines) if line["type"] == "cut"]
    first, last = (
        cuts_[0],
        next(index for index in cuts_ if (lines[index]["writer"], lines[index]["last"]) == ("catalog", 4)),
    )
    match edit:
        case "without":
            return lines[:first] + lines[first + 1 :]
        case "head":
            return [*lines[:last], _signed_again(world, lines[last], head="00" * 32), *lines[last + 1 :]]
        case "time":
            return [*lines[:first], _signed_again(world, lines[first], at_us=1), *lines[first + 1 :]]
        case "signature":
            return [*lines[:first], {**lines[first], "at_us": 1}, *lines[first + 1 :]]
        case _:
            return [{**line, "action": "x"} if line.get("action") == "audit.cut" else line for line in lines]


_CONTRADICTIONS = {
    "without": "the one before ends with",
    "head": "ends with an entry 4 that differs from the signed entry",
    "time": "differ from its entry",
    "signature": "is not signed with a given key",
    "action": "a cut has records, but no entry",
}


async def test_sealed_cuts_that_contradict_the_trail_are_found(world: TrailWorld) -> None:
    """Ours: an export that a holder of the keys sealed again has cuts that fit nothing else in it (SAF-8)."""
    while _removed(await _cut(world, limit=2)):
        pass
    lines = _lines(await _export(world))
    assert _verify(world, _sealed(world, lines)).faults == []

    for edit, fault in _CONTRADICTIONS.items():
        faults = _verify(world, _sealed(world, _edit_lines(world, lines, edit))).faults
        assert any(fault in one for one in faults), (edit, faults)


async def test_a_signed_record_of_another_change_is_found(world: TrailWorld) -> None:
    """Ours: a record that was signed for another state of the trail, or again, is not that of its entry (SAF-8)."""
    await _cut(world)
    records = [line for line in _lines(await _export(world)) if line["type"] == "cut"]
    [again] = [line for line in records if line["writer"] == "catalog"]
    made = bytes.fromhex(_signed_again(world, again, at_us=1)["signature"])
    await world.edit(
        f"update audit_cuts set at_us = 1, signature = '\\x{made.hex()}' where {{t}} and writer = 'catalog'"
    )
    assert set(_faults(await world.verify())) == {"catalog"}


async def test_a_signed_record_without_its_entry_is_found(world: TrailWorld) -> None:
    """Ours: a signed record that no entry `audit.cut` names was put in, however well it fits its chain (SAF-8)."""
    firsts = [line for line in _lines(await _export(world)) if line["type"] == "entry" and line["seq"] == 1]
    entry = min((line for line in firsts if line["writer"] != "catalog"), key=lambda line: line["at_us"])
    content = content_hash("", entry)
    values = (world.tenant, entry["writer"], 1, 1, 5, entry["at_us"], entry["at_us"])
    row = CutRow(*values, bytes.fromhex(entry["mac"]), bytes.fromhex(content), "created", 0)
    async with world.store.transaction(world.tenant) as db:
        assert await cuts.apply(world.tenant, db, Cut.sign(row, _key(world.tenant))) == 1

    assert _faults(await world.verify())["catalog"] == ("changed", 5)


async def test_a_chain_with_a_fault_keeps_everything(world: TrailWorld) -> None:
    """Ours: a cut removes nothing that would not verify, so it hides no edit (SAF-8)."""
    await world.edit("update audit_entries set outcome = 'denied' where {t} and writer <> 'catalog' and seq = 3")

    batch = await _cut(world)

    assert {one.row.writer for one in batch.made} == {"catalog"}
    assert batch.fault is not None
    assert "fault at entry 3" in batch.fault
    assert {kind for kind, _ in _faults(await world.verify()).values()} == {"changed"}


async def test_a_sink_that_is_behind_holds_the_cut(world: TrailWorld) -> None:
    """Ours: nothing goes that an enabled sink has not delivered; deleting the sink releases it (SAF-8)."""
    new = SINK.make("siem", {"kind": SinkKind.SYSLOG, "target": "tcp://127.0.0.1:9", "whole": True})
    async with world.replica() as replica:
        sink = await SINKS.create(world.tenant, replica.catalog, new, by=BY)
        held: Any = (await RETENTION.show(world.tenant, replica.catalog)).status
        assert (held.removable.entries, list(held.removable.held_by)) == (0, ["siem"])
        assert _removed(await _cut(world)) == 0
        async with world.store.transaction(world.tenant) as db:
            await places.save(world.tenant, db, sink.id, {"catalog": 2})
        partly: Any = (await RETENTION.show(world.tenant, replica.catalog)).status
        assert partly.removable.entries == 2
        assert [one.row.last for one in (await _cut(world)).made] == [2]
        await SINKS.remove(world.tenant, replica.catalog, "siem", by=BY)
    assert _removed(await _cut(world)) == 2 + 5
    assert (await world.verify()).is_whole


async def test_a_replica_with_a_wrong_clock_removes_nothing_early(world: TrailWorld) -> None:
    """Ours: age is measured by the clock of the database (SAF-8)."""
    with clock_behind(-400):
        batch = await _cut(world)

    assert _removed(batch) == 4 + 5
    assert len([line for line in _lines(await _export(world)) if line["type"] == "entry"]) >= 4


async def test_the_last_change_stays(database: TestDatabase, redis_url: str) -> None:
    """Ours: the next change follows the last one, so a trail of old changes only keeps that (SAF-8)."""
    with clock_behind(_OLD):
        async with trail_world(database, redis_url) as world, world.replica() as replica:
            await replica.change("A")
            await RETENTION.set(world.tenant, replica.catalog, partial(replace, days=_DAYS), by=BY)
    async with trail_world(database, redis_url, tenant=world.tenant) as world:
        assert _removed(await _cut(world)) == 2
        async with world.replica() as replica:
            await replica.change("B")
        assert (await world.verify()).is_whole


async def test_no_retention_is_shorter_than_the_operators(world: TrailWorld) -> None:
    """Ours: an admin cannot remove entries of last week; a minimum that is raised later counts too (SAF-8)."""
    async with world.replica() as replica:
        for days in (0, 1, 29, -1):
            with pytest.raises(InvalidBody):
                await RETENTION.set(world.tenant, replica.catalog, partial(replace, days=days), by=BY)
        stricter = with_options(replica.catalog, retention_min_days=100)
        assert _removed(await cut_batch(world.tenant, stricter)) == 0


async def test_two_replicas_cut_at_once(world: TrailWorld) -> None:
    """Ours: the tenant's row orders them; each entry goes once, under one record (SAF-8)."""
    batches: list[CutBatch] = []

    async def cut(replica: Replica) -> None:
        batches.append(await cut_batch(world.tenant, replica.catalog, limit=3))

    async with world.replica() as one, world.replica() as two, anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(cut, one)
            group.start_soon(cut, two)

    assert sum(map(_removed, batches)) == 4 + 5
    assert (await world.verify()).is_whole


async def test_a_replica_dies_in_the_middle_of_a_cut(world: TrailWorld) -> None:
    """Ours: its connection ends after the first record; nothing was removed, and the next one removes it (SAF-8)."""
    superuser = await connect_owner(world.database.superuser_url)
    watcher = await connect_owner(world.database.superuser_url)  # a transaction sees one state of the activity
    try:
        await superuser.execute("begin")
        await superuser.execute("lock table audit_entries in share row exclusive mode")
        async with anyio.create_task_group() as group:

            async def cut() -> None:
                with pytest.raises(DatabaseUnavailable):
                    await _cut(world)

            group.start_soon(cut)
            waiting = "select pid from pg_stat_activity where query like '%cut_audit%' and wait_event_type = 'Lock'"
            with anyio.fail_after(20):
                while (pid := await watcher.fetchval(waiting)) is None:  # noqa: ASYNC110  # in another process
                    await anyio.sleep(0.01)
            await watcher.fetchval("select pg_terminate_backend($1)", pid)
        await superuser.execute("rollback")
    finally:
        await superuser.close()
        await watcher.close()

    trail = await world.verify()
    assert (trail.is_whole, [chain.cut for chain in trail.chains if chain.cut]) == (True, [])
    assert _removed(await _cut(world)) == 4 + 5
    assert (await world.verify()).is_whole


async def test_a_trail_is_cut_while_it_is_exported(world: TrailWorld) -> None:
    """Ours: an export of several parts has the records of a cut that commits between two of them (SAF-8)."""
    with clock_behind(_OLD):
        async with world.replica() as replica, anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(replica.call, 30)
    exporter = TrailExporter(world.store, EnvelopeCipher([SECRET]))
    for stop in (1, 3, 4):
        chunks, text = exporter.export(world.tenant), b""
        count = 0
        async for chunk in chunks:
            text += chunk
            count += 1
            if count == stop:
                await _cut(world, limit=400)

        assert _verify(world, text).faults == []
    assert (await world.verify()).is_whole


async def test_a_tenant_is_removed_before_its_cut(world: TrailWorld) -> None:
    """Ours: the trail of a removed tenant stays as it is (SAF-4)."""
    await _cut(world, limit=2)
    async with world.replica() as replica:
        await TENANTS.remove(world.tenant, replica.catalog, world.tenant, by=BY)
        with pytest.raises(NotFound):
            await cut_batch(world.tenant, replica.catalog)

    assert (await world.verify()).is_whole
    assert trail_keys(EnvelopeCipher([SECRET])).chain
