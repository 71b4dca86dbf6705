"""The transaction that makes a compiled document the active version of its source: whole, or not at all.

Under the lock on the tenant's row, names and limits are checked against the stored catalog. Every way to another
version ends here: an update, an activated proposal, a rollback.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.primitives.constraints import check_capacity, code_of
from gateway.catalog.sources.credential_scope import check_destinations, stored_origins
from gateway.catalog.sources.diff import refuse_removals, with_names_in_force, with_recent_calls
from gateway.catalog.sources.drafts import PreparedImport, clean_report, succeed_source
from gateway.catalog.sources.name_conflicts import refuse_taken
from gateway.catalog.sources.override_merge import leave_aliases, reapply, wanted_names
from gateway.catalog.sources.reports import encode_report, judge_policy
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import TenantId
from gateway.domain.overrides import LoadedOperation
from gateway.domain.primitives import Family
from gateway.domain.sources import Compilation, ImportReport, Source
from gateway.domain.tenancy.policy import Policy
from gateway.domain.updates.source_changes import ImportChanges
from gateway.errors import Conflict, Fault, ReferenceMissing
from gateway.store import credentials, operations, secrets
from gateway.store.engine import Db
from gateway.store.sources import sources, versions

OWN_ORIGIN = "source:"
_ROWS_AT_ONCE = 100
"""Rows per insert. Preparing the rows blocks the event loop, so their number is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import. A dry run has no `source`, and a first import has no `changes`."""

    source: Source | None
    report: ImportReport
    changes: ImportChanges | None = None


async def try_version(tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, seen: Source) -> Imported:
    """Report what the import would become of the source `seen`; store nothing.

    Raises:
        NameTaken, LimitExceeded: as for `check_import`.
    """
    async with catalog.store.transaction(tenant) as db:
        before = await operations.of_source(tenant, db, seen.id)
        ready = await reapply(tenant, db, ready)
        report = await check_import(tenant, catalog, db, ready, own=seen)
        return Imported(source=None, report=report, changes=await _settle_changes(tenant, db, before, ready))


async def replace_version(
    tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, seen: Source, *, entry: CatalogChange, by: Author
) -> Imported:
    """Make the import the active version of the source `seen`, in one change.

    Raises:
        Conflict: the source was changed since it was seen; nothing was stored.
        RemovalsRefused: tools would be removed, and the draft does not allow it.
        InvalidBody: calls would go to new origins, and the draft has no credentials.
        NameTaken, LimitExceeded, ReferenceMissing: as for `check_import` and `store_version`.
    """
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_source(tenant, db, seen.id)
        if current.version != seen.version:
            raise Conflict("the source was changed at the same time; read it again")
        before = await operations.of_source(tenant, db, current.id)
        tools = [one.tool for one in before]
        ready = await reapply(tenant, db, ready)
        if ready.draft.credentials is None:
            check_destinations(current, stored_origins(tools, current.id), ready.compilation)
        report = await check_import(tenant, catalog, db, ready, own=current)
        changes = await _settle_changes(tenant, db, before, ready)
        if not ready.draft.allow_removals:
            refuse_removals(changes.removed)
        source = succeed_source(current, ready)
        await operations.remove_all(tenant, db, source.id)
        await sources.save(source, db)
        await store_version(tenant, catalog, ready, source, report, db=db)
        await leave_aliases(tenant, db, source, before=tools, after=ready)
        source = await find_source(tenant, db, source.id)
    return Imported(source=source, report=report, changes=changes)


async def check_import(
    tenant: TenantId, catalog: CatalogContext, db: Db, ready: PreparedImport, *, own: Source | None
) -> ImportReport:
    """Refuse an import that conflicts with the stored catalog; return its report.

    Raises:
        NameTaken: the name of a tool is taken.
        LimitExceeded: the tools exceed the tenant's limit of primitives.
    """
    stored = await operations.names(tenant, db)
    mine = f"{OWN_ORIGIN}{own.name}" if own is not None else ""
    wanted = await wanted_names(tenant, db, but="" if own is None else own.name)
    owners = {**wanted, **{name: owner for name, owner in stored.items() if owner != mine}}
    added = {one.name: "code" for one in await code_of(tenant, catalog, db) if one.family is Family.TOOL}
    policy = await policy_in_force(tenant, db, catalog.ceilings)
    refuse_taken(ready.compilation, added | owners, source=ready.draft.name)  # guard: name-clash
    freed = sum(owner == mine for owner in stored.values())
    await check_capacity(tenant, db, policy, wanted=len(ready.compilation.operations), freed=freed)
    return await anyio.to_thread.run_sync(_report, ready.compilation, policy)


async def store_version(
    tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, source: Source, report: ImportReport, *, db: Db
) -> None:
    """Store the document, the operations and the credentials of a source's active version.

    Raises:
        ReferenceMissing: the tenant lacks a credential that the draft names.
    """
    await versions.insert(
        tenant,
        db,
        source=source.id,
        number=source.active_version,
        content=versions.VersionContent(
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


async def _settle_changes(
    tenant: TenantId, db: Db, before: Sequence[LoadedOperation], ready: PreparedImport
) -> ImportChanges:
    """The changes that the worker found, with the names in force and the recent calls of removed tools."""
    found = ready.compilation.changes or ImportChanges()
    changes = await anyio.to_thread.run_sync(with_names_in_force, found, before, ready.operations)
    return await with_recent_calls(tenant, db, changes)


def _report(compilation: Compilation, policy: Policy) -> ImportReport:
    return clean_report(judge_policy(compilation, policy))
