"""Delivery to the sinks of a tenant's audit trail, each served by one replica at a time.

The job of a sink is its lease: a replica moves the job into the future, delivers, and stores the position with a
condition on the job. So a slower replica can at worst send entries twice, and a position never moves back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.audit_sinks import TrailSink
from gateway.store import jobs
from gateway.store.audit import places, sinks
from gateway.store.audit.hash_chain import Link
from gateway.store.audit.places import Places
from gateway.store.jobs import Job
from gateway.store.kinds.audit_sinks import SINKS
from gateway.store.kinds.singletons import POLICY
from gateway.upstream.egress.allow_list import AllowEntry, read_entry

KIND = "audit_sink"
SCHEMES = {"tcp": False, "tls": True}
"""Schemes of syslog targets; True for TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDelivery:
    """The lease of a sink until `until`, and the position from which delivery continues."""

    tenant: TenantId
    sink: TrailSink
    until: datetime
    places: Places
    origins: tuple[str, ...] | None
    """Origins that the tenant's policy allows; None allows all."""


async def begin_delivery(catalog: CatalogContext, due: Job, *, lease: timedelta) -> SinkDelivery | None:
    """Acquire the lease of a sink that is due; None if another replica holds it, or the sink was removed or
    disabled.
    """
    tenant, until = due.tenant, datetime.now(UTC) + lease
    async with catalog.store.upkeep(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return None
        sink = await SINKS.get(tenant, db, due.id)
        if sink is None or not sink.enabled:
            await jobs.remove(tenant, db, due.id)
            return None
        found = await places.load(tenant, db, sink.id)
        origins = (await POLICY.get(tenant, db)).http_origins
        return SinkDelivery(tenant=tenant, sink=sink, until=until, places=found, origins=origins)


async def read_behind(catalog: CatalogContext, delivery: SinkDelivery, *, limit: int) -> Sequence[Link]:
    """The next entries that the sink has not received yet."""
    async with catalog.store.upkeep(delivery.tenant) as db:
        return await places.behind(delivery.tenant, db, delivery.places, limit=limit)


async def note_delivered(
    catalog: CatalogContext, delivery: SinkDelivery, links: Sequence[Link], *, lease: timedelta
) -> SinkDelivery | None:
    """Store the position after delivered entries, and renew the lease; None if the lease was lost."""
    tenant, sink, now = delivery.tenant, delivery.sink.id, datetime.now(UTC)
    moved, until = places.after(delivery.places, links), now + lease
    async with catalog.store.upkeep(tenant) as db:
        await sinks.lock(tenant, db, sink)
        if not await jobs.reschedule(tenant, db, sink, seen=delivery.until, to=until):
            return None
        await places.save(tenant, db, sink, moved)
        await sinks.note_delivery(tenant, db, sink, entries=len(links), at=now)
    return replace(delivery, until=until, places={**delivery.places, **moved})


async def end_delivery(catalog: CatalogContext, delivery: SinkDelivery, *, again_at: datetime) -> None:
    """Release the lease; the next delivery is due at `again_at`."""
    async with catalog.store.upkeep(delivery.tenant) as db:
        await jobs.reschedule(delivery.tenant, db, delivery.sink.id, seen=delivery.until, to=again_at)


async def note_failed(catalog: CatalogContext, delivery: SinkDelivery, fault: str) -> int:
    """Store the fault of a failed delivery; return the number of consecutive failures."""
    async with catalog.store.upkeep(delivery.tenant) as db:
        return await sinks.note_failure(delivery.tenant, db, delivery.sink.id, fault)


def read_syslog_target(target: str) -> tuple[AllowEntry, bool] | None:
    """Host and port of `tcp://host:port` or `tls://host:port`, and True for TLS; None for any other string."""
    scheme, _, place = target.partition("://")
    entry = read_entry(place) if scheme in SCHEMES else None
    return None if entry is None or str(entry[0]).startswith("unix:") else (entry, SCHEMES[scheme])
