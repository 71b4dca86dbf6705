"""Permissions of a caller in a tenant."""

from dataclasses import replace

from gateway.domain.audit import RuleKind
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Caller, Operator, Principal
from gateway.errors import DecidingRule, Forbidden, NotFound

EVERY_KIND = "*"
"""For a request whose handler compares the kinds of its manifests with those of the caller itself."""


def limit_to_kind(caller: Caller, kind: str) -> Caller:
    """Return the caller for a request that belongs to manifests of this kind, or to none.

    One whose role is limited to manifests of other kinds is no admin for it.
    """
    if not isinstance(caller, Principal) or caller.kinds is None or kind == EVERY_KIND:
        return caller
    if not kind or not caller.may_apply(kind):  # guard: role-kinds-elsewhere
        return replace(caller, scopes=caller.scopes - {Scope.ADMIN})
    return caller


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
