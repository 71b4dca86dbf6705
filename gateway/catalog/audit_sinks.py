"""Sinks of a tenant's audit trail: declared by its admins, served by one replica at a time.

The job of a sink is its lease: a replica moves the job into the future, delivers, and stores the position with a
condition on the job. So a slower replica can at worst send entries twice, and a position never moves back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.credentials import find_obstacle
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.audit import OPERATOR_RULE, SinkKind, TrailSink
from gateway.domain.identifiers import TenantId, new_audit_sink_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.principals import Operator
from gateway.errors import (
    Fault,
    Forbidden,
    InvalidBody,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    ReferenceMissing,
)
from gateway.store import jobs
from gateway.store.audit import places, sinks
from gateway.store.audit.hash_chain import Link
from gateway.store.audit.places import Places
from gateway.store.calls import policies
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.upstream.egress.allow_list import AllowEntry, read_entry

KIND = "audit_sink"
MAX_SINKS = 10
"""Limit on the sinks of one tenant."""
SCHEMES = {"tcp": False, "tls": True}
"""Schemes of syslog targets; True for TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDraft:
    """A requested sink; with `is_whole`, it receives the entire trail."""

    name: str
    kind: SinkKind
    target: str
    credential: str | None = None
    enabled: bool = True
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDelivery:
    """The lease of a sink until `until`, and the position from which delivery continues."""

    tenant: TenantId
    sink: TrailSink
    until: datetime
    places: Places
    origins: tuple[str, ...] | None
    """Origins that the tenant's policy allows; None allows all."""


async def create_sink(tenant: TenantId, catalog: CatalogContext, draft: SinkDraft, *, by: Author) -> TrailSink:
    """Create a sink. With `draft.is_whole` it receives the entire trail, otherwise the entries from now on.

    Raises:
        Forbidden: only the operator may create a sink of the kind file.
        InvalidBody: the target does not have the form of the kind.
        NameTaken: the tenant has a sink of this name.
        LimitExceeded: the tenant has reached its limit of sinks.
        ReferenceMissing: the credential is missing or for another origin, or the policy does not allow the URL.
    """
    if draft.kind is SinkKind.FILE and not isinstance(by.caller, Operator):  # guard: sink-file-operator
        raise Forbidden("only the operator may create a sink of the kind file", rule=OPERATOR_RULE)
    now = datetime.now(UTC)
    sink = TrailSink(
        id=new_audit_sink_id(),
        name=draft.name,
        kind=draft.kind,
        target=draft.target,
        credential=draft.credential,
        enabled=draft.enabled,
        version=1,
        created_at=now,
        updated_at=now,
    )
    entry = CatalogChange(action="audit_sink.create", target=draft.name, detail={"id": sink.id}, after=sink)
    async with change(tenant, catalog, entry, by=by) as db:
        if await sinks.get(tenant, db, draft.name) is not None:
            conflict = NameConflict(name=draft.name, owner=f"audit_sink:{draft.name}")
            raise NameTaken("the tenant has a sink of this name", conflicts=[conflict])
        if await sinks.count(tenant, db) >= MAX_SINKS:
            raise LimitExceeded(f"the tenant has {MAX_SINKS} sinks (the limit); delete unused ones")
        await _check(tenant, db, sink)
        await sinks.insert(tenant, db, sink)
        if not draft.is_whole:
            await places.save(tenant, db, sink.id, await places.ends(tenant, db))
        await jobs.schedule(tenant, db, _job(tenant, sink))
    return sink


