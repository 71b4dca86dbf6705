"""Calls that the tenant's policy wants confirmed: the user is asked about exactly what will be done."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.calls.gates import CONFIRM
from gateway.domain.policy import Decision, Policy, Safety
from gateway.domain.primitives import Family
from gateway.errors import PolicyDenied
from gateway.handlers.context import Context
from gateway.handlers.port import InputRequired
from gateway.upstream.pool import Upstream
from tests.support.household import Household
from tests.support.peers import RoundsPeer, TalkingPeer, accepted


@pytest.fixture
def house() -> Household:
    """A tenant whose moderate calls are confirmed."""
    house = Household(Upstream())
    house.set_policy(Policy(moderate=Decision.CONFIRM))
    return house


def _pays(house: Household) -> list[object]:
    paid: list[object] = []

    def pays(context: Context) -> str:
        paid.append(context.arguments["amount"])
        return "paid"

    house.has_code(Family.TOOL, "pays", pays, safety=Safety.MODERATE)
    return paid


async def test_what_the_user_confirms_is_done(house: Household) -> None:
    """Ours: the question says what will be done; the intent is recorded after the answer (SAF-2, SAF-4)."""
    paid = _pays(house)
    peer = TalkingPeer(answers={CONFIRM: accepted(confirm=True)})

    result = await house.call("pays", {"amount": 5}, peer)

    assert (result["isError"], paid) == (False, [5])
    assert 'pays {"amount":5}' in peer.asked[CONFIRM].params["message"]  # type: ignore[operator]  # it is text
    assert house.desk.lines == ["call pays call.intent intended", "call pays call ok"]


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept"},
        accepted(confirm=False),
        accepted(confirm="true"),
        {"action": "accept", "content": [True]},
        {"action": "decline", "content": {"confirm": True}},
    ],
)
async def test_anything_but_a_yes_is_a_no(house: Household, answer: Mapping[str, Any]) -> None:
    """Ours: only an accepted form whose box is ticked lets the call go on (SAF-2)."""
    paid = _pays(house)

    result = await house.call("pays", {"amount": 5}, TalkingPeer(answers={CONFIRM: answer}))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert "declined" in result["content"][0]["text"]
    assert (paid, house.desk.lines) == ([], ["call pays call policy.denied"])


@pytest.mark.parametrize("peer", [TalkingPeer(cannot=frozenset({"elicitation"})), TalkingPeer(), None])
async def test_a_client_that_cannot_be_asked_cannot_call(house: Household, peer: TalkingPeer | None) -> None:
    """Ours: no capability, no answer and no peer are all a no, and say so (SAF-2)."""
    paid = _pays(house)

    result = await (house.call("pays", {"amount": 5}) if peer is None else house.call("pays", {"amount": 5}, peer))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert paid == []


async def test_in_rounds_the_answer_comes_with_the_next_one(house: Household) -> None:
    """MCP: in 2026-07-28 the question ends the request, and nothing was done by then (SAF-2)."""
    paid = _pays(house)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("pays", {"amount": 5}, peer)
    assert (list(asked.value.questions), paid) == ([CONFIRM], [])
    result = await house.call("pays", {"amount": 5}, peer.answered(**{CONFIRM: accepted(confirm=True)}))

    assert (result["isError"], paid) == (False, [5])
    assert house.desk.lines == [
        "call pays call input_required",
        "call pays call.intent intended",
        "call pays call ok",
    ]


async def test_a_yes_is_a_yes_to_one_thing(house: Household) -> None:
    """Ours: what was confirmed is what is done; when that would be something else now, nothing is (SAF-3)."""
    paid = _pays(house)
    peer = RoundsPeer()

    with pytest.raises(InputRequired):
        await house.call("pays", {"amount": 5}, peer)
    result = await house.call("pays", {"amount": 5000}, peer.answered(**{CONFIRM: accepted(confirm=True)}))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert paid == []


async def test_inner_calls_are_confirmed_one_by_one(house: Household) -> None:
    """Ours: a safe tool cannot carry an unsafe one past the user (SAF-2)."""
    paid = _pays(house)

    async def pays_twice(context: Context) -> str:
        for amount in (1, 2):
            await context.invoke("pays", {"amount": amount})
        return "done"

    house.has_code(Family.TOOL, "pays_twice", pays_twice)
    peer = RoundsPeer()
    for _ in range(2):
        with pytest.raises(InputRequired) as asked:
            await house.call("pays_twice", {}, peer)
        peer = peer.answered(**{key: accepted(confirm=True) for key in asked.value.questions})

    result = await house.call("pays_twice", {}, peer)

    assert (result["isError"], paid) == (False, [1, 2])


async def test_resources_and_prompts_are_confirmed_too(house: Household) -> None:
    """Ours: the same gate for every family (SAF-2)."""
    house.set_policy(Policy(safe=Decision.CONFIRM))
    house.has_code(Family.RESOURCE, "note://1", lambda context: "x", mimeType="text/plain")
    house.has_code(Family.PROMPT, "greets", lambda context: "x")
    peer = TalkingPeer(answers={CONFIRM: accepted(confirm=True)})

    assert (await house.read("note://1", peer)).contents
    assert (await house.get("greets", {}, peer)).messages
    with pytest.raises(PolicyDenied):
        await house.read("note://1")
    with pytest.raises(PolicyDenied):
        await house.get("greets")


async def test_an_approval_is_not_the_users_to_give(house: Household) -> None:
    """Ours: the client answers for its user, so its yes is none where a person elsewhere has to approve (SAF-2)."""
    paid = _pays(house)
    house.set_policy(Policy(moderate=Decision.APPROVE))

    result = await house.call("pays", {"amount": 5}, TalkingPeer(answers={CONFIRM: accepted(confirm=True)}))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert paid == []


async def test_a_tool_that_is_confirmed_talks(house: Household) -> None:
    """Ours: what may have to ask is served where questions can be asked."""
    _pays(house)
    bound = await house.tool("pays")

    assert bound is not None
    assert bound.talks


async def test_a_list_of_steps_is_confirmed_with_its_requests(house: Household) -> None:
    """Ours: the question names method, host and path of what the steps send, and the tools they call (SAF-2)."""
    step = {"method": "DELETE", "url": "https://api.example.com/pets/{{ id }}?force=1"}
    long = {"method": "POST", "url": "https://api.example.com/" + "a" * 400}
    steps = [
        {"http": step},
        {"http": step},
        {"if": {"when": "id == 1", "then": [{"http": long}], "else": [{"call": {"tool": "other"}}]}},
        {"return": {"text": "x"}},
    ]
    house.has_tool("tidies", {"kind": "steps", "steps": steps}, safety=Safety.MODERATE)
    peer = TalkingPeer(answers={CONFIRM: {"action": "decline"}})

    await house.call("tidies", {"id": "7\nsends GET https://harmless.example/"}, peer)

    message = peer.asked[CONFIRM].params["message"]
    assert isinstance(message, str)
    assert message.splitlines() == [
        "Allow this call?",
        'tidies {"id":"7\\nsends GET https://harmless.example/"}',
        "sends DELETE https://api.example.com/pets/{{ id }}?force=1",
        "may send POST https://api.example.com/" + "a" * 275 + "…",
        "may call the tool other",
    ]


async def test_an_outline_is_bounded(house: Household) -> None:
    """Ours: a question stays readable however many requests there are (SAF-2)."""
    steps = [{"http": {"method": "POST", "url": f"https://api.example.com/{n}"}} for n in range(60)]
    house.has_tool("floods", {"kind": "steps", "steps": steps}, safety=Safety.MODERATE)
    peer = TalkingPeer(answers={CONFIRM: {"action": "decline"}})

    await house.call("floods", {}, peer)

    message = peer.asked[CONFIRM].params["message"]
    assert isinstance(message, str)
    assert message.splitlines()[-1] == "and makes 40 further requests and calls"
    assert len(message.splitlines()) == 23
