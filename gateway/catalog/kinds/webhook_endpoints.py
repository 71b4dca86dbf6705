"""Outbound webhook endpoints: special checks, and the job of an endpoint.

A URL must be https, unless the operator permits its host and port (`gateway.upstream.egress`). A disabled endpoint
receives no new events; a queued delivery is sent if the endpoint is enabled again before the delivery expires.
"""

from gateway.catalog.egress import require_tls
from gateway.catalog.kinds.engines.signed_collection import SignedCollection
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.errors import Fault, ReferenceMissing
from gateway.kinds.deliveries import WEBHOOK_ENDPOINT
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.kinds.singletons import POLICY
from gateway.store.kinds.webhooks import ENDPOINTS as ROWS
from gateway.store.notifications import deliveries


async def _prepare(tenant: TenantId, catalog: CatalogContext, wanted: OutboundWebhook, by: Author) -> None:
    del by
    await require_tls(tenant, catalog, wanted.url, "/url")


async def _check(opened: OpenChanges, current: OutboundWebhook | None, wanted: OutboundWebhook) -> None:
    del current
    if not await is_allowed_origin(opened.tenant, opened.db, wanted.url):
        reason = "the tenant's policy does not allow requests to this origin"
        raise ReferenceMissing(f"/url: {reason}", faults=[Fault(pointer="/url", reason=reason)])


async def _write_job(opened: OpenChanges, before: OutboundWebhook | None, after: OutboundWebhook | None) -> None:
    """Bring the next attempt forward after a change; a removed endpoint has no job."""
    if after is None:
        if before is not None:
            await jobs.remove(opened.tenant, opened.db, before.id)
    elif before is not None:
        job = deliveries.job_of(opened.tenant, after.id, after.updated_at)
        await jobs.bring_forward(opened.tenant, opened.db, job)


async def is_allowed_origin(tenant: TenantId, db: Db, url: str) -> bool:
    """True if the tenant's policy allows requests to the origin of this URL."""
    allowed = (await POLICY.get(tenant, db)).http_origins
    return allowed is None or find_origin(url) in allowed


ENDPOINTS = SignedCollection(
    kind=WEBHOOK_ENDPOINT,
    rows=ROWS,
    sealed=ROWS,
    prepare=_prepare,
    check=_check,
    written=_write_job,
    is_locked=True,
)
