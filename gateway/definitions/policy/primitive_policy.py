"""The policy of one primitive: its rules are selected once, so a call only tests conditions on its arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from gateway.definitions.policy.argument_selection import ArgumentSelection
from gateway.definitions.policy.conditions import CompiledCondition, Truth
from gateway.domain.tenancy.policy import STRICTNESS, Decision, Judgement, Policy, PolicyRule, Safety


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySubject:
    """The attributes of a primitive that rules test.

    `operation_names` and `operation_source` are those of the imported operation that a declared primitive runs. Its
    arguments differ from the operation's, so conditions of a rule that matches only these are not decidable.
    """

    names: Sequence[str]
    source: str
    level: Safety
    basis: str
    """The origin of the level, in words."""
    operation_names: Sequence[str] = ()
    operation_source: str = ""
    readings: Sequence[str] = ()
    """Possible readings of a URI from the caller."""
    fixed: Mapping[str, object] = field(default_factory=dict[str, object])
    """Arguments that an override fixes; they replace those of the caller."""
    unrecorded: Sequence[str] = ()
    """Pointers to arguments that belong to another call with its own audit entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalRule:
    """A rule that matches the primitive. `conditions` is empty if the conditions of the rule are not decidable."""

    judgement: Judgement
    conditions: tuple[CompiledCondition, ...]

    def holds(self, arguments: Mapping[str, object]) -> tuple[Truth, str]:
        """Return the conjunction of the conditions, and the pointer of the first undecidable one."""
        doubtful = "" if self.conditions else "/"
        for condition in self.conditions:
            found = condition.holds(arguments)
            if found is False:
                return False, ""
            if found is None:
                doubtful = doubtful or condition.pointer
        return (None, doubtful) if doubtful else (True, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitivePolicy:
    """The conditional rules that can match calls of a primitive, in order, and the decision if none of them matches."""

    judgement: Judgement
    rules: tuple[ConditionalRule, ...] = ()
    fixed: Mapping[str, object] = field(default_factory=dict[str, object])
    recorded: ArgumentSelection | None = None
    """The arguments that the audit trail records; None means no arguments."""

    @property
    def possible(self) -> Sequence[Judgement]:
        """All judgements that some arguments can lead to."""
        return (self.judgement, *(rule.judgement for rule in self.rules))

    @property
    def mildest(self) -> Judgement:
        """The least strict of the possible judgements."""
        return min(self.possible, key=_strictness) if self.rules else self.judgement

    @property
    def needs_person(self) -> bool:
        """True if a call may have to wait for a person."""
        return any(judged.decision in {Decision.CONFIRM, Decision.APPROVE} for judged in self.possible)

    def judge(self, arguments: Mapping[str, object]) -> Judgement:
        """Decide a call with these settled arguments.

        The first rule whose conditions hold decides. If they are not decidable, both outcomes are computed, and the
        stricter decision is taken.
        """
        given = {**arguments, **self.fixed}
        strictest: Judgement | None = None
        for rule in self.rules:
            holds, doubtful = rule.holds(given)
            if holds:
                return _stricter(rule.judgement, strictest)
            if holds is None:  # guard: policy-doubt
                strictest = _stricter(_with_doubt(rule.judgement, doubtful), strictest)
        return _stricter(self.judgement, strictest)


def find_policy(policy: Policy, subject: PolicySubject, profile: str) -> PrimitivePolicy:
    """Select the rules for a primitive in a profile; a rule without conditions ends the selection."""
    recorded = _find_recorded(policy, subject)
    kept: list[ConditionalRule] = []
    for number, rule in enumerate(policy.rules, 1):
        found = _matches(rule, subject, profile)
        runs = found is False and _runs(rule, subject, profile)
        if found is False and not runs:
            continue
        judged = Judgement(decision=rule.decision, reason=_reason(number, rule), rule=number)
        if not rule.when and found is not None:
            return PrimitivePolicy(judgement=judged, rules=tuple(kept), fixed=subject.fixed, recorded=recorded)
        conditions = tuple(CompiledCondition(condition) for condition in rule.when) if found else ()
        kept.append(ConditionalRule(judgement=judged, conditions=conditions))
    judged = Judgement(decision=policy.decision_for(subject.level), reason=f"level {subject.level} ({subject.basis})")
    return PrimitivePolicy(judgement=judged, rules=tuple(kept), fixed=subject.fixed, recorded=recorded)


def is_about(rule: PolicyRule, subject: PolicySubject, profile: str) -> bool:
    """True if the rule can decide calls of the primitive in this profile."""
    return _matches(rule, subject, profile) is not False or _runs(rule, subject, profile)


def _find_recorded(policy: Policy, subject: PolicySubject) -> ArgumentSelection | None:
    for rule in policy.recorded_arguments:
        is_named = rule.tool is None or any(fnmatchcase(name, rule.tool) for name in subject.names)
        if is_named and rule.source in {None, subject.source}:
            is_empty = not rule.keep and not rule.hash
            return None if is_empty else ArgumentSelection(rule, unrecorded=subject.unrecorded)
    return None


def _matches(rule: PolicyRule, subject: PolicySubject, profile: str) -> Truth:
    """Return True if the rule matches the primitive, without its arguments; None if the readings of the URI differ."""
    if not _is_within(rule, subject, profile) or rule.source not in {None, subject.source}:
        return False
    if rule.tool is None or any(fnmatchcase(name, rule.tool) for name in subject.names):
        return True
    pattern = rule.tool.casefold()
    found = {fnmatchcase(reading.casefold(), pattern) for reading in subject.readings} or {False}
    return found.pop() if len(found) == 1 else None  # guard: policy-uri-readings


def _runs(rule: PolicyRule, subject: PolicySubject, profile: str) -> bool:
    """True if the rule matches the operation that the primitive runs."""
    if not subject.operation_names or not _is_within(rule, subject, profile):
        return False
    is_named = rule.tool is None or any(fnmatchcase(name, rule.tool) for name in subject.operation_names)
    return is_named and rule.source in {None, subject.operation_source}  # guard: policy-alias


def _is_within(rule: PolicyRule, subject: PolicySubject, profile: str) -> bool:
    return rule.profile in {None, profile} and rule.level in {None, subject.level}


def _reason(number: int, rule: PolicyRule) -> str:
    return f"rule {number}: {rule.reason}" if rule.reason else f"rule {number}"


def _with_doubt(judged: Judgement, pointer: str) -> Judgement:
    return replace(judged, reason=f"{judged.reason} ({pointer} is missing or cannot be compared, so the rule applies)")


def _stricter(judged: Judgement, other: Judgement | None) -> Judgement:
    return judged if other is None or _strictness(judged) >= _strictness(other) else other


def _strictness(judged: Judgement) -> int:
    return STRICTNESS[judged.decision]
