"""The tenants of the installation; `gateway.catalog.tenants` creates them."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.tenants import create_tenant
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.events import TenantRemoved
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.tenants import Tenant, TenantStatus
from gateway.kinds.identity import TENANT
from gateway.store import tenants
from gateway.store.kinds.tenants import TENANTS as ROWS

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantCollection(Collection[Tenant]):
    """The tenants; each is changed and removed in a transaction that is scoped to it."""

    async def create_with_secret(
        self, tenant: TenantId, catalog: CatalogContext, new: Tenant, *, by: Author
    ) -> tuple[Tenant, str | None]:
        """Create a tenant; see `create_tenant`."""
        del tenant
        return await create_tenant(catalog, new.slug, new.name, by=by), None

    async def page(
        self, tenant: TenantId, catalog: CatalogContext, /, *, after: str | None, limit: int, order: Order = KEYED
    ) -> Sequence[Tenant]:
        """One page of all tenants, for operators, by default sorted by slug."""
        del tenant
        async with catalog.store.lookup() as db:
            return await tenants.page(db, after=after, limit=limit, order=order)


async def _announce_removal(opened: OpenChanges, before: Tenant | None, after: Tenant | None) -> None:
    if before is not None and after is None:
        log.info("tenant_removed", tenant=before.id, slug=before.slug, principal=opened.by.caller.name)
        opened.announce(TenantRemoved(tenant=before.id))


async def _find_places(_: TenantId, catalog: CatalogContext, found: Sequence[Tenant]) -> Sequence[TenantStatus]:
    base = (catalog.options.mcp_base_url or "").rstrip("/")
    return [TenantStatus(revision=one.version, mcp_url=f"{base}/t/{one.slug}/mcp") for one in found]


TENANTS = TenantCollection(kind=TENANT, rows=ROWS, written=_announce_removal, compute=_find_places)
