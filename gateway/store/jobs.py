"""Background jobs of tenants, each with the time at which it is due.

A transaction locks the object of a job, such as a watch, before the job. If two transactions lock them in different
orders, each can wait for the other, and PostgreSQL fails one of them. Jobs that concern many objects, such as the
clean-up of sign-ins, are locked first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import DateTime, Integer, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.store.engine import Db
from gateway.store.tables import due_work

_COLUMNS = ("tenant_id", "id", "kind", "due_at")
_FOUND = func.list_due_work(
    bindparam("until", type_=DateTime(timezone=True)),
    bindparam("limit", type_=Integer),
    bindparam("of_each", type_=Integer),
).table_valued(*_COLUMNS)
_DUE_JOBS = select(*(_FOUND.c[name] for name in _COLUMNS))
"""Built once, because each replica reads the due jobs every second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One background job of one tenant."""

    tenant: TenantId
    id: str
    kind: str
    due_at: datetime


async def page(db: Db, *, until: datetime, limit: int, of_each: int) -> Sequence[Job]:
    """Jobs that are due by `until`: the oldest job of each tenant, then the second oldest of each, and so on.

    A page has at most `of_each` jobs of one tenant, so that one tenant's backlog does not delay the others. The query
    bypasses row-level security.
    """
    rows = await db.execute(_DUE_JOBS, {"until": until, "limit": limit, "of_each": of_each})
    return [
        Job(tenant=TenantId(row["tenant_id"]), id=row["id"], kind=row["kind"], due_at=row["due_at"])
        for row in rows.mappings()
    ]


async def schedule(tenant: TenantId, db: Db, job: Job) -> None:
    """Schedule a job; it replaces the tenant's job of the same id."""
    row = {"tenant_id": tenant, "id": job.id, "kind": job.kind, "due_at": job.due_at}
    added = insert_into(due_work).values(**row)
    keys = [due_work.c.tenant_id, due_work.c.id]
    await db.execute(added.on_conflict_do_update(index_elements=keys, set_={"kind": job.kind, "due_at": job.due_at}))


async def bring_forward(tenant: TenantId, db: Db, job: Job) -> None:
    """Schedule a job, or move the tenant's job of the same id to an earlier time; it is never moved to a later one."""
    added = insert_into(due_work).values(tenant_id=tenant, id=job.id, kind=job.kind, due_at=job.due_at)
    keys = [due_work.c.tenant_id, due_work.c.id]
    sooner = due_work.c.due_at > added.excluded.due_at
    await db.execute(
        added.on_conflict_do_update(index_elements=keys, set_={"due_at": added.excluded.due_at}, where=sooner)
    )


async def reschedule(tenant: TenantId, db: Db, job: str, *, seen: datetime, to: datetime) -> bool:
    """Make a job due at the time `to`; False unless it is still due at the time `seen`.

    A replica that moves a job into the future holds its lease until then. If the replica dies, the job is due again.
    """
    matches = (due_work.c.tenant_id == tenant, due_work.c.id == job, due_work.c.due_at == seen)
    updated = await db.execute(update(due_work).where(*matches).values(due_at=to).returning(due_work.c.id))
    return updated.one_or_none() is not None


async def remove(tenant: TenantId, db: Db, job: str) -> bool:
    """Delete a job; True if it existed."""
    matches = (due_work.c.tenant_id == tenant, due_work.c.id == job)
    return (await db.execute(delete(due_work).where(*matches).returning(due_work.c.id))).one_or_none() is not None
