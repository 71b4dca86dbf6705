"""The endpoint by which a tenant reports a changed resource."""

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint
from gateway.admin.requests.models import NoQuery
from gateway.admin.requests.primitives import ResourceChanged
from gateway.catalog.updates.resource_updates import report_update


async def report_resource_update(
    admin: AdminDependencies, call: AdminRequest[ResourceChanged, NoQuery]
) -> AdminResponse:
    """Publish the update to the clients that are subscribed to the resource."""
    await report_update(call.tenant, admin.catalog, call.body.uri)
    return AdminResponse(status=202)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/tenants/{t}/resources/updated",
        summary="Report that a resource's contents have changed; subscribed clients are notified.",
        handle=report_resource_update,
        body=ResourceChanged,
        query=NoQuery,
        answers={202: None},
    ),
)
