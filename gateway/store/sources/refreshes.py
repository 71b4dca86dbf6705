"""Refresh state of a tenant's sources: the results of the last refreshes of each source URL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import RowMapping, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.updates.source_versions import RefreshState
from gateway.domain.updates.watches import Sighting
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.sources.tables import source_proposals, source_refreshes
from gateway.store.tables import sources

REFRESH_JOB_PREFIX = "look_"
"""Prefix of the id of a refresh job; the id of the source follows."""


async def get(tenant: TenantId, db: Db, source: SourceId) -> RefreshState:
    """The refresh state of a source; empty if it was never refreshed. An existing row is locked."""
    matches = (source_refreshes.c.tenant_id == tenant, source_refreshes.c.source_id == source)
    row = (await db.execute(select(source_refreshes).where(*matches).with_for_update())).mappings().one_or_none()
    return RefreshState() if row is None else read_record(RefreshState, row, seen=read_sighting(row))


async def save(tenant: TenantId, db: Db, source: SourceId, state: RefreshState) -> None:
    """Store the state of a source.

    Raises:
        NotFound: the tenant has no such source.
    """
    columns = {**columns_of(state, "seen"), **columns_of(state.seen)}
    added = insert_into(source_refreshes).values(tenant_id=tenant, source_id=source, **columns)
    keys = [source_refreshes.c.tenant_id, source_refreshes.c.source_id]
    await db.execute(added.on_conflict_do_update(index_elements=keys, set_=columns))


async def failing(tenant: TenantId, db: Db, *, failures: int) -> Sequence[str]:
    """The names of sources with at least so many consecutive failed refreshes."""
    state = source_refreshes.c
    of_source = (state.tenant_id == sources.c.tenant_id) & (state.source_id == sources.c.id)
    query = select(sources.c.name).join(source_refreshes, of_source)
    query = query.where(sources.c.tenant_id == tenant, state.failures >= failures)
    return list((await db.execute(query.order_by(sources.c.name))).scalars())


async def waiting(tenant: TenantId, db: Db, *, before: datetime) -> Sequence[str]:
    """The names of sources with a proposal for the active version that was created before a time."""
    proposed = source_proposals.c
    of_source = (proposed.tenant_id == sources.c.tenant_id) & (proposed.source_id == sources.c.id)
    query = select(sources.c.name).join(source_proposals, of_source)
    is_old = (proposed.replaces == sources.c.active_version, proposed.created_at < before)
    return list((await db.execute(query.where(sources.c.tenant_id == tenant, *is_old))).scalars())


def read_sighting(row: RowMapping, prefix: str = "") -> Sighting:
    """The refresh state in a database row whose columns may have a prefix; empty if all columns are null."""
    return Sighting(
        etag=row[f"{prefix}etag"],
        last_modified=row[f"{prefix}last_modified"],
        digest=row[f"{prefix}digest"],
        failures=row[f"{prefix}failures"] or 0,
        fault=row[f"{prefix}fault"],
        checked_at=row[f"{prefix}checked_at"],
        changed_at=row[f"{prefix}changed_at"],
    )
