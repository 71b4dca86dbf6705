"""The checks before a handler runs: the primitive's tenant, the key's scope, the tenant's policy, the confirmation."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias, cast

from gateway.calls.invocation import Invocation
from gateway.domain.audit import RuleKind
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Decision, Judgement
from gateway.domain.tenancy.principals import Principal
from gateway.errors import CapabilityMissing, ClientSilent, DecidingRule, Forbidden, NotFound, PolicyDenied
from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTemplate, BoundTool
from gateway.handlers.interfaces import InputRequest
from gateway.handlers.previews.requests import escape, truncate

BoundPrimitive: TypeAlias = BoundTool | BoundResource | BoundTemplate | BoundPrompt

CONFIRM = "gateway/confirm"
CONFIRMED = "gateway/confirmed"
"""Key of a call's state: marks the confirmation as recorded, so that later rounds do not record it again."""

_CONFIRM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Go ahead", "description": "Make this call now."}},
    "required": ["confirm"],
}


class Confirmation(StrEnum):
    """The outcome of a user's confirmation, as the audit trail records it."""

    GRANTED = "granted"
    DECLINED = "declined"
    UNANSWERED = "unanswered"
    INVALID = "invalid"
    """The client accepted without the answer that the question requires."""
    IMPOSSIBLE = "impossible"
    """The client cannot ask its user."""
    CHANGED = "changed"


REFUSALS: Mapping[Confirmation, str] = {
    Confirmation.DECLINED: "the user declined this call",
    Confirmation.UNANSWERED: "the user was asked to confirm this call and did not respond",
    Confirmation.INVALID: (
        "the client accepted the confirmation, but its response lacks `confirm: true` in `content`; nothing was done"
    ),
    Confirmation.CHANGED: "the effect of the call has changed since the user was asked; call again",
}
"""Error messages for calls that were not confirmed. If the client cannot ask, an approval is required instead."""

UNAPPROVED = (
    "this call needs the user's confirmation, and this client cannot ask its user; use a client with elicitation, or "
    "start `gateway stdio` with `--dangerous allow` (calls that delete data) or `--moderate allow` (that change data)"
)
"""Error message for a call that needs a confirmation, if neither confirmation nor approval is possible: on stdio."""


def authorise(principal: Principal, bound: BoundPrimitive) -> None:
    """Check that the principal belongs to the primitive's tenant and may use MCP.

    Raises:
        NotFound: the primitive belongs to another tenant.
        Forbidden: the key lacks the scope.
    """
    if principal.tenant != bound.tenant:  # guard: call-tenant
        raise NotFound("not found", rule=DecidingRule(RuleKind.TENANT))
    if Scope.MCP not in principal.scopes:  # guard: call-scope
        raise Forbidden("the key lacks the scope mcp", rule=DecidingRule(RuleKind.SCOPE, Scope.MCP))


def evaluate(bound: BoundPrimitive, arguments: Mapping[str, object] | None) -> Judgement:
    """Return the policy's decision for a call and its reason, without any effect.

    `arguments` are valid and contain defaults. Without them, return the mildest decision that any arguments can lead
    to.
    """
    policy = bound.policy
    if not policy.rules:
        return policy.judgement
    return policy.mildest if arguments is None else policy.judge(arguments)


def decide(bound: BoundPrimitive, arguments: Mapping[str, object] | None = None) -> Judgement:
    """Judge a call, and refuse it if the policy denies it.

    Raises:
        PolicyDenied: the call is refused.
    """
    judged = evaluate(bound, arguments)
    if judged.decision is Decision.DENY:  # guard: policy-deny
        message = "the tenant's policy does not allow calls of this safety level"
        if judged.rule is not None:
            message = f"the tenant's policy does not allow this call ({judged.reason})"
        raise PolicyDenied(message, rule=rule_of_policy(judged))
    return judged


def rule_of_policy(judged: Judgement) -> DecidingRule:
    """The part of the policy that decided: a rule by its number, or the safety level."""
    return DecidingRule(RuleKind.POLICY, "" if judged.rule is None else str(judged.rule), judged.reason)


def describe_reason(judged: Judgement | None) -> str:
    """The rule that requires a person, and its reason, as one line; empty if the safety level requires the person."""
    return (
        ""
        if judged is None or judged.rule is None
        else f"The tenant's policy requires a person ({truncate(escape(judged.reason), 500)})."
    )


async def ask_user(call: Invocation, digest: str, preview: str) -> Confirmation:
    """Ask the user to confirm the call, and return the outcome.

    Raises:
        InputRequired: the client's response comes with a later request.
    """
    asked = call.peer.recall(CONFIRM)
    if asked is not None and asked != digest:  # guard: confirm-digest
        return Confirmation.CHANGED
    call.peer.remember(CONFIRM, digest)
    lines = [line for line in ("Allow this call?", describe_reason(call.judged), preview) if line]
    input_request = InputRequest(
        kind="elicitation", params={"message": "\n".join(lines), "requestedSchema": _CONFIRM_SCHEMA}
    )
    try:
        answers = await call.peer.ask({CONFIRM: input_request})
    except CapabilityMissing:
        return Confirmation.IMPOSSIBLE
    except ClientSilent as silent:
        return Confirmation.INVALID if silent.faults else Confirmation.UNANSWERED
    response = answers[CONFIRM]
    content: object = response.get("content")
    message = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    if response.get("action") != "accept" or message.get("confirm") is not True:  # guard: confirm-yes
        return Confirmation.DECLINED
    return Confirmation.GRANTED
