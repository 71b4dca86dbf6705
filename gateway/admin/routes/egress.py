"""Endpoints of a tenant's private upstreams: the operator sets them, the tenant's admins can read them."""

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.requests.models import EgressReplace
from gateway.admin.responses.models import EgressShown
from gateway.catalog import egress
from gateway.catalog.etags import tag_of
from gateway.domain.tenancy.egress import Egress
from gateway.web.models import NoBody, NoQuery


async def get_egress(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the private upstreams that the operator permits for this tenant."""
    return _to_response(await egress.get_egress(call.tenant, admin.catalog))


async def replace_egress(admin: AdminDependencies, call: AdminRequest[EgressReplace, NoQuery]) -> AdminResponse:
    """Replace the list of private upstreams of this tenant; entries that are not sent are removed."""
    saved = await egress.replace_egress(call.tenant, admin.catalog, call.body.allow, by=call.by, expected=call.expected)
    return _to_response(saved)


def _to_response(shown: Egress) -> AdminResponse:
    return AdminResponse(content=EgressShown.of(shown), tag=tag_of(shown))


_PATH = "/tenants/{t}/egress"

ENDPOINTS = (  # guard: egress-operator-only
    endpoint("GET", _PATH, get_egress, NoBody, NoQuery, {200: EgressShown}, has_tag=True),
    endpoint(
        "PUT", _PATH, replace_egress, EgressReplace, NoQuery, {200: EgressShown}, scopes=OPERATOR_ONLY, has_tag=True
    ),
)
