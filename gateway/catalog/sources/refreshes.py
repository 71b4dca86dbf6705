"""Looks at the URLs of sources: fetched on a condition, compiled, compared, and proposed or activated by rule.

The job calls `begin_look` and `take_look`. A replica that begins a look holds a lease, so two replicas do not fetch
twice. The outcome, the state of the URL and the next look are one transaction: a replica that dies in between leaves
nothing, and another one repeats the look.
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
from gateway.catalog.sources.proposals import AlreadyProposed, find_proposal, store_proposal
from gateway.catalog.sources.replacement import NotAdditive, Replacement, replace_version
from gateway.catalog.sources.schedule import look_job, pause_of, source_of_job
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

LOOK_S = 240.0
"""Seconds for one look; the lease of a replica is longer."""
LEASE = timedelta(minutes=5)
_MAX_FAULT_LENGTH = 300
_FAULTS = (UpstreamError, BadInput, LimitExceeded, Conflict, NotFound)


class _LookLost(Exception):
    """Another replica holds the lease of the look; rolls its outcome back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a source's URL; `until` is the end of its lease, and None for a look by hand."""

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
        """True for a look by hand: it fetches without a condition, and proposes a document that was refused."""
        return self.until is None

    @property
    def seen(self) -> Sighting:
        """The state of this URL after the last look."""
        return self.state.seen if self.state.url == self.url else Sighting()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The outcome of a look, and the proposal that waits after it."""

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
    """Look at a source's URL now, whatever was seen before.

    Raises:
        NotFound: the tenant has no such source.
        Conflict: the source has no URL, or was changed at the same time; nothing was stored.
        PreconditionFailed: the current version of the source matches no expected tag.
        SourceShrunk: less than half of the tools would remain, and it is not allowed.
        UpstreamError, InvalidDocument, BadInput, LimitExceeded, Unavailable: as for an import.
    """
    async with catalog.store.transaction(tenant) as db:
        source = await find_source(tenant, db, name)
        check_version(source, expected)
        if source.url is None:
            raise Conflict("the source has no URL; propose a document, or import one from a URL")
        look = await _read_look(tenant, db, source, source.url)
    return await _examine(catalog, replace(look, allow_removals=allow_removals), by=by)


async def begin_look(catalog: CatalogContext, due: Job) -> Look | None:
    """Acquire the lease of a look that is due; None if another replica holds it or there is nothing to look at."""
    tenant, until = due.tenant, datetime.now(UTC) + LEASE
    async with catalog.store.transaction(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):  # guard: refresh-lease
            return None
        source = await sources.get(tenant, db, source_of_job(due))
        if source is None or source.url is None:
            await jobs.remove(tenant, db, due.id)
            return None
        look = await _read_look(tenant, db, source, source.url)
        state = replace(look.state, leased_until=until, is_wanted=False)
        await refreshes.save(tenant, db, source.id, state)
        return replace(look, state=state, until=until)


async def take_look(catalog: CatalogContext, look: Look) -> RefreshOutcome | None:
    """Look at the URL and store the outcome; None if the lease was lost, and nothing was stored.

    Raises:
        Unavailable, LimitExceeded: a part of the gateway is unavailable or busy; the look is repeated when the lease
            ends, and does not count as failed.
    """
    by = Author(caller=GATEWAY, correlation_id=f"refresh:{look.source.id}")
    try:
        with anyio.fail_after(LOOK_S):
            return (await _examine(catalog, look, by=by)).outcome
    except TimeoutError:
        fault = f"fetching and comparing took more than {LOOK_S:g} seconds"
    except _LookLost:
        return None
    except _FAULTS as error:
        if isinstance(error, LimitExceeded) and error.retry_after_s is not None:  # guard: busy-is-no-failed-look
            raise
        fault = error.message
    log.warning("source_refresh_failed", tenant_id=look.tenant, source=look.source.name, reason=fault)
    return RefreshOutcome.FAILED if await _note_fault(catalog, look, fault) else None


async def want_looks(tenant: TenantId, catalog: CatalogContext, names: Mapping[str, str]) -> None:
    """Make looks at these sources due, by pointer into a report of changes; many reports make one look.

    A look that runs is followed by another one, because it may have read the document before the change.

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
    await jobs.bring_forward(tenant, db, look_job(tenant, source.id, _earliest(catalog, state, now)))


def _earliest(catalog: CatalogContext, state: RefreshState, now: datetime) -> datetime:
    """The earliest time of a look that a report of changes asks for."""
    if state.seen.checked_at is None:
        return now
    return max(now, state.seen.checked_at + timedelta(seconds=catalog.refresh_min_s))  # guard: refresh-report-pause


async def _read_look(tenant: TenantId, db: Db, source: Source, url: str) -> Look:
    return Look(
        tenant=tenant,
        source=source,
        url=url,
        state=await refreshes.get(tenant, db, source.id),
        active=await versions.digest(tenant, db, source.id, source.active_version),
        tools=len(await operations.names_of(tenant, db, source.id)),
        proposal=await find_proposal(tenant, db, source),
    )


