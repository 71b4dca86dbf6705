"""Keys that can approve the calls of a subject."""

from collections.abc import Sequence

from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.store.identity import keys
from gateway.store.kinds.singletons import ACCESS


async def has_approver(tenant: TenantId, catalog: CatalogContext, requester: str) -> bool:
    """True if a valid key of another subject, or a person, can approve this subject's calls."""
    async with catalog.store.transaction(tenant) as db:
        is_by_key = await keys.granted_to_others(tenant, db, Scope.APPROVE, besides=requester, limit=1)
        return bool(is_by_key or (await ACCESS.get(tenant, db)).approvers)


async def approving_keys(
    tenant: TenantId, catalog: CatalogContext, requester: str, *, limit: int
) -> Sequence[tuple[KeyId, str]]:
    """Ids and names of the valid keys that can approve this subject's calls, the oldest first."""
    async with catalog.store.transaction(tenant) as db:
        return await keys.granted_to_others(tenant, db, Scope.APPROVE, besides=requester, limit=limit)
