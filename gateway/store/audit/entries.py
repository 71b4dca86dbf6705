"""Audit entries in the database: adds the entries of catalog changes, and reads all entries.

The removal of a tenant does not delete its entries. `writer` adds the entries of calls; `verification` detects edits.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack

import orjson
import structlog
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    RowMapping,
    Subquery,
    and_,
    case,
    cast,
    extract,
    func,
    select,
    text,
    tuple_,
)
from sqlalchemy import insert as insert_into

from gateway.domain.audit import AuditEntry, AuditFilter, AuditKind
from gateway.domain.identifiers import AuditId, TenantId, mint
from gateway.store.audit.anchors import TrailHead, refer_to
from gateway.store.audit.hash_chain import CATALOG, CREATION, START, AuditRow, Link, audit_id, link, now_us, storable
from gateway.store.audit.limits import MAX_COUNTED
from gateway.store.audit.tables import audit_cuts
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import read_record
from gateway.store.tables import audit_entries, audit_heads
from gateway.telemetry.log_context import CLAIMED_CLIENT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SUFFIX_LENGTH = 9

# Built once: reads the end of the chain of changes, and the anchor.
_ENDS = text("""
    select last.seq, last.mac, anchor.number, anchor.head
    from (values (1)) one
    left join lateral (
        select seq, mac from audit_entries where tenant_id = :tenant and writer = :writer order by seq desc limit 1
    ) last on true
    left join audit_anchors anchor on anchor.tenant_id = :tenant
""")

_INSERT = insert_into(audit_entries)

log = structlog.get_logger(__name__)


class AuditedChange(TypedDict):
    """One change of a tenant's catalog, for its entry."""

    principal: str
    action: str
    target: str
    correlation_id: str
    revision: int
    detail: Mapping[str, object]
    chain_key: bytes


async def append_change(tenant: TenantId, db: Db, **change: Unpack[AuditedChange]) -> AuditId:
    """Add the entry of a change in the change's own transaction, after `tenants.advance` returned the revision.

    If the entry of the previous change is missing, an entry that records the break is added first, with its number.
    """
    ends = (await db.execute(_ENDS, {"tenant": tenant, "writer": CATALOG})).one()
    last, previous = ends.seq, START if ends.mac is None else ends.mac
    is_first = change["action"] == CREATION and change["revision"] == 1  # others are of tenants, in the installation's
    if not is_first and last != change["revision"] - 1:  # guard: audit-break
        log.error("audit_trail_broken", tenant_id=tenant, expected=change["revision"] - 1, found=last)
        previous = await _append(tenant, db, _break_row(tenant, change, last), previous, chain_key=change["chain_key"])
    reference = b"" if ends.number is None else refer_to(TrailHead(ends.number, ends.head))
    row = _row(tenant, change)._replace(digest=reference)
    await _append(tenant, db, row, previous, chain_key=change["chain_key"])
    return AuditId(row.id)


async def _append(tenant: TenantId, db: Db, row: AuditRow, previous: bytes, *, chain_key: bytes) -> bytes:
    """Add one row; return its MAC."""
    mac = link(chain_key, previous, row)
    values: dict[str, object] = dict(zip(_CHAINED_NAMES, row, strict=True))
    values["at"] = _EPOCH + row.at_us * _MICROSECOND
    await db.execute(_INSERT, {**values, "mac": mac})
    return mac


def _break_row(tenant: TenantId, change: AuditedChange, last: int | None) -> AuditRow:
    """The entry that records a missing predecessor, under the predecessor's number."""
    expected = change["revision"] - 1
    detail = {"expected": expected, "found": last}
    found: AuditedChange = {**change, "action": "audit.break", "target": tenant, "revision": expected, "detail": detail}
    return _row(tenant, found)._replace(kind=AuditKind.BREAK.value, principal="gateway", outcome="broken")


async def page(
    tenant: TenantId,
    db: Db,
    *,
    after: str | None,
    limit: int,
    filters: AuditFilter | None = None,
) -> Sequence[AuditEntry]:
    """Entries that match the filter and are older than the one with the id `after`, newest first."""
    query = select(audit_entries).where(audit_entries.c.tenant_id == tenant)
    if after is not None:
        query = query.where(audit_entries.c.id < after)
    if filters is not None:
        query = query.where(*_conditions(filters))
    rows = await db.execute(query.order_by(audit_entries.c.id.desc()).limit(limit))
    return [_entry(row) for row in rows.mappings()]


