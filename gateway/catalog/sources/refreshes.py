"""Refreshes of sources: fetch from the URL, compilation, comparison, and a proposal or activation by rule.

The job calls `begin_refresh` and `run_refresh`. A replica that begins a refresh holds a lease, so two replicas do not
fetch at once. The outcome, the state of the URL and the time of the next refresh are stored in one transaction. If a
replica crashes before that, another one repeats the refresh.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import anyio
import structlog

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.sources.compilation import read_changed
from gateway.catalog.sources.diff import refuse_shrinking
from gateway.catalog.sources.drafts import Content, PreparedImport, detail_of, draft_of
from gateway.catalog.sources.imports import prepare_import
from gateway.catalog.sources.limits import MAX_FAULT_LENGTH, REFRESH_S
from gateway.catalog.sources.proposals import AlreadyProposed, find_proposal, store_proposal
from gateway.catalog.sources.replacement import NotAdditive, Replacement, replace_version
from gateway.catalog.sources.schedule import refresh_delay, refresh_job, source_of_job
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import GATEWAY, Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Source
from gateway.domain.updates.source_versions import (
    ProposalOrigin,
    RefreshOutcome,
    RefreshPolicy,
    RefreshState,
    SourceProposal,
    VersionOrigin,
)
from gateway.domain.updates.watches import Sighting
from gateway.errors import (
    BadInput,
    Conflict,
    Fault,
    InvalidBody,
    LimitExceeded,
    NameTaken,
    NotFound,
    ReferenceMissing,
    UpstreamError,
)
from gateway.store import jobs, operations
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.sources import proposals, refreshes, sources, versions

log = structlog.get_logger(__name__)

LEASE = timedelta(minutes=5)
_RECORDED_ERRORS = (UpstreamError, BadInput, LimitExceeded, Conflict, NotFound)


class _RefreshLeaseLost(Exception):
    """Another replica holds the lease of the refresh; the outcome is rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRun:
    """One refresh of a source; `until` is the end of its lease, or None for a manual refresh."""

    tenant: TenantId
    source: Source
    url: str
    state: RefreshState
    active: bytes | None
    """Digest of the active document."""
    tools: int
    """Number of the tools of the active version."""
    proposal: SourceProposal | None
    until: datetime | None = None
    allow_removals: bool = False

    @property
    def is_forced(self) -> bool:
        """True for a manual refresh, which fetches unconditionally and proposes a document that was refused before."""
        return self.until is None

    @property
    def seen(self) -> Sighting:
        """The state of this URL after the last refresh."""
        return self.state.seen if self.state.url == self.url else Sighting()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The outcome of a refresh, and the pending proposal after it."""

    outcome: RefreshOutcome
    source: Source
    proposal: SourceProposal | None = None


async def refresh_source(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    *,
    allow_removals: bool = False,
    by: Author,
    expected: Expected = None,
) -> Refreshed:
    """Refresh a source from its URL now. The fetch is unconditional, and a document that was refused is proposed again.

    Raises:
        NotFound: the tenant has no such source.
        Conflict: the source has no URL, or was changed at the same time; nothing was stored.
        PreconditionFailed: the current version of the source matches no expected tag.
        SourceShrunk: less than half of the tools would remain, and `allow_removals` is False.
        UpstreamError, InvalidDocument, BadInput, LimitExceeded, Unavailable: as for an import.
    """
    async with catalog.store.transaction(tenant) as db:
        source = await find_source(tenant, db, name)
        check_version(source, expected)
        if source.url is None:
            raise Conflict("the source has no URL; propose a document, or import one from a URL")
        run = await _read_refresh(tenant, db, source, source.url)
    return await _fetch_and_compare(catalog, replace(run, allow_removals=allow_removals), by=by)


async def begin_refresh(catalog: CatalogContext, due: Job) -> RefreshRun | None:
    """Acquire the lease of a refresh that is due; None if another replica holds it, or no refresh is needed."""
    tenant, until = due.tenant, datetime.now(UTC) + LEASE
    async with catalog.store.transaction(tenant) as db:
        source = await sources.get(tenant, db, source_of_job(due))
        run = None if source is None or source.url is None else await _read_refresh(tenant, db, source, source.url)
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):  # guard: refresh-lease
            return None
        if source is None or run is None:
            await jobs.remove(tenant, db, due.id)
            return None
        state = replace(run.state, leased_until=until, is_wanted=False)
        await refreshes.save(tenant, db, source.id, state)
        return replace(run, state=state, until=until)


async def run_refresh(catalog: CatalogContext, run: RefreshRun) -> RefreshOutcome | None:
    """Refresh the source and store the outcome; None if the lease was lost and nothing was stored.

    Raises:
        Unavailable, LimitExceeded: a part of the gateway is unavailable or busy; the refresh is repeated when the
            lease ends, and does not count as failed.
    """
    by = Author(caller=GATEWAY, correlation_id=f"refresh:{run.source.id}")
    try:
        with anyio.fail_after(REFRESH_S):
            return (await _fetch_and_compare(catalog, run, by=by)).outcome
    except TimeoutError:
        fault = f"fetching and comparing took more than {REFRESH_S:g} seconds"
    except _RefreshLeaseLost:
        return None
    except _RECORDED_ERRORS as error:
        if isinstance(error, LimitExceeded) and error.retry_after_s is not None:  # guard: busy-is-no-failed-look
            raise
        fault = error.message
    log.warning("source_refresh_failed", tenant_id=run.tenant, source=run.source.name, reason=fault)
    return RefreshOutcome.FAILED if await _record_failure(catalog, run, fault) else None


async def request_refreshes(tenant: TenantId, catalog: CatalogContext, names: Mapping[str, str]) -> None:
    """Make refreshes of these sources due; the keys are pointers into a report of changes.

    Several reports cause one refresh. A running refresh is followed by another one, because it may have fetched the
    document before the change.

    Raises:
        ReferenceMissing: the tenant lacks some of these sources, or they have no URL; the faults point at them.
    """
    async with catalog.store.transaction(tenant) as db:
        found = [(pointer, await sources.get(tenant, db, name)) for pointer, name in names.items()]
        faults = [
            Fault(pointer=pointer, reason="no such source with a URL")
            for pointer, source in found
            if source is None or source.url is None
        ]
        if faults:
            raise ReferenceMissing("the tenant does not have all of these sources", faults=faults)
        for _, source in found:
            if source is not None:
                await _make_due(tenant, catalog, db, source)


async def _make_due(tenant: TenantId, catalog: CatalogContext, db: Db, source: Source) -> None:
    now, state = datetime.now(UTC), await refreshes.get(tenant, db, source.id)
    if state.leased_until is not None and state.leased_until > now:  # guard: refresh-wanted-under-lease
        await refreshes.save(tenant, db, source.id, replace(state, is_wanted=True))
        return
    await jobs.bring_forward(tenant, db, refresh_job(tenant, source.id, _earliest(catalog, state, now)))


def _earliest(catalog: CatalogContext, state: RefreshState, now: datetime) -> datetime:
    """The earliest time of a refresh that a report of changes requests."""
    if state.seen.checked_at is None:
        return now
    pause = timedelta(seconds=catalog.options.refresh_min_s)
    return max(now, state.seen.checked_at + pause)  # guard: refresh-report-pause


async def _read_refresh(tenant: TenantId, db: Db, source: Source, url: str) -> RefreshRun:
    return RefreshRun(
        tenant=tenant,
        source=source,
        url=url,
        state=await refreshes.get(tenant, db, source.id),
        active=await versions.digest(tenant, db, source.id, source.active_version),
        tools=len(await operations.names_of(tenant, db, source.id)),
        proposal=await find_proposal(tenant, db, source),
    )


async def _fetch_and_compare(catalog: CatalogContext, run: RefreshRun, *, by: Author) -> Refreshed:
    """Fetch, compare, and propose or activate the changes."""
    condition = Sighting() if run.is_forced else run.seen
    content = await read_changed(run.tenant, catalog, run.url, condition)
    sighting = _new_sighting(run, content)
    is_known = sighting.digest in {run.seen.digest, run.state.refused_digest}
    if content is None or (is_known and not run.is_forced):
        return await _store_unchanged(catalog, run, sighting)
    if sighting.digest == run.active:
        return await _withdraw(catalog, run, sighting, by=by)
    if run.proposal is not None and run.proposal.digest == sighting.digest:
        return await _store_unchanged(catalog, run, sighting)
    draft = replace(draft_of(run.source), allow_removals=True)
    ready = await prepare_import(run.tenant, catalog, draft, content, current=run.source)
    refuse_shrinking(run.tools, len(ready.operations), allow=run.allow_removals)
    if ready.changes.is_empty:
        return await _withdraw(catalog, run, sighting, by=by)
    obstacle: str | None = None
    if run.source.refresh_policy is RefreshPolicy.ADDITIONS and ready.changes.is_additive:
        try:
            return await _activate(catalog, run, ready, by=by)
        except (NotAdditive, NameTaken, LimitExceeded, InvalidBody) as error:
            obstacle = str(error) or None
    return await _propose(catalog, run, ready, sighting, obstacle=obstacle, by=by)


def _new_sighting(run: RefreshRun, content: Content | None) -> Sighting:
    """The state of the URL after a successful fetch; with None, the document was not transferred."""
    if content is None or content.seen is None:
        return replace(run.seen, failures=0, fault=None, checked_at=datetime.now(UTC))
    return replace(content.seen, changed_at=run.seen.changed_at)


async def _propose(
    catalog: CatalogContext, run: RefreshRun, ready: PreparedImport, seen: Sighting, *, obstacle: str | None, by: Author
) -> Refreshed:
    async def settle(db: Db, state: RefreshState) -> None:
        await _end(catalog, db, run, replace(state, url=run.url, seen=replace(seen, changed_at=seen.checked_at)))

    entry = CatalogChange(action="source.propose", target=run.source.name)
    replacement, origin = Replacement(seen=run.source, entry=entry, by=by, settle=settle), ProposalOrigin.URL
    try:
        stored_proposal = await store_proposal(
            run.tenant, catalog, ready, replacement, origin=origin, obstacle=obstacle
        )
    except AlreadyProposed:  # another refresh was faster
        return await _store_unchanged(catalog, run, seen)
    return Refreshed(outcome=RefreshOutcome.PROPOSED, source=run.source, proposal=stored_proposal)


async def _activate(catalog: CatalogContext, run: RefreshRun, ready: PreparedImport, *, by: Author) -> Refreshed:
    """Activate an addition by rule; the lease is checked in the same transaction."""
    prepared = replace(ready, origin=VersionOrigin.PROPOSAL)
    entry = CatalogChange(action="source.activate", target=run.source.name)
    entry.detail = {**detail_of(prepared), "rule": run.source.refresh_policy.value}

    async def settle(db: Db, state: RefreshState) -> None:
        await _end(catalog, db, run, replace(state, seen=replace(state.seen, changed_at=state.seen.checked_at)))

    replacement = Replacement(seen=run.source, entry=entry, by=by, is_by_rule=True, settle=settle)
    done = await replace_version(run.tenant, catalog, prepared, replacement)
    return Refreshed(outcome=RefreshOutcome.ACTIVATED, source=done.source or run.source)


async def _withdraw(catalog: CatalogContext, run: RefreshRun, seen: Sighting, *, by: Author) -> Refreshed:
    """Delete the proposal of a document that is no longer at the URL."""
    if run.proposal is None or run.proposal.origin is not ProposalOrigin.URL:
        return await _store_unchanged(catalog, run, seen)
    detail: dict[str, object] = {"id": run.source.id, "version": run.proposal.number}
    entry = CatalogChange(action="source.withdraw", target=run.source.name, detail=detail)
    async with change(run.tenant, catalog, entry, by=by) as db:
        source = await find_source(run.tenant, db, run.source.id)
        pending_proposal = await proposals.get(run.tenant, db, source.id)
        if pending_proposal is None or pending_proposal.number != run.proposal.number:
            raise Conflict("the proposal was replaced or activated at the same time")
        await proposals.remove(run.tenant, db, source.id)
        state = await refreshes.get(run.tenant, db, source.id)
        await _end(catalog, db, run, replace(state, url=run.url, seen=seen))
    return Refreshed(outcome=RefreshOutcome.WITHDRAWN, source=source)


async def _store_unchanged(catalog: CatalogContext, run: RefreshRun, seen: Sighting) -> Refreshed:
    async with catalog.store.transaction(run.tenant) as db:
        state = await refreshes.get(run.tenant, db, run.source.id)
        await _end(catalog, db, run, replace(state, url=run.url, seen=seen))
    return Refreshed(outcome=RefreshOutcome.UNCHANGED, source=run.source, proposal=run.proposal)


async def _record_failure(catalog: CatalogContext, run: RefreshRun, fault: str) -> bool:
    """Store the failure of a refresh, and keep the state of the last success; False if the lease was lost."""
    sighting = run.seen
    failed = replace(
        sighting, failures=sighting.failures + 1, fault=fault[:MAX_FAULT_LENGTH], checked_at=datetime.now(UTC)
    )
    try:
        await _store_unchanged(catalog, run, failed)
    except (_RefreshLeaseLost, NotFound):
        log.info("source_refresh_dropped", tenant_id=run.tenant, source=run.source.name)
        return False
    return True


async def _end(catalog: CatalogContext, db: Db, run: RefreshRun, state: RefreshState) -> None:
    """Store the state after a refresh, and schedule the next one.

    Raises:
        _RefreshLeaseLost: the lease ended or the source was rescheduled; nothing may be stored.
    """
    if run.until is not None:
        now, source = datetime.now(UTC), await find_source(run.tenant, db, run.source.id)
        again_at = now + refresh_delay(catalog, source, failures=state.seen.failures)
        if state.is_wanted:
            again_at = min(again_at, _earliest(catalog, state, now))
        job = refresh_job(run.tenant, source.id, again_at)
        if not await jobs.reschedule(run.tenant, db, job.id, seen=run.until, to=again_at):
            raise _RefreshLeaseLost
        if source.refresh_interval_s is None and not state.is_wanted:
            await jobs.remove(run.tenant, db, job.id)
        state = replace(state, leased_until=None, is_wanted=False)
    await refreshes.save(run.tenant, db, run.source.id, state)
