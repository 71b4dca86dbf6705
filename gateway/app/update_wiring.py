"""How the gateway hears that a resource changed, beside the admin API: webhooks that come in, URLs it looks at."""

from functools import partial

from gateway.app.infrastructure import Doors
from gateway.app.runtime import Inside
from gateway.catalog import idempotency
from gateway.catalog.transaction import Catalog
from gateway.catalog.updates import watches
from gateway.catalog.updates.webhooks import Once
from gateway.domain.identifiers import TenantId
from gateway.jobs.scheduler import Rounds
from gateway.jobs.watch_poller import Watching
from gateway.redis.sessions.stores import Backing
from gateway.web.webhooks import Hooks


def build_hooks(catalog: Catalog, inside: Inside, backing: Backing) -> Hooks:
    """What stands at the URLs of webhooks."""

    async def use(tenant: TenantId, named: str, for_s: int) -> bool:
        return await backing.nonces.use(tenant, named, for_s=for_s)

    return Hooks(catalog, inside.limiter, Once(use=use, free=backing.nonces.free))


def build_rounds(doors: Doors, catalog: Catalog, inside: Inside) -> Rounds:
    """The work that nobody asks for."""
    watching = Watching(catalog=catalog, named=inside.secrets.named)
    forgetting = partial(idempotency.clean_up, catalog)
    return Rounds(doors.store, {watches.KIND: watching.perform, idempotency.KIND: forgetting})
