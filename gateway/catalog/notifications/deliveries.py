"""Deliveries of outbound webhooks: the log, replays and tests, and the state of an endpoint between attempts.

`gateway.jobs` makes the attempts. It leases deliveries with `lease_deliveries`, stores each outcome with
`record_outcome`, and releases the rest with `release_deliveries`. A lease that its replica does not release expires,
and another replica repeats the attempt, so a delivery is made at least once.

After a failure, an endpoint is held: no attempt is made for a pause that doubles up to 5 minutes. A failure also ends
its batch. So an unavailable endpoint costs few attempts, regardless of the number of queued deliveries. Each delivery
has its own back-off as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import uniform

import structlog

from gateway.catalog.kinds.webhook_endpoints import ENDPOINTS, is_allowed_origin
from gateway.catalog.notifications.limits import MAX_ERROR_LENGTH, MAX_HOLD_S
from gateway.catalog.transaction import GATEWAY, Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.limits import MAX_DOUBLINGS
from gateway.domain.updates.webhook_endpoints import (
    TEST_KIND,
    DeliveryState,
    EndpointStatus,
    OutboundDelivery,
    OutboundWebhook,
)
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import Conflict, LimitExceeded, NotFound, SecretUnreadable
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.kinds.webhooks import ENDPOINTS as ROWS
from gateway.store.notifications import deliveries
from gateway.store.notifications.limits import MAX_QUEUED

log = structlog.get_logger(__name__)

KIND = deliveries.KIND
BATCH = 5
"""Deliveries that a replica leases at a time."""
LEASE = timedelta(minutes=2)
DISABLED_AFTER = timedelta(days=5)
"""Time without a successful attempt after which an endpoint is disabled."""
_BACKOFF_S = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 21_600.0, 36_000.0)
"""Pauses after the first attempts of a delivery; the last one repeats until the delivery expires."""
_JITTER = 0.2
_HTTP_GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedDeliveries:
    """Deliveries of one endpoint that this replica attempts now, in their state before the lease.

    `refusal` is the reason why nothing can be sent to the endpoint now; None otherwise.
    """

    tenant: TenantId
    endpoint: OutboundWebhook
    signing: SigningSecrets | None
    items: Sequence[OutboundDelivery]
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The outcome of one attempt: the HTTP status, if any, and the error; None means delivered."""

    status: int | None = None
    error: str | None = None


