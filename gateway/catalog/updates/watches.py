"""Watches, declared by tenants: URLs that the gateway polls to detect changes of resources.

`gateway.jobs` polls, and calls `begin_poll` and `end_poll`. A replica that begins a poll holds a lease until a
deadline. So one replica makes each poll; if it crashes, another replica repeats the poll.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import uniform

from gateway.catalog.credentials import find_obstacle
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.catalog.updates.resource_updates import is_known
from gateway.domain.identifiers import TenantId, new_watch_id
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.watches import Sighting, Watch
from gateway.errors import (
    Fault,
    InvalidBody,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    ReferenceMissing,
)
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.kinds.singletons import POLICY
from gateway.store.updates import watches

MAX_WATCHES = 100
"""Limit on the watches of one tenant."""
KIND = "watch"
_FIRST_POLL_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDraft:
    """A requested watch."""

    uri: str
    url: str
    interval_s: int
    credential: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One poll to be made: its tenant, its watch and the end of its lease.

    `origins` are the origins that the tenant's policy allows; None allows any. `is_known` is True if the resource still
    exists.
    """

    tenant: TenantId
    watch: Watch
    until: datetime
    origins: tuple[str, ...] | None
    is_known: bool


async def create_watch(tenant: TenantId, catalog: CatalogContext, draft: WatchDraft, *, by: Author) -> Watch:
    """Create a watch. Its first poll is due within 2 s and only stores the current state.

    Raises:
        InvalidBody: the URL is not an absolute http or https URL.
        NameTaken: the resource has a watch.
        ReferenceMissing: the resource is missing, or the credential is for another origin or missing, or the policy
            does not allow the URL.
        LimitExceeded: the tenant has reached its limit of watches.
    """
    now = datetime.now(UTC)
    new_watch = Watch(
        id=new_watch_id(),
        uri=draft.uri,
        url=draft.url,
        interval_s=draft.interval_s,
        credential=draft.credential,
        version=1,
        created_at=now,
        updated_at=now,
    )
    entry = CatalogChange(action="watch.create", target=draft.uri, detail={"id": new_watch.id}, after=new_watch)
    async with change(tenant, catalog, entry, by=by) as db:
        if await watches.get(tenant, db, draft.uri) is not None:
            conflict = NameConflict(name=draft.uri, owner=f"watch:{draft.uri}")
            raise NameTaken("the resource is already watched", conflicts=[conflict])
        if await watches.count(tenant, db) >= MAX_WATCHES:
            raise LimitExceeded(f"the tenant has {MAX_WATCHES} watches (the limit); delete unused ones")
        await _check(tenant, catalog, db, draft)
        await watches.insert(tenant, db, new_watch)
        await jobs.schedule(tenant, db, _prompt_job(tenant, new_watch))
    return new_watch


async def update_watch(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[WatchDraft], WatchDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> Watch:
    """Replace a watch with the one that `revise` returns. A new URL discards the state seen at the old URL.

    The next poll is due within 2 s.

    Raises:
        NotFound: the tenant has no such watch.
        InvalidBody, ReferenceMissing: as for a new watch.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="watch.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        before = WatchDraft(
            uri=current.uri, url=current.url, interval_s=current.interval_s, credential=current.credential
        )
        draft = revise(before)
        await _check(tenant, catalog, db, draft)
        sighting = current.seen if draft.url == current.url else Sighting()
        revised = replace(
            current,
            url=draft.url,
            interval_s=draft.interval_s,
            credential=draft.credential,
            updated_at=datetime.now(UTC),
            seen=replace(sighting, failures=0, fault=None),
        )
        entry.target, entry.detail = current.uri, {"id": current.id}
        entry.before, entry.after = current, revised
        await watches.save(tenant, db, revised)
        await jobs.schedule(tenant, db, _prompt_job(tenant, revised))
    return replace(revised, version=current.version + 1)


async def get_watch(tenant: TenantId, catalog: CatalogContext, name: str) -> Watch:
    """The watch with this id or resource URI.

    Raises:
        NotFound: the tenant has no such watch.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, name)


async def page_watches(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Watch]:
    """One page of the tenant's watches, by default sorted by URI."""
    async with catalog.store.transaction(tenant) as db:
        return await watches.page(tenant, db, after=after, limit=limit, order=order)


async def remove_watch(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete a watch and its job.

    Raises:
        NotFound: the tenant has no such watch.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="watch.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.uri, {"id": current.id}, current
        await watches.remove(tenant, db, current.id)
        await jobs.remove(tenant, db, current.id)


async def begin_poll(catalog: CatalogContext, due: Job, *, until: datetime) -> Poll | None:
    """Acquire the lease of a poll that is due; None if another replica holds it or the watch was removed."""
    tenant = due.tenant
    async with catalog.store.transaction(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return None
        watch = await watches.get(tenant, db, due.id)
        if watch is None:
            await jobs.remove(tenant, db, due.id)
            return None
        return Poll(
            tenant=tenant,
            watch=watch,
            until=until,
            origins=(await POLICY.get(tenant, db)).http_origins,
            is_known=await is_known(tenant, catalog, db, watch.uri),
        )


async def end_poll(catalog: CatalogContext, poll: Poll, seen: Sighting, *, again_at: datetime) -> bool:
    """Store the result of a poll and the time of the next; False if the watch changed or the lease expired."""
    tenant, watch = poll.tenant, poll.watch
    async with catalog.store.transaction(tenant) as db:
        if not await watches.lock(tenant, db, watch.id, version=watch.version):
            return False
        if not await jobs.reschedule(tenant, db, watch.id, seen=poll.until, to=again_at):
            return False
        await watches.note(tenant, db, watch.id, seen)
    return True


async def _check(tenant: TenantId, catalog: CatalogContext, db: Db, draft: WatchDraft) -> None:
    """Refuse a watch with an unusable URL, resource or credential."""
    origin = find_origin(draft.url)
    if origin is None:
        message = "must be an absolute http or https URL"
        raise InvalidBody(f"/url: {message}", faults=[Fault(pointer="/url", reason=message)])
    allowed = (await POLICY.get(tenant, db)).http_origins
    if allowed is not None and origin not in allowed:
        raise _missing("/url", "the tenant's policy does not allow requests to this origin")
    if not await is_known(tenant, catalog, db, draft.uri):
        raise _missing("/uri", "the tenant has no such resource")
    if draft.credential is not None:
        obstacle = await find_obstacle(tenant, db, draft.credential, origin)
        if obstacle is not None:
            raise _missing("/credential", obstacle)


def _missing(pointer: str, reason: str) -> ReferenceMissing:
    return ReferenceMissing(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


def _prompt_job(tenant: TenantId, watch: Watch) -> Job:
    due_at = datetime.now(UTC) + timedelta(seconds=uniform(0, _FIRST_POLL_S))  # noqa: S311  # only spreads the load
    return Job(tenant=tenant, id=watch.id, kind=KIND, due_at=due_at)


async def _find(tenant: TenantId, db: Db, name: str) -> Watch:
    found = await watches.get(tenant, db, name)
    if found is None:
        raise NotFound("no such watch")
    return found
