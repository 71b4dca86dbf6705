"""The outbox of outbound webhooks: deliveries are written in the transaction of their event, and claimed by workers.

Each endpoint has one job (`gateway.store.jobs`), which is due when its next delivery is due. So a tenant's backlog adds
one row per endpoint to the list of due jobs.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import structlog
from sqlalchemy import and_, any_, delete, func, literal, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId, WebhookEndpointId, new_delivery_id
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.webhook_endpoints import DeliveryState, OutboundDelivery
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.notifications.limits import MAX_PAYLOAD_BYTES, MAX_QUEUED
from gateway.store.notifications.tables import webhook_deliveries as deliveries
from gateway.store.notifications.tables import webhook_endpoints as endpoints
from gateway.store.pagination import select_page

log = structlog.get_logger(__name__)

KIND = "webhook-endpoint"
LIFETIME = timedelta(hours=24)
"""Time after which a delivery is no longer attempted."""
RETENTION = timedelta(days=7)
"""Time after which a delivered or failed delivery is deleted."""
_ENDED_STATES = (DeliveryState.DELIVERED, DeliveryState.FAILED)
_DROPPED_NOTICE = f"too many deliveries wait (limit {MAX_QUEUED}), so later events were dropped"


async def enqueue(tenant: TenantId, db: Db, kind: str, payload: Mapping[str, object]) -> int:
    """Add one delivery of an event for each enabled endpoint that subscribes to its kind; return their number.

    The deliveries commit or roll back with the caller's transaction. An endpoint with a full queue gets a notice
    instead.

    Raises:
        ValueError: the payload exceeds `MAX_PAYLOAD_BYTES`.
    """
    is_wanted = (endpoints.c.tenant_id == tenant, endpoints.c.enabled, literal(kind) == any_(endpoints.c.kinds))
    # The lock waits for a concurrent removal: a foreign key would fail the caller's transaction.
    query = select(endpoints.c.id).where(*is_wanted).order_by(endpoints.c.id).with_for_update(read=True, key_share=True)
    found = [WebhookEndpointId(row[0]) for row in await db.execute(query)]
    if not found:
        return 0
    queued, now = await _count_pending(tenant, db, found), datetime.now(UTC)
    free = [endpoint for endpoint in found if queued.get(endpoint, 0) < MAX_QUEUED]  # guard: webhook-queue-bounded
    for endpoint in free:
        await insert(tenant, db, new_delivery(endpoint, kind, payload, now=now))
    if len(free) < len(found):
        is_full = (endpoints.c.tenant_id == tenant, endpoints.c.id.in_(set(found) - set(free)))
        unnoticed = select(endpoints.c.id).where(*is_full, endpoints.c.notice.is_(None))
        # A locked endpoint gets its notice with a later event: its holder may wait for a job of this transaction.
        unlocked = unnoticed.with_for_update(key_share=True, skip_locked=True)
        noticed = update(endpoints).where(endpoints.c.tenant_id == tenant, endpoints.c.id.in_(unlocked))
        await db.execute(noticed.values(notice=_DROPPED_NOTICE))
        log.warning("webhook_events_dropped", tenant_id=tenant, kind=kind, endpoints=len(found) - len(free))
    return len(free)


def new_delivery(
    endpoint: WebhookEndpointId, kind: str, payload: Mapping[str, object], *, now: datetime
) -> OutboundDelivery:
    """A pending delivery of an event, in the form of Standard Webhooks.

    Raises:
        ValueError: the payload exceeds `MAX_PAYLOAD_BYTES`.
    """
    body = msgspec.json.encode({"type": kind, "timestamp": now, "data": payload})
    if len(body) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"the payload of an event has more than {MAX_PAYLOAD_BYTES} bytes")
    return OutboundDelivery(
        id=new_delivery_id(),
        endpoint=endpoint,
        kind=kind,
        payload=body,
        state=DeliveryState.PENDING,
        due_at=now,
        expires_at=now + LIFETIME,
        created_at=now,
    )


async def insert(tenant: TenantId, db: Db, delivery: OutboundDelivery) -> None:
    """Add a delivery, and make its endpoint's job due."""
    await db.execute(insert_into(deliveries).values(tenant_id=tenant, **columns_of(delivery)))
    await jobs.bring_forward(tenant, db, job_of(tenant, delivery.endpoint, delivery.due_at))


async def is_full(tenant: TenantId, db: Db, endpoint: WebhookEndpointId) -> bool:
    """True if the endpoint has reached the limit of pending deliveries."""
    return (await _count_pending(tenant, db, [endpoint])).get(endpoint, 0) >= MAX_QUEUED


def job_of(tenant: TenantId, endpoint: WebhookEndpointId, due_at: datetime) -> Job:
    """The job that sends the due deliveries of an endpoint."""
    return Job(tenant=tenant, id=endpoint, kind=KIND, due_at=due_at)


async def get(tenant: TenantId, db: Db, endpoint: WebhookEndpointId, delivery: str) -> OutboundDelivery | None:
    """The delivery with this id, if it belongs to this endpoint."""
    query = select(deliveries).where(*_of(tenant, endpoint), deliveries.c.id == delivery)
    row = (await db.execute(query)).mappings().one_or_none()
    return read_record(OutboundDelivery, row) if row else None


