"""The report on the rules of a tenant's policy."""

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.requests.policies import RulesCheck
from gateway.admin.responses.policies import RuleMatchesShown, RuleReport
from gateway.admin.routes.try_calls import trial_principal
from gateway.catalog.kinds.policies import check_rules
from gateway.catalog.kinds.singletons import POLICY
from gateway.catalog.snapshots.rule_report import report_rules
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.web.kinds.rules import policy_rules_of
from gateway.web.models import NoQuery


async def report_policy_rules(admin: AdminDependencies, call: AdminRequest[RulesCheck, NoQuery]) -> AdminResponse:
    """Report the current primitives that each rule of the body matches, or each stored rule; nothing is stored."""
    given = call.body.rules
    rules = (await POLICY.get(call.tenant, admin.catalog)).rules if given is None else policy_rules_of(given)
    check_rules(rules)
    async with admin.connections.open(await trial_principal(admin, call)) as registry:
        found = await run_in_thread(CATALOG_CHANGES, call.tenant, report_rules, registry.view.snapshot, rules)
    return AdminResponse(content=RuleReport(rules=[RuleMatchesShown.of(one) for one in found]))


ENDPOINTS = (
    endpoint(
        "POST",
        "/tenants/{t}/policy/check",
        report_policy_rules,
        RulesCheck,
        query=NoQuery,
        responses={200: RuleReport},
        work=WorkKind.CHECK,
        called="check_rules",
    ),
)
