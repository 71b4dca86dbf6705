"""Outbound webhook endpoints: creation, rotation, changes, and removal.

A URL must be https, unless the operator permits its host and port (`gateway.upstream.egress`). A disabled endpoint
receives no new events; a queued delivery is sent if the endpoint is enabled again before the delivery expires.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.egress import require_tls
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.catalog.updates.signatures import new_secret
from gateway.domain.identifiers import TenantId, new_webhook_endpoint_id
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import (
    Fault,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    ReferenceMissing,
    SecretUnreadable,
)
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.kinds.singletons import POLICY
from gateway.store.notifications import deliveries, webhook_endpoints

MAX_ENDPOINTS = 10
"""Limit on the outbound webhook endpoints of one tenant."""
OVERLAP = timedelta(days=1)
"""Time for which the previous secret also signs after a rotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDraft:
    """A requested outbound webhook endpoint."""

    name: str
    url: str
    kinds: tuple[str, ...]
    description: str = ""
    enabled: bool = True


async def create_endpoint(
    tenant: TenantId, catalog: CatalogContext, draft: EndpointDraft, *, by: Author
) -> tuple[OutboundWebhook, str]:
    """Create an endpoint and return it with its secret.

    Raises:
        InvalidBody: the URL is not https, and the operator does not permit its host and port.
        ReferenceMissing: the tenant's policy does not allow requests to this origin.
        NameTaken: the tenant has an endpoint of this name.
        LimitExceeded: the tenant has reached its limit of endpoints.
    """
    await require_tls(tenant, catalog, draft.url, "/url")
    now, secret = datetime.now(UTC), new_secret()
    new_endpoint = OutboundWebhook(
        id=new_webhook_endpoint_id(),
        name=draft.name,
        url=draft.url,
        kinds=draft.kinds,
        description=draft.description,
        enabled=draft.enabled,
        version=1,
        created_at=now,
        updated_at=now,
    )
    entry = CatalogChange(action="webhook_endpoint.create", target=draft.name, after=new_endpoint)
    entry.detail = {"id": new_endpoint.id}
    async with change(tenant, catalog, entry, by=by) as db:
        await _check_name(tenant, db, draft.name)
        if await webhook_endpoints.count(tenant, db) >= MAX_ENDPOINTS:  # guard: webhook-endpoints-bounded
            raise LimitExceeded(f"the tenant has {MAX_ENDPOINTS} webhook endpoints (the limit); delete unused ones")
        await _check_policy(tenant, db, draft.url)
        await webhook_endpoints.insert(tenant, db, catalog.sealer, new_endpoint, SigningSecrets(current=secret))
    return new_endpoint, secret


