"""Rules of the policy at the stations of a call: tools, inner calls, resources, templates, prompts, completions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.calls.policy import CONFIRM, evaluate
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import ArgumentCondition, ConditionOperator, Decision, Policy, PolicyRule, Safety
from gateway.errors import PolicyDenied
from gateway.handlers.python.context import Context
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench
from tests.support.peers import TalkingPeer, accepted

AMOUNTS: Mapping[str, object] = {"type": "object", "properties": {"amount": {}}}


@pytest.fixture
def house() -> HandlerBench:
    """A tenant with nothing yet."""
    return HandlerBench(UpstreamClient())


def _when(pointer: str, operator: str, value: Any) -> ArgumentCondition:
    return ArgumentCondition(pointer=pointer, operator=ConditionOperator(operator), value=value)


def _rules(house: HandlerBench, *rules: PolicyRule, moderate: Decision = Decision.ALLOW) -> None:
    house.set_policy(Policy(rules=rules, moderate=moderate))


def _pays(house: HandlerBench) -> list[object]:
    paid: list[object] = []

    def pays(context: Context) -> str:
        paid.append(dict(context.arguments))
        return "paid"

    house.has_code(Family.TOOL, "pays", pays, safety=Safety.MODERATE, schema=AMOUNTS)
    return paid


def _code(result: Mapping[str, Any]) -> str | None:
    found: str | None = result.get("_meta", {}).get("gateway/error", {}).get("code")
    return found


LARGE = PolicyRule(tool="pays", when=(_when("/amount", "greater", 1000),), decision=Decision.DENY, reason="too much")


@pytest.mark.parametrize(
    "arguments",
    [{"amount": 1001}, {"amount": "5"}, {"amount": [5]}, {"amount": None}, {}, {"Amount": 5}, {"amount": True}],
)
async def test_a_denied_argument_reaches_no_handler(house: HandlerBench, arguments: dict[str, object]) -> None:
    """Ours: neither a large amount nor another form of one is paid; the refusal has the rule's reason (SAF-5)."""
    paid = _pays(house)
    _rules(house, LARGE)

    refused = await house.call("pays", arguments)

    assert (_code(refused), paid) == ("policy.denied", [])
    assert "rule 1: too much" in refused["content"][0]["text"]
    assert house.journal.lines == ["call pays call policy.denied"]


async def test_other_arguments_are_judged_by_the_level(house: HandlerBench) -> None:
    """Ours: a rule whose conditions do not hold changes nothing (SAF-5)."""
    paid = _pays(house)
    _rules(house, LARGE)

    assert not (await house.call("pays", {"amount": 1000}))["isError"]
    assert not (await house.call("pays", {"amount": 1e3}))["isError"]
    assert len(paid) == 2


async def test_arguments_are_validated_and_read_before_they_are_judged(house: HandlerBench) -> None:
    """Ours: conditions see valid arguments only, as the handler does, however they are spelled (SAF-5, CLN-2)."""
    house.has_code(
        Family.TOOL,
        "pays",
        lambda context: "x",
        schema={"type": "object", "properties": {"amount": {"type": "number"}}},
    )
    _rules(house, LARGE)

    assert _code(await house.call("pays", {"amount": "a lot"})) == "call.arguments_invalid"
    assert _code(await house.call("pays", {"amount": "1001"})) == "policy.denied"
    assert not (await house.call("pays", {"amount": "5"}))["isError"]


async def test_a_condition_asks_the_user(house: HandlerBench) -> None:
    """Ours: `ask when amount > 1000` asks for those calls and no other (SAF-5)."""
    paid = _pays(house)
    _rules(house, replace(LARGE, decision=Decision.CONFIRM))
    peer = TalkingPeer(answers={CONFIRM: accepted(confirm=True)})

    await house.call("pays", {"amount": 5}, peer)
    assert not peer.asked
    await house.call("pays", {"amount": 5000}, peer)
    assert CONFIRM in peer.asked
    assert _code(await house.call("pays", {"amount": 5000})) == "policy.denied"
    assert len(paid) == 2
    bound = await house.tool("pays")
    assert bound is not None
    assert bound.is_interactive
    assert bound.policy.needs_person


async def test_an_approval_by_rule_is_not_the_users_to_give(house: HandlerBench) -> None:
    """Ours: a rule can require an approval where the level allows (SAF-5)."""
    paid = _pays(house)
    _rules(house, replace(LARGE, decision=Decision.APPROVE))

    refused = await house.call("pays", {"amount": 5000}, TalkingPeer(answers={CONFIRM: accepted(confirm=True)}))

    assert (_code(refused), paid) == ("policy.denied", [])