async def update_sink(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[SinkDraft], SinkDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> TrailSink:
    """Replace target, credential and state of a sink; its read position does not change.

    Raises:
        NotFound: the tenant has no such sink.
        PreconditionFailed: the current version matches no expected tag.
        Forbidden, InvalidBody, ReferenceMissing: as for a new sink.
    """
    entry = CatalogChange(action="audit_sink.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        if current.kind is SinkKind.FILE and not isinstance(by.caller, Operator):
            raise Forbidden("only the operator may change a sink of the kind file", rule=OPERATOR_RULE)
        names = ("name", "kind", "target", "credential", "enabled")
        draft = revise(SinkDraft(**{name: getattr(current, name) for name in names}))
        revised = replace(
            current,
            target=draft.target,
            credential=draft.credential,
            enabled=draft.enabled,
            updated_at=datetime.now(UTC),
            status=replace(current.status, failures=0, fault=None),
        )
        await _check(tenant, db, revised)
        entry.target, entry.detail = current.name, {"id": current.id}
        entry.before, entry.after = current, revised
        await sinks.save(tenant, db, revised)
        await jobs.schedule(tenant, db, _job(tenant, revised))
    return replace(revised, version=current.version + 1)


async def get_sink(tenant: TenantId, catalog: CatalogContext, name: str) -> TrailSink:
    """The sink with this id or name, and the time of its oldest undelivered entry.

    Raises:
        NotFound: the tenant has no such sink.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await _find(tenant, db, name)
        waiting_since = await places.oldest_behind(tenant, db, await places.load(tenant, db, found.id))
        return replace(found, status=replace(found.status, waiting_since=waiting_since))


async def page_sinks(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[TrailSink]:
    """One page of the tenant's sinks, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await sinks.page(tenant, db, after=after, limit=limit, order=order)


async def remove_sink(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete a sink, its read position and its job.

    Raises:
        NotFound: the tenant has no such sink.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="audit_sink.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        await sinks.remove(tenant, db, current.id)
        await jobs.remove(tenant, db, current.id)


async def begin_delivery(catalog: CatalogContext, due: Job, *, lease: timedelta) -> SinkDelivery | None:
    """Acquire the lease of a sink that is due; None if another replica holds it, or the sink was removed or
    disabled.
    """
    tenant, until = due.tenant, datetime.now(UTC) + lease
    async with catalog.store.upkeep(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return None
        sink = await sinks.get(tenant, db, due.id)
        if sink is None or not sink.enabled:
            await jobs.remove(tenant, db, due.id)
            return None
        found = await places.load(tenant, db, sink.id)
        origins = (await policies.get(tenant, db)).http_origins
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


async def _check(tenant: TenantId, db: Db, sink: TrailSink) -> None:
    """Refuse a sink with an unusable target or credential."""
    match sink.kind:
        case SinkKind.HTTPS:
            origin = find_origin(sink.target)
            if origin is None or not origin.startswith("https://"):
                raise _invalid("must be an absolute https URL")
            allowed = (await policies.get(tenant, db)).http_origins
            if allowed is not None and origin not in allowed:
                raise _missing("/target", "the tenant's policy does not allow requests to this origin")
            obstacle = None if sink.credential is None else await find_obstacle(tenant, db, sink.credential, origin)
            if obstacle is not None:
                raise _missing("/credential", obstacle)
            return
        case SinkKind.SYSLOG:
            if read_syslog_target(sink.target) is None:
                raise _invalid("must be tcp://host:port or tls://host:port")
        case SinkKind.FILE:
            if not sink.target.replace("-", "").replace("_", "").isalnum() or not sink.target.isascii():
                raise _invalid("must be a file name of letters, digits, - and _")  # guard: sink-file-name
    if sink.credential is not None:
        raise _missing("/credential", f"a sink of the kind {sink.kind} has no credential")


def _invalid(reason: str) -> InvalidBody:
    return InvalidBody(f"/target: {reason}", faults=[Fault(pointer="/target", reason=reason)])


def _missing(pointer: str, reason: str) -> ReferenceMissing:
    return ReferenceMissing(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


def _job(tenant: TenantId, sink: TrailSink) -> Job:
    return Job(tenant=tenant, id=sink.id, kind=KIND, due_at=datetime.now(UTC))


async def _find(tenant: TenantId, db: Db, name: str) -> TrailSink:
    found = await sinks.get(tenant, db, name)
    if found is None:
        raise NotFound("no such sink")
    return found
