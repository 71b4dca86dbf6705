"""Safety levels of calls, and a tenant's policy for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from gateway.domain.members.markers import About, Bounds
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentCondition:
    """A condition on the argument at a JSON Pointer (RFC 6901); several values only for `in`."""

    pointer: str
    operator: ConditionOperator
    value: ConditionValue | tuple[ConditionValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """A decision for the calls that match all set members; conditions on arguments are in `when`.

    `tool` is a name or shell pattern, matched against the name of a tool or prompt, or the URI of a resource or
    template. It is also matched against the operation that the primitive calls: `METHOD path`, or its tool's name.
    """

    decision: Decision
    tool: str | None = None
    source: str | None = None
    profile: str | None = None
    level: Safety | None = None
    when: tuple[ArgumentCondition, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """The arguments, by JSON Pointer, that the audit trail records of calls that match `tool` and `source`.

    `tool` is a name or a shell pattern, as in `PolicyRule`. It does not match the operation of a declared primitive,
    because its arguments differ. A pointer includes everything below it; `*` matches any member or element. `drop`
    takes precedence over `hash`, and `hash` over `keep`. Without `keep` and `hash`, nothing is recorded.
    """

    tool: str | None = None
    source: str | None = None
    keep: tuple[str, ...] = ()
    hash: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


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

    safe: Decision = Decision.ALLOW
    moderate: Decision = Decision.ALLOW
    dangerous: Decision = Decision.ALLOW
    limits: Limits = Limits()
    http_origins: tuple[str, ...] | None = None
    """The only origins that declared `http` handlers may call, sorted; None permits all origins that egress control
    permits.
    """
    rules: tuple[PolicyRule, ...] = ()
    recorded_arguments: tuple[RecordingRule, ...] = ()
    """The first rule that matches a call applies; without one, no arguments are recorded."""
    version: int = 1

    def decision_for(self, safety: Safety) -> Decision:
        """Return the decision for a call of this level."""
        return Decision(getattr(self, safety.value))


PROTECTING: Final = Policy(moderate=Decision.CONFIRM, dangerous=Decision.APPROVE)
"""The policy of a new tenant, unless the installation chooses other decisions."""


def weaker_levels(policy: Policy) -> Sequence[Safety]:
    """Return the levels whose decision is less strict than that of `PROTECTING`."""
    return [
        level for level in Safety if STRICTNESS[policy.decision_for(level)] < STRICTNESS[PROTECTING.decision_for(level)]
    ]


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
