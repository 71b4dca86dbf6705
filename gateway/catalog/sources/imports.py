"""Imports: a document becomes a source with tools, in one transaction.

Fetching and compiling happen before the transaction. Inside the transaction, under the lock on the tenant's row, names
and limits are checked against the stored catalog.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.primitives.constraints import check_capacity, code_of
from gateway.catalog.sources.compilation import compile_source, read_content
from gateway.catalog.sources.credential_scope import check_destinations, stored_origins
from gateway.catalog.sources.diff import compare, refuse_removals, with_recent_calls
from gateway.catalog.sources.drafts import (
    Content,
    PreparedImport,
    SourceDraft,
    check_credentials,
    clean_report,
    compose_source,
    detail_of,
    draft_of,
    encode_operations,
    succeed_source,
)
from gateway.catalog.sources.name_conflicts import refuse_taken
from gateway.catalog.sources.override_merge import known_names, leave_aliases, reapply, wanted_names
from gateway.catalog.sources.reports import encode_report, judge_policy
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import SourceId, TenantId, new_source_id
from gateway.domain.primitives import Family
from gateway.domain.sources import Compilation, Exposure, ImportChanges, ImportReport, Source
from gateway.domain.tenancy.policy import Policy
from gateway.domain.tools import Tool
from gateway.errors import Conflict, Fault, NameConflict, NameTaken, ReferenceMissing
from gateway.openapi.options import ImportOptions
from gateway.store import credentials, operations, secrets, sources
from gateway.store.engine import Db
from gateway.store.live import live_sources

_OWN_ORIGIN = "source:"
_ROWS_AT_ONCE = 100
"""Rows per insert. Preparing the rows blocks the event loop, so their number is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import. A dry run has no `source`, and a first import has no `changes`."""

    source: Source | None
    report: ImportReport
    changes: ImportChanges | None = None


async def import_source(tenant: TenantId, catalog: CatalogContext, draft: SourceDraft, *, by: Author) -> Imported:
    """Create a source with its tools; with `dry_run`, return only the report.

    Raises:
        InvalidBody: a credential is for a scheme that the document does not declare.
        NameTaken: the name of the source or of a tool is taken; nothing was stored.
        LimitExceeded: the tools exceed the tenant's limit of primitives, or no worker is free in time.
        UpstreamError, InvalidDocument, BadInput, Unavailable: as for `read_content` and `compile_source`.
    """
    content = await read_content(tenant, catalog, draft)
    ready = await _compile(tenant, catalog, draft, content, known_names={}, source=new_source_id())
    if draft.dry_run:
        async with catalog.store.transaction(tenant) as db:
            await _refuse_source_name(tenant, db, draft.name)
            return Imported(source=None, report=await _check(tenant, catalog, db, ready, own=None))
    entry = CatalogChange(action="source.create", target=draft.name, detail=detail_of(ready))
    async with change(tenant, catalog, entry, by=by) as db:
        await _refuse_source_name(tenant, db, draft.name)
        report = await _check(tenant, catalog, db, ready, own=None)
        source = compose_source(tenant, ready)
        await sources.insert(source, db)
        await _store(tenant, catalog, ready, source, report, db=db)
    return Imported(source=source, report=report)


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

    The new version is active from the commit. Operations that remain keep their tool names if the prefix stays.

    Raises:
        NotFound: the tenant has no such source.
        PreconditionFailed: the current version matches no expected tag.
        Conflict: it was changed at the same time; nothing was stored.
        RemovalsRefused: tools would be removed, and `allow_removals` is not set; nothing was stored.
        InvalidBody: calls would go to new origins, and the draft has no credentials; or as for a first import.
        InvalidDocument, BadInput, NameTaken, LimitExceeded, UpstreamError, Unavailable: as for a first import.
    """
    async with catalog.store.transaction(tenant) as db:
        current = await find_source(tenant, db, name)
        check_version(current, expected)
        stored = await sources.document(tenant, db, current.id, current.active_version)
    draft = revise(draft_of(current))
    content = Content(document=stored or b"", url=current.url)
    if draft.document is not None or draft.url is not None:
        content = await read_content(tenant, catalog, draft)
    async with catalog.store.transaction(tenant) as db:
        kept = await known_names(tenant, db, current.id, keeps_prefix=draft.prefix == current.prefix)
    ready = await _compile(tenant, catalog, draft, content, known_names=kept, source=current.id)
    return await _replace(tenant, catalog, ready, current, by=by)


