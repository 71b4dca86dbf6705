"""The transaction that makes a compiled document the active version of its source.

It commits completely or not at all.

Under the lock on the tenant's row, names and limits are checked against the stored catalog. Updates, activated
proposals and rollbacks all use this transaction.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.kinds.engines.hand_changes import note_hand_change
from gateway.catalog.primitives.constraints import check_capacity, code_of
from gateway.catalog.sources.credential_scope import check_destinations, stored_origins
from gateway.catalog.sources.diff import (
    names_of_redefined,
    refuse_removals,
    with_effective_names,
    with_recent_calls,
    with_similar_names,
)
from gateway.catalog.sources.drafts import (
    PreparedImport,
    SourceDraft,
    clean_report,
    draft_of,
    schemes_of,
    succeed_source,
)
from gateway.catalog.sources.name_conflicts import refuse_taken
from gateway.catalog.sources.override_merge import names_of_overrides, reapply, store_aliases
from gateway.catalog.sources.reports import decode_report, encode_report, report_with_policy
from gateway.catalog.sources.schedule import schedule_pruning, schedule_refresh
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.overrides import LoadedOperation
from gateway.domain.primitives import Family
from gateway.domain.sources import Compilation, Source
from gateway.domain.tenancy.policy import Policy
from gateway.domain.updates.import_reports import ImportReport
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.source_versions import ProposalOrigin, RefreshState, SourceProposal, VersionOrigin
from gateway.domain.updates.watches import Sighting
from gateway.errors import Conflict, Fault, ReferenceMissing
from gateway.kinds.members import settable, values_of
from gateway.kinds.sources import SOURCE
from gateway.store import operations, secrets
from gateway.store.engine import Db
from gateway.store.kinds.credentials import CREDENTIALS
from gateway.store.sources import proposals, refreshes, sources, versions

OWN_ORIGIN = "source:"
_ROWS_AT_ONCE = 100
"""Rows per insert. The preparation of rows blocks the event loop, so their number is limited."""

Settle = Callable[[Db, RefreshState], Awaitable[None]]
"""Stores the refresh state of a source at the end of a transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import. A dry run has no `source`, and a first import has no `changes`."""

    source: Source | None
    report: ImportReport
    changes: ImportChanges | None = None
    schemes: tuple[str, ...] = ()
    """The security schemes that have a credential after the import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Context of a new version: the source that was read, the audit entry, and its author."""

    seen: Source
    entry: CatalogChange
    by: Author
    is_by_rule: bool = False
    """True if only additions may become active."""
    settle: Settle | None = None
    """Stores the refresh state; None: this module stores it."""


class NotAdditive(Exception):
    """The changes exceed the rule of the source; nothing was stored."""


async def try_version(tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, seen: Source) -> Imported:
    """Report the effect of the import on the source `seen`; store nothing.

    Raises:
        NameTaken, LimitExceeded: as for `check_import`.
    """
    async with catalog.store.transaction(tenant) as db:
        before = await operations.of_source(tenant, db, seen.id)
        ready = await reapply(tenant, db, ready)
        report = await check_import(tenant, catalog, db, ready, own=seen)
        changes = await settle_changes(tenant, db, before, ready)
    return Imported(source=None, report=report, changes=changes, schemes=schemes_of(ready.draft, seen))


async def replace_version(
    tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, replacement: Replacement
) -> Imported:
    """Make the import the active version of its source, in one change. The pending proposal ends.

    Raises:
        Conflict: the source or the proposal was changed since it was seen; nothing was stored.
        NotAdditive: only additions may become active, and there are other changes.
        RemovalsRefused: tools would be removed, and the draft does not allow it.
        InvalidBody: calls would go to new origins, and the draft has no credentials.
        NameTaken, LimitExceeded, ReferenceMissing: as for `check_import` and `store_version`.
    """
    async with open_changes(tenant, catalog, by=replacement.by) as opened:
        return await write_version(opened, ready, replacement)


async def write_version(opened: OpenChanges, ready: PreparedImport, replacement: Replacement) -> Imported:
    """Make the import the active version of its source in open changes; see `replace_version`."""
    tenant, catalog, entry = opened.tenant, opened.catalog, replacement.entry
    async with opened.one(entry) as db:
        current = await find_unchanged(tenant, db, replacement.seen)
        state, pending_proposal = await _check_proposal(tenant, db, current, ready)
        number = ready.proposal or max(current.active_version, state.last_number) + 1
        entry.detail |= {"version": number, "replaces": current.active_version}
        # Read before anything is written: the comparison needs the former operations.
        before = await operations.of_source(tenant, db, current.id)
        tools = [one.tool for one in before]
        ready = await reapply(tenant, db, ready)
        if ready.draft.credentials is None:
            check_destinations(current, stored_origins(tools, current.id), ready.compilation)
        report = await check_import(tenant, catalog, db, ready, own=current)
        changes = await settle_changes(tenant, db, before, ready)
        if replacement.is_by_rule and not changes.is_additive:  # guard: rule-additions-only
            raise NotAdditive
        if not ready.draft.allow_removals:
            refuse_removals(changes.removed)
        source = succeed_source(current, ready, number)
        entry.before, entry.after = current, source
        # Removed before the new ones are stored: a tool keeps its name, which is unique for the tenant.
        await operations.remove_all(tenant, db, source.id)
        await sources.save(source, db)
        await store_version(tenant, catalog, ready, source, report, db=db)
        await store_aliases(tenant, db, source, before=tools, after=ready)
        await proposals.remove(tenant, db, source.id)
        settle = replacement.settle or partial(store_refresh_state, tenant, catalog, source, before=current)
        # After the proposal is removed: the state that is stored must not name it.
        await settle(db, _next_refresh_state(state, pending_proposal, ready, source))
        await _prune_later(tenant, catalog, db, source)
        if ready.origin is VersionOrigin.IMPORT or current.url is None:  # a source with a URL has versions of its own
            await note_hand_change(opened, entry, SOURCE.name, source.id)
        source = await find_source(tenant, db, source.id)
    if redefined := names_of_redefined(before, ready.operations):  # guard: approval-superseded-at-once
        opened.later.append(partial(supersede_approvals, tenant, catalog, redefined, before=source.updated_at))
    return Imported(source=source, report=report, changes=changes, schemes=source.schemes)


def is_other_schedule(current: Source, draft: SourceDraft) -> bool:
    """True if an update changes only the schedule and the rule of refreshes, so that nothing is compiled."""
    current_draft = draft_of(current)
    with_current_schedule = replace(
        draft, refresh_policy=current_draft.refresh_policy, refresh_interval_s=current_draft.refresh_interval_s
    )
    return draft != current_draft and with_current_schedule == current_draft


def has_same_options(current: Source, draft: SourceDraft) -> bool:
    """True if a draft has the options of the source and no credentials, whatever its document."""
    options = [one for one in settable(Source) if one.name != "url"]
    return draft.credentials is None and values_of(draft, options) == values_of(current, options)


async def write_schedule(opened: OpenChanges, draft: SourceDraft, seen: Source) -> Imported:
    """Change the schedule and the rule of a source's refreshes in open changes; version and proposal do not change.

    Raises:
        NotFound, Conflict: the source was removed or changed since it was seen; nothing was stored.
    """
    tenant, catalog = opened.tenant, opened.catalog
    entry = CatalogChange(action="source.update", target=seen.name)
    async with opened.one(entry) as db:
        current = await find_unchanged(tenant, db, seen)
        source = replace(
            current,
            refresh_policy=draft.refresh_policy,
            refresh_interval_s=draft.refresh_interval_s,
            updated_at=datetime.now(UTC),
        )
        entry.before, entry.after = current, source
        await sources.save(source, db)
        state = await refreshes.get(tenant, db, source.id)
        await store_refresh_state(tenant, catalog, source, db, state, before=current)
        report = await versions.report(tenant, db, source.id, source.active_version)
        await note_hand_change(opened, entry, SOURCE.name, source.id)
        source = await find_source(tenant, db, source.id)
    read = decode_report(report) if report is not None else ImportReport(operations=(), warnings=(), tools_list_bytes=0)
    return Imported(source=source, report=read, changes=ImportChanges(), schemes=source.schemes)


async def find_unchanged(tenant: TenantId, db: Db, seen: Source) -> Source:
    """The stored source, if it is unchanged since it was read as `seen`.

    Raises:
        NotFound: the tenant has no such source any more.
        Conflict: the source was changed.
    """
    current = await find_source(tenant, db, seen.id)
    if current.version != seen.version:  # guard: source-as-seen
        raise Conflict("the source was changed at the same time; read it again")
    return current


async def store_refresh_state(
    tenant: TenantId, catalog: CatalogContext, source: Source, db: Db, state: RefreshState, *, before: Source | None
) -> None:
    """Store the refresh state of a source, and schedule the next refresh if its URL or interval has changed.

    A running refresh then loses its lease, and its result is discarded.
    """
    schedule = None if before is None else (before.url, before.refresh_interval_s)
    if schedule != (source.url, source.refresh_interval_s):
        await schedule_refresh(tenant, catalog, db, source)
        state = replace(state, leased_until=None, is_wanted=False)
    await refreshes.save(tenant, db, source.id, state)


async def check_import(
    tenant: TenantId, catalog: CatalogContext, db: Db, ready: PreparedImport, *, own: Source | None
) -> ImportReport:
    """Refuse an import that conflicts with the stored catalog; return its report.

    Raises:
        NameTaken: the name of a tool is taken.
        LimitExceeded: the tools exceed the tenant's limit of primitives.
    """
    stored = await operations.names(tenant, db)
    own_origin = f"{OWN_ORIGIN}{own.name}" if own is not None else ""
    override_names = await names_of_overrides(tenant, db, exclude="" if own is None else own.name)
    owners = {**override_names, **{name: owner for name, owner in stored.items() if owner != own_origin}}
    added = {one.name: "code" for one in await code_of(tenant, catalog, db) if one.family is Family.TOOL}
    policy = await policy_in_force(tenant, db, catalog.options.ceilings)
    refuse_taken(ready.compilation, added | owners, source=ready.draft.name)  # guard: name-clash
    freed = sum(owner == own_origin for owner in stored.values())
    await check_capacity(tenant, db, policy, wanted=len(ready.compilation.operations), freed=freed)
    return await run_in_thread(CATALOG_CHANGES, tenant, _report, ready.compilation, policy)


async def store_version(
    tenant: TenantId, catalog: CatalogContext, ready: PreparedImport, source: Source, report: ImportReport, *, db: Db
) -> None:
    """Store the document, the operations and the credentials of a source's active version.

    Raises:
        ReferenceMissing: the tenant lacks a credential that the draft names.
    """
    content = versions.VersionContent(
        document=ready.content.document,
        report=await run_in_thread(CATALOG_CHANGES, tenant, encode_report, report),
        outline=ready.compilation.outline or None,
        digest=ready.content.digest,
        tools=len(ready.operations),
        origin=ready.origin,
        restored=ready.restored,
    )
    await versions.insert(tenant, db, source=source.id, number=source.active_version, content=content)
    for start in range(0, len(ready.operations), _ROWS_AT_ONCE):
        await operations.insert_all(tenant, db, ready.operations[start : start + _ROWS_AT_ONCE])
    if ready.draft.credentials is None:
        return
    await secrets.remove_all(tenant, db, source.id)
    for scheme, credential in ready.draft.credentials.items():
        credential_name = credential.reference
        if credential_name is not None and await CREDENTIALS.get(tenant, db, credential_name) is None:
            fault = Fault(pointer=f"/credentials/{scheme}", reason=f"the tenant has no credential {credential_name!r}")
            raise ReferenceMissing(f"{fault.pointer}: {fault.reason}", faults=[fault])
        await secrets.save(tenant, db, catalog.sealer, source=source.id, scheme=scheme, credential=credential)


async def settle_changes(
    tenant: TenantId, db: Db, before: Sequence[LoadedOperation], ready: PreparedImport
) -> ImportChanges:
    """The changes with effective names, names that resemble other tools' names, and numbers of calls of removed
    tools.
    """
    changes = await run_in_thread(
        CATALOG_CHANGES, tenant, with_effective_names, ready.changes, before, ready.operations
    )
    changes = await with_similar_names(tenant, db, changes, before)
    return await with_recent_calls(tenant, db, changes)


async def _check_proposal(
    tenant: TenantId, db: Db, source: Source, ready: PreparedImport
) -> tuple[RefreshState, SourceProposal | None]:
    """Lock the refresh state of the source, and return it with the pending proposal.

    Raises:
        Conflict: the proposal that is to be activated was replaced or withdrawn.
    """
    state, pending_proposal = await refreshes.get(tenant, db, source.id), await proposals.get(tenant, db, source.id)
    is_same = pending_proposal is not None and pending_proposal.number == ready.proposal
    if ready.proposal is not None and not is_same:  # guard: proposal-as-reviewed
        raise Conflict("the proposal was replaced or withdrawn; review it again")
    return state, pending_proposal


def _next_refresh_state(
    state: RefreshState, pending_proposal: SourceProposal | None, ready: PreparedImport, source: Source
) -> RefreshState:
    """The refresh state after a new version.

    A document that was rolled back is not proposed again; a document whose proposal was ended by an update is.
    """
    state = replace(state, last_number=source.active_version)
    if ready.content.seen is not None:
        return replace(state, url=source.url, seen=ready.content.seen, refused_digest=None)
    if state.url != source.url:
        return replace(state, url=source.url, seen=Sighting(), refused_digest=None)
    if ready.origin is VersionOrigin.ROLLBACK:
        return replace(state, refused_digest=state.seen.digest)
    is_found = pending_proposal is not None and pending_proposal.origin is ProposalOrigin.URL
    # guard: ended-proposal-found-again
    return state.with_content_unseen() if is_found and ready.proposal is None else state


async def _prune_later(tenant: TenantId, catalog: CatalogContext, db: Db, source: Source) -> None:
    if len(await versions.numbers(tenant, db, source.id)) > catalog.options.versions_kept:
        await schedule_pruning(tenant, db, source.id)


def _report(compilation: Compilation, policy: Policy) -> ImportReport:
    return clean_report(report_with_policy(compilation, policy))
