"""Endpoints of a tenant's policy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.limits import WorkKind
from gateway.admin.requests.policies import PolicyRuleSent, PolicyUpdate, RecordingRuleSent, RulesCheck
from gateway.admin.responses.policies import PolicyShown, RuleMatchesShown, RuleReport
from gateway.admin.routes.try_calls import trial_principal
from gateway.catalog import policies
from gateway.catalog.etags import tag_of
from gateway.catalog.snapshots.rule_report import report_rules
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.tenancy.ceilings import BoundedPolicy
from gateway.domain.tenancy.policy import Limits, Policy, PolicyRule, RecordingRule
from gateway.web.models import NoBody, NoQuery

_BURST_S = 2
"""Seconds of the rate that may arrive at once, as in the default limits."""
_DEFAULT_BURST = Limits().burst


async def get_policy(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the tenant's policy: decisions by safety level and rule, and the limits."""
    return _to_response(await policies.get_policy(call.tenant, admin.catalog))


async def update_policy(admin: AdminDependencies, call: AdminRequest[PolicyUpdate, NoQuery]) -> AdminResponse:
    """Change the tenant's policy: decisions by safety level and rule, and limits; absent fields keep their value."""
    body = call.body
    limits = body.limits.model_dump(exclude_unset=True) if body.limits else {}
    recorded = body.recorded_arguments

    def revise(policy: Policy) -> Policy:
        return replace(
            policy,
            safe=body.safe or policy.safe,
            moderate=body.moderate or policy.moderate,
            dangerous=body.dangerous or policy.dangerous,
            limits=_limits(policy.limits, limits),
            rules=policy.rules if body.rules is None else _rules(body.rules),
            recorded_arguments=policy.recorded_arguments if recorded is None else _recording(recorded),
            http_origins=_origins(body) if "http_origins" in body.model_fields_set else policy.http_origins,
        )

    saved = await policies.update_policy(
        call.tenant, admin.catalog, revise, by=call.by, expected=call.expected, given=limits
    )
    return _to_response(saved)


def _limits(stored: Limits, given: Mapping[str, Any]) -> Limits:
    """Return the limits with the given ones. A burst that is not given follows the rate, up to the default burst.

    Otherwise a low rate would have no effect on the first 200 calls. A stored burst that differs from the one of its
    rate was chosen, so it is only lowered.
    """
    found = replace(stored, **given)
    if "calls_per_second" not in given or "burst" in given:
        return found
    highest = _DEFAULT_BURST if stored.burst == _burst_of(stored.calls_per_second, _DEFAULT_BURST) else stored.burst
    return replace(found, burst=_burst_of(found.calls_per_second, highest))


def _burst_of(rate: float, highest: int) -> int:
    return min(highest, max(1, math.ceil(rate * _BURST_S)))


async def check_rules(admin: AdminDependencies, call: AdminRequest[RulesCheck, NoQuery]) -> AdminResponse:
    """Report the current primitives that each rule of the body matches, or each stored rule; nothing is stored."""
    given = call.body.rules
    rules = (await policies.get_policy(call.tenant, admin.catalog)).stored.rules if given is None else _rules(given)
    policies.check_rules(rules)
    async with admin.connections.open(await trial_principal(admin, call)) as registry:
        found = await run_in_thread(CATALOG_CHANGES, call.tenant, report_rules, registry.view.snapshot, rules)
    return AdminResponse(content=RuleReport(rules=[RuleMatchesShown.of(one) for one in found]))


def _rules(given: Sequence[PolicyRuleSent]) -> tuple[PolicyRule, ...]:
    return msgspec.convert([rule.model_dump() for rule in given], tuple[PolicyRule, ...])


def _recording(given: Sequence[RecordingRuleSent]) -> tuple[RecordingRule, ...]:
    return msgspec.convert([rule.model_dump() for rule in given], tuple[RecordingRule, ...])


def _origins(body: PolicyUpdate) -> tuple[str, ...] | None:
    return None if body.http_origins is None else tuple(body.http_origins)


def _to_response(policy: BoundedPolicy) -> AdminResponse:
    return AdminResponse(content=PolicyShown.of(policy), tag=tag_of(policy))


_PATH = "/tenants/{t}/policy"

ENDPOINTS = (
    endpoint("GET", _PATH, get_policy, NoBody, NoQuery, {200: PolicyShown}, has_tag=True),
    endpoint("POST", f"{_PATH}/check", check_rules, RulesCheck, NoQuery, {200: RuleReport}, work=WorkKind.CHECK),
    endpoint("PUT", _PATH, update_policy, PolicyUpdate, NoQuery, {200: PolicyShown}, problems={422}, has_tag=True),
)
