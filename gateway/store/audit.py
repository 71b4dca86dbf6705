"""The audit trail in the database: entries of catalog changes, and reading it.

Entries of a tenant outlive the tenant: removing one is no way to lose its trail. Entries of calls are written by
`audit_writer`; `audit_check` tells whether somebody edited the trail.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack

import orjson
from sqlalchemy import BigInteger, ColumnElement, RowMapping, case, cast, extract, func, select, tuple_
from sqlalchemy import insert as insert_into
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.domain.audit import AuditEntry, AuditFilter, AuditKind
from gateway.domain.identifiers import AuditId, TenantId, mint
from gateway.store.audit_chain import CATALOG, START, AuditRow, Link, audit_id, link, now_us, storable
from gateway.store.tables import audit_entries

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SUFFIX = 9


class Change(TypedDict):
    """What one change of a tenant's catalog was."""

    principal: str
    action: str
    target: str
    correlation_id: str
    revision: int
    detail: Mapping[str, object]
    chain_key: bytes


async def append_change(tenant: TenantId, db: AsyncSession, **change: Unpack[Change]) -> AuditId:
    """Add the entry of a change in the change's own transaction, after `tenants.advance` gave the revision."""
    last = (
        select(audit_entries.c.mac)
        .where(audit_entries.c.tenant_id == tenant, audit_entries.c.writer == CATALOG)
        .order_by(audit_entries.c.seq.desc())
        .limit(1)
    )
    previous = (await db.execute(last)).scalar_one_or_none() or START
    row = _row(tenant, change)
    values: dict[str, object] = dict(zip(_CHAINED, row, strict=True))
    values["at"] = _EPOCH + row.at_us * _MICROSECOND
    await db.execute(insert_into(audit_entries).values(**values, mac=link(change["chain_key"], previous, row)))
    return AuditId(row.id)


async def page(
    tenant: TenantId,
    db: AsyncSession,
    *,
    after: str | None,
    limit: int,
    wanted: AuditFilter | None = None,
) -> Sequence[AuditEntry]:
    """Entries that pass the filter and are older than the one with the id `after`, newest first."""
    query = select(audit_entries).where(audit_entries.c.tenant_id == tenant)
    if after is not None:
        query = query.where(audit_entries.c.id < after)
    if wanted is not None:
        query = query.where(*_conditions(wanted))
    rows = await db.execute(query.order_by(audit_entries.c.id.desc()).limit(limit))
    return [_entry(row) for row in rows.mappings()]


def _conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    columns = audit_entries.c
    conditions: list[ColumnElement[bool]] = []
    if wanted.kind is not None:
        conditions.append(columns.kind == wanted.kind.value)
    if wanted.principal is not None:
        conditions.append(columns.principal == wanted.principal)
    if wanted.tool is not None:
        conditions += [columns.target == wanted.tool, columns.kind != AuditKind.CHANGE.value]
    if wanted.since is not None:
        conditions.append(columns.at >= wanted.since)
    if wanted.until is not None:
        conditions.append(columns.at < wanted.until)
    return conditions


async def links(tenant: TenantId, db: AsyncSession, *, after: Link | None, limit: int) -> Sequence[Link]:
    """Entries as they were chained, writer by writer, each writer's in order; those that follow `after`."""
    columns = audit_entries.c
    in_order = columns.writer, columns.seq, columns.id
    query = select(*_AS_CHAINED, columns.mac).where(columns.tenant_id == tenant)
    if after is not None:
        query = query.where(tuple_(*in_order) > (after.row.writer, after.row.seq, after.row.id))
    rows = await db.execute(query.order_by(*in_order).limit(limit))
    return [Link(row=AuditRow._make(row[:-1]), mac=row[-1]) for row in rows]


_CHAINED = tuple(column.name for column in audit_entries.c if column.name != "mac")


_MOMENT = audit_entries.c.at
_MICROSECONDS = case((func.isfinite(_MOMENT), cast(extract("epoch", _MOMENT) * 1_000_000, BigInteger)))
"""The moment as it was chained, also where somebody has put one that no clock shows."""
_AS_CHAINED = [_MICROSECONDS if column is _MOMENT else column for column in audit_entries.c if column.name != "mac"]


def _row(tenant: TenantId, change: Change) -> AuditRow:
    at_us = now_us()
    return AuditRow(
        tenant=tenant,
        id=audit_id(at_us, mint("")[1 : 1 + _SUFFIX]),
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
    kind = AuditKind(row["kind"])
    return AuditEntry(
        id=AuditId(row["id"]),
        at=row["at"],
        kind=kind,
        principal=row["principal"],
        action=row["action"],
        target=row["target"],
        outcome=row["outcome"],
        correlation_id=row["correlation_id"],
        detail=_change_detail(row) if kind is AuditKind.CHANGE else _call_detail(row),
    )


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
