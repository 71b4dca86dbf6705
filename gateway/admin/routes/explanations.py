"""The endpoints that explain a tool: a call without making it, and its listed form."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, AnyRequest
from gateway.admin.requests.primitives import ExplainAs, ToolExplain
from gateway.admin.responses.explanations import (
    ClientLimitShown,
    GuardrailExplained,
    LevelShown,
    LimitsExplained,
    ListedToolShown,
    RefusalShown,
    ToolExplained,
)
from gateway.admin.responses.models import FaultShown
from gateway.admin.routes.limits import MAX_KEYS
from gateway.admin.routes.try_calls import show_request, trial_principal
from gateway.calls.explanation import Explanation, explain
from gateway.calls.guardrails.chain import GuardrailFinding
from gateway.catalog.identity.keys import approving_keys
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.primitives.hidden_tools import explain_absence
from gateway.catalog.primitives.queries import explain_level, get_listed
from gateway.catalog.snapshots.composition import tool_of
from gateway.catalog.snapshots.listed_form import ToolListing, is_exact, to_stored
from gateway.domain.audit import RuleKind
from gateway.domain.identifiers import KeyId
from gateway.domain.listed.client_limits import find_limits, find_refused_keywords
from gateway.domain.primitives import Family
from gateway.domain.tenancy.access import describe_people
from gateway.domain.tenancy.guardrails import Guardrail, GuardrailPhase
from gateway.domain.tenancy.policy import Decision
from gateway.domain.tenancy.principals import Principal, pack_claims
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import GatewayError, NotFound
from gateway.handlers.binding import BoundTool
from gateway.registry.hiding_rules import absence_rule, find_active
from gateway.registry.registry import Registry
from gateway.web.models import NoBody, NoQuery

_Request = AdminRequest[ToolExplain, NoQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolLookup:
    """The tool with the requested name, if any; `hidden` is the reason why the client does not see it."""

    bound: BoundTool | None = None
    hidden: str | None = None


async def explain_tool(admin: AdminDependencies, call: _Request) -> AdminResponse:
    """Explain a tool call without making it: its request, the policy's decision, and the findings of guardrails."""
    name = call.path["name"]
    principal, profile, refusal = await client_of(admin, call, call.body.client)
    registry = await admin.connections.attach(principal, profile)
    found = await _find(admin, call, registry, name)
    if refusal is not None:
        found = replace(found, hidden=refusal)
    if found.bound is None:
        return AdminResponse(content=_missing_tool(name, found.hidden))
    arguments, selects = call.body.arguments, registry.selects_fields
    explained = await explain(admin.calls, principal, found.bound, arguments, selects_fields=selects)
    shown: dict[str, object] = {"structured_once": registry.sends_once, "summary_threshold": registry.summary_threshold}
    if explained.judgement.decision is Decision.APPROVE:
        keys = await approving_keys(call.tenant, admin.catalog, principal.subject, limit=MAX_KEYS)
        people = registry.view.snapshot.access.access.approvers
        shown["approvers"] = [*(f"key:{key} ({label})" for key, label in keys), *map(describe_people, people)]
    return AdminResponse(content=_show(found.bound, found.hidden, explained).model_copy(update=shown))


async def client_of(admin: AdminDependencies, call: AnyRequest, wanted: ExplainAs) -> tuple[Principal, str, str | None]:
    """Return the principal and the profile of a simulated client, and the reason if they cannot be combined."""
    principal = await trial_principal(admin, call)
    bound, refusal = None, None
    if wanted.subject is not None or wanted.groups is not None or wanted.scopes:
        principal = _person(principal, wanted)
    elif wanted.key is not None:
        key = await KEYS.get(call.tenant, admin.catalog, wanted.key)
        is_valid = key.revoked_at is None and (key.expires_at is None or key.expires_at > datetime.now(UTC))
        refusal = None if is_valid else "the key is revoked or has expired"
        principal, bound = replace(principal, key=key.id, subject=key.principal, scopes=key.scopes), key.profile
    profile = wanted.profile or bound or DEFAULT_PROFILE
    if bound is not None and profile != bound:
        refusal = f"the key is bound to the profile {bound}"
    return principal, profile, refusal


def _person(principal: Principal, wanted: ExplainAs) -> Principal:
    """Return the principal of a person with this subject, these groups and these scopes.

    Without a subject, the subject consists only of the issuer of the groups or scopes.
    """
    groups = wanted.groups
    subject = wanted.subject or f"{(groups or wanted.scopes or [':'])[0].partition(':')[0]}:"
    packed = None if groups is None else pack_claims(groups)
    found = replace(principal, key=KeyId(""), subject=subject, is_person=True, packed_groups=packed)
    return replace(found, packed_scopes=pack_claims(wanted.scopes or []))


