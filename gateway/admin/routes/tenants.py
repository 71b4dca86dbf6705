"""Endpoints of tenants."""

from functools import partial
from urllib.parse import quote

from gateway.admin.endpoint import ADMIN, OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.listings import TENANTS
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import TenantListQuery
from gateway.admin.requests.models import NoBody, NoQuery, TenantCreate, TenantUpdate
from gateway.admin.responses.models import TenantPage, TenantShown
from gateway.catalog import tenants
from gateway.catalog.etags import tag_of
from gateway.domain.tenancy.tenants import Tenant


async def list_tenants(admin: AdminDependencies, call: AdminRequest[NoBody, TenantListQuery]) -> AdminResponse:
    """List all tenants, by default by slug."""
    read = partial(tenants.page_tenants, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, TENANTS, call.query, read=read)
    return AdminResponse(content=TenantPage(items=[TenantShown.of(tenant) for tenant in shown], next_cursor=cursor))


async def create_tenant(admin: AdminDependencies, call: AdminRequest[TenantCreate, NoQuery]) -> AdminResponse:
    """Create a tenant."""
    body = call.body
    made = await tenants.create_tenant(admin.catalog, body.slug, body.name or body.slug, by=call.by)
    return _answer(made, status=201, location=f"/tenants/{quote(made.slug)}")


async def get_tenant(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a tenant."""
    return _answer(await tenants.get_tenant(call.tenant, admin.catalog))


async def update_tenant(admin: AdminDependencies, call: AdminRequest[TenantUpdate, NoQuery]) -> AdminResponse:
    """Change the display name of a tenant."""
    renamed = await tenants.rename_tenant(
        call.tenant, admin.catalog, call.body.name, by=call.by, expected=call.expected
    )
    return _answer(renamed)


async def delete_tenant(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Delete a tenant."""
    await tenants.remove_tenant(call.tenant, admin.catalog, by=call.by, expected=call.expected)
    return AdminResponse(status=204)


def _answer(tenant: Tenant, *, status: int = 200, location: str | None = None) -> AdminResponse:
    return AdminResponse(status=status, content=TenantShown.of(tenant), tag=tag_of(tenant), location=location)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/tenants",
        summary="List the tenants.",
        handle=list_tenants,
        body=NoBody,
        query=TenantListQuery,
        answers={200: TenantPage},
        scopes=OPERATOR_ONLY,
    ),
    Endpoint(
        method="POST",
        path="/tenants",
        summary="Create a tenant.",
        handle=create_tenant,
        body=TenantCreate,
        query=NoQuery,
        answers={201: TenantShown},
        scopes=OPERATOR_ONLY,
        problems=frozenset({409}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path="/tenants/{t}",
        summary="Show a tenant.",
        handle=get_tenant,
        body=NoBody,
        query=NoQuery,
        answers={200: TenantShown},
        scopes=ADMIN,
        has_tag=True,
    ),
    Endpoint(
        method="PATCH",
        path="/tenants/{t}",
        summary="Give a tenant another name for people.",
        handle=update_tenant,
        body=TenantUpdate,
        query=NoQuery,
        answers={200: TenantShown},
        scopes=OPERATOR_ONLY,
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path="/tenants/{t}",
        summary="Remove a tenant with everything that is its own but its audit trail.",
        handle=delete_tenant,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        scopes=OPERATOR_ONLY,
        has_tag=True,
    ),
)
