"""Imports: a document becomes a source with tools, in one transaction.

The document is fetched, compiled and compared before the transaction, which is in `replacement`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.sources.compilation import compile_source, read_content
from gateway.catalog.sources.diff import read_version
from gateway.catalog.sources.drafts import (
    Content,
    PreparedImport,
    SourceDraft,
    check_credentials,
    check_parameters,
    check_timeout,
    compose_source,
    detail_of,
    draft_of,
    encode_operations,
    schemes_of,
)
from gateway.catalog.sources.override_merge import known_names
from gateway.catalog.sources.replacement import (
    OWN_ORIGIN,
    Imported,
    Replacement,
    check_import,
    has_same_options,
    is_other_schedule,
    replace_version,
    store_refresh_state,
    store_version,
    try_version,
    write_schedule,
)
from gateway.catalog.sources.schedule import check_schedule
from gateway.catalog.sources.sources import find_source, read_report
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import SourceId, TenantId, new_source_id
from gateway.domain.sources import Exposure, Source
from gateway.domain.updates.source_changes import ComparedVersion, ImportChanges
from gateway.domain.updates.source_versions import RefreshState
from gateway.domain.updates.watches import Sighting
from gateway.errors import NameConflict, NameTaken
from gateway.openapi.options import ImportOptions
from gateway.store.engine import Db
from gateway.store.kinds.live_sources import LIVE_SOURCES
from gateway.store.sources import sources, versions

_Prior = tuple[Mapping[str, str], ComparedVersion | None]
"""Tool names that operations keep, by identity, and the version with which an import is compared."""
_NO_PRIOR: _Prior = ({}, None)


async def import_source(tenant: TenantId, catalog: CatalogContext, draft: SourceDraft, *, by: Author) -> Imported:
    """Create a source with its tools; with `dry_run`, return only the report.

    Raises:
        InvalidBody: a credential is for a scheme that the document does not declare.
        NameTaken: the name of the source or of a tool is taken; nothing was stored.
        LimitExceeded: the tools exceed the tenant's limit of primitives, or no worker is free in time.
        UpstreamError, InvalidDocument, BadInput, Unavailable: as for `read_content` and `compile_source`.
    """
    check_options(catalog, draft, None, url=draft.url)
    prepared = await prepare_new(tenant, catalog, draft, await read_content(tenant, catalog, draft))
    if draft.dry_run:
        async with catalog.store.transaction(tenant) as db:
            await _refuse_source_name(tenant, db, draft.name)
            report = await check_import(tenant, catalog, db, prepared, own=None)
        return Imported(source=None, report=report, schemes=schemes_of(draft))
    async with open_changes(tenant, catalog, by=by) as opened:
        return await write_new(opened, prepared)


async def prepare_new(
    tenant: TenantId, catalog: CatalogContext, draft: SourceDraft, content: Content
) -> PreparedImport:
    """Compile a document for a new source.

    Raises:
        InvalidDocument, BadInput, LimitExceeded, Unavailable: as for `compile_source`.
        InvalidBody: a credential is for a scheme that the document does not declare.
    """
    return await _compile(tenant, catalog, draft, content, source=new_source_id())


async def write_new(opened: OpenChanges, ready: PreparedImport) -> Imported:
    """Create a source with its tools in open changes.

    Raises:
        NameTaken, LimitExceeded, ReferenceMissing: as for `check_import` and `store_version`.
    """
    tenant, catalog, name = opened.tenant, opened.catalog, ready.draft.name
    entry = CatalogChange(action="source.create", target=name, detail=detail_of(ready))
    async with opened.one(entry) as db:
        await _refuse_source_name(tenant, db, name)
        report = await check_import(tenant, catalog, db, ready, own=None)
        entry.after = source = compose_source(tenant, ready)
        await sources.insert(source, db)
        await store_version(tenant, catalog, ready, source, report, db=db)
        state = RefreshState(url=source.url, seen=ready.content.seen or Sighting(), last_number=source.active_version)
        await store_refresh_state(tenant, catalog, source, db, state, before=None)
    return Imported(source=source, report=report, schemes=source.schemes)


async def update_source(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[SourceDraft], SourceDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> Imported:
    """Import another document or other options; with `dry_run`, return only the report and the changes.

    The new version is active from the commit. Existing operations keep their tool names unless the prefix changes. If
    the draft is whole, nothing is written unless the document or an option differs.

    Raises:
        NotFound: the tenant has no such source.
        PreconditionFailed: the current version matches no expected tag.
        Conflict, RemovalsRefused, InvalidBody, NameTaken, LimitExceeded: as for `replace_version`.
        InvalidDocument, BadInput, UpstreamError, Unavailable: as for a first import.
    """
    async with catalog.store.transaction(tenant) as db:
        current = await find_source(tenant, db, name)
        check_version(current, expected)
        stored = await versions.document(tenant, db, current.id, current.active_version)
    draft = revise(draft_of(current))
    if current.url is None:
        draft = replace(draft, keeps_url=True)
    is_sent = draft.document is not None or draft.url is not None
    check_options(catalog, draft, current, url=draft.url if is_sent or not draft.keeps_url else current.url)
    keeps_url = draft.url == current.url if is_sent else draft.keeps_url
    is_same = draft.is_whole and keeps_url and not draft.dry_run and has_same_options(current, draft)
    if is_same and not is_sent:
        return await _unchanged(tenant, catalog, current)
    if is_other_schedule(current, draft):
        async with open_changes(tenant, catalog, by=by) as opened:
            return await write_schedule(opened, draft, current)
    content = Content(document=stored or b"", url=current.url if draft.keeps_url else None)
    if is_sent:
        content = await read_content(tenant, catalog, draft)
    prepared = await prepare_import(tenant, catalog, draft, content, current=current)
    if draft.dry_run:
        return await try_version(tenant, catalog, prepared, current)
    if is_same and await _is_active(tenant, catalog, current, prepared.content):
        # The report is that of today: overrides were set since the import.
        return replace(await try_version(tenant, catalog, prepared, current), source=current)
    entry = CatalogChange(action="source.update", target=current.name, detail=detail_of(prepared))
    return await replace_version(tenant, catalog, prepared, Replacement(seen=current, entry=entry, by=by))


def check_options(catalog: CatalogContext, draft: SourceDraft, current: Source | None, *, url: str | None) -> None:
    """Refuse options of a source with this URL; those that an existing source has are not checked again.

    Raises:
        InvalidBody: the schedule, the time limit or a parameter is invalid.
    """
    if current is None or draft.refresh_interval_s != current.refresh_interval_s:
        check_schedule(catalog, interval_s=draft.refresh_interval_s, url=url)
    if current is None or draft.parameters != current.parameters:
        check_parameters(draft)
    if current is None or draft.timeout_s != current.timeout_s:
        check_timeout(catalog, draft.timeout_s)


async def _is_active(tenant: TenantId, catalog: CatalogContext, current: Source, content: Content) -> bool:
    """True if the active version of the source has this document."""
    async with catalog.store.transaction(tenant) as db:
        return await versions.digest(tenant, db, current.id, current.active_version) == content.digest


async def _unchanged(tenant: TenantId, catalog: CatalogContext, current: Source) -> Imported:
    """The result of an update that changes nothing."""
    _, report = await read_report(tenant, catalog, current.id)
    return Imported(source=current, report=report, changes=ImportChanges(), schemes=current.schemes)


async def prepare_import(
    tenant: TenantId, catalog: CatalogContext, draft: SourceDraft, content: Content, *, current: Source
) -> PreparedImport:
    """Compile a document for a source, and compare it with the active version.

    Raises:
        InvalidDocument, BadInput, LimitExceeded, Unavailable: as for `compile_source`.
        InvalidBody: a credential is for a scheme that the document does not declare.
    """
    async with catalog.store.transaction(tenant) as db:
        known_tool_names = await known_names(tenant, db, current.id, keeps_prefix=draft.prefix == current.prefix)
        before = await read_version(tenant, db, current)
    return await _compile(tenant, catalog, draft, content, source=current.id, prior=(known_tool_names, before))


async def _compile(
    tenant: TenantId,
    catalog: CatalogContext,
    draft: SourceDraft,
    content: Content,
    *,
    source: SourceId,
    prior: _Prior = _NO_PRIOR,
) -> PreparedImport:
    names, before = prior
    options = ImportOptions(
        base_url=draft.base_url,
        prefix=draft.prefix,
        document_url=content.url,
        known_names=names,
        outline=draft.expose is not Exposure.TOOLS,
        is_listed=draft.expose is not Exposure.QUERY,
        include=draft.include,
        exclude=draft.exclude,
        output_schemas=draft.output_schemas,
        parameters=draft.parameters,
        timeout_s=draft.timeout_s,
    )
    content, compilation = await compile_source(tenant, catalog, content, options, before=before)
    check_credentials(draft, compilation)
    stored = await run_in_thread(CATALOG_CHANGES, tenant, encode_operations, source, compilation)
    return PreparedImport(draft=draft, content=content, compilation=compilation, source=source, operations=stored)


async def _refuse_source_name(tenant: TenantId, db: Db, name: str) -> None:
    """Refuse the name of another source or live source, because profiles select both kinds by name."""
    is_live = await LIVE_SOURCES.get(tenant, db, name) is not None
    if is_live or await sources.get(tenant, db, name) is not None:
        owner = f"live_source:{name}" if is_live else f"{OWN_ORIGIN}{name}"
        conflict = NameConflict(name=name, owner=owner)
        raise NameTaken(f"a {'live ' if is_live else ''}source {name} exists already", conflicts=[conflict])
