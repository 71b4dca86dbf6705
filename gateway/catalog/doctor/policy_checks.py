"""Doctor checks of policies and access rules: weak policies, tenants without an approver, references to missing
objects.
"""

from collections.abc import Sequence

import anyio

from gateway.catalog.doctor.handler_checks import all_tenants
from gateway.catalog.doctor.limits import MAX_NAMED, TIMEOUT_S
from gateway.catalog.identity.access_rules import find_missing_sources, find_unknown_entries
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import PROTECTING, Decision, Policy, Safety, weaker_levels
from gateway.errors import GatewayError
from gateway.store.engine import Store
from gateway.store.identity import keys
from gateway.store.kinds.singletons import ACCESS, POLICY

_DEFAULT_POLICY_FLAGS = " ".join(
    f"--{level} {PROTECTING.decision_for(level)}" for level in (Safety.MODERATE, Safety.DANGEROUS)
)
_REMEDY = (
    f"`gateway --tenant SLUG policy update {_DEFAULT_POLICY_FLAGS}`, "
    "or keep it: an upgrade never changes an existing policy"
)


async def check_policies(store: Store) -> Sequence[Finding]:
    """Findings on all tenants' decisions by level, on tenants without an approver, and on access rules.

    The check stops after 15 s; the findings then count the examined tenants. Rules of policies are not examined.
    """
    examined, weak_tenants, without_approver, dangling = 0, list[str](), list[str](), list[str]()
    try:
        with anyio.move_on_after(TIMEOUT_S) as scope:
            for tenant in await all_tenants(store):
                async with store.transaction(tenant.id) as db:
                    found = await POLICY.get(tenant.id, db)
                    access = await ACCESS.get(tenant.id, db)
                    can_approve = bool(access.approvers) or await keys.is_granted(tenant.id, db, Scope.APPROVE)
                    missing = await find_unknown_entries(tenant.id, db, access)
                    missing |= await find_missing_sources(tenant.id, db, access)
                dangling += [f"{tenant.slug}: {one}" for one in sorted(missing)]
                weak_tenants += [tenant.slug] if weaker_levels(found) else []
                without_approver += [tenant.slug] if _may_need_approval(found) and not can_approve else []
                examined += 1
    except GatewayError as error:
        return [warning("policies", f"not examined: {error.message}", "fix the findings on the database first")]
    scope_note = f"{examined} examined" + (", the rest skipped after a timeout" if scope.cancelled_caught else "")
    return [
        _policy_finding(weak_tenants, scope_note),
        _approver_finding(without_approver, scope_note),
        _access_finding(dangling, scope_note),
    ]


def _access_finding(dangling: Sequence[str], scope_note: str) -> Finding:
    if not dangling:
        return fine("access_rules", f"every key, issuer and source that access rules name exists ({scope_note})")
    detail = (
        f"access rules name missing keys, issuers or sources: {list_names(dangling, limit=MAX_NAMED)} ({scope_note})"
    )
    return warning("access_rules", detail, "`gateway --tenant SLUG access report`, then remove them with `access set`")


def _may_need_approval(policy: Policy) -> bool:
    """True if a call can need an approval: by a decision, or because a client cannot ask for a confirmation."""
    decisions = [policy.decision_for(level) for level in Safety] + [rule.decision for rule in policy.rules]
    return not {Decision.CONFIRM, Decision.APPROVE}.isdisjoint(decisions)


def _policy_finding(weak_tenants: Sequence[str], scope_note: str) -> Finding:
    if not weak_tenants:
        return fine("policies", f"no tenant's policy is weaker than the default ({scope_note})")
    detail = f"weaker than the default of new tenants: {list_names(weak_tenants, limit=MAX_NAMED)} ({scope_note})"
    return warning("policies", detail, _REMEDY)


def _approver_finding(without_approver: Sequence[str], scope_note: str) -> Finding:
    """Finding on tenants without an approver; not a warning, because the operator can approve calls too."""
    if not without_approver:
        return fine("approvers", f"every tenant whose policy needs approvals has an approver ({scope_note})")
    tenant_names = list_names(without_approver, limit=MAX_NAMED)
    reason = "no key has the scope approve, and no people have the role"
    return fine("approvers", f"only the operator can approve calls of {tenant_names}; {reason} ({scope_note})")