async def page_deliveries(
    tenant: TenantId, catalog: CatalogContext, name: str, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[OutboundDelivery]:
    """One page of an endpoint's deliveries.

    Raises:
        NotFound: the tenant has no such endpoint.
    """
    async with catalog.store.transaction(tenant) as db:
        endpoint = await ENDPOINTS.find(tenant, db, name)
        return await deliveries.page(tenant, db, endpoint.id, after=after, limit=limit, order=order)


async def get_delivery(tenant: TenantId, catalog: CatalogContext, name: str, delivery: str) -> OutboundDelivery:
    """One delivery of an endpoint.

    Raises:
        NotFound: the tenant has no such endpoint, or the endpoint no such delivery.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, await ENDPOINTS.find(tenant, db, name), delivery)


async def replay_delivery(
    tenant: TenantId, catalog: CatalogContext, name: str, delivery: str, *, by: Author
) -> OutboundDelivery:
    """Make a delivery due at once, under its own id; it expires after another 24 hours.

    Raises:
        NotFound: the tenant has no such endpoint, or the endpoint no such delivery.
        Conflict: the endpoint is disabled.
    """
    entry = CatalogChange(action="webhook_endpoint.replay", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        endpoint = await _prepare_endpoint(tenant, db, name)
        found = await _find(tenant, db, endpoint, delivery)
        now = datetime.now(UTC)
        requeued = replace(
            found,
            state=DeliveryState.PENDING,
            attempts=0,
            due_at=now,
            expires_at=now + deliveries.LIFETIME,
            ended_at=None,
        )
        entry.target, entry.detail = endpoint.name, {"id": endpoint.id, "delivery": found.id}
        if not await deliveries.settle(tenant, db, requeued, seen=found):
            raise Conflict("the delivery changed during the request; read it again")
        await jobs.bring_forward(tenant, db, deliveries.job_of(tenant, endpoint.id, now))
    return requeued


async def test_endpoint(tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author) -> OutboundDelivery:
    """Enqueue an event of the kind `webhook_endpoint.test`, which is sent at once.

    Raises:
        NotFound: the tenant has no such endpoint.
        Conflict: the endpoint is disabled.
        LimitExceeded: too many deliveries of the endpoint are queued.
    """
    entry = CatalogChange(action="webhook_endpoint.test", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        endpoint = await _prepare_endpoint(tenant, db, name)
        if await deliveries.is_full(tenant, db, endpoint.id):
            raise LimitExceeded(f"too many deliveries of this endpoint are queued (limit {MAX_QUEUED})")
        payload = {"endpoint": endpoint.id, "name": endpoint.name}
        test_delivery = deliveries.new_delivery(endpoint.id, TEST_KIND, payload, now=datetime.now(UTC))
        entry.target, entry.detail = endpoint.name, {"id": endpoint.id, "delivery": test_delivery.id}
        await deliveries.insert(tenant, db, test_delivery)
    return test_delivery


async def lease_deliveries(catalog: CatalogContext, due: Job) -> LeasedDeliveries | None:
    """Lease deliveries of the endpoint of a job, and reschedule the job; None if there is nothing to send now.

    Deliveries that ended long ago are deleted, and expired ones fail.
    """
    now, tenant = datetime.now(UTC), due.tenant
    until = now + LEASE
    async with catalog.store.transaction(tenant) as db:
        endpoint = await ROWS.get(tenant, db, due.id, locked=True)
        # The update locks the job: a delivery enqueued at the same time makes it due again after this transaction.
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=until):
            return None
        if endpoint is None:
            await jobs.remove(tenant, db, due.id)
            return None
        if expired := await deliveries.clean_up(tenant, db, endpoint.id, now=now, expired_before=now - LEASE):
            log.warning("webhook_deliveries_expired", tenant_id=tenant, endpoint=endpoint.id, number=expired)
        items: Sequence[OutboundDelivery] = ()
        # guard: webhook-endpoint-held
        is_held = endpoint.status.held_until is not None and endpoint.status.held_until > now
        if endpoint.enabled and not is_held:
            items = await deliveries.claim(tenant, db, endpoint.id, now=now, until=until, limit=BATCH)
        probe_until = until if items and endpoint.status.failures else None
        await _reschedule(tenant, db, endpoint, earliest=probe_until or endpoint.status.held_until)
        if not items:
            return None
        signing, refusal = await _open(tenant, catalog, db, endpoint, now=now)
        return LeasedDeliveries(tenant=tenant, endpoint=endpoint, signing=signing, items=items, refusal=refusal)


async def record_outcome(
    catalog: CatalogContext, leased: LeasedDeliveries, seen: OutboundDelivery, outcome: AttemptOutcome
) -> DeliveryState:
    """Store the outcome of an attempt at `seen`; return the state of the delivery afterwards."""
    now, tenant = datetime.now(UTC), leased.tenant
    updated = _delivery_after(seen, outcome, now=now)
    async with catalog.store.transaction(tenant) as db:
        endpoint = await ROWS.get(tenant, db, leased.endpoint.id, locked=True)
        if endpoint is None or not await deliveries.settle(tenant, db, updated, seen=seen):
            return updated.state
        await jobs.bring_forward(tenant, db, deliveries.job_of(tenant, endpoint.id, now))
        if endpoint.version != leased.endpoint.version:  # guard: webhook-outcome-of-this-version
            return updated.state
        updated_endpoint = _endpoint_after(endpoint, outcome, now=now)
        if updated_endpoint != endpoint:
            await ROWS.write(tenant, db, updated_endpoint)
    if (reason := _reason_to_disable(updated_endpoint, outcome, now=now)) is not None:
        await _disable(catalog, leased, seen, reason)
    return updated.state


async def release_deliveries(
    catalog: CatalogContext, leased: LeasedDeliveries, left: Sequence[OutboundDelivery]
) -> None:
    """End the lease of deliveries that were not attempted."""
    async with catalog.store.transaction(leased.tenant) as db:
        await ROWS.get(leased.tenant, db, leased.endpoint.id, locked=True)  # see `gateway.store.jobs`
        await deliveries.release(leased.tenant, db, leased.endpoint.id, left)


def _delivery_after(seen: OutboundDelivery, outcome: AttemptOutcome, *, now: datetime) -> OutboundDelivery:
    """The delivery after an attempt: ended, or due again after its back-off."""
    attempted = replace(
        seen,
        attempts=seen.attempts + 1,
        status=outcome.status,
        error=None if outcome.error is None else outcome.error[:MAX_ERROR_LENGTH],
        attempted_at=now,
    )
    pause_s = _BACKOFF_S[min(seen.attempts, len(_BACKOFF_S) - 1)]
    again_at = now + timedelta(seconds=_with_jitter(pause_s))
    if outcome.error is not None and outcome.status != _HTTP_GONE and again_at < seen.expires_at:
        return replace(attempted, due_at=again_at)
    state = DeliveryState.DELIVERED if outcome.error is None else DeliveryState.FAILED
    return replace(attempted, state=state, ended_at=now, due_at=now + deliveries.RETENTION)


def _endpoint_after(endpoint: OutboundWebhook, outcome: AttemptOutcome, *, now: datetime) -> OutboundWebhook:
    """The endpoint after an attempt: held after a failure; after a success, not held, and without a notice."""
    if outcome.error is None:
        return replace(endpoint, status=EndpointStatus(old_secret_until=endpoint.status.old_secret_until))
    pause_s = min(MAX_HOLD_S, _BACKOFF_S[0] * 2.0 ** min(endpoint.status.failures, MAX_DOUBLINGS))
    status = replace(
        endpoint.status,
        failures=endpoint.status.failures + 1,
        failing_since=endpoint.status.failing_since or now,
        held_until=now + timedelta(seconds=_with_jitter(pause_s)),
    )
    return replace(endpoint, status=status)


def _reason_to_disable(endpoint: OutboundWebhook, outcome: AttemptOutcome, *, now: datetime) -> str | None:
    if outcome.error is None or not endpoint.enabled:
        return None
    if outcome.status == _HTTP_GONE:
        return "disabled: the endpoint responded with 410 (Gone)"
    if endpoint.status.failing_since is not None and now - endpoint.status.failing_since >= DISABLED_AFTER:
        return f"disabled: no attempt has succeeded for {DISABLED_AFTER.days} days"
    return None


async def _disable(catalog: CatalogContext, leased: LeasedDeliveries, seen: OutboundDelivery, reason: str) -> None:
    """Disable the endpoint in a separate change, which is audited."""
    by = Author(caller=GATEWAY, correlation_id=seen.id)
    entry = CatalogChange(action="webhook_endpoint.disable", target=leased.endpoint.name)
    async with change(leased.tenant, catalog, entry, by=by) as db:
        endpoint = await ENDPOINTS.find(leased.tenant, db, leased.endpoint.id, locked=True)
        now = datetime.now(UTC)
        status = replace(endpoint.status, notice=reason)
        disabled = replace(endpoint, enabled=False, status=status, version=endpoint.version + 1, updated_at=now)
        entry.target, entry.detail = endpoint.name, {"id": endpoint.id, "reason": reason}
        await ROWS.write(leased.tenant, db, disabled)
    log.warning("webhook_endpoint_disabled", tenant_id=leased.tenant, endpoint=leased.endpoint.id, reason=reason)


async def _open(
    tenant: TenantId, catalog: CatalogContext, db: Db, endpoint: OutboundWebhook, *, now: datetime
) -> tuple[SigningSecrets | None, str | None]:
    """The secrets that sign now, or the reason why nothing can be sent."""
    if not await is_allowed_origin(tenant, db, endpoint.url):  # guard: webhook-endpoint-origin
        return None, "The tenant's policy does not allow requests to this origin."
    try:
        return await ENDPOINTS.open_secrets(tenant, db, catalog, endpoint.id, now=now), None
    except SecretUnreadable:
        return None, "The endpoint's secret cannot be read; rotate it."


async def _reschedule(tenant: TenantId, db: Db, endpoint: OutboundWebhook, *, earliest: datetime | None) -> None:
    """Make the job due when the next delivery is due, expires or is to be deleted; attempts wait for `earliest`."""
    attempt_at, expires_at, delete_at = await deliveries.next_times(tenant, db, endpoint.id)
    if attempt_at is not None and earliest is not None:
        attempt_at = max(attempt_at, earliest)
    expires_at = None if expires_at is None else expires_at + LEASE
    times = [attempt_at if endpoint.enabled else expires_at, delete_at]
    due_times = [time for time in times if time is not None]
    if due_times:
        await jobs.schedule(tenant, db, deliveries.job_of(tenant, endpoint.id, min(due_times)))
    else:
        await jobs.remove(tenant, db, endpoint.id)


async def _prepare_endpoint(tenant: TenantId, db: Db, name: str) -> OutboundWebhook:
    """The endpoint, if it is enabled; its hold ends, so that the next attempt is made at once."""
    endpoint = await ENDPOINTS.find(tenant, db, name, locked=True)
    if not endpoint.enabled:
        raise Conflict("the endpoint is disabled; enable it first")
    if endpoint.status.held_until is not None:
        await ROWS.write(tenant, db, replace(endpoint, status=replace(endpoint.status, held_until=None)))
    return endpoint


async def _find(tenant: TenantId, db: Db, endpoint: OutboundWebhook, delivery: str) -> OutboundDelivery:
    found = await deliveries.get(tenant, db, endpoint.id, delivery)
    if found is None:
        raise NotFound("no such delivery")
    return found


def _with_jitter(seconds: float) -> float:
    return seconds * uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  # only spreads the load
