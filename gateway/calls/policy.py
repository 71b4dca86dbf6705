"""The gates before a handler runs: whose primitive it is, what the tenant's policy says, what the user says."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, cast

from gateway.calls.invocation import Invocation
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Decision
from gateway.domain.tenancy.principals import Principal
from gateway.errors import CapabilityMissing, ClientSilent, Forbidden, NotFound, PolicyDenied
from gateway.handlers.interfaces import Question

CONFIRM = "gateway/confirm"
CONFIRMED = "gateway/confirmed"
"""Key of a call's state: its confirmation is recorded, and later rounds do not record it again."""

_FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Go ahead", "description": "Make this call now."}},
    "required": ["confirm"],
}


class Confirmation(StrEnum):
    """The end of a question whether a call may be made, as the trail has it."""

    GRANTED = "granted"
    DECLINED = "declined"
    UNANSWERED = "unanswered"
    IMPOSSIBLE = "impossible"
    """The client cannot ask its user."""
    CHANGED = "changed"


REFUSALS: Mapping[Confirmation, str] = {
    Confirmation.DECLINED: "the user declined this call",
    Confirmation.UNANSWERED: "the user was asked to confirm this call and gave no answer",
    Confirmation.IMPOSSIBLE: (
        "the tenant's policy wants the user to confirm this call, and this client cannot ask its user"
    ),
    Confirmation.CHANGED: "what the call would do has changed since the user was asked; call again",
}
"""Error messages for calls that were not confirmed."""


class BoundPrimitive(Protocol):
    """What the gates ask of a bound primitive."""

    @property
    def tenant(self) -> TenantId:
        """Whose it is."""
        ...

    @property
    def decision(self) -> Decision:
        """What the policy says of it."""
        ...


def authorise(principal: Principal, bound: BoundPrimitive) -> None:
    """Let pass a principal of the primitive's tenant that may use MCP.

    Raises:
        NotFound: it is another tenant's.
        Forbidden: the key lacks the scope.
    """
    if principal.tenant != bound.tenant:
        raise NotFound("not found")
    if Scope.MCP not in principal.scopes:
        raise Forbidden("the key lacks the scope mcp")


def decide(bound: BoundPrimitive) -> None:
    """Refuse what the policy refuses, and what nobody here can approve.

    Raises:
        PolicyDenied: so says the policy.
    """
    if bound.decision is Decision.DENY:
        raise PolicyDenied("the tenant's policy does not allow calls of this safety level")
    if bound.decision is Decision.APPROVE:
        raise PolicyDenied("the tenant's policy wants an approval for calls of this safety level")


async def ask_user(call: Invocation, digest: str, preview: str) -> Confirmation:
    """Ask the user to confirm the request, and return the outcome.

    Raises:
        InputRequired: the answer comes with a later request.
    """
    asked = call.peer.recall(CONFIRM)
    if asked is not None and asked != digest:
        return Confirmation.CHANGED
    call.peer.remember(CONFIRM, digest)
    question = Question(
        kind="elicitation", params={"message": f"Allow this call?\n{preview}", "requestedSchema": _FORM}
    )
    try:
        answers = await call.peer.ask({CONFIRM: question})
    except CapabilityMissing:
        return Confirmation.IMPOSSIBLE
    except ClientSilent:
        return Confirmation.UNANSWERED
    answer = answers[CONFIRM]
    content: object = answer.get("content")
    said = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    if answer.get("action") != "accept" or said.get("confirm") is not True:
        return Confirmation.DECLINED
    return Confirmation.GRANTED
