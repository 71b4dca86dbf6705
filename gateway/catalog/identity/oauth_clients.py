"""Clients that register themselves at a tenant's authorization server, and the lookup of stored clients."""

from gateway.catalog.identity.limits import MAX_DYNAMIC_CLIENTS, MIN_UNUSED_AGE
from gateway.catalog.identity.sign_ins import UNUSED, schedule_clean_up
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.grants import OAuthClient
from gateway.errors import LimitExceeded
from gateway.store.identity import oauth_clients
from gateway.store.kinds.oauth_clients import CLIENTS


async def enter_client(tenant: TenantId, catalog: CatalogContext, client: OAuthClient) -> None:
    """Store a client that registers itself; it replaces an old unused client if the limit is reached.

    Raises:
        LimitExceeded: the tenant has too many such clients, all of them used or new.
    """
    async with catalog.store.transaction(tenant) as db:
        await schedule_clean_up(tenant, db, client.created_at + UNUSED)
        if await oauth_clients.count_dynamic(tenant, db) >= MAX_DYNAMIC_CLIENTS:  # guard: registrations-bounded
            oldest = await oauth_clients.oldest_unused(tenant, db)
            if oldest is None or oldest.created_at > client.created_at - MIN_UNUSED_AGE:
                message = f"{MAX_DYNAMIC_CLIENTS} clients have registered themselves at the tenant (the limit)"
                raise LimitExceeded(
                    f"{message}; retry later, or ask the tenant's administrator to delete unused ones",
                    retry_after_s=MIN_UNUSED_AGE.total_seconds(),
                )
            await CLIENTS.remove(tenant, db, oldest.id)
        await CLIENTS.insert(tenant, db, client)


async def find_client(tenant: TenantId, catalog: CatalogContext, client: str) -> OAuthClient | None:
    """The stored client with this id; None if there is none."""
    if not client.isprintable():  # PostgreSQL cannot store NUL in a string
        return None
    async with catalog.store.transaction(tenant) as db:
        return await CLIENTS.get(tenant, db, client)
