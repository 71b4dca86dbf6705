"""Endpoints of a tenant's policy."""

from dataclasses import replace

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.requests.models import NoBody, NoQuery, PolicyUpdate
from gateway.admin.responses.models import PolicyShown
from gateway.catalog import policies
from gateway.catalog.etags import tag_of
from gateway.domain.tenancy.ceilings import BoundedPolicy
from gateway.domain.tenancy.policy import Policy


async def get_policy(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show what calls need, by safety level, and the tenant's limits."""
    return _answer(await policies.get_policy(call.tenant, admin.catalog))


async def update_policy(admin: AdminDependencies, call: AdminRequest[PolicyUpdate, NoQuery]) -> AdminResponse:
    """Set what calls need, by safety level, and the tenant's limits; what is not sent stays."""
    body = call.body
    limits = body.limits.model_dump(exclude_unset=True) if body.limits else {}

    def revise(policy: Policy) -> Policy:
        return replace(
            policy,
            safe=body.safe or policy.safe,
            moderate=body.moderate or policy.moderate,
            dangerous=body.dangerous or policy.dangerous,
            limits=replace(policy.limits, **limits),
            http_origins=_origins(body) if "http_origins" in body.model_fields_set else policy.http_origins,
        )

    saved = await policies.update_policy(
        call.tenant, admin.catalog, revise, by=call.by, expected=call.expected, given=limits
    )
    return _answer(saved)


def _origins(body: PolicyUpdate) -> tuple[str, ...] | None:
    return None if body.http_origins is None else tuple(body.http_origins)


def _answer(policy: BoundedPolicy) -> AdminResponse:
    return AdminResponse(content=PolicyShown.of(policy), tag=tag_of(policy))


_PATH = "/tenants/{t}/policy"

ENDPOINTS = (
    endpoint("GET", _PATH, get_policy, NoBody, NoQuery, {200: PolicyShown}, has_tag=True),
    endpoint("PUT", _PATH, update_policy, PolicyUpdate, NoQuery, {200: PolicyShown}, problems={422}, has_tag=True),
)
