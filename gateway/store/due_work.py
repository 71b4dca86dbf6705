"""What is to be done without a caller, whose it is, and when it is due."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.domain.identifiers import TenantId

_COLUMNS = ("tenant_id", "id", "kind", "due_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class DueWork:
    """One piece of background work of one tenant."""

    tenant: TenantId
    id: str
    kind: str
    due_at: datetime


async def page(db: AsyncSession, *, until: datetime, limit: int) -> Sequence[DueWork]:
    """What was due by then, oldest first, of all tenants; sees past row-level security."""
    listed = func.list_due_work(until, limit).table_valued(*_COLUMNS)
    rows = await db.execute(select(*(listed.c[name] for name in _COLUMNS)))
    return [
        DueWork(tenant=TenantId(row["tenant_id"]), id=row["id"], kind=row["kind"], due_at=row["due_at"])
        for row in rows.mappings()
    ]
