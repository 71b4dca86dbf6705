"""Polls of watched URLs, for `gateway.jobs`.

A replica that begins a poll holds a lease until a deadline. So one replica makes each poll; if it crashes, another
replica repeats the poll.
"""

from dataclasses import dataclass
from datetime import datetime

from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.resource_updates import is_known
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.watches import Sighting, Watch
from gateway.store import jobs
from gateway.store.jobs import Job
from gateway.store.kinds.singletons import POLICY
from gateway.store.kinds.watches import WATCHES

KIND = "watch"


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


async def begin_poll(catalog: CatalogContext, due: Job, *, until: datetime) -> Poll | None:
    """Acquire the lease of a poll that is due; None if another replica holds it or the watch was removed."""
    tenant = due.tenant
    async with catalog.store.transaction(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return None
        watch = await WATCHES.get(tenant, db, due.id)
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
        current = await WATCHES.get(tenant, db, watch.id, locked=True)
        if current is None or current.version != watch.version:
            return False
        if not await jobs.reschedule(tenant, db, watch.id, seen=poll.until, to=again_at):
            return False
        await WATCHES.note(tenant, db, watch.id, seen)
    return True
