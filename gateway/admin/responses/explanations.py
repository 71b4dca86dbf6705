"""Response models of explained calls."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from gateway.admin.responses.models import FaultShown
from gateway.admin.responses.primitives import TriedRequest
from gateway.domain.listed.client_limits import ClientFinding
from gateway.domain.tenancy.guardrails import GuardrailAction, GuardrailPhase
from gateway.domain.tenancy.policy import Decision, Safety
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.web.models import ResponseModel


class LevelShown(ResponseModel):
    """The safety level of a tool."""

    level: Annotated[Safety, Field(description="The safety level that the policy applies to.")]
    reasons: Annotated[Sequence[str], Field(description="The reasons for this level.")]
    assessed: Annotated[Safety | None, Field(description="The assessed level, if the tenant declared a different one.")]


class RefusalShown(ResponseModel):
    """The error with which the call would end."""

    code: Annotated[str, Field(description="The stable code.")]
    message: Annotated[str, Field(description="The message that the client would receive.")]
    faults: Annotated[Sequence[FaultShown], Field(description="The violations.")]


class GuardrailExplained(ResponseModel):
    """A guardrail of the tool, with its findings in the arguments."""

    name: Annotated[str, Field(description="The name of the guardrail.")]
    check: Annotated[GuardrailCheck, Field(description="The check.")]
    phases: Annotated[Sequence[GuardrailPhase], Field(description="The phase: arguments or result.")]
    action: Annotated[GuardrailAction, Field(description="The action on a finding.")]
    findings: Annotated[
        Sequence[str] | None,
        Field(description="The findings in the arguments; null for hooks and checks of results, which are not run."),
    ]


class LimitsExplained(ResponseModel):
    """The limits that apply to the call; the explanation itself is not counted."""

    calls_per_second: Annotated[float, Field(description="Calls per second.")]
    burst: Annotated[int, Field(description="The number of calls that may arrive at once.")]
    concurrency: Annotated[int, Field(description="The maximum number of concurrent calls.")]


class ToolExplained(ResponseModel):
    """The explanation of a call."""

    tool: Annotated[str, Field(description="The name of the tool.")]
    visible: Annotated[bool, Field(description="True if the client can list and call the tool.")]
    hidden_because: Annotated[str | None, Field(description="The reason why the tool is not visible; null if it is.")]
    course: Annotated[
        Literal["runs", "asks", "refused", "hidden"],
        Field(
            description="The course of the call: `runs`, `asks` (a person has to answer first), `refused`, or "
            "`hidden` (the tool is not visible)."
        ),
    ]
    level: Annotated[LevelShown | None, Field(description="The safety level.")]
    decision: Annotated[Decision | None, Field(description="The decision of the tenant's policy.")]
    decision_reason: Annotated[str | None, Field(description="The reason for the decision.")]
    refusal: Annotated[
        RefusalShown | None, Field(description="The error with which the call would be refused; null if none.")
    ]
    guardrails: Annotated[Sequence[GuardrailExplained], Field(description="The guardrails of the tool, in order.")]
    request: Annotated[TriedRequest | None, Field(description="The request that would be sent, without credentials.")]
    limits: Annotated[LimitsExplained | None, Field(description="The limits that apply to the call.")]
    structured_once: Annotated[
        bool, Field(description="True if the profile sends JSON results as structured content alone.")
    ] = False
    approvers: Annotated[
        Sequence[str],
        Field(
            description="If the call needs an approval: up to 20 keys of other subjects with the scope `approve`, as "
            "`key:ID (NAME)`, and the people with the role, as entries of `who`."
        ),
    ] = ()
    selects_fields: Annotated[bool, Field(description="True if the tool has the argument `_fields` here.")] = False
    summary_threshold: Annotated[
        int, Field(description="Bytes above which the profile summarises results; 0: never.")
    ] = 0


class ClientLimitShown(ResponseModel):
    """A limit of clients that a tool exceeds."""

    clients: Annotated[Sequence[str], Field(description="The clients and model APIs that have the limit.")]
    effect: Annotated[str, Field(description="Their behaviour beyond the limit.")]
    remedy: Annotated[str, Field(description="A change that keeps the limit.")]

    @classmethod
    def of(cls, finding: ClientFinding) -> Self:
        """Build the response from a finding."""
        return cls(clients=finding.clients, effect=finding.text, remedy=finding.remedy)


class ListedToolShown(ResponseModel):
    """A tool as clients receive it."""

    name: Annotated[str, Field(description="The name in lists; calls take it and the stored name.")]
    definition: Annotated[dict[str, Any], Field(description="The definition in lists of the default profile.")]
    limits: Annotated[Sequence[ClientLimitShown], Field(description="Limits of clients that the tool exceeds.")]
