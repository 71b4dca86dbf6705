"""Tenants: created, read, renamed and removed by operators."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import structlog

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change, record
from gateway.domain.audit import AnchorKind
from gateway.domain.events import TenantRemoved
from gateway.domain.identifiers import TenantId, new_tenant_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.tenants import SLUG, DeletedTenant, Tenant
from gateway.errors import Conflict, NameConflict, NameTaken, NotFound
from gateway.store import tenants
from gateway.store.audit import anchors, deleted_tenants
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.hash_chain import CREATION, DELETION
from gateway.store.engine import Db
from gateway.store.kinds.singletons import POLICY

log = structlog.get_logger(__name__)

_MAX_NAMED = 10


async def create_tenant(catalog: CatalogContext, slug: str, name: str, *, by: Author) -> Tenant:
    """Create an empty tenant, with the anchor and the first entry of its audit trail.

    Raises:
        NameTaken: another tenant has the slug.
    """
    tenant = Tenant(id=new_tenant_id(), slug=slug, name=name, revision=1, created_at=datetime.now(UTC))
    entry = CatalogChange(action=CREATION, target=slug, after=tenant)
    try:
        async with catalog.store.transaction(tenant.id) as db:
            await tenants.insert(tenant, db)
            await POLICY.save(tenant.id, db, catalog.options.tenant_policy)  # guard: new-tenants-protected
            anchor_key = catalog.sealer.derive(ANCHOR_PURPOSE)
            await anchors.insert(tenant.id, db, key=anchor_key, kind=AnchorKind.CREATED)
            await record(tenant.id, catalog, entry, db=db, by=by, revision=tenant.revision)
    except NameTaken:
        conflict = NameConflict(name=slug, owner=f"tenant:{slug}")
        raise NameTaken(f"the slug {slug} is taken", conflicts=[conflict]) from None
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
            found = await deleted_tenants.page(db, slug=slug_or_id, limit=_MAX_NAMED + 1)
        if not found:
            raise
        if len(found) > 1:
            ids = ", ".join(one.id for one in found[:_MAX_NAMED])
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
        return await _get(tenant, db)


async def page_tenants(
    catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Tenant]:
    """One page of all tenants, for operators, by default sorted by slug."""
    async with catalog.store.lookup() as db:
        return await tenants.page(db, after=after, limit=limit, order=order)


async def rename_tenant(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> Tenant:
    """Change the display name of the tenant; its slug does not change.

    Raises:
        NotFound: the tenant does not exist.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="tenant.rename", target=tenant)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _get(tenant, db)
        check_version(replace(current, revision=current.revision - 1), expected)
        entry.target, entry.before, entry.after = current.slug, current, replace(current, name=name)
        await tenants.rename(tenant, db, name)
    return replace(current, name=name)


async def remove_tenant(tenant: TenantId, catalog: CatalogContext, *, by: Author, expected: Expected = None) -> None:
    """Remove the tenant with everything it owns except its audit trail.

    Raises:
        NotFound: the tenant does not exist.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action=DELETION, target=tenant)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _get(tenant, db)
        check_version(replace(current, revision=current.revision - 1), expected)
        entry.target, entry.before = current.slug, current
        await tenants.remove(tenant, db)
    log.info("tenant_removed", tenant=tenant, slug=current.slug, principal=by.caller.name)
    await announce(catalog, TenantRemoved(tenant=tenant))


async def _get(tenant: TenantId, db: Db) -> Tenant:
    found = await tenants.get(tenant, db)
    if found is None:
        raise NotFound("no such tenant")
    return found
