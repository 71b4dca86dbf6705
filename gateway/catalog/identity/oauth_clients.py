"""Clients of a tenant's authorization server: registered by administrators or by themselves, changed, and removed."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.consents import announce_ended
from gateway.catalog.identity.sign_ins import UNUSED, schedule_clean_up
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import TenantId, new_client_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.grant_secrets import digest_of
from gateway.domain.tenancy.grants import ClientKind, GrantFilter, OAuthClient
from gateway.errors import Conflict, LimitExceeded, NotFound
from gateway.store.engine import Db
from gateway.store.identity import consents, grants, oauth_clients

MAX_REGISTERED = 200
"""Limit on the clients that administrators of one tenant register."""
MAX_DYNAMIC = 500
"""Limit on the clients that registered themselves; the oldest unused client is then replaced."""
_MIN_UNUSED_AGE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDraft:
    """A requested client; a confidential one gets a secret."""

    name: str
    redirect_uris: tuple[str, ...]
    is_confidential: bool = False


async def create_client(
    tenant: TenantId, catalog: CatalogContext, draft: ClientDraft, *, by: Author
) -> tuple[OAuthClient, str | None]:
    """Register a client; return it with its secret, of which only a digest is stored.

    Raises:
        LimitExceeded: the tenant has reached its limit of clients.
    """
    secret = secrets.token_urlsafe(32) if draft.is_confidential else None
    new_client = OAuthClient(
        id=new_client_id(),
        kind=ClientKind.REGISTERED,
        name=draft.name,
        redirect_uris=draft.redirect_uris,
        secret=None if secret is None else digest_of(secret),
        created_at=datetime.now(UTC),
    )
    async with change(
        tenant, catalog, CatalogChange(action="client.create", target=new_client.id, after=new_client), by=by
    ) as db:
        if await oauth_clients.count(tenant, db, ClientKind.REGISTERED) >= MAX_REGISTERED:  # guard: clients-bounded
            raise LimitExceeded(f"the tenant has {MAX_REGISTERED} clients (the limit); delete unused ones")
        await oauth_clients.insert(tenant, db, new_client)
    return new_client, secret


async def enter_client(tenant: TenantId, catalog: CatalogContext, client: OAuthClient) -> None:
    """Store a client that registers itself; it replaces an old unused client if the limit is reached.

    Raises:
        LimitExceeded: the tenant has too many such clients, all of them used or new.
    """
    async with catalog.store.transaction(tenant) as db:
        await schedule_clean_up(tenant, db, client.created_at + UNUSED)
        if await oauth_clients.count(tenant, db, ClientKind.DYNAMIC) >= MAX_DYNAMIC:  # guard: registrations-bounded
            oldest = await oauth_clients.oldest_unused(tenant, db)
            if oldest is None or oldest.created_at > client.created_at - _MIN_UNUSED_AGE:
                message = f"{MAX_DYNAMIC} clients have registered themselves at the tenant (the limit)"
                raise LimitExceeded(
                    f"{message}; retry later, or ask the tenant's administrator to delete unused ones",
                    retry_after_s=_MIN_UNUSED_AGE.total_seconds(),
                )
            await oauth_clients.remove(tenant, db, oldest.id)
        await oauth_clients.insert(tenant, db, client)


async def find_client(tenant: TenantId, catalog: CatalogContext, client: str) -> OAuthClient | None:
    """The stored client with this id; None if there is none."""
    if not client.isprintable():  # PostgreSQL cannot store NUL in a string
        return None
    async with catalog.store.transaction(tenant) as db:
        return await oauth_clients.get(tenant, db, client)


async def get_client(tenant: TenantId, catalog: CatalogContext, client: str) -> OAuthClient:
    """The client with this id.

    Raises:
        NotFound: the tenant has no such client.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, client)


async def page_clients(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[OAuthClient]:
    """One page of the tenant's clients, by default sorted by id."""
    async with catalog.store.transaction(tenant) as db:
        return await oauth_clients.page(tenant, db, after=after, limit=limit, order=order)


async def update_client(
    tenant: TenantId,
    catalog: CatalogContext,
    client: str,
    revise: Callable[[OAuthClient], OAuthClient],
    *,
    by: Author,
    expected: Expected = None,
) -> OAuthClient:
    """Replace a client with the one that `revise` returns; callers change its name and redirect URIs.

    Raises:
        NotFound: the tenant has no such client.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="client.update", target=client)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, client, locked=True)
        check_version(current, expected)
        saved = replace(revise(current), version=current.version + 1)
        entry.before, entry.after = current, saved
        await oauth_clients.save(tenant, db, saved)
    return saved


async def rotate_client(
    tenant: TenantId, catalog: CatalogContext, client: str, *, by: Author, expected: Expected = None
) -> tuple[OAuthClient, str]:
    """Replace the secret of a client and return the new one; the former secret is refused at once.

    Raises:
        NotFound: the tenant has no such client.
        Conflict: the client has no secret.
        PreconditionFailed: the current version matches no expected tag.
    """
    secret = secrets.token_urlsafe(32)
    entry = CatalogChange(action="client.rotate", target=client)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, client, locked=True)
        check_version(current, expected)
        if current.secret is None:
            raise Conflict("the client has no secret: it is not confidential")
        saved = replace(current, secret=digest_of(secret), version=current.version + 1)
        await oauth_clients.save(tenant, db, saved)
    return saved, secret


async def remove_client(
    tenant: TenantId, catalog: CatalogContext, client: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete a client with its consents, and revoke its grants.

    Raises:
        NotFound: the tenant has no such client.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="client.delete", target=client)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, client, locked=True)
        check_version(current, expected)
        grant_filter = GrantFilter(client=current.id)
        revoked = await grants.revoke(tenant, db, grant_filter, at=datetime.now(UTC), reason=by.caller.name)
        entry.before, entry.detail = current, {"grants": len(revoked)}
        await consents.remove_client(tenant, db, current.id)
        await oauth_clients.remove(tenant, db, current.id)
    await announce_ended(tenant, catalog, revoked)


async def _find(tenant: TenantId, db: Db, client: str, *, locked: bool = False) -> OAuthClient:
    found = await oauth_clients.get(tenant, db, client, locked=locked)
    if found is None:
        raise NotFound("no such client")
    return found
