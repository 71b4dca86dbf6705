"""Calls that the tenant's policy wants confirmed: the user is asked about exactly what will be done."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.calls.policy import CONFIRM
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Decision, Policy, PolicyRule, Safety
from gateway.errors import PolicyDenied
from gateway.handlers.interfaces import InputRequired
from gateway.handlers.previews.limits import MAX_PREVIEW_LENGTH
from gateway.handlers.python.context import Context
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench
from tests.support.peers import RoundsPeer, TalkingPeer, accepted


@pytest.fixture
def house() -> HandlerBench:
    """A tenant whose moderate calls are confirmed."""
    house = HandlerBench(UpstreamClient())
    house.set_policy(Policy(moderate=Decision.CONFIRM))
    return house


def _pays(house: HandlerBench) -> list[object]:
    paid: list[object] = []

    def pays(context: Context) -> str:
        paid.append(context.arguments["amount"])
        return "paid"

    house.has_code(Family.TOOL, "pays", pays, safety=Safety.MODERATE)
    return paid


async def test_the_confirmed_call_is_made(house: HandlerBench) -> None:
    """Ours: the question names the action; the intent is recorded after the answer (SAF-2, SAF-4)."""
    paid = _pays(house)
    peer = TalkingPeer(answers={CONFIRM: accepted(confirm=True)})

    result = await house.call("pays", {"amount": 5}, peer)

    assert (result["isError"], paid) == (False, [5])
    assert 'pays {"amount":5}' in peer.asked[CONFIRM].params["message"]  # type: ignore[operator]  # it is text
    assert house.journal.lines == [
        "confirm pays call asked",
        "confirm pays call granted",
        "call pays call.intent intended",
        "call pays call ok",
    ]
    assert len({record.digest for record in house.journal.records}) == 1


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
async def test_anything_but_a_yes_is_a_no(house: HandlerBench, answer: Mapping[str, Any]) -> None:
    """Ours: only an accepted form whose box is ticked lets the call go on (SAF-2)."""
    paid = _pays(house)

    result = await house.call("pays", {"amount": 5}, TalkingPeer(answers={CONFIRM: answer}))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert "declined" in result["content"][0]["text"]
    assert paid == []
    assert house.journal.lines == [
        "confirm pays call asked",
        "confirm pays call declined",
        "call pays call policy.denied",
    ]


@pytest.mark.parametrize("peer", [TalkingPeer(cannot=frozenset({"elicitation"})), TalkingPeer(), None])
async def test_a_client_that_cannot_be_asked_cannot_call(house: HandlerBench, peer: TalkingPeer | None) -> None:
    """Ours: no capability, no answer and no peer are all a refusal, with the reason (SAF-2)."""
    paid = _pays(house)

    result = await (house.call("pays", {"amount": 5}) if peer is None else house.call("pays", {"amount": 5}, peer))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert paid == []
    lines = house.journal.lines[:-1]
    assert lines in (["confirm pays call impossible"], ["confirm pays call asked", "confirm pays call unanswered"])


async def test_in_rounds_the_answer_comes_with_the_next_one(house: HandlerBench) -> None:
    """MCP: in 2026-07-28 the question ends the request, and nothing was done by then (SAF-2)."""
    paid = _pays(house)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("pays", {"amount": 5}, peer)
    assert (list(asked.value.input_requests), paid) == ([CONFIRM], [])
    result = await house.call("pays", {"amount": 5}, peer.answered(**{CONFIRM: accepted(confirm=True)}))

    assert (result["isError"], paid) == (False, [5])
    assert house.journal.lines == [
        "confirm pays call asked",
        "call pays call input_required",
        "confirm pays call granted",
        "call pays call.intent intended",
        "call pays call ok",
    ]


async def test_a_yes_is_a_yes_to_one_thing(house: HandlerBench) -> None:
    """Ours: the confirmed request is the one that is sent; when it would differ now, nothing is (SAF-3)."""
    paid = _pays(house)
    peer = RoundsPeer()

    with pytest.raises(InputRequired):
        await house.call("pays", {"amount": 5}, peer)
    result = await house.call("pays", {"amount": 5000}, peer.answered(**{CONFIRM: accepted(confirm=True)}))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert paid == []
    assert house.journal.lines[-2:] == ["confirm pays call changed", "call pays call policy.denied"]


async def test_inner_calls_are_confirmed_one_by_one(house: HandlerBench) -> None:
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
        peer = peer.answered(**{key: accepted(confirm=True) for key in asked.value.input_requests})

    result = await house.call("pays_twice", {}, peer)

    assert (result["isError"], paid) == (False, [1, 2])
    assert house.journal.lines.count("confirm pays call granted") == 2


async def test_a_confirmation_is_recorded_once_however_many_rounds_follow(house: HandlerBench) -> None:
    """MCP: a handler that asks more of its own is run again from its start, with the yes that is there (SAF-4)."""

    async def pays_by(context: Context) -> str:
        reply = await context.ask("By card?", {"type": "object", "properties": {}})
        return reply.action

    house.has_code(Family.TOOL, "pays_by", pays_by, safety=Safety.MODERATE)
    peer = RoundsPeer()
    for _ in range(2):
        with pytest.raises(InputRequired) as asked:
            await house.call("pays_by", {}, peer)
        peer = RoundsPeer(peer.answers, dict(asked.value.state)).answered(
            **{key: accepted(confirm=True) for key in asked.value.input_requests}
        )

    assert (await house.call("pays_by", {}, peer))["content"][0]["text"] == "accept"
    assert house.journal.lines.count("confirm pays_by call granted") == 1


async def test_resources_and_prompts_are_confirmed_too(house: HandlerBench) -> None:
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


async def test_an_approval_is_not_the_users_to_give(house: HandlerBench) -> None:
    """Ours: the client answers for its user, so its yes is none where a person elsewhere has to approve (SAF-2)."""
    paid = _pays(house)
    house.set_policy(Policy(moderate=Decision.APPROVE))

    result = await house.call("pays", {"amount": 5}, TalkingPeer(answers={CONFIRM: accepted(confirm=True)}))

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert paid == []


async def test_a_primitive_that_is_approved_offers_no_values(house: HandlerBench) -> None:
    """Ours: a completion runs code of the primitive, and no person approves each keystroke (SAF-2)."""
    house.has_code(
        Family.PROMPT, "greets", lambda context: "x", complete=lambda _: ["Ada"], arguments=[{"name": "who"}]
    )
    assert (await house.complete("greets", "who", "A")).values == ("Ada",)
    house.set_policy(Policy(safe=Decision.APPROVE))

    with pytest.raises(PolicyDenied):
        await house.complete("greets", "who", "A")


async def test_a_tool_that_is_confirmed_talks(house: HandlerBench) -> None:
    """Ours: a call that may ask its user is served where questions are possible."""
    _pays(house)
    bound = await house.tool("pays")

    assert bound is not None
    assert bound.is_interactive


async def test_a_list_of_steps_is_confirmed_with_its_requests(house: HandlerBench) -> None:
    """Ours: the question shows what the steps send, as it will be sent or as it is declared where that is not known
    yet, and the tools they call (SAF-2).
    """
    steps = [
        {"http": {"method": "DELETE", "url": "https://api.example.com/pets/{{ id }}?force=1"}},
        {"http": {"method": "PUT", "url": "https://api.example.com/a", "body": {"why": "{{ why }}"}}, "as": "done"},
        {
            "if": {
                "when": "id == 1",
                "then": [{"http": {"method": "POST", "url": "https://api.example.com/b", "body": "{{ done.x }}"}}],
                "else": [{"call": {"tool": "other", "arguments": {"n": "{{ id }}"}}}],
            }
        },
        {"return": {"text": "x"}},
    ]
    house.has_tool("tidies", {"kind": "steps", "steps": steps}, safety=Safety.MODERATE)

    assert await _asked(house, "tidies", id=7, why="old\nsends GET https://harmless.example/") == [
        'tidies {"id":7,"why":"old\\nsends GET https://harmless.example/"}',
        "sends DELETE https://api.example.com/pets/7?force=1",
        "sends PUT https://api.example.com/a",
        "  Content-Type: application/json",
        "  ",
        '  {"why":"old\\nsends GET https://harmless.example/"}',
        "may send POST https://api.example.com/b",
        "  ",
        "  {{ done.x }}",
        'may call the tool other {"n":7}',
    ]
    assert (await _asked(house, "tidies", id="a/../b", why=""))[1] == (
        "sends DELETE https://api.example.com/pets/{{ id }}?force=1"  # such a request is not sent
    )


async def test_an_outline_is_bounded(house: HandlerBench) -> None:
    """Ours: a question stays readable however many requests there are (SAF-2)."""
    steps = [{"http": {"method": "POST", "url": f"https://api.example.com/{n}"}} for n in range(60)]
    house.has_tool("floods", {"kind": "steps", "steps": steps}, safety=Safety.MODERATE)
    peer = TalkingPeer(answers={CONFIRM: {"action": "decline"}})

    await house.call("floods", {}, peer)

    message = peer.asked[CONFIRM].params["message"]
    assert isinstance(message, str)
    assert message.splitlines()[-1] == "and makes 40 further requests and calls"
    assert len(message.splitlines()) == 23


async def test_a_long_body_hides_no_later_request(house: HandlerBench) -> None:
    """Ours: each request of a list has its own room in the question (SAF-2)."""
    steps = [
        {"http": {"method": "POST", "url": f"https://api.example.com/{n}", "body": {"text": "{{ text }}"}}}
        for n in range(20)
    ]
    house.has_tool("floods", {"kind": "steps", "steps": steps}, safety=Safety.MODERATE)
    lines = await _asked(house, "floods", text="x" * 100_000)

    assert [line.partition(" POST ")[2] for line in lines if line.startswith("sends")] == [
        f"https://api.example.com/{n}" for n in range(20)
    ]
    assert sum(map(len, lines)) <= MAX_PREVIEW_LENGTH


async def test_the_reason_of_the_rule_is_shown_as_one_line(house: HandlerBench) -> None:
    """Ours: the user reads why, and a reason imitates no other line of the question (SAF-2, SAF-5)."""
    reason = "much\nPOST https://safe.example\u202e"
    house.set_policy(Policy(rules=(PolicyRule(decision=Decision.CONFIRM, reason=reason),)))
    paid = _pays(house)

    lines = await _asked(house, "pays", amount=5)
    assert lines[0] == r"The tenant's policy requires a person (rule 1: much\nPOST https://safe.example\u202e)."
    assert (lines[1], paid) == ('pays {"amount":5}', [])


async def _asked(house: HandlerBench, name: str, **arguments: object) -> list[str]:
    """The lines of the question whether a tool may be called."""
    peer = TalkingPeer(answers={CONFIRM: {"action": "decline"}})
    await house.call(name, arguments, peer)
    message = peer.asked[CONFIRM].params["message"]
    assert isinstance(message, str)
    first, *lines = message.splitlines()
    assert first == "Allow this call?"
    return lines


_ORDERS: Mapping[str, object] = {
    "kind": "http",
    "method": "POST",
    "url": "https://api.example.com/orders?for={{ who }}&api_key={{ mine }}",
    "headers": {"X-Reason": "{{ who }}", "X-Session-Token": "{{ mine }}"},
    "body": {"who": "{{ who }}", "password": "{{ mine }}", "key": "{{ note }}"},
    "credential": "orders",
}


async def test_the_whole_request_is_shown_without_credentials(house: HandlerBench) -> None:
    """Ours: method, URL, headers and body as they will be sent; values that are named like credentials and stored
    credentials are blanked, and no text of a caller looks like a line of its own (SAF-2, TEN-4).
    """
    house.has_tool("orders", _ORDERS, safety=Safety.MODERATE)
    house.secrets.held["orders"] = NamedCredential(
        place="bearer", credential=Credential(value="stored-secret-1"), origins=("https://api.example.com",)
    )

    lines = await _asked(
        house, "orders", who="Bo", mine="typed-secret-2", note="a\u202eb\nDELETE https://x/ stored-secret-1"
    )

    assert lines == [
        "POST https://api.example.com/orders?for=Bo&api_key=***",
        "X-Reason: Bo",
        "X-Session-Token: ***",
        "Content-Type: application/json",
        "",
        '{"who":"Bo","password":"***","key":"a\\u202eb\\nDELETE https://x/ ***"}',
    ]


async def test_a_long_body_is_shown_in_part_with_its_size(house: HandlerBench) -> None:
    """Ours: the question is bounded, and names the size of what it does not show (SAF-2)."""
    request = {name: each for name, each in _ORDERS.items() if name != "credential"}
    house.has_tool("orders", request, safety=Safety.MODERATE)
    *_, body = await _asked(house, "orders", who="Bo", mine="", note="n" * 50_000)

    assert body.startswith('{"who":"Bo","password":"***","key":"nnn')
    assert "n… (50035 bytes in all) …n" in body
    assert body.endswith('nnn"}')
    assert len(body) < 4_100


async def test_no_user_is_asked_about_an_impossible_call(house: HandlerBench) -> None:
    """Ours: credentials are looked up and arguments validated before the user is asked (SAF-2, CAL-2)."""
    schema = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    house.has_tool("orders", _ORDERS, schema=schema, safety=Safety.MODERATE)
    house.has_tool("open", {**_ORDERS, "credential": None}, schema=schema, safety=Safety.MODERATE)
    steps = [{"http": {"method": "POST", "url": "https://api.example.com/", "credential": "orders"}}]
    house.has_tool("orders_by_steps", {"kind": "steps", "steps": steps}, safety=Safety.MODERATE)
    peer = TalkingPeer(answers={CONFIRM: accepted(confirm=True)})

    wrong = await house.call("open", {"who": 7}, peer)
    both = await house.call("orders", {"who": 7}, peer)
    lacking = await house.call("orders", {"who": "Bo"}, peer)
    by_steps = await house.call("orders_by_steps", {}, peer)

    assert "/who" in wrong["content"][0]["text"]
    for result in (both, lacking, by_steps):
        assert result["_meta"]["gateway/error"]["code"] == "upstream.credential_missing"
    assert peer.asked == {}
