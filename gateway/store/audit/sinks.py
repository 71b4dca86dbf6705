"""The progress of the sinks of a tenant's audit trail."""

from datetime import datetime

from sqlalchemy import select, update

from gateway.domain.identifiers import AuditSinkId, TenantId
from gateway.store.engine import Db
from gateway.store.tables import audit_sinks


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
