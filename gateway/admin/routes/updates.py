"""The endpoint for reporting a changed resource."""

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.requests.primitives import ResourceChanged
from gateway.catalog.updates.resource_updates import report_update
from gateway.web.models import NoQuery


async def report_resource_update(
    admin: AdminDependencies, call: AdminRequest[ResourceChanged, NoQuery]
) -> AdminResponse:
    """Report that a resource's contents have changed; subscribed clients are notified."""
    await report_update(call.tenant, admin.catalog, call.body.uri)
    return AdminResponse(status=202)


ENDPOINTS = (
    endpoint(
        "POST",
        "/tenants/{t}/resources/updated",
        report_resource_update,
        ResourceChanged,
        query=NoQuery,
        responses={202: None},
    ),
)