async def last_change(tenant: TenantId, db: Db, target: str) -> AuditEntry | None:
    """The newest entry of a change with this target; None if there is none."""
    columns = audit_entries.c
    matches = (columns.tenant_id == tenant, columns.writer == CATALOG, columns.target == storable(target))
    rows = await db.execute(select(audit_entries).where(*matches).order_by(columns.seq.desc()).limit(1))
    row = rows.mappings().one_or_none()
    return _entry(row) if row else None


async def count_calls(tenant: TenantId, db: Db, tools: Collection[str], *, since: datetime) -> Mapping[str, int]:
    """Number of calls of each tool among the latest 100,000 entries since `since`; tools without calls are absent.

    Ids sort by time, so the primary key finds the entries. The bound keeps the query fast for tenants with many calls.
    """
    latest = _latest(tenant, since)
    is_call = (latest.c.kind == AuditKind.CALL.value, latest.c.target.in_(tools))
    rows = await db.execute(select(latest.c.target, func.count()).where(*is_call).group_by(latest.c.target))
    return {str(tool): int(count) for tool, count in rows}


async def find_large_results(tenant: TenantId, db: Db, *, least: int, since: datetime) -> Mapping[str, int]:
    """Size of the largest result of each tool with one of at least `least` bytes, in the entries of `count_calls`."""
    latest = _latest(tenant, since)
    is_large = (latest.c.kind == AuditKind.CALL.value, latest.c.action == "call", latest.c.result_bytes >= least)
    largest = func.max(latest.c.result_bytes)
    rows = await db.execute(select(latest.c.target, largest).where(*is_large).group_by(latest.c.target))
    return {str(tool): int(size) for tool, size in rows}


def _latest(tenant: TenantId, since: datetime) -> Subquery:
    columns = audit_entries.c
    return (
        select(columns.target, columns.kind, columns.action, columns.result_bytes)
        .where(columns.tenant_id == tenant, columns.id >= _first_id(since))
        .order_by(columns.id.desc())
        .limit(MAX_COUNTED)
        .subquery()
    )


def _conditions(filters: AuditFilter) -> list[ColumnElement[bool]]:
    columns = audit_entries.c
    conditions: list[ColumnElement[bool]] = []
    if filters.id is not None:
        conditions.append(columns.id == filters.id)
    if filters.kind is not None:
        conditions.append(columns.kind == filters.kind.value)
    if filters.principal is not None:
        conditions.append(columns.principal == filters.principal)
    if filters.tool is not None:
        conditions += [columns.target == filters.tool, columns.writer != CATALOG]
    if filters.outcome is not None:
        conditions.append(columns.outcome == filters.outcome)
    if filters.correlation_id is not None:
        conditions.append(columns.correlation_id == filters.correlation_id)
    if filters.client is not None:
        member = f'"{CLAIMED_CLIENT}":{orjson.dumps(filters.client).decode()}'  # as `orjson` writes a detail
        conditions += [func.strpos(columns.detail, member) > 0, columns.writer != CATALOG]
    # Ids sort by time, so the primary key finds the range.
    if filters.since is not None:
        conditions += [columns.at >= filters.since, columns.id >= _first_id(filters.since)]
    if filters.until is not None:
        later = filters.until + 1000 * _MICROSECOND
        conditions += [columns.at < filters.until, columns.id < _first_id(later)]
    return conditions


