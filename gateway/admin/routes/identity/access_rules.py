"""Reports on a tenant's access rules."""

from collections.abc import Sequence

import orjson

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.pagination import FACE
from gateway.admin.requests.access import AccessCheck, AccessReportOf
from gateway.admin.responses.access import AccessFound, AccessPage, AccessReport
from gateway.admin.responses.policies import RuleMatchesShown
from gateway.admin.routes.explanations import client_of
from gateway.admin.routes.try_calls import trial_principal
from gateway.catalog.identity import access_rules
from gateway.catalog.kinds.singletons import ACCESS
from gateway.catalog.snapshots.access_report import AccessFinding, find_access, report_access, warn_generally
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.tenancy.access import AccessRules, rights_of
from gateway.web.kinds.rules import access_rules_of
from gateway.web.kinds.rules import roles_of as roles_given
from gateway.web.models import NoQuery


async def report_access_rules(admin: AdminDependencies, call: AdminRequest[AccessReportOf, NoQuery]) -> AdminResponse:
    """Report which current primitives each rule matches; if the body has no rules, the stored ones are used.

    Nothing is stored.
    """
    stored, body = await ACCESS.get(call.tenant, admin.catalog), call.body
    rules = stored.rules if body.rules is None else access_rules_of(body.rules)
    roles = stored.roles if body.roles is None else roles_given(body.roles)
    access = AccessRules(default=body.default or stored.default, rules=rules, roles=roles)
    access_rules.check_scopes(access)
    access_rules.check_size(access)
    unknown = await access_rules.find_unknown(call.tenant, admin.catalog, access)
    async with admin.connections.open(await trial_principal(admin, call)) as registry:
        reported = registry.view.snapshot, access, unknown
        found = await run_in_thread(CATALOG_CHANGES, call.tenant, report_access, *reported)
        warnings = await run_in_thread(CATALOG_CHANGES, call.tenant, warn_generally, *reported)
    return AdminResponse(content=AccessReport(rules=[RuleMatchesShown.of(one) for one in found], warnings=warnings))


async def check_access(admin: AdminDependencies, call: AdminRequest[AccessCheck, NoQuery]) -> AdminResponse:
    """List the tenant's primitives with the access of one key or person, and the rule that decides each.

    Profiles are ignored.
    """
    body = call.body
    principal, _, _ = await client_of(admin, call, body.client)
    registry = await admin.connections.attach(principal)
    rules = registry.view.rules_for(principal)
    listing = f"access?{orjson.dumps([body.client.model_dump(), body.family]).decode()}"
    after = "" if body.cursor is None else admin.cursors.open(call.tenant, FACE, listing, body.cursor)
    found = await run_in_thread(CATALOG_CHANGES, call.tenant, find_access, registry.view.snapshot, rules)
    wanted = [one for one in found if one.position > after and body.family in {None, one.family}]
    page = wanted[: body.limit]
    cursor = None
    if len(wanted) > len(page):
        cursor = admin.cursors.mint(call.tenant, FACE, listing, page[-1].position)
    roles = sorted(rights_of(await ACCESS.get(call.tenant, admin.catalog), principal).roles)
    return AdminResponse(content=AccessPage(items=_to_items(page), next_cursor=cursor, roles=roles))


def _to_items(found: Sequence[AccessFinding]) -> Sequence[AccessFound]:
    return [AccessFound.of(one) for one in found]


_PATH = "/tenants/{t}/access"

ENDPOINTS = (
    endpoint(
        "POST",
        f"{_PATH}/report",
        report_access_rules,
        AccessReportOf,
        query=NoQuery,
        responses={200: AccessReport},
        work=WorkKind.CHECK,
    ),
    endpoint(
        "POST",
        f"{_PATH}/check",
        check_access,
        AccessCheck,
        query=NoQuery,
        responses={200: AccessPage},
        work=WorkKind.CHECK,
    ),
)
