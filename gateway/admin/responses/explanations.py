"""Response models of explained calls."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.responses.models import FaultShown, ResponseModel
from gateway.admin.responses.primitives import TriedRequest
from gateway.domain.tenancy.guardrails import GuardrailAction, GuardrailCheck, GuardrailPhase
from gateway.domain.tenancy.policy import Decision, Safety


class LevelShown(ResponseModel):
    """The safety level of a tool."""

    level: Annotated[Safety, Field(description="The level that the policy judges.")]
    reasons: Annotated[Sequence[str], Field(description="Why it has this level.")]
    assessed: Annotated[Safety | None, Field(description="What the gateway found, where the tenant declared another.")]


class RefusalShown(ResponseModel):
    """The error with which the call would end."""

    code: Annotated[str, Field(description="The stable code.")]
    message: Annotated[str, Field(description="What the client would read.")]
    faults: Annotated[Sequence[FaultShown], Field(description="The violations, one by one.")]


class GuardrailExplained(ResponseModel):
    """A guardrail of the tool, with what it finds in the arguments."""

    name: Annotated[str, Field(description="Its name.")]
    check: Annotated[GuardrailCheck, Field(description="What it looks for.")]
    phases: Annotated[Sequence[GuardrailPhase], Field(description="When it checks.")]
    action: Annotated[GuardrailAction, Field(description="What a finding does.")]
    findings: Annotated[
        Sequence[str] | None,
        Field(description="What it finds in the arguments; null: it was not run, as hooks and checks of results."),
    ]


class LimitsExplained(ResponseModel):
    """The limits that the call would count against; the explanation does not."""

    calls_per_second: Annotated[float, Field(description="The tenant's rate.")]
    burst: Annotated[int, Field(description="How many calls may come at once.")]
    concurrency: Annotated[int, Field(description="How many calls may run at the same time.")]


class ToolExplained(ResponseModel):
    """The explanation of a call."""

    tool: Annotated[str, Field(description="The name.")]
    visible: Annotated[bool, Field(description="Whether the client lists the tool and may call it.")]
    hidden_because: Annotated[str | None, Field(description="Why it is not visible.")]
    course: Annotated[
        Literal["runs", "asks", "refused", "hidden"],
        Field(description="Whether the call would run, after a person's answer (`asks`), or not at all."),
    ]
    level: Annotated[LevelShown | None, Field(description="The safety level.")]
    decision: Annotated[Decision | None, Field(description="The decision of the tenant's policy.")]
    decision_reason: Annotated[str | None, Field(description="Why the policy decides so.")]
    refusal: Annotated[RefusalShown | None, Field(description="Why the call would not run.")]
    guardrails: Annotated[Sequence[GuardrailExplained], Field(description="The tool's guardrails, in their order.")]
    request: Annotated[TriedRequest | None, Field(description="What would be sent, without credentials.")]
    limits: Annotated[LimitsExplained | None, Field(description="The limits it would count against.")]
