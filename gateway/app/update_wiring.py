"""Wiring of incoming webhooks, and of background jobs: polling of watched URLs, clean-up of idempotency keys."""

from functools import partial

from gateway.app.infrastructure import Infrastructure
from gateway.app.runtime import Runtime
from gateway.catalog import idempotency
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates import watches
from gateway.catalog.updates.webhooks import SingleUse
from gateway.domain.identifiers import TenantId
from gateway.jobs.scheduler import JobScheduler
from gateway.jobs.watch_poller import WatchPoller
from gateway.web.webhooks import WebhookEndpoint


def build_hooks(catalog: CatalogContext, runtime: Runtime) -> WebhookEndpoint:
    """Build the endpoint of webhook deliveries."""
    nonces = runtime.stores.nonces

    async def use(tenant: TenantId, named: str, for_s: int) -> bool:
        return await nonces.use(tenant, named, for_s=for_s)

    return WebhookEndpoint(catalog, runtime.limiter, SingleUse(use=use, free=nonces.free))


def build_jobs(infrastructure: Infrastructure, catalog: CatalogContext, runtime: Runtime) -> JobScheduler:
    """Build the scheduler of background jobs."""
    watching = WatchPoller(catalog=catalog, upstream=infrastructure.upstream, named=runtime.secrets.named)
    forgetting = partial(idempotency.clean_up, catalog)
    return JobScheduler(infrastructure.store, {watches.KIND: watching.perform, idempotency.KIND: forgetting})
