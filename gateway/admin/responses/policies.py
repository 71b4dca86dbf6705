"""Response models of a tenant's policy."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.responses.models import CopiedModel, LimitsShown, ResponseModel
from gateway.domain.tenancy.ceilings import BoundedPolicy
from gateway.domain.tenancy.policy import ConditionOperator, ConditionValue, Decision, PolicyRule, Safety


class ConditionShown(CopiedModel):
    """A condition on one argument."""

    pointer: Annotated[str, Field(description="JSON Pointer into the arguments.")]
    operator: Annotated[ConditionOperator, Field(description="The comparison.")]
    value: Annotated[ConditionValue | Sequence[ConditionValue], Field(description="What is compared with.")]


class PolicyRuleShown(ResponseModel):
    """A rule: the decision for the calls that match every member that is not null."""

    tool: Annotated[str | None, Field(description="Name or shell pattern of a tool, prompt, resource or operation.")]
    source: Annotated[str | None, Field(description="Name of a source.")]
    profile: Annotated[str | None, Field(description="Name of a profile.")]
    level: Annotated[Safety | None, Field(description="Safety level.")]
    when: Annotated[Sequence[ConditionShown], Field(description="Conditions on the arguments; all must hold.")]
    decision: Annotated[Decision, Field(description="What a matching call needs.")]
    reason: Annotated[str, Field(description="Shown to the caller, and to the person who decides.")]

    @classmethod
    def of(cls, rule: PolicyRule) -> Self:
        """Build the response from a rule."""
        return cls(
            tool=rule.tool,
            source=rule.source,
            profile=rule.profile,
            level=rule.level,
            when=[ConditionShown.of(condition) for condition in rule.when],
            decision=rule.decision,
            reason=rule.reason,
        )


class RecordingRuleShown(CopiedModel):
    """The arguments that the audit trail contains of calls that match `tool` and `source`, by JSON Pointer."""

    tool: Annotated[str | None, Field(description="Name or shell pattern of a tool, prompt or resource URI.")]
    source: Annotated[str | None, Field(description="Name of a source.")]
    keep: Annotated[Sequence[str], Field(description="Recorded as they are.")]
    hash: Annotated[Sequence[str], Field(description="Recorded as a MAC, equal for equal values.")]
    drop: Annotated[Sequence[str], Field(description="Only the pointer is recorded.")]


class PolicyShown(ResponseModel):
    """The decisions for calls by safety level and rule, and the tenant's limits."""

    safe: Annotated[Decision, Field(description="What a call needs that only reads.")]
    moderate: Annotated[Decision, Field(description="What a call needs that changes something.")]
    dangerous: Annotated[Decision, Field(description="What a call needs that removes something.")]
    rules: Annotated[
        Sequence[PolicyRuleShown], Field(description="The first rule that matches decides, else the level.")
    ]
    recorded_arguments: Annotated[
        Sequence[RecordingRuleShown],
        Field(
            description="The arguments that the audit trail contains: the first rule that matches a call, else none."
        ),
    ]
    limits: Annotated[LimitsShown, Field(description="As stored.")]
    effective: Annotated[LimitsShown, Field(description="In force: the smaller of each limit and its ceiling.")]
    ceilings: Annotated[LimitsShown, Field(description="The most that each limit may be; set by the operator.")]
    http_origins: Annotated[
        Sequence[str] | None,
        Field(description="The only origins that declared `http` handlers may call; null: any."),
    ]

    @classmethod
    def of(cls, found: BoundedPolicy) -> Self:
        """Build the response from a policy."""
        policy = found.stored
        return cls(
            safe=policy.safe,
            moderate=policy.moderate,
            dangerous=policy.dangerous,
            rules=[PolicyRuleShown.of(rule) for rule in policy.rules],
            recorded_arguments=[RecordingRuleShown.of(rule) for rule in policy.recorded_arguments],
            limits=LimitsShown.of(policy.limits),
            effective=LimitsShown.of(found.limits),
            ceilings=LimitsShown.of(found.ceilings.limits),
            http_origins=policy.http_origins,
        )


class RuleMatchesShown(CopiedModel):
    """The current primitives that one rule matches, whatever the arguments of their calls."""

    rule: Annotated[int, Field(description="Number of the rule, from 1.")]
    count: Annotated[int, Field(description="How many primitives it matches.")]
    names: Annotated[Sequence[str], Field(description="The first 50 of them.")]
    warnings: Annotated[Sequence[str], Field(description="Why the rule may not do what was meant.")]


class RuleReport(ResponseModel):
    """The primitives that the rules match."""

    rules: Annotated[Sequence[RuleMatchesShown], Field(description="One entry for each rule, in order.")]