async def update_endpoint(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[EndpointDraft], EndpointDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> OutboundWebhook:
    """Replace an endpoint with the one that `revise` returns, and reset its failures and its notice.

    Raises:
        NotFound: the tenant has no such endpoint.
        InvalidBody, ReferenceMissing, NameTaken: as for a new endpoint.
        PreconditionFailed: the current version matches no expected tag.
    """
    await require_tls(tenant, catalog, revise(_draft_of(await get_endpoint(tenant, catalog, name))).url, "/url")
    entry = CatalogChange(action="webhook_endpoint.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_endpoint(tenant, db, name, locked=True)
        check_version(current, expected)
        draft = revise(_draft_of(current))
        if draft.name != current.name:
            await _check_name(tenant, db, draft.name)
        await _check_policy(tenant, db, draft.url)
        revised = replace(
            current,
            name=draft.name,
            url=draft.url,
            kinds=draft.kinds,
            description=draft.description,
            enabled=draft.enabled,
            notice=None,
            failures=0,
            failing_since=None,
            held_until=None,
            version=current.version + 1,
            updated_at=datetime.now(UTC),
        )
        entry.target, entry.detail = revised.name, {"id": revised.id}
        entry.before, entry.after = current, revised
        await webhook_endpoints.save(tenant, db, revised)
        await jobs.bring_forward(tenant, db, deliveries.job_of(tenant, revised.id, revised.updated_at))
    return revised


async def rotate_endpoint(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> tuple[OutboundWebhook, str]:
    """Rotate the secret of an endpoint; return the endpoint and the new secret.

    For a day, deliveries are signed with both secrets. A previous secret that no configured key decrypts is dropped.

    Raises:
        NotFound: the tenant has no such endpoint.
        PreconditionFailed: the current version matches no expected tag.
    """
    now, secret = datetime.now(UTC), new_secret()
    entry = CatalogChange(action="webhook_endpoint.rotate", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_endpoint(tenant, db, name, locked=True)
        check_version(current, expected)
        before = await _open_previous(tenant, catalog, db, current, now=now)
        until = now.replace(microsecond=0) + OVERLAP
        rotated = replace(current, version=current.version + 1, retires_at=until, updated_at=now)
        entry.target, entry.detail = current.name, {"id": current.id}
        entry.before, entry.after = current, rotated
        signing = SigningSecrets(current=secret, previous=None if before is None else before.current)
        await webhook_endpoints.save_secrets(tenant, db, catalog.sealer, rotated, signing)
    return rotated, secret


async def get_endpoint(tenant: TenantId, catalog: CatalogContext, name: str) -> OutboundWebhook:
    """The endpoint of this name or id.

    Raises:
        NotFound: the tenant has no such endpoint.
    """
    async with catalog.store.transaction(tenant) as db:
        return await find_endpoint(tenant, db, name)


async def page_endpoints(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[OutboundWebhook]:
    """One page of the tenant's endpoints, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await webhook_endpoints.page(tenant, db, after=after, limit=limit, order=order)


async def remove_endpoint(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete an endpoint with its deliveries and its job.

    Raises:
        NotFound: the tenant has no such endpoint.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="webhook_endpoint.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_endpoint(tenant, db, name, locked=True)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        await webhook_endpoints.remove(tenant, db, current.id)
        await jobs.remove(tenant, db, current.id)


async def find_endpoint(tenant: TenantId, db: Db, name: str, *, locked: bool = False) -> OutboundWebhook:
    """The endpoint of this name or id, in the caller's transaction.

    Raises:
        NotFound: the tenant has no such endpoint.
    """
    found = await webhook_endpoints.get(tenant, db, name, locked=locked)
    if found is None:
        raise NotFound("no such webhook endpoint")
    return found


async def is_allowed_origin(tenant: TenantId, db: Db, url: str) -> bool:
    """True if the tenant's policy allows requests to the origin of this URL."""
    allowed = (await POLICY.get(tenant, db)).http_origins
    return allowed is None or find_origin(url) in allowed


async def _open_previous(
    tenant: TenantId, catalog: CatalogContext, db: Db, endpoint: OutboundWebhook, *, now: datetime
) -> SigningSecrets | None:
    try:
        return await webhook_endpoints.open_secrets(tenant, db, catalog.sealer, endpoint.id, now=now)
    except SecretUnreadable:
        return None


async def _check_policy(tenant: TenantId, db: Db, url: str) -> None:
    if not await is_allowed_origin(tenant, db, url):
        reason = "the tenant's policy does not allow requests to this origin"
        raise ReferenceMissing(f"/url: {reason}", faults=[Fault(pointer="/url", reason=reason)])


async def _check_name(tenant: TenantId, db: Db, name: str) -> None:
    if await webhook_endpoints.get(tenant, db, name) is not None:
        conflict = NameConflict(name=name, owner=f"webhook_endpoint:{name}")
        raise NameTaken(f"a webhook endpoint {name} exists already", conflicts=[conflict])


def _draft_of(endpoint: OutboundWebhook) -> EndpointDraft:
    return EndpointDraft(
        name=endpoint.name,
        url=endpoint.url,
        kinds=endpoint.kinds,
        description=endpoint.description,
        enabled=endpoint.enabled,
    )