async def _examine(catalog: CatalogContext, look: Look, *, by: Author) -> Refreshed:
    """Fetch, compare, and propose or activate what has changed."""
    condition = Sighting() if look.is_forced else look.seen
    content = await read_changed(look.tenant, catalog, look.url, condition)
    seen = _now_seen(look, content)
    is_known = seen.digest in {look.seen.digest, look.state.refused_digest}
    if content is None or (is_known and not look.is_forced):
        return await _leave(catalog, look, seen)
    if seen.digest == look.active:
        return await _withdraw(catalog, look, seen, by=by)
    if look.proposal is not None and look.proposal.digest == seen.digest:
        return await _leave(catalog, look, seen)
    draft = replace(draft_of(look.source), allow_removals=True)
    ready = await prepare_import(look.tenant, catalog, draft, content, look.source)
    refuse_shrinking(look.tools, len(ready.operations), allow=look.allow_removals)
    if ready.changes.is_empty:
        return await _withdraw(catalog, look, seen, by=by)
    obstacle: str | None = None
    if look.source.refresh_policy is RefreshPolicy.ADDITIONS and ready.changes.is_additive:
        try:
            return await _activate(catalog, look, ready, by=by)
        except (NotAdditive, NameTaken, LimitExceeded, InvalidBody) as error:
            obstacle = str(error) or None
    return await _propose(catalog, look, ready, seen, obstacle=obstacle, by=by)


def _now_seen(look: Look, content: Content | None) -> Sighting:
    """The state of the URL after a fetch that succeeded; None: the document was not transferred."""
    if content is None or content.seen is None:
        return replace(look.seen, failures=0, fault=None, checked_at=datetime.now(UTC))
    return replace(content.seen, changed_at=look.seen.changed_at)


async def _propose(
    catalog: CatalogContext, look: Look, ready: PreparedImport, seen: Sighting, *, obstacle: str | None, by: Author
) -> Refreshed:
    async def settle(db: Db, state: RefreshState) -> None:
        await _end(catalog, db, look, replace(state, url=look.url, seen=replace(seen, changed_at=seen.checked_at)))

    entry = CatalogChange(action="source.propose", target=look.source.name)
    replacement, origin = Replacement(seen=look.source, entry=entry, by=by, settle=settle), ProposalOrigin.URL
    try:
        made = await store_proposal(look.tenant, catalog, ready, replacement, origin=origin, obstacle=obstacle)
    except AlreadyProposed:  # another look was faster
        return await _leave(catalog, look, seen)
    return Refreshed(outcome=RefreshOutcome.PROPOSED, source=look.source, proposal=made)


async def _activate(catalog: CatalogContext, look: Look, ready: PreparedImport, *, by: Author) -> Refreshed:
    """Activate an addition by rule; the lease is checked in the same transaction."""
    made = replace(ready, origin=VersionOrigin.PROPOSAL)
    entry = CatalogChange(action="source.activate", target=look.source.name)
    entry.detail = {**detail_of(made), "rule": look.source.refresh_policy.value}

    async def settle(db: Db, state: RefreshState) -> None:
        await _end(catalog, db, look, replace(state, seen=replace(state.seen, changed_at=state.seen.checked_at)))

    replacement = Replacement(seen=look.source, entry=entry, by=by, is_by_rule=True, settle=settle)
    done = await replace_version(look.tenant, catalog, made, replacement)
    return Refreshed(outcome=RefreshOutcome.ACTIVATED, source=done.source or look.source)


async def _withdraw(catalog: CatalogContext, look: Look, seen: Sighting, *, by: Author) -> Refreshed:
    """Delete the proposal of a document that the URL has no more."""
    if look.proposal is None or look.proposal.origin is not ProposalOrigin.URL:
        return await _leave(catalog, look, seen)
    detail: dict[str, object] = {"id": look.source.id, "version": look.proposal.number}
    entry = CatalogChange(action="source.withdraw", target=look.source.name, detail=detail)
    async with change(look.tenant, catalog, entry, by=by) as db:
        source = await find_source(look.tenant, db, look.source.id)
        waiting = await proposals.get(look.tenant, db, source.id)
        if waiting is None or waiting.number != look.proposal.number:
            raise Conflict("the proposal was replaced or activated at the same time")
        await proposals.remove(look.tenant, db, source.id)
        state = await refreshes.get(look.tenant, db, source.id)
        await _end(catalog, db, look, replace(state, url=look.url, seen=seen))
    return Refreshed(outcome=RefreshOutcome.WITHDRAWN, source=source)


async def _leave(catalog: CatalogContext, look: Look, seen: Sighting) -> Refreshed:
    async with catalog.store.transaction(look.tenant) as db:
        state = await refreshes.get(look.tenant, db, look.source.id)
        await _end(catalog, db, look, replace(state, url=look.url, seen=seen))
    return Refreshed(outcome=RefreshOutcome.UNCHANGED, source=look.source, proposal=look.proposal)


async def _note_fault(catalog: CatalogContext, look: Look, fault: str) -> bool:
    """Store the failure of a look, and keep the state of the last one that succeeded; False if the lease was lost."""
    seen = look.seen
    failed = replace(seen, failures=seen.failures + 1, fault=fault[:_MAX_FAULT_LENGTH], checked_at=datetime.now(UTC))
    try:
        await _leave(catalog, look, failed)
    except (_LookLost, NotFound):
        log.info("source_refresh_dropped", tenant_id=look.tenant, source=look.source.name)
        return False
    return True


async def _end(catalog: CatalogContext, db: Db, look: Look, state: RefreshState) -> None:
    """Store the state after a look, and schedule the next one.

    Raises:
        _LookLost: the lease ended or the source was rescheduled; nothing may be stored.
    """
    if look.until is not None:
        now, source = datetime.now(UTC), await find_source(look.tenant, db, look.source.id)
        again_at = now + pause_of(catalog, source, failures=state.seen.failures)
        if state.is_wanted:
            again_at = min(again_at, _earliest(catalog, state, now))
        job = look_job(look.tenant, source.id, again_at)
        if not await jobs.reschedule(look.tenant, db, job.id, seen=look.until, to=again_at):
            raise _LookLost
        if source.refresh_interval_s is None and not state.is_wanted:
            await jobs.remove(look.tenant, db, job.id)
        state = replace(state, leased_until=None, is_wanted=False)
    await refreshes.save(look.tenant, db, look.source.id, state)