def _first_id(moment: datetime) -> AuditId:
    """The lowest id of entries at or after a moment, to the millisecond."""
    return audit_id((moment - _EPOCH) // _MICROSECOND, "")


async def links(tenant: TenantId, db: Db, *, after: Link | None, limit: int) -> Sequence[Link]:
    """Entries after `after`, in order of writers and numbers, with the values from which their MACs were computed."""
    columns = audit_entries.c
    in_order = columns.writer, columns.seq, columns.id
    query = select(*_CHAINED_VALUES, columns.mac, _IS_CONTRADICTED).where(columns.tenant_id == tenant)
    if after is not None:
        query = query.where(tuple_(*in_order) > (after.row.writer, after.row.seq, after.row.id))
    rows = await db.execute(query.order_by(*in_order).limit(limit))
    found = [tuple(row) for row in rows]
    return [Link(row=AuditRow._make(row[:-2]), mac=row[-2], is_contradicted=row[-1]) for row in found]


async def chain(tenant: TenantId, db: Db, writer: str, *, after: int, limit: int) -> Sequence[Link]:
    """The entries of one chain after the number `after`."""
    columns = audit_entries.c
    of_chain = (columns.tenant_id == tenant, columns.writer == writer, columns.seq > after)
    query = select(*_CHAINED_VALUES, columns.mac, _IS_CONTRADICTED).where(*of_chain)
    rows = [tuple(row) for row in await db.execute(query.order_by(columns.seq).limit(limit))]
    return [Link(row=AuditRow._make(row[:-2]), mac=row[-2], is_contradicted=row[-1]) for row in rows]


async def of_ids(tenant: TenantId, db: Db, ids: Sequence[str]) -> Sequence[Link]:
    """The entries with these ids, in this order."""
    columns = audit_entries.c
    rows = await db.execute(
        select(*_CHAINED_VALUES, columns.mac).where(columns.tenant_id == tenant, columns.id.in_(ids))
    )
    links = [Link(AuditRow._make(row[:-1]), row[-1]) for row in map(tuple, rows)]
    found = {one.row.id: one for one in links}
    return [found[wanted_id] for wanted_id in ids if wanted_id in found]


async def matching(
    tenant: TenantId, db: Db, filters: AuditFilter, *, after: str, limit: int
) -> Sequence[tuple[Link, bytes | None]]:
    """Entries that match the filter, the oldest first, each with the MAC before it; None if that entry is missing.

    The MAC of an entry that retention removed is in its cut record.
    """
    columns, cut, before = audit_entries.c, audit_cuts.c, audit_entries.alias("before")
    is_before = (
        before.c.tenant_id == columns.tenant_id,
        before.c.writer == columns.writer,
        before.c.seq == columns.seq - 1,
    )
    was_before = (cut.tenant_id == columns.tenant_id, cut.writer == columns.writer, cut.last == columns.seq - 1)
    previous = func.coalesce(before.c.mac, cut.head)
    query = (
        select(*_CHAINED_VALUES, columns.mac, previous.label("previous"))
        .select_from(audit_entries.outerjoin(before, and_(*is_before)).outerjoin(audit_cuts, and_(*was_before)))
        .where(columns.tenant_id == tenant, columns.id > after, *_conditions(filters))
    )
    rows = [tuple(row) for row in await db.execute(query.order_by(columns.id).limit(limit))]
    return [(Link(AuditRow._make(row[:-2]), row[-2]), START if row[3] == 1 else row[-1]) for row in rows]


_CHAINED_NAMES = tuple(column.name for column in audit_entries.c if column.name != "mac")


_AT = audit_entries.c.at
_MICROSECONDS = case((func.isfinite(_AT), cast(extract("epoch", _AT) * 1_000_000, BigInteger)))
"""The time in microseconds, as in the MAC; null for an infinite time, which only an edit can store."""
_CHAINED_VALUES = [_MICROSECONDS if column is _AT else column for column in audit_entries.c if column.name != "mac"]

_IS_CONTRADICTED = (
    select(audit_heads.c.number)
    .where(
        audit_heads.c.tenant_id == audit_entries.c.tenant_id,
        audit_heads.c.writer == audit_entries.c.writer,
        audit_heads.c.seq == audit_entries.c.seq,
        audit_heads.c.head != audit_entries.c.mac,
    )
    .exists()
)


def _row(tenant: TenantId, change: AuditedChange) -> AuditRow:
    at_us = now_us()
    return AuditRow(
        tenant=tenant,
        id=audit_id(at_us, mint("")[1 : 1 + _SUFFIX_LENGTH]),
        writer=CATALOG,
        seq=change["revision"],
        at_us=at_us,
        kind=AuditKind.CHANGE.value,
        principal=storable(change["principal"]),
        subject="",
        action=storable(change["action"]),
        target=storable(change["target"]),
        outcome="ok",
        correlation_id=storable(change["correlation_id"]),
        digest=b"",
        status=None,
        duration_us=0,
        result_bytes=0,
        detail=orjson.dumps(dict(change["detail"]), default=str).decode(),
    )


def _entry(row: RowMapping) -> AuditEntry:
    is_change = row["kind"] in {AuditKind.CHANGE, AuditKind.BREAK}
    return read_record(AuditEntry, row, detail=_change_detail(row) if is_change else _call_detail(row))


def _change_detail(row: RowMapping) -> dict[str, object]:
    detail: dict[str, object] = orjson.loads(row["detail"])
    return {**detail, "revision": row["seq"]}


def _call_detail(row: RowMapping) -> dict[str, object]:
    detail: dict[str, object] = orjson.loads(row["detail"])
    return {
        **detail,
        "subject": row["subject"],
        "digest": row["digest"].hex(),
        "status": row["status"],
        "duration_us": row["duration_us"],
        "result_bytes": row["result_bytes"],
    }
