"""Webhooks through which a tenant's own systems report changed resources; their status has the path of deliveries."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.catalog.kinds.engines.signed_collection import SignedCollection
from gateway.catalog.tenants import get_tenant
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.webhooks import Webhook, WebhookStatus
from gateway.kinds.deliveries import WEBHOOK
from gateway.store.kinds.webhooks import WEBHOOKS as ROWS


async def _read_paths(tenant: TenantId, catalog: CatalogContext, found: Sequence[Webhook]) -> Sequence[WebhookStatus]:
    slug = (await get_tenant(tenant, catalog)).slug
    return [replace(one.status, path=f"/t/{slug}/hooks/{one.id}") for one in found]


WEBHOOKS = SignedCollection(kind=WEBHOOK, rows=ROWS, sealed=ROWS, compute=_read_paths)
