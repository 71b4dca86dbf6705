"""Endpoints of tenants."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from gateway.admin.crud import Noun, endpoint
from gateway.admin.endpoint import NO_TENANT, OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.list_search import TENANTS
from gateway.admin.pagination import read_page
from gateway.admin.requests.lists import DeletedTenantQuery, TenantListQuery
from gateway.admin.requests.models import TenantCreate, TenantUpdate
from gateway.admin.responses.models import DeletedTenantPage, DeletedTenantShown, TenantPage, TenantShown
from gateway.catalog import tenants
from gateway.catalog.etags import Expected
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.order import Order
from gateway.domain.tenancy.tenants import Tenant
from gateway.web.models import NoBody, NoQuery


async def _show(admin: AdminDependencies, _: TenantId, found: Sequence[Tenant]) -> Sequence[TenantShown]:
    return [TenantShown.at(one, admin.catalog.options.mcp_base_url) for one in found]


_NOUN: Noun[Tenant] = Noun(singular="tenant", path="/tenants", key="t", shown=TenantShown, show=_show)


async def create_tenant(admin: AdminDependencies, call: AdminRequest[TenantCreate, NoQuery]) -> AdminResponse:
    """Create a tenant."""
    body = call.body
    made = await tenants.create_tenant(admin.catalog, body.slug, body.name or body.slug, by=call.by)
    return replace(await _NOUN.respond(admin, call, made), status=201, location=f"/tenants/{quote(made.slug)}")


async def update_tenant(admin: AdminDependencies, call: AdminRequest[TenantUpdate, NoQuery]) -> AdminResponse:
    """Change the display name of a tenant."""
    renamed = await tenants.rename_tenant(
        call.tenant, admin.catalog, call.body.name, by=call.by, expected=call.expected
    )
    return await _NOUN.respond(admin, call, renamed)


async def _page(
    _: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order
) -> Sequence[Tenant]:
    return await tenants.page_tenants(catalog, after=after, limit=limit, order=order)


async def _get(tenant: TenantId, catalog: CatalogContext, _: str) -> Tenant:
    return await tenants.get_tenant(tenant, catalog)


async def _remove(tenant: TenantId, catalog: CatalogContext, _: str, *, by: Author, expected: Expected) -> None:
    await tenants.remove_tenant(tenant, catalog, by=by, expected=expected)


async def list_deleted_tenants(
    admin: AdminDependencies, call: AdminRequest[NoBody, DeletedTenantQuery]
) -> AdminResponse:
    """List the deleted tenants, whose audit trails are read by id, or by slug where it is unambiguous."""
    read = partial(tenants.page_deleted, admin.catalog, slug=call.query.slug)
    position = tenants.position_of_deleted
    found, cursor = await read_page(admin.cursors, NO_TENANT, "deleted-tenants", call.query, read=read, key=position)
    items = [DeletedTenantShown.of(one) for one in found]
    return AdminResponse(content=DeletedTenantPage(items=items, next_cursor=cursor))


ENDPOINTS = (
    endpoint(
        "GET",
        "/deleted-tenants",
        list_deleted_tenants,
        NoBody,
        DeletedTenantQuery,
        {200: DeletedTenantPage},
        scopes=OPERATOR_ONLY,
    ),
    _NOUN.list_route("List the tenants.", _page, TENANTS, TenantListQuery, TenantPage, scopes=OPERATOR_ONLY),
    _NOUN.create_route(create_tenant, TenantCreate, scopes=OPERATOR_ONLY, problems={409}),
    _NOUN.show_route("Show a tenant.", _get),
    _NOUN.update_route(update_tenant, TenantUpdate, scopes=OPERATOR_ONLY),
    _NOUN.delete_route(
        "Delete a tenant with everything that it owns except its audit trail.", _remove, scopes=OPERATOR_ONLY
    ),
)
