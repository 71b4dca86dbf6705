"""Response models of a tenant's policy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from gateway.domain.tenancy.ceilings import BoundedPolicy
from gateway.domain.tenancy.policy import ConditionOperator, ConditionValue, Decision, Limits, PolicyRule, Safety
from gateway.web.kinds.annotations import shown_model
from gateway.web.models import CopiedModel, ResponseModel

if TYPE_CHECKING:  # a derived class is no type for a checker

    class LimitsShown(CopiedModel):
        """The tenant's limits."""

else:
    LimitsShown = shown_model(Limits)


class ConditionShown(CopiedModel):
    """A condition on one argument."""

    pointer: Annotated[str, Field(description="JSON Pointer into the arguments.")]
    operator: Annotated[ConditionOperator, Field(description="The comparison.")]
    value: Annotated[ConditionValue | Sequence[ConditionValue], Field(description="The value to compare with.")]


class PolicyRuleShown(ResponseModel):
    """A rule: the decision for calls that match every member except null ones."""

    tool: Annotated[str | None, Field(description="Name or shell pattern of a tool, prompt, resource or operation.")]
    source: Annotated[str | None, Field(description="Name of a source.")]
    profile: Annotated[str | None, Field(description="Name of a profile.")]
    level: Annotated[Safety | None, Field(description="Safety level.")]
    when: Annotated[Sequence[ConditionShown], Field(description="Conditions on the arguments; all must be true.")]
    decision: Annotated[Decision, Field(description="The decision for a matching call.")]
    reason: Annotated[str, Field(description="The reason; the caller and the approver see it.")]

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
    """The arguments, by JSON Pointer, that the audit trail records of calls that match `tool` and `source`."""

    tool: Annotated[str | None, Field(description="Name or shell pattern of a tool, prompt or resource URI.")]
    source: Annotated[str | None, Field(description="Name of a source.")]
    keep: Annotated[Sequence[str], Field(description="Pointers to arguments that are recorded unchanged.")]
    hash: Annotated[Sequence[str], Field(description="Pointers to arguments that are recorded as a MAC.")]
    drop: Annotated[Sequence[str], Field(description="Pointers to arguments whose value is not recorded.")]


class PolicyShown(ResponseModel):
    """The decisions for calls by safety level and rule, and the tenant's limits."""

    safe: Annotated[Decision, Field(description="The decision for calls that only read.")]
    moderate: Annotated[Decision, Field(description="The decision for calls that change data.")]
    dangerous: Annotated[Decision, Field(description="The decision for calls that remove data.")]
    rules: Annotated[
        Sequence[PolicyRuleShown], Field(description="The rules; the first match decides, otherwise the safety level.")
    ]
    recorded_arguments: Annotated[
        Sequence[RecordingRuleShown],
        Field(
            description="The rules for arguments in the audit trail; the first match applies, otherwise none is "
            "recorded."
        ),
    ]
    limits: Annotated[LimitsShown, Field(description="The stored limits.")]
    effective: Annotated[
        LimitsShown, Field(description="The effective limits: the smaller of each limit and its ceiling.")
    ]
    ceilings: Annotated[LimitsShown, Field(description="The ceilings: the maximum of each limit, set by the operator.")]
    http_origins: Annotated[
        Sequence[str] | None,
        Field(description="The only origins that declared `http` handlers may call; null permits all."),
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
    """The current primitives that one rule matches, regardless of the arguments of their calls."""

    rule: Annotated[int, Field(description="Number of the rule, from 1.")]
    count: Annotated[int, Field(description="The number of primitives that the rule matches.")]
    names: Annotated[Sequence[str], Field(description="The first 50 matching primitives.")]
    warnings: Annotated[Sequence[str], Field(description="Reasons to doubt that the rule has the intended effect.")]


class RuleReport(ResponseModel):
    """The primitives that the rules match."""

    rules: Annotated[Sequence[RuleMatchesShown], Field(description="One entry for each rule, in order.")]
