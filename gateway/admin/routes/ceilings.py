"""Endpoints of the ceilings of a tenant's limits: the tenant's admins can read them, the operator sets them."""

from dataclasses import replace

from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.requests.models import CeilingsUpdate, NoBody, NoQuery
from gateway.admin.responses.models import CeilingsShown
from gateway.catalog import ceilings
from gateway.catalog.etags import tag_of
from gateway.domain.tenancy.ceilings import Ceilings, CeilingsInForce


async def get_ceilings(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the ceilings in force."""
    return _answer(await ceilings.get_ceilings(call.tenant, admin.catalog))


async def update_ceilings(admin: AdminDependencies, call: AdminRequest[CeilingsUpdate, NoQuery]) -> AdminResponse:
    """Change the ceilings; values that are not sent are kept."""
    sent = {name: getattr(call.body, name) for name in call.body.model_fields_set}

    def revise(current: Ceilings) -> Ceilings:
        return replace(current, **sent)

    return _answer(
        await ceilings.update_ceilings(call.tenant, admin.catalog, revise, by=call.by, expected=call.expected)
    )


def _answer(found: CeilingsInForce) -> AdminResponse:
    return AdminResponse(content=CeilingsShown.of_tenant(found), tag=tag_of(found.own))


_PATH = "/tenants/{t}/ceilings"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_PATH,
        summary="Show the ceilings of the tenant's limits.",
        handle=get_ceilings,
        body=NoBody,
        query=NoQuery,
        answers={200: CeilingsShown},
        has_tag=True,
    ),
    Endpoint(
        method="PUT",
        path=_PATH,
        summary="Set the ceilings of the tenant's limits; what is not sent stays, and null restores the default.",
        handle=update_ceilings,
        body=CeilingsUpdate,
        query=NoQuery,
        answers={200: CeilingsShown},
        scopes=OPERATOR_ONLY,
        has_tag=True,
    ),
)
