"""Rights of operators with a role at the endpoints of the admin API.

An administrator without limits is the operator. Every other operator acts in a tenant as a principal of that tenant, so
that what only the operator may do is closed to it everywhere, and it grants no more than an admin of the tenant can.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.admin.endpoint import OPERATOR_ONLY, Route
from gateway.domain.audit import RuleKind
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.operators import OperatorRights, OperatorRole
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import DecidingRule, Forbidden, NotFound
from gateway.identity.permissions import limit_to_kind

LIST_TENANTS, CREATE_TENANT = "list_tenants", "create_tenant"
_SCHEMAS = frozenset({"list_schemas", "get_schema"})
READS: dict[OperatorRole, frozenset[str]] = {
    OperatorRole.AUDITOR: frozenset(
        {
            "get_tenant",
            "list_deleted_tenants",
            "list_operator_keys",
            "get_operator_key",
            "list_operator_grants",
            "get_operator_grant",
            "list_installation_issuers",
            "get_installation_issuer",
            "list_installation_people",
            "get_installation_person",
            "list_entries",
            "explain_entries",
            "verify_audit",
            "export_audit",
            "follow_audit",
            "list_export_keys",
            "get_retention",
            "list_installation_entries",
            "explain_installation_entries",
            "verify_installation_audit",
            "export_installation_audit",
            "follow_installation_audit",
            "list_installation_export_keys",
        }
    ),
    OperatorRole.FINANCE: frozenset({"get_tenant", "list_deleted_tenants", "get_ceilings", "get_policy"}),
}
"""The operations that a role may read; support reads all. Each is a GET."""
OF_CREATOR = frozenset({"replace_tenant", "update_tenant", "delete_tenant"})
"""The operations on a tenant that its creator has, besides those of an admin of the tenant."""
_ADMIN = frozenset({Scope.ADMIN, Scope.AUDIT, Scope.MCP})
"""As a person with the role `administer`: without `approve`, so that it cannot approve the calls of its own keys."""
_OF_KINDS = frozenset({Scope.ADMIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOperator:
    """An operator with a role, or several, none of which is that of an administrator without limits."""

    principal: Principal
    rights: Sequence[OperatorRights]

    def sees(self, tenant: Tenant) -> bool:
        """True if a role of the operator concerns the tenant."""
        return bool(self._rights_in(tenant.id, tenant.created_by))

    def act(self, route: Route) -> Callable[[Tenant], bool] | None:
        """Admit the operator to an endpoint outside of tenants; return the tenants that it sees, None for all.

        Raises:
            Forbidden: no role permits it.
        """
        roles = {right.role for right in self.rights}
        if route.name == CREATE_TENANT and OperatorRole.CREATOR in roles:
            return None
        if route.name in _SCHEMAS and roles:
            return None
        if route.name == LIST_TENANTS and roles:
            return self.sees  # guard: operator-tenants-listed
        # guard: operator-outside-tenants
        if any(right.tenants is None and _reads(right.role, route) for right in self.rights):
            return None
        raise self._refusal()

    def act_in(self, tenant: TenantId, slug: str, created_by: str | None, route: Route) -> Principal:
        """Admit the operator to an endpoint of a tenant; return the principal of the tenant as which it acts.

        Raises:
            NotFound: no role concerns the tenant; the error is the same as for a missing tenant.
            Forbidden: no role permits it.
        """
        rights = self._rights_in(tenant, created_by)
        if not rights:
            raise NotFound("no such tenant", rule=DecidingRule(RuleKind.TENANT))
        acting = replace(self.principal, tenant=tenant, slug=slug, scopes=frozenset())
        administering = [one for one in rights if one.role in {OperatorRole.ADMINISTRATOR, OperatorRole.CREATOR}]
        if administering:
            limits = [one.kinds for one in administering]
            kinds = None if None in limits else frozenset(name for each in limits for name in each or ())
            scopes = _ADMIN if kinds is None else _OF_KINDS
            admin = limit_to_kind(replace(acting, scopes=scopes, kinds=kinds), route.applied_kind)
            if isinstance(admin, Principal) and route.scopes & admin.scopes:
                return admin
            if route.name in OF_CREATOR and any(one.role is OperatorRole.CREATOR for one in rights):
                return replace(acting, scopes=scopes)
        if any(_reads(one.role, route) for one in rights):
            return replace(acting, scopes=_ADMIN & (route.scopes or _ADMIN))
        raise self._refusal(is_operators=route.scopes == OPERATOR_ONLY)

    def _rights_in(self, tenant: TenantId, created_by: str | None) -> Sequence[OperatorRights]:
        is_own = created_by == self.principal.key
        return [
            one
            for one in self.rights
            if one.concerns(tenant) and (is_own or one.role is not OperatorRole.CREATOR)  # guard: operator-creator-own
        ]

    def _refusal(self, *, is_operators: bool = True) -> Forbidden:
        rule = RuleKind.OPERATOR if is_operators else RuleKind.SCOPE
        message = f"no role of {self.principal.name} permits this; an administrator of the installation gives roles"
        return Forbidden(message, rule=DecidingRule(rule))


def _reads(role: OperatorRole, route: Route) -> bool:
    """True if a role that reads may send the request."""
    if route.method != "GET":  # guard: operator-readers-read
        return False
    return role is OperatorRole.SUPPORT or route.name in READS.get(role, frozenset())
