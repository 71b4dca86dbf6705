"""Deliveries to webhooks, through which a tenant's own systems report changed resources.

A delivery is accepted if a secret of this webhook signed it, its time is within five minutes of now, and its id is new.
Ids are remembered for 24 hours. After a rotation, the previous secret stays valid for a day.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import structlog

from gateway.catalog.kinds.webhooks import WEBHOOKS
from gateway.catalog.sources.refreshes import request_refreshes
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.limits import MAX_DELIVERY_ID_LENGTH, REMEMBERED_S, TOLERANCE_S
from gateway.catalog.updates.resource_updates import find_unknown, publish_updates
from gateway.catalog.updates.signatures import is_signed
from gateway.domain.identifiers import TenantId
from gateway.errors import (
    BadInput,
    Conflict,
    Fault,
    NotFound,
    RedisUnavailable,
    ReferenceMissing,
)
from gateway.store import tenants

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The unverified headers of a delivery, and its raw body."""

    id: str
    at: str
    signatures: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChanges:
    """The changes that a delivery reports, by pointer into its body: URIs of resources, or names of sources."""

    uris: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleUse:
    """Store of delivery ids: `use` returns False for a known id, `free` deletes it."""

    use: Callable[[TenantId, str, int], Awaitable[bool]]
    free: Callable[[TenantId, str], Awaitable[None]]


def check_delivery(delivery: Delivery) -> None:
    """Check the headers of a delivery without its secret.

    Raises:
        BadInput: a header is missing or malformed, or the time is over five minutes from now.
    """
    if (
        not delivery.id
        or len(delivery.id) > MAX_DELIVERY_ID_LENGTH
        or not delivery.id.isascii()
        or not delivery.signatures
    ):
        raise BadInput("webhook-id, webhook-timestamp and webhook-signature are required")
    if not delivery.at.isascii() or not delivery.at.isdigit() or len(delivery.at) > len("9999999999"):
        raise BadInput("webhook-timestamp must be seconds since 1970")
    if abs(time.time() - int(delivery.at)) > TOLERANCE_S:  # guard: webhook-time
        raise BadInput(f"webhook-timestamp is more than {TOLERANCE_S} seconds from now")


async def verify_delivery(slug: str, catalog: CatalogContext, webhook: str, delivery: Delivery) -> TenantId:
    """Verify the signature of a delivery and return the tenant of its webhook.

    Raises:
        NotFound: there is no such tenant, or it has no such webhook.
        BadInput: no signature matches this webhook and body, or `check_delivery` refuses the headers.
        SecretUnreadable: no configured key decrypts the webhook's secrets.
    """
    check_delivery(delivery)
    async with catalog.store.lookup() as db:
        tenant = await tenants.find(db, slug)
    if tenant is None:
        raise NotFound("no such webhook")
    async with catalog.store.transaction(tenant.id) as db:
        signing = await WEBHOOKS.open_secrets(tenant.id, db, catalog, webhook, now=datetime.now(UTC))
    if signing is None:
        raise NotFound("no such webhook")
    # guard: webhook-signature
    if not is_signed(delivery.signatures, signing, delivery=delivery.id, at=delivery.at, body=delivery.body):
        raise BadInput("no valid signature of this webhook for the id, time and body")
    return tenant.id


async def take_delivery(
    tenant: TenantId,
    catalog: CatalogContext,
    webhook: str,
    delivery: Delivery,
    *,
    changed: ReportedChanges,
    delivery_ids: SingleUse,
) -> None:
    """Process a delivery once per delivery id: publish its resources to all replicas, or make refreshes of its sources
    due.

    After a failure, the id is released, so that the sender can retry.

    Raises:
        Conflict: the delivery id was used in the last 24 hours.
        ReferenceMissing: the tenant lacks some of these resources or sources; the faults point at them.
        RedisUnavailable: the id could not be checked, or replicas may have missed events.
    """
    named = f"hook:{webhook}:{hashlib.sha256(delivery.id.encode()).hexdigest()}"
    if not await delivery_ids.use(tenant, named, REMEMBERED_S):  # guard: webhook-once
        raise Conflict("this delivery was received before")
    try:
        if changed.sources:
            await request_refreshes(tenant, catalog, changed.sources)
        else:
            await _announce(tenant, catalog, changed.uris)
    except BaseException:  # also if the sender has disconnected, because it will retry
        with anyio.CancelScope(shield=True):
            await _forget(delivery_ids, tenant, named)
        raise
    numbers = {"resources": len(changed.uris), "sources": len(changed.sources)}
    log.info("webhook_delivered", tenant_id=tenant, webhook=webhook, delivery=delivery.id, **numbers)


async def _announce(tenant: TenantId, catalog: CatalogContext, uris: Mapping[str, str]) -> None:
    unknown = await find_unknown(tenant, catalog, list(uris.values()))
    if unknown:
        pointers = list(uris)
        faults = [Fault(pointer=pointers[index], reason="no such resource") for index in unknown]
        raise ReferenceMissing("the tenant does not have all of these resources", faults=faults)
    await publish_updates(tenant, catalog, list(uris.values()))


async def _forget(delivery_ids: SingleUse, tenant: TenantId, named: str) -> None:
    try:
        await delivery_ids.free(tenant, named)
    except RedisUnavailable:
        log.warning("delivery_not_forgotten", tenant_id=tenant)