async def test_a_rule_can_relax_a_level(house: HandlerBench) -> None:
    """Ours: small amounts run although the level asks (SAF-5)."""
    paid = _pays(house)
    small = PolicyRule(tool="pays", when=(_when("/amount", "at_most", 10),), decision=Decision.ALLOW)
    _rules(house, small, moderate=Decision.DENY)

    assert not (await house.call("pays", {"amount": 10}))["isError"]
    assert _code(await house.call("pays", {"amount": "10"})) == "policy.denied"
    assert _code(await house.call("pays", {})) == "policy.denied"
    assert len(paid) == 1


async def test_an_inner_call_obeys_its_own_rules(house: HandlerBench) -> None:
    """Ours: steps and code call a tool only as its rules allow (SAF-5)."""
    paid = _pays(house)

    async def outer(context: Context) -> Mapping[str, object]:
        return await context.invoke("pays", {"amount": 5000})

    house.has_code(Family.TOOL, "outer", outer)
    house.has_tool("steps", {"kind": "steps", "steps": [{"call": {"tool": "pays", "arguments": {"amount": 5000}}}]})
    _rules(house, LARGE)

    for name in ("outer", "steps"):
        assert "policy.denied" in str(await house.call(name)), name
    assert paid == []


async def test_resources_templates_and_prompts_obey_rules(house: HandlerBench) -> None:
    """Ours: rules are about every family; a template's variables and a prompt's arguments are arguments (SAF-5)."""
    house.has_code(Family.RESOURCE, "note://secret", lambda context: "x", mimeType="text/plain")
    house.has_code(Family.TEMPLATE, "file:///{+path}", lambda context: "x", mimeType="text/plain")
    house.has_code(Family.PROMPT, "greets", lambda context: "x", arguments=[{"name": "name"}])
    _rules(
        house,
        PolicyRule(tool="note://secret", decision=Decision.DENY),
        PolicyRule(tool="file:///{+path}", when=(_when("/path", "starts_with", "etc/"),), decision=Decision.DENY),
        PolicyRule(tool="file:///root/*", decision=Decision.DENY),
        PolicyRule(tool="greets", when=(_when("/name", "equals", "root"),), decision=Decision.DENY),
    )

    for uri in ("note://secret", "file:///etc/passwd", "file:///ETC/passwd", "file:///root/a", "file:///%72oot/a"):
        with pytest.raises(PolicyDenied):
            await house.read(uri)
    assert (await house.read("file:///tmp/a")).contents
    for name in ("root", "Root"):
        with pytest.raises(PolicyDenied):
            await house.get("greets", {"name": name})
    with pytest.raises(PolicyDenied):
        await house.get("greets", {})
    assert (await house.get("greets", {"name": "ada"})).messages


async def test_a_completion_is_judged_with_the_typed_arguments(house: HandlerBench) -> None:
    """Ours: a denied argument is not completed either (SAF-5)."""
    house.has_code(
        Family.PROMPT, "greets", lambda context: "x", complete=lambda context: ["x"], arguments=[{"name": "name"}]
    )
    _rules(house, PolicyRule(when=(_when("/name", "starts_with", "ro"),), decision=Decision.DENY))

    assert (await house.complete("greets", "name", "a")).values == ("x",)
    with pytest.raises(PolicyDenied):
        await house.complete("greets", "name", "ro")


async def test_a_call_denied_for_all_arguments_is_refused_before_validation(house: HandlerBench) -> None:
    """Ours: only what the arguments can change waits for them (SAF-5)."""
    house.has_code(Family.TOOL, "pays", lambda context: "x", schema={"type": "object", "required": ["amount"]})
    _rules(house, LARGE, PolicyRule(decision=Decision.DENY))

    assert _code(await house.call("pays", {})) == "policy.denied"


async def test_a_judgement_explains_itself_without_effect(house: HandlerBench) -> None:
    """Ours: one function returns the decision and why (SAF-5)."""
    paid = _pays(house)
    _rules(house, LARGE)
    bound = await house.tool("pays")
    assert bound is not None

    assert evaluate(bound, {"amount": 1}).reason == "level moderate (assessed)"
    assert evaluate(bound, {"amount": 1001}).rule == 1
    assert "/amount is missing or cannot be compared" in evaluate(bound, {"amount": "1"}).reason
    assert evaluate(bound, None).decision is Decision.ALLOW
    assert paid == []
