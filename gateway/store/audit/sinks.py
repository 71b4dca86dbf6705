"""A tenant's sinks of its audit trail."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.audit import SinkKind, SinkStatus, TrailSink
from gateway.domain.identifiers import AuditSinkId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.store.engine import Db
from gateway.store.pagination import select_page
from gateway.store.tables import audit_sinks


async def insert(tenant: TenantId, db: Db, sink: TrailSink) -> None:
    """Add a sink.

    Raises:
        NameTaken: the tenant has a sink of this name.
    """
    identity: dict[str, Any] = {"tenant_id": tenant, "id": sink.id, "name": sink.name, "kind": sink.kind.value}
    times = {"created_at": sink.created_at, "delivered": 0, "failures": 0, "version": sink.version}
    await db.execute(insert_into(audit_sinks).values(**identity, **times, **_declaration_values(sink)))


async def get(tenant: TenantId, db: Db, name_or_id: str) -> TrailSink | None:
    """The sink with this id or name; an id takes precedence."""
    is_named = or_(audit_sinks.c.id == name_or_id, audit_sinks.c.name == name_or_id)
    query = select(audit_sinks).where(audit_sinks.c.tenant_id == tenant, is_named)
    rows = await db.execute(query.order_by((audit_sinks.c.id == name_or_id).desc()).limit(1))
    row = rows.mappings().one_or_none()
    return _sink(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[TrailSink]:
    """One page of the tenant's sinks, by default sorted by name."""
    listed = select(audit_sinks).where(audit_sinks.c.tenant_id == tenant)
    query = select_page(listed, audit_sinks.c, "name", after=after, limit=limit, order=order)
    return [_sink(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's sinks."""
    counted = select(func.count()).select_from(audit_sinks).where(audit_sinks.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def of_credential(tenant: TenantId, db: Db, credential: str) -> Sequence[str]:
    """Names of the sinks that send this credential."""
    query = select(audit_sinks.c.name).where(audit_sinks.c.tenant_id == tenant, audit_sinks.c.credential == credential)
    return list((await db.execute(query.order_by(audit_sinks.c.name))).scalars())


async def save(tenant: TenantId, db: Db, sink: TrailSink) -> None:
    """Store the declaration of a sink with the next version, and reset its failures."""
    changed = update(audit_sinks).where(audit_sinks.c.tenant_id == tenant, audit_sinks.c.id == sink.id)
    await db.execute(
        changed.values(**_declaration_values(sink), failures=0, fault=None, version=audit_sinks.c.version + 1)
    )


async def lock(tenant: TenantId, db: Db, sink: AuditSinkId) -> None:
    """Lock a sink, if there is one, until the transaction ends."""
    matches = (audit_sinks.c.tenant_id == tenant, audit_sinks.c.id == sink)
    await db.execute(select(audit_sinks.c.id).where(*matches).with_for_update())


async def note_delivery(tenant: TenantId, db: Db, sink: AuditSinkId, *, entries: int, at: datetime) -> None:
    """Count delivered entries, and reset the failures."""
    columns = audit_sinks.c
    changed = update(audit_sinks).where(columns.tenant_id == tenant, columns.id == sink)
    values = {"delivered": columns.delivered + entries, "delivered_at": at, "failures": 0, "fault": None}
    await db.execute(changed.values(values))


async def note_failure(tenant: TenantId, db: Db, sink: AuditSinkId, fault: str) -> int:
    """Count a failed delivery; return the number of consecutive failures, 0 if the sink was removed."""
    columns = audit_sinks.c
    changed = update(audit_sinks).where(columns.tenant_id == tenant, columns.id == sink)
    updated = await db.execute(changed.values(failures=columns.failures + 1, fault=fault).returning(columns.failures))
    return int(updated.scalar_one_or_none() or 0)


async def remove(tenant: TenantId, db: Db, sink: AuditSinkId) -> bool:
    """Delete a sink and its position; True if it existed."""
    deleted = delete(audit_sinks).where(audit_sinks.c.tenant_id == tenant, audit_sinks.c.id == sink)
    return (await db.execute(deleted.returning(audit_sinks.c.id))).one_or_none() is not None


def _declaration_values(sink: TrailSink) -> Mapping[str, Any]:
    names = ("target", "credential", "enabled", "updated_at")
    return {name: getattr(sink, name) for name in names}


def _sink(row: RowMapping) -> TrailSink:
    return TrailSink(
        id=AuditSinkId(row["id"]),
        name=row["name"],
        kind=SinkKind(row["kind"]),
        target=row["target"],
        credential=row["credential"],
        enabled=row["enabled"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        status=SinkStatus(
            delivered=row["delivered"],
            delivered_at=row["delivered_at"],
            failures=row["failures"],
            fault=row["fault"],
        ),
    )
