"""Retention of a tenant's audit trail: its setting, and the job that cuts old entries off the chains.

A cut removes entries from the beginning of each chain. They are older than the retention by the clock of the database,
delivered to every enabled sink, and verified. The removal, the signed cut records and the entry `audit.cut`
commit together, in batches. So after a crash of the replica, `audit verify` accepts the trail, and another replica
continues the cut.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import structlog

from gateway.catalog.audit import PART, trail_keys
from gateway.catalog.limits import MAX_CHAINS, MAX_COUNTED, TIME_SLICE_S
from gateway.catalog.transaction import (
    GATEWAY,
    Author,
    CatalogChange,
    CatalogContext,
    CatalogOptions,
    OpenChanges,
    change,
)
from gateway.domain.audit import AuditKind, AuditRetention, Removable, RetentionStatus
from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict, Fault, InvalidBody
from gateway.store import jobs, tenants
from gateway.store.audit import anchors, cuts, entries, export_keys, places, retention
from gateway.store.audit.cuts import Cut, CutRow
from gateway.store.audit.export_lines import ExportKey, VerifyKey, content_hash, entry_line, moment
from gateway.store.audit.hash_chain import CATALOG, START, Link, now_us
from gateway.store.audit.places import Places
from gateway.store.audit.retention import OldEntries
from gateway.store.audit.verification import TrailKeys, is_authentic
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.kinds.audit_sinks import SINKS
from gateway.store.kinds.singletons import RETENTION

log = structlog.get_logger(__name__)

KIND = "audit_retention"
LEASE = timedelta(minutes=5)
BATCH = 5000
"""Limit on the entries of one transaction, which locks the tenant's row for less than a second."""
_PAUSE = timedelta(hours=6)
_BY = Author(caller=GATEWAY, correlation_id="")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _NothingToCut(Exception):
    """No entry is removable; rolls the change back."""


async def read_status(
    tenant: TenantId, db: Db, stored: AuditRetention, options: CatalogOptions, *, days: int | None = None
) -> RetentionStatus:
    """The removed entries, and those that a cut would remove now; `days` replaces the retention in this report.

    The transaction sees one snapshot of the database: a cut between two queries would be counted twice.
    """
    effective_days, removable = stored.days if days is None else days, Removable()
    if effective_days is not None:
        removable = await _count(tenant, db, max(effective_days, options.retention_min_days))
    removed, at_us = await cuts.totals(tenant, db)
    return RetentionStatus(
        minimum_days=options.retention_min_days,
        removed=removed,
        cut_at=None if at_us is None else _EPOCH + at_us * _MICROSECOND,
        fault=stored.fault,
        removable=removable,
    )


async def check_minimum(opened: OpenChanges, current: AuditRetention, wanted: AuditRetention) -> None:
    """Refuse a retention that is shorter than the installation permits."""
    del current
    minimum = opened.catalog.options.retention_min_days
    if wanted.days is not None and wanted.days < minimum:  # guard: retention-minimum
        reason = f"must be at least {minimum} (GATEWAY_AUDIT_RETENTION_MIN_DAYS), or null"
        raise InvalidBody(f"/days: {reason}", faults=[Fault(pointer="/days", reason=reason)])


async def schedule_cuts(opened: OpenChanges, before: AuditRetention, after: AuditRetention) -> Mapping[str, object]:
    """Schedule the job that cuts old entries; a trail that is kept forever has none."""
    del before
    if after.days is None:
        await jobs.remove(opened.tenant, opened.db, KIND)
    else:
        due = Job(tenant=opened.tenant, id=KIND, kind=KIND, due_at=datetime.now(UTC))
        await jobs.schedule(opened.tenant, opened.db, due)
    return {}