async def _replace(
    tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, seen: Source, *, by: Author
) -> Imported:
    if ready.draft.dry_run:
        async with catalog.store.transaction(tenant) as db:
            before = await _tools(tenant, db, seen)
            ready = await reapply(tenant, db, ready)
            report = await _check(tenant, catalog, db, ready, own=seen)
            changes = await _compare(tenant, db, before, ready)
        return Imported(source=None, report=report, changes=changes)
    entry = CatalogChange(action="source.update", target=seen.name, detail=detail_of(ready))
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_source(tenant, db, seen.id)
        if current.version != seen.version:
            raise Conflict("the source was changed at the same time; read it again")
        before = await _tools(tenant, db, current)
        ready = await reapply(tenant, db, ready)
        if ready.draft.credentials is None:
            check_destinations(current, stored_origins(before, current.id), ready.compilation)
        report = await _check(tenant, catalog, db, ready, own=current)
        changes = await _compare(tenant, db, before, ready)
        if not ready.draft.allow_removals:
            refuse_removals(changes.removed)
        source = succeed_source(current, ready)
        await operations.remove_all(tenant, db, source.id)
        await sources.save(source, db)
        await _store(tenant, catalog, ready, source, report, db=db)
        await leave_aliases(tenant, db, source, before=before, after=ready)
        source = await find_source(tenant, db, source.id)
    return Imported(source=source, report=report, changes=changes)


async def _tools(tenant: TenantId, db: Db, source: Source) -> Sequence[Tool]:
    """The stored tools of a source, even if it is query-only."""
    return [loaded.tool for loaded in await operations.load(tenant, db) if loaded.tool.source == source.id]


async def _compare(tenant: TenantId, db: Db, before: Sequence[Tool], ready: PreparedImport) -> ImportChanges:
    changes = await anyio.to_thread.run_sync(compare, before, ready.operations)
    return await with_recent_calls(tenant, db, changes)


async def _compile(
    tenant: TenantId,
    catalog: CatalogContext,
    draft: SourceDraft,
    content: Content,
    *,
    known_names: Mapping[str, str],
    source: SourceId,
) -> PreparedImport:
    options = ImportOptions(
        base_url=draft.base_url,
        prefix=draft.prefix,
        document_url=content.url,
        known_names=known_names,
        outline=draft.expose is not Exposure.TOOLS,
        is_listed=draft.expose is not Exposure.QUERY,
        include=draft.include,
        exclude=draft.exclude,
        output_schemas=draft.output_schemas,
    )
    content, compilation = await compile_source(tenant, catalog, content, options)
    check_credentials(draft.credentials or {}, compilation)
    stored = await anyio.to_thread.run_sync(encode_operations, source, compilation)
    return PreparedImport(draft=draft, content=content, compilation=compilation, source=source, operations=stored)


async def _check(
    tenant: TenantId, catalog: CatalogContext, db: Db, ready: PreparedImport, *, own: Source | None
) -> ImportReport:
    """Refuse an import that conflicts with the stored catalog; return its report."""
    stored = await operations.names(tenant, db)
    mine = f"{_OWN_ORIGIN}{own.name}" if own is not None else ""
    wanted = await wanted_names(tenant, db, but="" if own is None else own.name)
    owners = {**wanted, **{name: owner for name, owner in stored.items() if owner != mine}}
    added = {one.name: "code" for one in await code_of(tenant, catalog, db) if one.family is Family.TOOL}
    policy = await policy_in_force(tenant, db, catalog.ceilings)
    refuse_taken(ready.compilation, added | owners, source=ready.draft.name)  # guard: name-clash
    freed = sum(owner == mine for owner in stored.values())
    await check_capacity(tenant, db, policy, wanted=len(ready.compilation.operations), freed=freed)
    return await anyio.to_thread.run_sync(_report, ready.compilation, policy)


def _report(compilation: Compilation, policy: Policy) -> ImportReport:
    return clean_report(judge_policy(compilation, policy))


async def _store(
    tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, source: Source, report: ImportReport, *, db: Db
) -> None:
    await sources.insert_version(
        tenant,
        db,
        source=source.id,
        number=source.active_version,
        content=sources.VersionContent(
            document=ready.content.document,
            report=await anyio.to_thread.run_sync(encode_report, report),
            outline=ready.compilation.outline or None,
        ),
    )
    for start in range(0, len(ready.operations), _ROWS_AT_ONCE):
        await operations.insert_all(tenant, db, ready.operations[start : start + _ROWS_AT_ONCE])
    if ready.draft.credentials is None:
        return
    await secrets.remove_all(tenant, db, source.id)
    for scheme, credential in ready.draft.credentials.items():
        named = credential.reference
        if named is not None and await credentials.get(tenant, db, named) is None:
            fault = Fault(pointer=f"/credentials/{scheme}", reason=f"the tenant has no credential {named!r}")
            raise ReferenceMissing(f"{fault.pointer}: {fault.reason}", faults=[fault])
        await secrets.save(tenant, db, catalog.sealer, source=source.id, scheme=scheme, credential=credential)


async def _refuse_source_name(tenant: TenantId, db: Db, name: str) -> None:
    """Refuse the name of another source, live or not: profiles select both by name."""
    is_live = await live_sources.get(tenant, db, name) is not None
    if is_live or await sources.get(tenant, db, name) is not None:
        owner = f"live_source:{name}" if is_live else f"{_OWN_ORIGIN}{name}"
        conflict = NameConflict(name=name, owner=owner)
        raise NameTaken(f"there is a {'live ' if is_live else ''}source {name} already", conflicts=[conflict])
