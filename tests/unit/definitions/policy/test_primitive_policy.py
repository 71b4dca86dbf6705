"""The policy of one primitive: order of rules, doubt, operations behind primitives, URIs of templates."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.definitions.policy.paths import readings_of_uri
from gateway.definitions.policy.primitive_policy import PolicySubject, find_policy
from gateway.domain.tenancy.policy import (
    ArgumentCondition,
    ConditionOperator,
    Decision,
    Judgement,
    Policy,
    PolicyRule,
    Safety,
)

ALLOW, CONFIRM, APPROVE, DENY = Decision
REFUND = PolicySubject(names=("refund_order", "POST /refunds"), source="shop", level=Safety.MODERATE, basis="assessed")


def _when(pointer: str, operator: str, value: Any) -> ArgumentCondition:
    return ArgumentCondition(pointer=pointer, operator=ConditionOperator(operator), value=value)


def _judge(
    rules: list[PolicyRule],
    arguments: dict[str, object] | None = None,
    subject: PolicySubject = REFUND,
    profile: str = "default",
) -> Judgement:
    policy = Policy(moderate=CONFIRM, rules=tuple(rules))
    return find_policy(policy, subject, profile).judge(arguments or {})


LARGE = PolicyRule(tool="refund_*", when=(_when("/amount", "greater", 1000),), decision=DENY, reason="too large")
SMALL = PolicyRule(tool="refund_*", when=(_when("/amount", "at_most", 10),), decision=ALLOW)


def test_the_first_rule_that_matches_decides_and_else_the_level() -> None:
    """Ours: order, then the level, each with its reason (SAF-5)."""
    rules = [LARGE, SMALL]

    assert _judge(rules, {"amount": 2000}) == Judgement(decision=DENY, reason="rule 1: too large", rule=1)
    assert _judge(rules, {"amount": 5}) == Judgement(decision=ALLOW, reason="rule 2", rule=2)
    assert _judge(rules, {"amount": 100}) == Judgement(decision=CONFIRM, reason="level moderate (assessed)")


@pytest.mark.parametrize("amount", ["1001", "5", [5], None, {"value": 5}, True, float("nan")])
@pytest.mark.parametrize("rules", [[LARGE, SMALL], [SMALL, LARGE]])
def test_in_doubt_a_rule_that_protects_counts_and_one_that_relaxes_does_not(
    rules: list[PolicyRule], amount: object
) -> None:
    """Ours: no form of an argument leads to a milder decision than each of its readings (SAF-5)."""
    judged = _judge(rules, {"amount": amount})

    assert judged.decision is DENY
    assert "/amount is missing or cannot be compared" in judged.reason


def test_a_missing_argument_cannot_reach_a_milder_decision() -> None:
    """Ours: a rule that relaxes needs the argument; a rule that protects does not (SAF-5)."""
    assert _judge([SMALL], {}).decision is CONFIRM
    assert _judge([LARGE], {}).decision is DENY
    assert _judge([LARGE], {"Amount": 5}).decision is DENY


def test_doubt_continues_with_the_rules_below() -> None:
    """Ours: a doubtful mild rule does not hide a strict one below it (SAF-5)."""
    confirm = PolicyRule(when=(_when("/amount", "greater", 10),), decision=CONFIRM)

    assert _judge([confirm, PolicyRule(decision=DENY)], {}).decision is DENY
    assert _judge([confirm, PolicyRule(decision=ALLOW)], {}).decision is CONFIRM


def test_all_conditions_of_a_rule_must_hold() -> None:
    """Ours: one condition that does not hold ends the doubt about the others (SAF-5)."""
    rule = PolicyRule(when=(_when("/path", "exists", True), _when("/path", "outside", "/tmp")), decision=DENY)

    assert _judge([rule], {}).decision is CONFIRM
    assert _judge([rule], {"path": "/tmp/a"}).decision is CONFIRM
    assert _judge([rule], {"path": "/etc"}).decision is DENY
    assert _judge([rule], {"path": "/tmp/../etc"}).decision is DENY


@pytest.mark.parametrize(
    ("rule", "is_about"),
    [
        (PolicyRule(decision=DENY), True),
        (PolicyRule(tool="refund_order", decision=DENY), True),
        (PolicyRule(tool="refund_?rder", decision=DENY), True),
        (PolicyRule(tool="POST /refunds", decision=DENY), True),
        (PolicyRule(tool="POST *", decision=DENY), True),
        (PolicyRule(tool="Refund_order", decision=DENY), False),
        (PolicyRule(tool="order", decision=DENY), False),
        (PolicyRule(source="shop", decision=DENY), True),
        (PolicyRule(source="sho*", decision=DENY), False),
        (PolicyRule(level=Safety.MODERATE, decision=DENY), True),
        (PolicyRule(level=Safety.DANGEROUS, decision=DENY), False),
        (PolicyRule(profile="default", decision=DENY), True),
        (PolicyRule(profile="staff", decision=DENY), False),
        (PolicyRule(tool="refund_*", source="crm", decision=DENY), False),
    ],
)
def test_every_member_of_a_rule_must_match(rule: PolicyRule, *, is_about: bool) -> None:
    """Ours: tool, source, profile and level narrow a rule (SAF-5)."""
    assert (_judge([rule]).decision is DENY) is is_about


def test_a_rule_about_an_operation_covers_its_tools() -> None:
    """Ours: an alias of an operation has other arguments, so conditions on them are in doubt (SAF-5)."""
    alias = PolicySubject(
        names=("pay_back",),
        source="",
        level=Safety.MODERATE,
        basis="assessed",
        operation_names=REFUND.names,
        operation_source="shop",
    )

    assert _judge([PolicyRule(tool="refund_order", decision=DENY)], {}, alias).decision is DENY
    assert _judge([PolicyRule(source="shop", decision=DENY)], {}, alias).decision is DENY
    assert _judge([LARGE], {"amount": 1}, alias).decision is DENY
    assert _judge([SMALL], {"amount": 1}, alias).decision is CONFIRM


def test_fixed_arguments_replace_those_of_the_caller() -> None:
    """Ours: conditions read what is sent, also where an override fixes it (SAF-5)."""
    fixed = replace(REFUND, fixed={"amount": 5000})

    assert _judge([LARGE, SMALL], {"amount": 1}, fixed).decision is DENY


@pytest.mark.parametrize(
    ("uri", "decision"),
    [
        ("file:///secret/a", DENY),
        ("file:///%73ecret/a", DENY),
        ("file:///x/../secret/a", DENY),
        ("FILE:///secret/a", DENY),
        ("file:///public/a", CONFIRM),
    ],
)
def test_a_uri_of_a_template_is_matched_in_all_its_readings(uri: str, decision: Decision) -> None:
    """Ours: an encoded URI evades no rule, and reaches no milder one (SAF-5)."""
    subject = PolicySubject(
        names=("file:///{+path}",), source="", level=Safety.MODERATE, basis="assessed", readings=readings_of_uri(uri)
    )

    assert _judge([PolicyRule(tool="file:///secret/*", decision=DENY)], {}, subject).decision is decision
    assert _judge([PolicyRule(tool="file:///public/*", decision=ALLOW)], {}, subject).decision is (
        ALLOW if "public" in uri else CONFIRM
    )