async def _find(admin: AdminDependencies, call: _Request, registry: Registry, name: str) -> _ToolLookup:
    if (found := await registry.tool(name)) is not None:
        return _ToolLookup(bound=found)
    tool, rule = find_active(registry, Family.TOOL, name), absence_rule(registry, Family.TOOL, name)
    if not isinstance(tool, Tool):
        return _ToolLookup(hidden=await explain_absence(call.tenant, admin.catalog, name))
    scopes = registry.permitting_scopes(tool) if rule.kind == RuleKind.ACCESS else ()
    hidden = f"{rule.words}; a token with the scope {' or '.join(scopes)} may use it" if scopes else rule.words
    return _ToolLookup(bound=await registry.operation(tool), hidden=hidden)


def _missing_tool(name: str, reason: str | None) -> ToolExplained:
    return ToolExplained(
        tool=name,
        visible=False,
        hidden_because=reason,
        course="hidden",
        level=None,
        decision=None,
        decision_reason=None,
        refusal=_refusal(NotFound("there is no such tool")),
        guardrails=[],
        request=None,
        limits=None,
    )


def _show(bound: BoundTool, hidden: str | None, explained: Explanation) -> ToolExplained:
    tool, limits, prepared = bound.tool, bound.limits, explained.prepared
    reasons = explain_level(tool).safety_reasons if tool.origin is PrimitiveOrigin.SOURCE else tool.safety_reasons
    summary = explained.preview if prepared is None or prepared.request is None else prepared.summary
    return ToolExplained(
        tool=tool.name,
        visible=hidden is None,
        hidden_because=hidden,
        course=explained.course if hidden is None else "hidden",
        level=LevelShown(level=tool.level, reasons=reasons, assessed=None if tool.levels is None else tool.levels[1]),
        decision=explained.judgement.decision,
        decision_reason=explained.judgement.reason,
        refusal=None if explained.error is None else _refusal(explained.error),
        guardrails=[_guardrail(one, explained) for one in explained.guardrails],
        request=None if prepared is None else show_request(prepared, summary),
        limits=LimitsExplained(
            calls_per_second=limits.calls_per_second, burst=limits.burst, concurrency=limits.concurrency
        ),
        selects_fields=explained.selects_fields,
    )


def _refusal(error: GatewayError) -> RefusalShown:
    faults = [FaultShown(pointer=fault.pointer, reason=fault.reason) for fault in error.faults]
    return RefusalShown(code=error.code, message=error.message, faults=faults)


def _guardrail(guardrail: Guardrail, explained: Explanation) -> GuardrailExplained:
    return GuardrailExplained(
        name=guardrail.name,
        check=guardrail.check,
        phases=guardrail.phases,
        action=guardrail.action,
        findings=_finding_reasons(guardrail, explained.findings) if _is_evaluated(guardrail, explained) else None,
    )


def _is_evaluated(guardrail: Guardrail, explained: Explanation) -> bool:
    """True if the explanation reached the guardrails, and this guardrail checks arguments without a hook."""
    is_reached = explained.prepared is not None or bool(explained.findings)
    return is_reached and guardrail.hook is None and GuardrailPhase.CALL in guardrail.phases


def _finding_reasons(guardrail: Guardrail, found: tuple[GuardrailFinding, ...]) -> tuple[str, ...]:
    return next((finding.reasons for finding in found if finding.guardrail is guardrail), ())


async def show_listed(admin: AdminDependencies, call: AdminRequest[NoBody, NoQuery]) -> AdminResponse:
    """Show a tool as clients receive it, and the limits of clients that it exceeds."""
    name = call.path["name"]
    found = await get_listed(call.tenant, admin.catalog, Family.TOOL, name, takes_old_names=True)
    registry = await admin.connections.attach(await trial_principal(admin, call))
    tool = found.item if isinstance(found.item, Tool) else tool_of(found.item)
    stored = to_stored(tool)
    definition = ToolListing(registry.view.snapshot.names)(tool)
    refused = find_refused_keywords(stored) if is_exact(tool, stored) else ()
    limits = [*find_limits([definition], with_older=True), *refused]
    shown = [ClientLimitShown.of(one) for one in limits]
    return AdminResponse(content=ListedToolShown(name=definition["name"], definition=definition, limits=shown))


ENDPOINTS = (
    endpoint(
        "GET", "/tenants/{t}/tools/{name}/listed", show_listed, NoBody, query=NoQuery, responses={200: ListedToolShown}
    ),
    endpoint(
        "POST",
        "/tenants/{t}/tools/{name}/explain",
        explain_tool,
        ToolExplain,
        query=NoQuery,
        responses={200: ToolExplained},
        problems={429},
    ),
)
