"""Creation of tenants, and the lookup of existing and deleted ones."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.catalog.limits import MAX_NAMED
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, copy_to_installation, record
from gateway.domain.audit import AnchorKind
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.tenants import SLUG, DeletedTenant, Tenant
from gateway.errors import Conflict, NameConflict, NameTaken, NotFound
from gateway.kinds.identity import TENANT
from gateway.store import tenants
from gateway.store.audit import anchors, deleted_tenants
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.hash_chain import CREATION
from gateway.store.kinds.singletons import POLICY
from gateway.store.kinds.tenants import TENANTS


async def create_tenant(catalog: CatalogContext, slug: str, name: str, *, by: Author) -> Tenant:
    """Create an empty tenant, with the anchor and the first entry of its audit trail.

    Raises:
        NameTaken: another tenant has the slug.
    """
    creator = by.caller.key if isinstance(by.caller, Principal) else None
    tenant = replace(TENANT.make(slug, {"name": name}), created_by=creator)
    entry = CatalogChange(action=CREATION, target=slug, after=tenant)
    try:
        async with catalog.store.transaction(tenant.id) as db:
            await TENANTS.insert(tenant.id, db, tenant)
            await POLICY.save(tenant.id, db, catalog.options.tenant_policy)  # guard: new-tenants-protected
            anchor_key = catalog.sealer.derive(ANCHOR_PURPOSE)
            await anchors.insert(tenant.id, db, key=anchor_key, kind=AnchorKind.CREATED)
            await record(tenant.id, catalog, entry, db=db, by=by, revision=tenant.revision)
            moved = await copy_to_installation(tenant.id, catalog, entry, db=db, by=by)
    except NameTaken:
        conflict = NameConflict(name=slug, owner=f"tenant:{slug}")
        raise NameTaken(f"the slug {slug} is taken", conflicts=[conflict]) from None
    await announce(catalog, moved)
    return tenant


async def find_tenant(catalog: CatalogContext, slug_or_id: str) -> Tenant:
    """The tenant of this slug or id.

    Raises:
        NotFound: there is no such tenant.
    """
    if slug_or_id.startswith("ten_"):
        return await get_tenant(TenantId(slug_or_id), catalog)
    found = None
    if SLUG.fullmatch(slug_or_id):
        async with catalog.store.lookup() as db:
            found = await tenants.find(db, slug_or_id)
    if found is None:
        raise NotFound("no such tenant")
    return found


async def find_trail(catalog: CatalogContext, slug_or_id: str) -> TenantId:
    """The tenant of this slug or id whose audit trail the operator reads; if none exists, the deleted one.

    A deleted tenant is found by its id, and by its slug if no other tenant has had it.

    Raises:
        NotFound: there is no such tenant, and never was.
        Conflict: several deleted tenants had the slug; the message has their ids.
    """
    try:
        return (await find_tenant(catalog, slug_or_id)).id
    except NotFound:
        if slug_or_id.startswith("ten_"):
            return await _find_deleted(catalog, TenantId(slug_or_id))
        async with catalog.store.lookup() as db:
            found = await deleted_tenants.page(db, slug=slug_or_id, limit=MAX_NAMED + 1)
        if not found:
            raise
        if len(found) > 1:
            ids = ", ".join(one.id for one in found[:MAX_NAMED])
            raise Conflict(f"several deleted tenants had the slug {slug_or_id}; use an id: {ids}") from None
        return found[0].id


async def _find_deleted(catalog: CatalogContext, tenant: TenantId) -> TenantId:
    async with catalog.store.transaction(tenant) as db:
        if not await deleted_tenants.is_deleted(tenant, db):
            raise NotFound("no such tenant")
    return tenant


async def page_deleted(
    catalog: CatalogContext, *, after: str | None, limit: int, slug: str | None = None
) -> Sequence[DeletedTenant]:
    """One page of the deleted tenants, sorted by slug and id; `after` is a `position_of_deleted`."""
    position = None if after is None else after.partition(" ")
    async with catalog.store.lookup() as db:
        start = None if position is None else (position[0], position[2])
        return await deleted_tenants.page(db, slug=slug, after=start, limit=limit)


def position_of_deleted(tenant: DeletedTenant) -> str:
    """The cursor position of a deleted tenant."""
    return f"{tenant.slug} {tenant.id}"


async def get_tenant(tenant: TenantId, catalog: CatalogContext) -> Tenant:
    """The tenant with this id.

    Raises:
        NotFound: there is no such tenant.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await TENANTS.get(tenant, db, tenant)
    if found is None:
        raise NotFound("no such tenant")
    return found