async def page(
    tenant: TenantId, db: Db, endpoint: WebhookEndpointId, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[OutboundDelivery]:
    """One page of an endpoint's deliveries, by default sorted by id."""
    query = select(deliveries).where(*_of(tenant, endpoint))
    query = select_page(query, deliveries.c, "id", after=after, limit=limit, order=order)
    return [read_record(OutboundDelivery, row) for row in (await db.execute(query)).mappings()]


async def claim(
    tenant: TenantId, db: Db, endpoint: WebhookEndpointId, *, now: datetime, until: datetime, limit: int
) -> Sequence[OutboundDelivery]:
    """Lease the deliveries that have been due longest, and return them as they were before; other workers skip them
    until `until`.
    """
    is_due = (*_of(tenant, endpoint), deliveries.c.state == DeliveryState.PENDING, deliveries.c.due_at <= now)
    query = select(deliveries).where(*is_due).order_by(deliveries.c.due_at, deliveries.c.id).limit(limit)
    rows = (await db.execute(query.with_for_update(skip_locked=True))).mappings()
    found = [read_record(OutboundDelivery, row) for row in rows]
    if found:
        leased = deliveries.c.id.in_([one.id for one in found])
        await db.execute(update(deliveries).where(*_of(tenant, endpoint), leased).values(due_at=until))
    return found


async def settle(tenant: TenantId, db: Db, delivery: OutboundDelivery, *, seen: OutboundDelivery) -> bool:
    """Store the outcome of an attempt; False if the delivery was changed or removed after it was read as `seen`."""
    matches = (*_of(tenant, seen.endpoint), deliveries.c.id == seen.id)
    # guard: webhook-attempt-once
    is_same = (deliveries.c.state == seen.state, deliveries.c.attempts == seen.attempts)
    changed = update(deliveries).where(*matches, *is_same).values(**columns_of(delivery)).returning(deliveries.c.id)
    return (await db.execute(changed)).one_or_none() is not None


async def release(tenant: TenantId, db: Db, endpoint: WebhookEndpointId, claimed: Sequence[OutboundDelivery]) -> None:
    """End the lease of claimed deliveries that were not attempted."""
    for one in claimed:
        matches = (*_of(tenant, endpoint), deliveries.c.id == one.id, deliveries.c.attempts == one.attempts)
        is_unchanged = deliveries.c.state == DeliveryState.PENDING
        await db.execute(update(deliveries).where(*matches, is_unchanged).values(due_at=one.due_at))


async def clean_up(
    tenant: TenantId, db: Db, endpoint: WebhookEndpointId, *, now: datetime, expired_before: datetime
) -> int:
    """Delete deliveries that ended long ago, and fail those that expired; return the number of the latter."""
    is_old = and_(deliveries.c.state.in_(_ENDED_STATES), deliveries.c.due_at <= now)
    await db.execute(delete(deliveries).where(*_of(tenant, endpoint), is_old))
    expired = (
        *_of(tenant, endpoint),
        deliveries.c.state == DeliveryState.PENDING,
        deliveries.c.expires_at <= expired_before,
    )
    reason = func.coalesce(deliveries.c.error, "no attempt was possible in time")
    ended = {"state": DeliveryState.FAILED, "error": reason, "ended_at": now, "due_at": now + RETENTION}
    return len((await db.execute(update(deliveries).where(*expired).values(**ended).returning(deliveries.c.id))).all())


async def next_times(
    tenant: TenantId, db: Db, endpoint: WebhookEndpointId
) -> tuple[datetime | None, datetime | None, datetime | None]:
    """The earliest attempt and the earliest expiry of a pending delivery, and the earliest deletion of another one."""
    pending = (*_of(tenant, endpoint), deliveries.c.state == DeliveryState.PENDING)
    earliest = select(func.min(deliveries.c.due_at), func.min(deliveries.c.expires_at)).where(*pending)
    row = (await db.execute(earliest)).one()
    oldest = select(func.min(deliveries.c.due_at)).where(*_of(tenant, endpoint), deliveries.c.state.in_(_ENDED_STATES))
    return row[0], row[1], (await db.execute(oldest)).scalar_one()


async def _count_pending(tenant: TenantId, db: Db, ids: Sequence[WebhookEndpointId]) -> Mapping[WebhookEndpointId, int]:
    is_one = (deliveries.c.tenant_id == tenant, deliveries.c.endpoint_id.in_(ids))
    counted = select(deliveries.c.endpoint_id, func.count()).where(*is_one, deliveries.c.state == DeliveryState.PENDING)
    rows = await db.execute(counted.group_by(deliveries.c.endpoint_id))
    return {WebhookEndpointId(row[0]): int(row[1]) for row in rows}


def _of(tenant: TenantId, endpoint: WebhookEndpointId) -> tuple[Any, ...]:
    return (deliveries.c.tenant_id == tenant, deliveries.c.endpoint_id == endpoint)
