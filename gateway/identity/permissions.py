"""Permissions of a caller in a tenant."""

from gateway.domain.audit import RuleKind
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Caller, Operator
from gateway.errors import DecidingRule, Forbidden, NotFound


def require(caller: Caller, tenant: TenantId, *scopes: Scope) -> None:
    """Admit an operator, and a principal of this tenant whose key has every one of these scopes.

    Raises:
        NotFound: the tenant is not the caller's; the error is the same as for a missing tenant.
        Forbidden: the tenant is the caller's, but a scope is missing.
    """
    if isinstance(caller, Operator):
        return
    if caller.tenant != tenant:  # guard: permission-tenant
        raise NotFound("not found", rule=DecidingRule(RuleKind.TENANT))
    missing = ", ".join(sorted(set(scopes) - caller.scopes))
    if missing:
        message = f"the key lacks the scope {missing}"
        if caller.is_person:
            message = f"no role of this person permits it ({missing}); ask the tenant's administrator"
        raise Forbidden(message, rule=DecidingRule(RuleKind.SCOPE, missing))
