"""Doctor checks of policies and access rules: weak policies, tenants without an approver, rules that name missing
objects.
"""

from collections.abc import Sequence

import anyio

from gateway.catalog.doctor.handler_checks import all_tenants
from gateway.catalog.identity.access_rules import find_missing_sources, find_unknown_entries
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import PROTECTING, Decision, Policy, Safety, weaker_levels
from gateway.errors import GatewayError
from gateway.store.calls import policies
from gateway.store.engine import Store
from gateway.store.identity import access_rules, keys

_TIMEOUT_S = 15.0
_MAX_NAMED = 5
_SET = " ".join(f"--{level} {PROTECTING.decision_for(level)}" for level in (Safety.MODERATE, Safety.DANGEROUS))
_REMEDY = f"`gateway --tenant SLUG policy set {_SET}`, or keep it: an upgrade never changes an existing policy"


async def check_policies(url: str) -> Sequence[Finding]:
    """Findings on all tenants' decisions by level, on tenants without an approver, and on access rules.

    After 15 s, the remaining tenants are skipped, and the findings mention this. Rules of policies are not examined.
    """
    examined, weaker, unapproved, dangling = 0, list[str](), list[str](), list[str]()
    try:
        with anyio.move_on_after(_TIMEOUT_S) as scope:
            async with Store(url, pool_size=1) as store:
                for tenant in await all_tenants(store):
                    async with store.transaction(tenant.id) as db:
                        found = await policies.get(tenant.id, db)
                        access = await access_rules.get(tenant.id, db)
                        can_approve = bool(access.roles) or await keys.is_granted(tenant.id, db, Scope.APPROVE)
                        missing = await find_unknown_entries(tenant.id, db, access)
                        missing |= await find_missing_sources(tenant.id, db, access)
                    dangling += [f"{tenant.slug}: {one}" for one in sorted(missing)]
                    weaker += [tenant.slug] if weaker_levels(found) else []
                    unapproved += [tenant.slug] if _may_need_approval(found) and not can_approve else []
                    examined += 1
    except GatewayError as error:
        return [warning("policies", f"not examined: {error.message}", "fix the findings on the database first")]
    scope_note = f"{examined} examined" + (", the rest skipped after a timeout" if scope.cancelled_caught else "")
    return [
        _check_weaker(weaker, scope_note),
        _check_approvers(unapproved, scope_note),
        _check_access(dangling, scope_note),
    ]


def _check_access(dangling: Sequence[str], scope_note: str) -> Finding:
    if not dangling:
        return fine("access_rules", f"every key, issuer and source that access rules name exists ({scope_note})")
    detail = (
        f"access rules name missing keys, issuers or sources: {list_names(dangling, limit=_MAX_NAMED)} ({scope_note})"
    )
    return warning("access_rules", detail, "`gateway --tenant SLUG access report`, then remove them with `access set`")


def _may_need_approval(policy: Policy) -> bool:
    """True if a call can need an approval: by a decision, or because a client cannot ask for a confirmation."""
    decisions = [policy.decision_for(level) for level in Safety] + [rule.decision for rule in policy.rules]
    return not {Decision.CONFIRM, Decision.APPROVE}.isdisjoint(decisions)


def _check_weaker(weaker: Sequence[str], scope_note: str) -> Finding:
    if not weaker:
        return fine("policies", f"no tenant's policy is weaker than the default ({scope_note})")
    detail = f"weaker than the default of new tenants: {list_names(weaker, limit=_MAX_NAMED)} ({scope_note})"
    return warning("policies", detail, _REMEDY)


def _check_approvers(unapproved: Sequence[str], scope_note: str) -> Finding:
    """Finding on tenants without an approver; not a warning, because the operator can approve calls too."""
    if not unapproved:
        return fine("approvers", f"every tenant whose policy needs approvals has an approver ({scope_note})")
    named = list_names(unapproved, limit=_MAX_NAMED)
    reason = "no key has the scope approve, and no people have the role"
    return fine("approvers", f"only the operator can approve calls of {named}; {reason} ({scope_note})")
