"""Endpoints of a tenant's private upstreams: the operator sets them, the tenant's admins can read them."""

from gateway.admin.endpoint import ADMIN, OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.requests.models import EgressReplace, NoBody, NoQuery
from gateway.admin.responses.models import EgressShown
from gateway.catalog import egress
from gateway.catalog.etags import tag_of
from gateway.domain.tenancy.egress import Egress


async def get_egress(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the tenant's private upstreams."""
    return _answer(await egress.get_egress(call.tenant, admin.catalog))


async def replace_egress(admin: AdminDependencies, call: AdminRequest[EgressReplace, NoQuery]) -> AdminResponse:
    """Replace the tenant's private upstreams."""
    saved = await egress.replace_egress(call.tenant, admin.catalog, call.body.allow, by=call.by, expected=call.expected)
    return _answer(saved)


def _answer(shown: Egress) -> AdminResponse:
    return AdminResponse(content=EgressShown.of(shown), tag=tag_of(shown))


_PATH = "/tenants/{t}/egress"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_PATH,
        summary="Show the private upstreams that the operator lets this tenant reach.",
        handle=get_egress,
        body=NoBody,
        query=NoQuery,
        answers={200: EgressShown},
        scopes=ADMIN,
        has_tag=True,
    ),
    Endpoint(
        method="PUT",
        path=_PATH,
        summary="Replace the private upstreams that this tenant may reach; entries that are not sent are withdrawn.",
        handle=replace_egress,
        body=EgressReplace,
        query=NoQuery,
        answers={200: EgressShown},
        scopes=OPERATOR_ONLY,
        has_tag=True,
    ),
)
