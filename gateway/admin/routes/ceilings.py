"""Endpoints of the ceilings of a tenant's limits: the tenant's admins can read them, the operator sets them."""

from dataclasses import replace

import msgspec

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.requests.models import AdminBoundsSent, CeilingsUpdate
from gateway.admin.responses.models import CeilingsShown
from gateway.catalog import ceilings
from gateway.catalog.etags import tag_of
from gateway.domain.tenancy.ceilings import NO_BOUNDS, AdminBounds, Ceilings, CeilingsInForce
from gateway.web.models import NoBody, NoQuery


async def get_ceilings(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the ceilings of the tenant's limits."""
    return _to_response(await ceilings.get_ceilings(call.tenant, admin.catalog))


async def update_ceilings(admin: AdminDependencies, call: AdminRequest[CeilingsUpdate, NoQuery]) -> AdminResponse:
    """Set the ceilings of the tenant's limits; absent fields keep their value, and null restores the default."""
    sent = {name: getattr(call.body, name) for name in call.body.model_fields_set}
    if "admin_bounds" in sent:
        sent["admin_bounds"] = _admin_bounds(call.body.admin_bounds)

    def revise(current: Ceilings) -> Ceilings:
        return replace(current, **sent)

    return _to_response(
        await ceilings.update_ceilings(call.tenant, admin.catalog, revise, by=call.by, expected=call.expected)
    )


def _admin_bounds(sent: AdminBoundsSent | None) -> AdminBounds:
    return NO_BOUNDS if sent is None else msgspec.convert(sent.model_dump(), AdminBounds)


def _to_response(found: CeilingsInForce) -> AdminResponse:
    return AdminResponse(content=CeilingsShown.of_tenant(found), tag=tag_of(found.own))


_PATH = "/tenants/{t}/ceilings"

ENDPOINTS = (  # guard: ceilings-of-the-operator
    endpoint("GET", _PATH, get_ceilings, NoBody, NoQuery, {200: CeilingsShown}, has_tag=True),
    endpoint(
        "PUT", _PATH, update_ceilings, CeilingsUpdate, NoQuery, {200: CeilingsShown}, scopes=OPERATOR_ONLY, has_tag=True
    ),
)
