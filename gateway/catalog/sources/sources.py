"""Stored sources of a tenant: lists, import reports, removal."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.kinds.engines.hand_changes import note_hand_change
from gateway.catalog.sources.reports import decode_report
from gateway.catalog.sources.schedule import jobs_of
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.sources import Source
from gateway.domain.updates.import_reports import ImportReport
from gateway.errors import NotFound
from gateway.kinds.sources import SOURCE
from gateway.store import jobs, operations, secrets
from gateway.store.engine import Db
from gateway.store.kinds import ownership
from gateway.store.sources import sources, versions


async def get_source(tenant: TenantId, catalog: CatalogContext, name: str) -> Source:
    """The source of this name or id.

    Raises:
        NotFound: the tenant has no such source.
    """
    async with catalog.store.transaction(tenant) as db:
        return await find_source(tenant, db, name)


async def page_sources(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Source]:
    """One page of the tenant's sources, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await sources.page(tenant, db, after=after, limit=limit, order=order)


async def read_report(tenant: TenantId, catalog: CatalogContext, name: str) -> tuple[Source, ImportReport]:
    """The source and the import report of its active document.

    Raises:
        NotFound: the tenant has no such source, or the report is missing.
    """
    async with catalog.store.transaction(tenant) as db:
        source = await find_source(tenant, db, name)
        report = await versions.report(tenant, db, source.id, source.active_version)
    if report is None:
        raise NotFound("no such report")
    return source, decode_report(report)


async def remove_source(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Remove the source with its tools, overrides, documents and credentials; end the open approvals of its tools.

    Raises:
        NotFound: the tenant has no such source.
        PreconditionFailed: the current version matches no expected tag.
    """
    async with open_changes(tenant, catalog, by=by) as opened:
        await opened.lock()
        source = await find_source(tenant, opened.db, name)
        check_version(source, expected)
        await write_removal(opened, source)


async def write_removal(opened: OpenChanges, source: Source) -> None:
    """Remove a source in open changes; see `remove_source`."""
    tenant = opened.tenant
    entry = CatalogChange(action="source.delete", target=source.name, detail={"id": source.id}, before=source)
    async with opened.one(entry) as db:
        tools = list((await operations.names_of(tenant, db, source.id)).values())
        removed_at = datetime.now(UTC)
        await operations.remove_all(tenant, db, source.id)
        await secrets.remove_all(tenant, db, source.id)
        await sources.remove(tenant, db, source.id)
        for job in jobs_of(source.id):
            await jobs.remove(tenant, db, job)
        await note_hand_change(opened, entry, SOURCE.name, source.id)
        await ownership.remove(tenant, db, SOURCE.name, source.id)
    opened.later.append(partial(supersede_approvals, tenant, opened.catalog, tools, before=removed_at))


async def find_source(tenant: TenantId, db: Db, name: str) -> Source:
    """The source with this name or id, read in the caller's transaction.

    Raises:
        NotFound: the tenant has no such source.
    """
    found = await sources.get(tenant, db, name)
    if found is None:
        raise NotFound("no such source")
    return found
