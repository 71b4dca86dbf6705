"""The audit trail of a tenant, as it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.catalog.catalog import Catalog
from gateway.domain.audit import AuditEntry, AuditKind
from gateway.domain.identifiers import TenantId
from gateway.store import audit

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries are wanted; every member that is set narrows."""

    kind: AuditKind | None = None
    principal: str | None = None
    tool: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def page_entries(
    tenant: TenantId, catalog: Catalog, wanted: AuditFilter, *, after: str | None, limit: int
) -> Sequence[AuditEntry]:
    """The tenant's entries that pass the filter, the newest first."""
    found: list[AuditEntry] = []
    async with catalog.store.transaction(tenant) as db:
        while True:
            batch = await audit.page(tenant, db, after=after, limit=_BATCH, kind=wanted.kind, target=wanted.tool)
            found.extend(entry for entry in batch if _passes(entry, wanted))
            is_last = len(batch) < _BATCH or (wanted.since is not None and batch[-1].at < wanted.since)
            if is_last or len(found) >= limit:
                return found[:limit]
            after = batch[-1].id


def position_of(entry: AuditEntry) -> str:
    """Where the entry stands in the trail; ids rise with time."""
    return entry.id


def _passes(entry: AuditEntry, wanted: AuditFilter) -> bool:
    return (
        (wanted.principal is None or entry.principal == wanted.principal)
        and (wanted.since is None or entry.at >= wanted.since)
        and (wanted.until is None or entry.at < wanted.until)
        and (wanted.tool is None or entry.kind is not AuditKind.CHANGE)
    )
