"""Retention settings of tenants, and queries for old entries at the beginning of their chains.

Age is measured by the clock of the database, so a replica with a wrong clock removes no entry too early.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select, text, update

from gateway.domain.identifiers import TenantId
from gateway.store.audit.tables import audit_retention
from gateway.store.engine import Db

# Begins after the last cut: the index still has the entries that a cut removed, until the next vacuum.
_OLD_CHAINS = text("""
    with recursive writers as (
        (select writer from audit_entries where tenant_id = :tenant order by writer limit 1)
        union all
        select found.* from writers, lateral (
            select e.writer from audit_entries e
            where e.tenant_id = :tenant and e.writer > writers.writer order by e.writer limit 1
        ) found
    )
    select writers.writer from writers, lateral (
        select coalesce(max(c.last), 0) as last from audit_cuts c
        where c.tenant_id = :tenant and c.writer = writers.writer
    ) cut, lateral (
        select e.at from audit_entries e
        where e.tenant_id = :tenant and e.writer = writers.writer and e.seq > cut.last order by e.seq limit 1
    ) first
    where first.at < :before order by writers.writer
""")
_COUNT_OLD = text("""
    with beginning as (
        select seq, at from audit_entries where tenant_id = :tenant and writer = :writer and seq <= :bound
        order by seq limit :limit
    )
    select count(*), coalesce(max(seq), 0), min(at), max(at) from beginning
    where seq < coalesce((select min(seq) from beginning where at >= :before), 9223372036854775807)
""")


class OldEntries(NamedTuple):
    """Old entries at the beginning of one chain; `last` is the number of the last one."""

    entries: int
    last: int
    oldest: datetime | None
    newest: datetime | None


async def note_fault(tenant: TenantId, db: Db, fault: str | None) -> None:
    """Store the reason why the last cut skipped a chain."""
    await db.execute(update(audit_retention).where(audit_retention.c.tenant_id == tenant).values(fault=fault))


async def old_chains(tenant: TenantId, db: Db, *, days: int) -> tuple[datetime, Sequence[str]]:
    """The time before which entries are too old, and the sorted writers whose first entry is older."""
    before = (await db.execute(select(func.now() - func.make_interval(0, 0, 0, days)))).scalar_one()
    rows = await db.execute(_OLD_CHAINS, {"tenant": tenant, "before": before})
    return before, [str(row.writer) for row in rows]


async def count_old(tenant: TenantId, db: Db, writer: str, *, bound: int, before: datetime, limit: int) -> OldEntries:
    """Count the entries before a time at the beginning of a chain, up to the number `bound`; at most `limit`."""
    parameters = {"tenant": tenant, "writer": writer, "bound": bound, "before": before, "limit": limit}
    return OldEntries._make((await db.execute(_COUNT_OLD, parameters)).one())
