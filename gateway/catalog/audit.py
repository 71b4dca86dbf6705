"""The audit trail of a tenant, as it is read."""

from collections.abc import Sequence

from gateway.catalog.catalog import Catalog
from gateway.domain.audit import AuditEntry, AuditFilter
from gateway.domain.identifiers import TenantId
from gateway.store import audit


async def page_entries(
    tenant: TenantId, catalog: Catalog, wanted: AuditFilter, *, after: str | None, limit: int
) -> Sequence[AuditEntry]:
    """The tenant's entries that pass the filter, the newest first."""
    async with catalog.store.transaction(tenant) as db:
        return await audit.page(tenant, db, after=after, limit=limit, wanted=wanted)


def position_of(entry: AuditEntry) -> str:
    """Where the entry stands in the trail; ids rise with time."""
    return entry.id
