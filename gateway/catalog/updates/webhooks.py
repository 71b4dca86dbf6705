"""Webhooks by which a tenant's own systems say that resources have changed: made, rotated, and what comes through them.

A delivery counts when it is signed with a secret of this webhook, was made within the last five minutes, and its id has
not come before. While a webhook is rotated, the secret before the newest stays good for a day.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import anyio
import structlog

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.catalog.updates.resource_updates import find_unknown, tell_updates
from gateway.catalog.updates.signatures import is_signed, new_secret
from gateway.domain.identifiers import TenantId, WebhookId, new_webhook_id
from gateway.domain.order import KEYED, Order
from gateway.domain.webhooks import SigningSecrets, Webhook
from gateway.errors import (
    BadInput,
    Conflict,
    Fault,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    RedisUnavailable,
    ReferenceMissing,
)
from gateway.store import tenants, webhooks
from gateway.store.engine import Db

log = structlog.get_logger(__name__)

MOST = 100
"""Webhooks of one tenant."""
OVERLAP = timedelta(days=1)
"""How long the secret before the last rotation stays good."""
TOLERANCE_S = 300
REMEMBERED_S = 24 * 3600
_LONGEST_ID = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a request claims to be, and its body as it came."""

    id: str
    at: str
    signatures: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleUse:
    """Where the ids of deliveries are remembered: `use` answers False when one came before, `free` forgets it."""

    use: Callable[[TenantId, str, int], Awaitable[bool]]
    free: Callable[[TenantId, str], Awaitable[None]]


async def create_webhook(tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author) -> tuple[Webhook, str]:
    """A new webhook and its secret, which is shown this once.

    Raises:
        NameTaken: the tenant has one of this name.
        LimitExceeded: the tenant has as many as it may.
    """
    now, secret = datetime.now(UTC), new_secret()
    made = Webhook(id=new_webhook_id(), name=name, version=1, retires_at=None, created_at=now, updated_at=now)
    entry = CatalogChange(action="webhook.create", target=name, detail={"id": made.id})
    async with change(tenant, catalog, entry, by=by) as db:
        if await webhooks.get(tenant, db, name) is not None:
            conflict = NameConflict(name=name, owner=f"webhook:{name}")
            raise NameTaken(f"there is a webhook {name} already", conflicts=[conflict])
        if await webhooks.count(tenant, db) >= MOST:
            raise LimitExceeded(f"the tenant may have {MOST} webhooks")
        await webhooks.insert(tenant, db, catalog.sealer, made, SigningSecrets(current=secret))
    return made, secret


async def rotate_webhook(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> tuple[Webhook, str]:
    """The webhook with a new secret, shown this once; the one before it stays good for a day.

    Raises:
        NotFound: the tenant has none.
        PreconditionFailed: it is another version than expected.
    """
    now, secret = datetime.now(UTC), new_secret()
    entry = CatalogChange(action="webhook.rotate", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        before = await webhooks.open_secrets(tenant, db, catalog.sealer, current.id, now=now)
        until = now.replace(microsecond=0) + OVERLAP
        rotated = replace(current, version=current.version + 1, retires_at=until, updated_at=now)
        entry.target, entry.detail = current.name, {"id": current.id, "old_until": until.isoformat()}
        signing = SigningSecrets(current=secret, previous=None if before is None else before.current)
        await webhooks.save(tenant, db, catalog.sealer, rotated, signing)
    return rotated, secret


async def get_webhook(tenant: TenantId, catalog: CatalogContext, name: str) -> Webhook:
    """The webhook of this name or id.

    Raises:
        NotFound: the tenant has none.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, name)


async def page_webhooks(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Webhook]:
    """The tenant's webhooks that follow a place in an order, by default that of names."""
    async with catalog.store.transaction(tenant) as db:
        return await webhooks.page(tenant, db, after=after, limit=limit, order=order)


async def remove_webhook(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Take nothing through this webhook any more.

    Raises:
        NotFound: the tenant has none.
        PreconditionFailed: it is another version than expected.
    """
    entry = CatalogChange(action="webhook.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail = current.name, {"id": current.id}
        await webhooks.remove(tenant, db, current.id)


def check_delivery(delivery: Delivery) -> None:
    """Refuse what cannot be right, whatever the secret is.

    Raises:
        BadInput: the id or the time has not its form, or the time is not about now.
    """
    if not delivery.id or len(delivery.id) > _LONGEST_ID or not delivery.id.isascii() or not delivery.signatures:
        raise BadInput("webhook-id, webhook-timestamp and webhook-signature are required")
    if not delivery.at.isascii() or not delivery.at.isdigit() or len(delivery.at) > len("9999999999"):
        raise BadInput("webhook-timestamp must be seconds since 1970")
    if abs(time.time() - int(delivery.at)) > TOLERANCE_S:
        raise BadInput(f"webhook-timestamp is more than {TOLERANCE_S} seconds from now")


async def verify_delivery(slug: str, catalog: CatalogContext, webhook: str, delivery: Delivery) -> TenantId:
    """Whose delivery it is, once it is clear that this webhook's sender signed it.

    Raises:
        NotFound: there is no such tenant, or it has no such webhook.
        BadInput: the signature is not of this webhook and body, or the time is wrong.
    """
    check_delivery(delivery)
    async with catalog.store.unscoped() as db:
        tenant = await tenants.find(db, slug)
    if tenant is None:
        raise NotFound("no such webhook")
    async with catalog.store.transaction(tenant.id) as db:
        signing = await webhooks.open_secrets(tenant.id, db, catalog.sealer, WebhookId(webhook), now=datetime.now(UTC))
    if signing is None:
        raise NotFound("no such webhook")
    if not is_signed(delivery.signatures, signing, delivery=delivery.id, at=delivery.at, body=delivery.body):
        raise BadInput("no signature of this webhook over this id, time and body")
    return tenant.id


async def take_delivery(
    tenant: TenantId,
    catalog: CatalogContext,
    webhook: str,
    delivery: Delivery,
    uris: Mapping[str, str],
    *,
    once: SingleUse,
) -> None:
    """Tell all replicas that these resources, by their places in the body, have changed: once, and all or none.

    Raises:
        Conflict: it came before.
        ReferenceMissing: the tenant has not all of these resources; the faults say which.
        RedisUnavailable: nobody knows whether it came before, or not everybody was told; it may come again.
    """
    named = f"hook:{webhook}:{hashlib.sha256(delivery.id.encode()).hexdigest()}"
    if not await once.use(tenant, named, REMEMBERED_S):
        raise Conflict("this delivery has arrived before")
    try:
        unknown = await find_unknown(tenant, catalog, list(uris.values()))
        if unknown:
            pointers = list(uris)
            faults = [Fault(pointer=pointers[place], reason="no such resource") for place in unknown]
            raise ReferenceMissing("the tenant does not have all of these resources", faults=faults)
        await tell_updates(tenant, catalog, list(uris.values()))
    except BaseException:  # also when the sender has gone: it will come again
        with anyio.CancelScope(shield=True):
            await _forget(once, tenant, named)
        raise
    log.info("webhook_delivered", tenant_id=tenant, webhook=webhook, delivery=delivery.id, resources=len(uris))


async def _forget(once: SingleUse, tenant: TenantId, named: str) -> None:
    try:
        await once.free(tenant, named)
    except RedisUnavailable:
        log.warning("delivery_not_forgotten", tenant_id=tenant)


async def _find(tenant: TenantId, db: Db, name: str) -> Webhook:
    found = await webhooks.get(tenant, db, name)
    if found is None:
        raise NotFound("no such webhook")
    return found
