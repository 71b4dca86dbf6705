"""The endpoint of deleted tenants."""

from functools import partial

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import NO_TENANT, OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.pagination import read_page
from gateway.admin.requests.lists import DeletedTenantQuery
from gateway.admin.responses.models import DeletedTenantPage, DeletedTenantShown
from gateway.catalog import tenants
from gateway.web.models import NoBody


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
        query=DeletedTenantQuery,
        responses={200: DeletedTenantPage},
        scopes=OPERATOR_ONLY,
    ),
)
