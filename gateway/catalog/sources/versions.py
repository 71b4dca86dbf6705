"""Stored versions of a source: listing, activation of a proposal, rollback to an earlier document, and pruning.

Options, credentials and overrides belong to the source, not to a version. A rollback compiles the earlier document
with them, and stores the result as a new version, so version numbers only increase.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.sources.drafts import Content, PreparedImport, check_credentials, detail_of, draft_of
from gateway.catalog.sources.imports import prepare_import
from gateway.catalog.sources.limits import MAX_REMOVED
from gateway.catalog.sources.proposals import open_proposal, version_tag
from gateway.catalog.sources.replacement import Imported, Replacement, replace_version, try_version
from gateway.catalog.sources.schedule import source_of_job
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import GATEWAY, Author, CatalogChange, CatalogContext, change
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Source
from gateway.domain.updates.source_versions import SourceVersion, VersionOrigin
from gateway.errors import Conflict, NotFound
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.sources import proposals, sources, versions

_LEASE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A requested activation of a proposal or of a stored version."""

    number: int
    credentials: Mapping[str, Credential] | None = None
    """None keeps the stored credentials."""
    dry_run: bool = False


async def page_versions(
    tenant: TenantId, catalog: CatalogContext, name: str, *, after: str | None, limit: int
) -> Sequence[SourceVersion]:
    """One page of a source's kept versions, the newest first.

    Raises:
        NotFound: the tenant has no such source.
    """
    async with catalog.store.transaction(tenant) as db:
        source = await find_source(tenant, db, name)
        below = int(after) if after is not None else None
        return await versions.page(tenant, db, source, below=below, limit=limit)


async def get_version(
    tenant: TenantId, catalog: CatalogContext, name: str, number: int
) -> tuple[Source, SourceVersion]:
    """The source, and its stored version with this number.

    Raises:
        NotFound: the tenant has no such source, or the source has no such version.
    """
    async with catalog.store.transaction(tenant) as db:
        source = await find_source(tenant, db, name)
        return source, await _find(tenant, db, source, number)


async def activate_version(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    activation: Activation,
    *,
    by: Author,
    expected: Expected = None,
) -> Imported:
    """Activate the proposal with this number, or restore the document of a stored version; with `dry_run`, only report.

    Raises:
        NotFound: the tenant has no such source, or the source has no version of this number. PreconditionFailed: the
        version matches no expected tag. Conflict: the version is active, the proposal was replaced, or the source was
        changed concurrently; nothing was stored. InvalidBody: calls would go to new origins, and there are no
        credentials for them. NameTaken, LimitExceeded, ReferenceMissing, InvalidDocument, Unavailable: as for an
        update.
    """
    async with catalog.store.transaction(tenant) as db:
        current = await find_source(tenant, db, name)
        opened = await _open(tenant, db, current, activation.number)
        check_tag(version_tag(current, activation.number), expected)
    draft = replace(
        draft_of(current), credentials=activation.credentials, dry_run=activation.dry_run, allow_removals=True
    )
    if isinstance(opened, Content):
        prepared = await prepare_import(tenant, catalog, draft, opened, current=current)
        prepared = replace(prepared, origin=VersionOrigin.ROLLBACK, restored=activation.number)
    else:
        check_credentials(draft, opened.compilation)
        prepared = replace(opened, draft=draft)
    if activation.dry_run:
        return await try_version(tenant, catalog, prepared, current)
    action = "source.rollback" if prepared.restored is not None else "source.activate"
    entry = CatalogChange(action=action, target=current.name, detail=detail_of(prepared))
    return await replace_version(tenant, catalog, prepared, Replacement(seen=current, entry=entry, by=by))


async def _open(tenant: TenantId, db: Db, source: Source, number: int) -> PreparedImport | Content:
    """The compiled proposal with this number, or the document of the stored version."""
    pending_proposal = await proposals.get(tenant, db, source.id)
    if pending_proposal is not None and pending_proposal.number == number:
        if pending_proposal.replaces != source.active_version:
            raise Conflict("the active version changed after this proposal was made; refresh the source again")
        return await open_proposal(tenant, db, source, pending_proposal)
    if number == source.active_version:
        raise Conflict(f"version {number} is already active")
    document = await versions.document(tenant, db, source.id, number)
    if document is not None:
        return Content(document=document, url=source.url)
    if pending_proposal is not None and 0 < number < pending_proposal.number:
        raise Conflict(
            f"version {number} was replaced or removed; the pending proposal is {pending_proposal.number},"
            " so review that one"
        )
    raise NotFound("no such version")


async def prune_due(catalog: CatalogContext, due: Job) -> None:
    """Remove excess versions of a source, unless another replica has claimed the job."""
    tenant, until = due.tenant, datetime.now(UTC) + _LEASE
    async with catalog.store.transaction(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return
        source = await sources.get(tenant, db, source_of_job(due))
        excess = [] if source is None else await _find_excess(tenant, catalog, db, source)
        if source is None or not excess:
            await jobs.remove(tenant, db, due.id)
            return
    entry = CatalogChange(action="source.prune", target=source.name)
    by = Author(caller=GATEWAY, correlation_id=due.id)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_source(tenant, db, source.id)
        removed = (await _find_excess(tenant, catalog, db, current))[:MAX_REMOVED]
        await versions.remove(tenant, db, current.id, removed)
        entry.detail = {"id": current.id, "versions": removed, "kept": catalog.options.versions_kept}
        await jobs.reschedule(
            tenant, db, due.id, seen=until, to=datetime.now(UTC)
        )  # the job ends when no version remains


async def _find_excess(tenant: TenantId, catalog: CatalogContext, db: Db, source: Source) -> list[int]:
    """The numbers of excess versions, the oldest first. The active version is always kept."""
    numbers = await versions.numbers(tenant, db, source.id)
    others = sorted(number for number in numbers if number != source.active_version)  # guard: active-version-kept
    return others[: max(0, len(numbers) - catalog.options.versions_kept)]


async def _find(tenant: TenantId, db: Db, source: Source, number: int) -> SourceVersion:
    found = await versions.page(tenant, db, source, below=number + 1, limit=1)
    if not found or found[0].number != number:
        raise NotFound("no such version")
    return found[0]