async def cut_due(catalog: CatalogContext, due: Job) -> None:
    """Cut a tenant's trail in batches, for at most 20 s, unless another replica has the job."""
    tenant, until = due.tenant, datetime.now(UTC) + LEASE
    async with catalog.store.upkeep(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return
        if (await RETENTION.get(tenant, db)).days is None:
            await jobs.remove(tenant, db, due.id)
            return
    ends_at, batch = anyio.current_time() + TIME_SLICE_S, await cut_batch(tenant, catalog)
    while batch.is_full and anyio.current_time() < ends_at:
        batch = await cut_batch(tenant, catalog)
    async with catalog.store.upkeep(tenant) as db:
        await retention.note_fault(tenant, db, batch.fault)
        again_at = datetime.now(UTC) + (timedelta() if batch.is_full else _PAUSE)
        await jobs.reschedule(tenant, db, due.id, seen=until, to=again_at)


async def cut_batch(tenant: TenantId, catalog: CatalogContext, *, limit: int = BATCH) -> "CutBatch":
    """Remove up to `limit` entries in one transaction, with their cut records and the audit entry of the cut.

    Raises:
        NotFound: the tenant does not exist any more.
    """
    entry = CatalogChange(action=cuts.ACTION, target=tenant)
    signer = ExportKey.of(tenant, catalog.sealer)[0]
    batch = CutBatch(tenant=tenant, keys=trail_keys(catalog.sealer), signer=signer, limit=limit)
    try:
        async with change(tenant, catalog, entry, by=_BY) as db:  # the lock of the tenant's row: one cut at a time
            stored = await RETENTION.get(tenant, db)
            if stored.days is not None:
                batch.verifiers = await export_keys.verify_keys(tenant, db, catalog.sealer)
                # guard: retention-minimum-of-cuts
                await batch.fill(db, max(stored.days, catalog.options.retention_min_days))
            if not batch.made:
                raise _NothingToCut
            entry.detail = batch.detail()
    except _NothingToCut:
        pass
    if batch.fault is not None:
        log.error("audit_not_cut", tenant_id=tenant, reason=batch.fault)
    return batch


@dataclass(slots=True, kw_only=True)
class CutBatch:
    """The entries that one transaction removes."""

    tenant: TenantId
    keys: TrailKeys
    signer: ExportKey
    limit: int
    verifiers: Sequence[VerifyKey] = ()
    made: list[Cut] = field(default_factory=list[Cut])
    fault: str | None = None
    _days: int = 0
    _removed: int = 0
    _before_us: int = 0

    @property
    def is_full(self) -> bool:
        """True if more entries may be removable."""
        return self._removed >= self.limit or len(self.made) >= MAX_CHAINS

    async def fill(self, db: Db, days: int) -> None:
        """Remove the removable entries; a chain with a fault keeps all its entries."""
        before, writers = await retention.old_chains(self.tenant, db, days=days)
        self._days, self._before_us = days, (before - _EPOCH) // _MICROSECOND
        anchor = await anchors.find(self.tenant, db)
        if anchor is not None and not anchor.is_sealed_by(self.keys.anchor):
            self.fault = "the anchor has a fault; run `gateway audit verify`"
            return
        revision = await tenants.revision(self.tenant, db) or 0
        bounds = await _read_bounds(self.tenant, db, last_change=revision - 1)
        for writer in writers:
            if self.is_full:
                return
            row = await self._verify_removable(
                db, writer, bounds.of(writer), revision, anchor="" if anchor is None else anchor.row.kind
            )
            if row is not None:
                await self._remove_entries(db, row)

    def detail(self) -> dict[str, object]:
        """The detail of the entry `audit.cut`."""
        times = (moment(self._before_us), *(moment(edge) for edge in self._removed_range()))
        return {
            **dict(zip(("before", "oldest", "newest"), times, strict=True)),
            "days": self._days,
            "entries": self._removed,
            "chains": {one.row.writer: [one.row.first, one.row.last] for one in self.made},
            "digest": cuts.digest_of(self.made),
        }

    def _removed_range(self) -> tuple[int, int]:
        return min(one.row.oldest_us for one in self.made), max(one.row.newest_us for one in self.made)

    async def _remove_entries(self, db: Db, row: CutRow) -> None:
        cut, expected = Cut.sign(row, self.signer), row.last - row.first + 1
        if await cuts.apply(self.tenant, db, cut) != expected:
            raise Conflict("the database did not remove exactly the entries of the cut; the cut was rolled back")
        self.made.append(cut)
        self._removed += expected

    async def _verify_removable(self, db: Db, writer: str, bound: int, revision: int, *, anchor: str) -> CutRow | None:
        """Verify the removable entries of one chain and return their cut record; None if there are none or one has a
        fault.
        """
        before = await cuts.last(self.tenant, db, writer)
        if before is not None and not before.is_signed_by(self.verifiers):
            self._record_fault(writer, before.row.last)
            return None
        place = (0, START, "") if before is None else (before.row.last, before.row.head, before.row.content.hex())
        first, times = place[0] + 1, list[int]()
        async for one in self._old_entries(db, writer, place[0], bound):
            if not self._is_intact(one, place[0], place[1]):
                self._record_fault(writer, place[0] + 1)
                return None
            place = one.row.seq, one.mac, content_hash(place[2], entry_line(one))
            times.append(one.row.at_us)
        if not times:
            return None
        ends = (min(times), max(times), place[1], bytes.fromhex(place[2]), anchor, now_us())
        return CutRow(self.tenant, writer, first, place[0], revision, *ends)

    async def _old_entries(self, db: Db, writer: str, after: int, bound: int) -> AsyncGenerator[Link]:
        """The next entries of a chain, up to the first one that must stay."""
        room = self.limit - self._removed
        while room > 0:
            part = await entries.chain(self.tenant, db, writer, after=after, limit=min(PART, room))
            for one in part:
                # guard: cut-keeps-the-retention
                if one.row.seq > bound or (one.row.at_us or 0) >= self._before_us:
                    return
                yield one
            if len(part) < PART:
                return
            room, after = room - len(part), part[-1].row.seq

    def _is_intact(self, one: Link, number: int, mac: bytes) -> bool:
        """True if `audit verify` would find no fault at this entry."""
        is_plain = one.row.seq == number + 1 and one.row.kind != AuditKind.BREAK and not one.is_contradicted
        return is_plain and is_authentic(self.keys, one, mac)  # guard: cut-verifies

    def _record_fault(self, writer: str, number: int) -> None:
        self.fault = f"chain {writer} has a fault at entry {number}; run `gateway audit verify`"


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of a cut: it removes only entries that all enabled sinks have delivered, and keeps the last change."""

    last_change: int
    places: Mapping[str, Places]
    """The read positions of the enabled sinks, by name."""

    def of(self, writer: str) -> int:
        """The last removable number of a chain."""
        # guard: cut-waits-for-sinks
        return min([self.of_trail(writer), *(place.get(writer, 0) for place in self.places.values())])

    def of_trail(self, writer: str) -> int:
        """The last number of the trail that is removable after its delivery.

        The last entry of the changes stays, because the MAC of the next entry depends on it.
        """
        return self.last_change - 1 if writer == CATALOG else 2**62  # guard: cut-keeps-the-last-change


async def _read_bounds(tenant: TenantId, db: Db, *, last_change: int) -> _Bounds:
    enabled = [sink for sink in await SINKS.load(tenant, db) if sink.enabled]
    return _Bounds(last_change, {sink.name: await places.load(tenant, db, sink.id) for sink in enabled})


async def _count(tenant: TenantId, db: Db, days: int) -> Removable:
    """Count the entries that a cut would remove now, and name the sinks with undelivered older entries."""
    before, writers = await retention.old_chains(tenant, db, days=days)
    bounds = await _read_bounds(tenant, db, last_change=await tenants.revision(tenant, db) or 0)
    found, holders = list[OldEntries](), set[str]()
    for writer in writers:
        count = partial(retention.count_old, tenant, db, writer, before=before, limit=MAX_COUNTED)
        old = await count(bound=bounds.of_trail(writer))
        holders |= {name for name, place in bounds.places.items() if place.get(writer, 0) < old.last}
        found.append(await count(bound=bounds.of(writer)) if bounds.of(writer) < old.last else old)
        if sum(one.entries for one in found) >= MAX_COUNTED:
            break
    found = [one for one in found if one.entries]
    return Removable(
        entries=sum(one.entries for one in found),
        chains=len(found),
        oldest=min((one.oldest for one in found if one.oldest), default=None),
        newest=max((one.newest for one in found if one.newest), default=None),
        is_partial=sum(one.entries for one in found) >= MAX_COUNTED,
        held_by=tuple(sorted(holders)),
    )
