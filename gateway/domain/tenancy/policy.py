"""Safety levels of calls, and a tenant's policy for them."""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final

from gateway.domain.members.formats import POINTER
from gateway.domain.members.markers import About, Bounds, Check, Form, Length, Option, Shape
from gateway.domain.members.values import ShortText, check_printable
from gateway.domain.tenancy.limits import (
    MAX_CONDITIONS,
    MAX_POINTERS,
    MAX_POLICY_RULES,
    MAX_VALUE_LENGTH,
    MAX_VALUES,
    POLICY_BURST_S,
)
from gateway.errors import BrokenSetting


class Safety(StrEnum):
    """Potential harm of a call."""

    SAFE = "safe"
    MODERATE = "moderate"
    DANGEROUS = "dangerous"


HIGHEST: Final = 1_000_000
"""The highest value of any limit."""
Rate = Annotated[float, Bounds(least=0, most=HIGHEST, is_open=True)]
Count = Annotated[int, Bounds(least=1, most=HIGHEST)]

Levels = tuple[Safety, Safety]
"""The declared and the assessed level."""


_DECISION = "`confirm` asks the user through the client; `approve` asks another person."


class Decision(StrEnum):
    """Requirement for a call of some safety level."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    APPROVE = "approve"
    DENY = "deny"


STRICTNESS = {decision: rank for rank, decision in enumerate(Decision)}
"""Rank of each decision; the strictest is `deny`."""


class ConditionOperator(StrEnum):
    """Comparison of an argument with the value of a condition; docs/policy.md defines each of them."""

    EQUALS = "equals"
    NOT_EQUALS = "not_equals"
    IN = "in"
    GREATER = "greater"
    LESS = "less"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    STARTS_WITH = "starts_with"
    INSIDE = "inside"
    OUTSIDE = "outside"
    EXISTS = "exists"
    CONTAINS = "contains"
    MATCHES = "matches"


ConditionValue = str | int | float | bool

_Value = Annotated[str, Length(most=MAX_VALUE_LENGTH)] | bool | int | float
_Values = Annotated[tuple[_Value, ...], Length(least=1, most=MAX_VALUES)]
_Pointers = Annotated[tuple[Annotated[str, Length(most=512), Form(POINTER)], ...], Length(most=MAX_POINTERS)]
_Reason = Annotated[str, Length(most=200), Check(check_printable)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentCondition:
    """A condition on one argument. If the argument is missing or has another type, the stricter decision applies."""

    pointer: Annotated[
        str, Length(least=1, most=512), Form(POINTER), About("JSON Pointer (RFC 6901) into the arguments.")
    ]
    operator: Annotated[ConditionOperator, About("The comparison; see docs/policy.md.")]
    value: Annotated[_Value | _Values, About("The value to compare with; a list for `in`, true or false for `exists`.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """A decision for the calls that match all set members; conditions on arguments are in `when`.

    `tool` is a name or shell pattern, matched against the name of a tool or prompt, or the URI of a resource or
    template. It is also matched against the operation that the primitive calls: `METHOD path`, or its tool's name.
    """

    decision: Annotated[Decision, About(_DECISION)]
    tool: Annotated[
        ShortText | None, About("Name or shell pattern of a tool, prompt, resource URI or operation (`METHOD path`).")
    ] = None
    source: Annotated[ShortText | None, About("Name of the source of the primitive or of its operation.")] = None
    profile: Annotated[ShortText | None, About("Name of a profile; `default` is the tenant's own URL.")] = None
    level: Annotated[Safety | None, About("Safety level.")] = None
    when: Annotated[
        tuple[ArgumentCondition, ...],
        Length(most=MAX_CONDITIONS),
        About("Conditions on the arguments; all must be true."),
    ] = ()
    reason: Annotated[_Reason, About("The reason; the caller and the approver see it.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """The arguments, by JSON Pointer, that the audit trail records of calls that match `tool` and `source`.

    `tool` is a name or a shell pattern, as in `PolicyRule`. It does not match the operation of a declared primitive,
    because its arguments differ. A pointer includes everything below it; `*` matches any member or element. `drop`
    takes precedence over `hash`, and `hash` over `keep`. Without `keep` and `hash`, nothing is recorded.
    """

    tool: Annotated[ShortText | None, About("Name or shell pattern of a tool, prompt or resource URI.")] = None
    source: Annotated[ShortText | None, About("Name of the source of the primitive.")] = None
    keep: Annotated[
        _Pointers, About("Pointers to arguments that are recorded unchanged; the empty pointer means all.")
    ] = ()
    hash: Annotated[
        _Pointers, About("Pointers to arguments that are recorded as a MAC; equal values have equal MACs.")
    ] = ()
    drop: Annotated[_Pointers, About("Pointers to arguments whose value is not recorded.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A decision about a call, and the reason for it; `rule` is the number of the deciding rule, from 1."""

    decision: Decision
    reason: str
    rule: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The tenant's limits."""

    calls_per_second: Annotated[Rate, About("The sustained rate of calls per second.")] = 100.0
    burst: Annotated[
        Count,
        About(
            "The number of calls that may arrive at once before the rate applies. If only the rate is sent, it follows:"
            " two seconds of the rate, at most 200 or the burst that was chosen."
        ),
    ] = 200
    concurrency: Annotated[Count, About("The maximum number of concurrent calls.")] = 64
    sessions: Annotated[Count, About("The maximum number of open MCP sessions.")] = 1000
    streams: Annotated[Count, About("The maximum number of open streams.")] = 100
    primitives: Annotated[Count, About("The maximum number of tools, resources, resource templates and prompts.")] = (
        10_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Decisions about the calls of one tenant, and its limits. The first matching rule decides, otherwise the safety
    level.

    The field defaults apply to tenants without a stored policy, which were created before `PROTECTING` became the
    default.
    """

    safe: Annotated[
        Decision, About(f"The decision for calls that only read. {_DECISION}"), Shape.SETTING, Shape.KEPT
    ] = Decision.ALLOW
    moderate: Annotated[Decision, About("The decision for calls that change data."), Shape.SETTING, Shape.KEPT] = (
        Decision.ALLOW
    )
    dangerous: Annotated[Decision, About("The decision for calls that delete data."), Shape.SETTING, Shape.KEPT] = (
        Decision.ALLOW
    )
    limits: Annotated[
        Limits,
        About("The stored limits; a ceiling that is lower cuts them."),
        Option(name="limit", is_map=True),
        Shape.KEPT,
    ] = Limits()
    http_origins: Annotated[
        tuple[Annotated[str, Length(least=1, most=300)], ...] | None,
        Length(most=200),
        About(
            "The only origins that declared `http` handlers may call, such as https://api.example.com; null permits all"
            " that egress control permits."
        ),
        Option(name="http-origin", metavar="ORIGIN", nothing="any"),
        Shape.KEPT,
    ] = None
    rules: Annotated[
        tuple[PolicyRule, ...],
        Length(most=MAX_POLICY_RULES),
        About("The rules; the first match decides, otherwise the safety level."),
        Option(is_file=True),
        Shape.KEPT,
    ] = ()
    recorded_arguments: Annotated[
        tuple[RecordingRule, ...],
        Length(most=MAX_POLICY_RULES),
        About("The rules for arguments in the audit trail; the first match applies, otherwise none is recorded."),
        Option(name="record", is_file=True),
        Shape.KEPT,
    ] = ()
    version: int = 1

    def decision_for(self, safety: Safety) -> Decision:
        """Return the decision for a call of this level."""
        return Decision(getattr(self, safety.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatus:
    """The limits in force."""

    effective: Annotated[Limits, About("The effective limits: the smaller of each limit and its ceiling.")]
    ceilings: Annotated[Limits, About("The ceilings: the maximum of each limit, set by the operator.")]


PROTECTING: Final = Policy(moderate=Decision.CONFIRM, dangerous=Decision.APPROVE)
"""The policy of a new tenant, unless the installation chooses other decisions."""


def follow_rate(before: Policy, after: Policy, sent: AbstractSet[str]) -> Policy:
    """Return the changed policy with a burst that follows the rate, up to the default burst, unless it was sent.

    Otherwise a low rate would have no effect on the first 200 calls. A stored burst that differs from the one of its
    rate was chosen, so it is only lowered.
    """
    if "limits.calls_per_second" not in sent or "limits.burst" in sent:
        return after
    stored, default = before.limits, Limits().burst
    highest = default if stored.burst == _burst_of(stored.calls_per_second, default) else stored.burst
    burst = _burst_of(after.limits.calls_per_second, highest)
    return replace(after, limits=replace(after.limits, burst=burst))


def _burst_of(rate: float, highest: int) -> int:
    return min(highest, max(1, math.ceil(rate * POLICY_BURST_S)))


def weaker_levels(policy: Policy) -> Sequence[Safety]:
    """Return the levels whose decision is less strict than that of `PROTECTING`."""
    return [
        level for level in Safety if STRICTNESS[policy.decision_for(level)] < STRICTNESS[PROTECTING.decision_for(level)]
    ]


LOCAL_POLICY: Final = ("safe=allow", "moderate=allow", "dangerous=confirm")
"""Decisions of a gateway for one person: changing calls run, and deleting calls are confirmed through the client."""


def read_decisions(given: Iterable[str]) -> Policy:
    """Return the policy of new tenants: `PROTECTING`, changed by strings of the form `level=decision`.

    Raises:
        BrokenSetting: a string is not of this form.
    """
    decision_by_level: dict[str, Decision] = {}
    for text in given:
        level, _, decision = (part.strip() for part in text.partition("="))
        try:
            decision_by_level[Safety(level).value] = Decision(decision)
        except ValueError:
            raise BrokenSetting(
                f"GATEWAY_TENANT_POLICY: {text!r} is not level=decision;"
                f" levels: {', '.join(Safety)}; decisions: {', '.join(Decision)}"
            ) from None
    return Policy(
        safe=decision_by_level.get("safe", PROTECTING.safe),
        moderate=decision_by_level.get("moderate", PROTECTING.moderate),
        dangerous=decision_by_level.get("dangerous", PROTECTING.dangerous),
    )
