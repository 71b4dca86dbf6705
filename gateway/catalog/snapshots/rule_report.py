"""Report on policy rules: the current primitives that each rule matches, and rules without effect."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from gateway.catalog.snapshots.access_coverage import all_items
from gateway.catalog.snapshots.limits import MAX_NAMED, MAX_SCHEMAS
from gateway.catalog.snapshots.primitive_policies import subject_of
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.definitions.policy.primitive_policy import PolicySubject, is_about
from gateway.domain.json_access import tokens_of
from gateway.domain.json_text import decode_json
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.policy import PolicyRule
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.domain.tenancy.selection import compile_selection
from gateway.domain.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMatches:
    """The primitives that one rule matches, regardless of arguments; `names` contains the first of them."""

    rule: int
    count: int
    names: Sequence[str]
    warnings: Sequence[str]


def report_rules(snapshot: Snapshot, rules: Sequence[PolicyRule]) -> Sequence[RuleMatches]:
    """Match the rules with the primitives of a snapshot; the rules are numbered from 1."""
    with_rules = replace(snapshot, policy=replace(snapshot.policy, rules=tuple(rules)))
    subjects = [(item, subject_of(with_rules, item)) for item in all_items(snapshot)]
    return [_report(snapshot, subjects, rules, position) for position in range(len(rules))]


def _report(
    snapshot: Snapshot,
    subjects: Sequence[tuple[Tool | Primitive, PolicySubject]],
    rules: Sequence[PolicyRule],
    position: int,
) -> RuleMatches:
    rule, earlier = rules[position], [one for one in rules[:position] if not one.when]
    profile = rule.profile or DEFAULT_PROFILE
    known = snapshot.profiles.get(profile)
    shows = None if known is None else compile_selection(known)
    found = [
        (item, subject)
        for item, subject in subjects
        if is_about(rule, subject, profile) and (shows is None or shows(item))
    ]
    names = sorted(item.name for item, _ in found)
    warnings: list[str] = []
    if rule.profile not in {None, DEFAULT_PROFILE} and known is None:
        warnings.append(f"there is no profile {profile}")
    if not found:
        warnings.append("matches no current primitive")
    elif all(any(_decides(one, rule, subject) for one in earlier) for _, subject in found):
        warnings.append("has no effect: earlier rules without conditions decide everything that it matches")
    warnings += [
        f"no matched tool has the argument {condition.pointer}, so the condition can never be evaluated"
        for condition in rule.when
        if found and not _has_argument([item for item, _ in found], condition.pointer)
    ]
    return RuleMatches(rule=position + 1, count=len(names), names=names[:MAX_NAMED], warnings=warnings)


def _decides(earlier: PolicyRule, rule: PolicyRule, subject: PolicySubject) -> bool:
    return earlier.profile in {None, rule.profile} and is_about(earlier, subject, earlier.profile or DEFAULT_PROFILE)


def _has_argument(items: Sequence[Tool | Primitive], pointer: str) -> bool:
    """True if one of the tools declares the argument, or if its schema permits unknown arguments."""
    name = tokens_of(pointer)[0]
    if len(items) > MAX_SCHEMAS or any(isinstance(item, Primitive) for item in items):
        return True
    return any(_declares(item.definition, name) for item in items)


def _declares(definition: bytes, name: str) -> bool:
    schema = cast("dict[str, dict[str, object]]", decode_json(definition)).get("inputSchema", {})
    properties = schema.get("properties")
    return not isinstance(properties, dict) or name in properties
