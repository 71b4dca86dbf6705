"""Handlers that are declared and need nothing from outside: static, template, and lists of steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.primitives import Family
from gateway.domain.results import Completions
from gateway.domain.tenancy.policy import Safety
from gateway.errors import CallError, CapabilityMissing, ClientSilent, GatewayError, HandlerFailed, TemplateFailed
from gateway.handlers.interfaces import InputRequired
from gateway.handlers.python.context import Context
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench
from tests.support.peers import RoundsPeer, TalkingPeer, accepted

MESSAGE = {"role": "user", "content": {"type": "text", "text": "Hi {{ name }}"}}


@pytest.fixture
def house() -> HandlerBench:
    """A tenant without primitives, and with no way out."""
    return HandlerBench(UpstreamClient())


def _steps(*steps: Mapping[str, Any]) -> dict[str, object]:
    return {"kind": "steps", "steps": list(steps)}


async def test_a_static_tool_answers_the_same_always(house: HandlerBench) -> None:
    """Ours: content, structured content and isError are what was declared."""
    block = {"type": "text", "text": "{{ not a template }}"}
    handler = {"kind": "static", "content": [block], "structuredContent": {"n": 1}, "isError": True}
    house.has_tool("static", handler)

    assert await house.call("static", {"n": 2}) == {
        "content": [block],
        "structuredContent": {"n": 1},
        "isError": True,
    }


async def test_a_static_resource_and_prompt(house: HandlerBench) -> None:
    """Ours: contents take URI and type from the resource where they have none; messages are kept (RES-1, PRM-2)."""
    house.has_resource("note://1", {"kind": "static", "contents": [{"text": "hi"}]}, mimeType="text/plain")
    house.has_template("note://{id}/x", {"kind": "static", "contents": [{"blob": "AA=="}]}, mimeType="image/png")
    message = {"role": "assistant", "content": {"type": "text", "text": "{{ as it is }}"}}
    house.has_prompt("greets", {"kind": "static", "messages": [message]})

    assert (await house.read("note://1")).contents == ({"uri": "note://1", "mimeType": "text/plain", "text": "hi"},)
    assert (await house.read("note://7/x")).contents[0]["uri"] == "note://7/x"
    assert (await house.get("greets")).messages == (message,)


async def test_templates_fill_texts_trees_and_messages(house: HandlerBench) -> None:
    """Ours: arguments by name and together; values keep their type; quotes stay inside their text (PRM-2)."""
    house.has_tool("text", {"kind": "template", "text": "{{ n }} of {{ arguments.n }}"})
    house.has_tool("tree", {"kind": "template", "json": {"n": "{{ n }}", "said": "<{{ n }}>"}, "isError": True})
    house.has_resource("note://1", {"kind": "template", "json": {"a": 1}})
    house.has_template(
        "note://{id}/{+rest}", {"kind": "template", "text": "{{ id }}/{{ rest }}"}, mimeType="text/plain"
    )
    house.has_prompt("greets", {"kind": "template", "messages": [MESSAGE]}, "name")

    assert (await house.call("text", {"n": 3}))["content"][0]["text"] == "3 of 3"
    tree = await house.call("tree", {"n": '"'})
    assert (tree["structuredContent"], tree["isError"]) == ({"n": '"', "said": '<">'}, True)
    assert (await house.read("note://1")).contents[0] == {
        "uri": "note://1",
        "mimeType": "application/json",
        "text": '{"a":1}',
    }
    assert (await house.read("note://7/b/c")).contents[0]["text"] == "7/b/c"
    assert (await house.get("greets", {"name": "Ann"})).messages[0]["content"] == {"type": "text", "text": "Hi Ann"}


@pytest.mark.parametrize("family", list(Family))
async def test_a_template_that_comes_to_a_limit_is_a_clean_error(house: HandlerBench, family: Family) -> None:
    """Ours: a bomb costs its own call, in every family (CAL-4)."""
    bomb = {"kind": "template", "text": "{{ 'aa'" + "|replace:'a','aa'" * 100 + " }}"}
    match family:
        case Family.TOOL:
            house.has_tool("bomb", bomb)
            assert (await house.call("bomb"))["_meta"]["gateway/error"]["code"] == TemplateFailed.code
            return
        case Family.RESOURCE:
            house.has_resource("note://1", bomb, mimeType="text/plain")
            read = house.read("note://1")
        case Family.TEMPLATE:
            house.has_template("note://{id}", bomb, mimeType="text/plain")
            read = house.read("note://1")
        case Family.PROMPT:
            house.has_prompt("bomb", bomb)
            with pytest.raises(TemplateFailed):
                await house.get("bomb")
            return
    with pytest.raises(TemplateFailed):
        await read


@pytest.mark.parametrize("family", list(Family))
async def test_an_invalid_stored_template_fails_alone_with_the_reason(house: HandlerBench, family: Family) -> None:
    """Ours: an older release stored a loop; its calls name the place and what to write, its neighbours run (CAL-4)."""
    looped = {"kind": "template", "text": "{% for x in list %}{{ x }}{% endfor %}"}
    sound = {"kind": "template", "text": "sound"}
    house.has_tool("looped", looped)
    house.has_tool("sound", sound)
    house.has_resource("note://looped", looped, mimeType="text/plain")
    house.has_resource("note://sound", sound, mimeType="text/plain")
    house.has_template("row://{id}", looped, mimeType="text/plain")
    house.has_template("line://{id}", sound, mimeType="text/plain")
    house.has_prompt("looped", looped)
    house.has_prompt("sound", sound)

    reported = "handler.text: 'for' is not supported: templates have no loops"
    match family:
        case Family.TOOL:
            failed = await house.call("looped")
            assert failed["_meta"]["gateway/error"]["code"] == HandlerFailed.code
            assert reported in failed["content"][0]["text"]
            assert (await house.call("sound"))["content"][0]["text"] == "sound"
        case Family.RESOURCE | Family.TEMPLATE:
            broken, fine = ("note://looped", "note://sound") if family is Family.RESOURCE else ("row://1", "line://1")
            with pytest.raises(HandlerFailed, match=reported):
                await house.read(broken)
            assert (await house.read(fine)).contents[0]["text"] == "sound"
        case Family.PROMPT:
            with pytest.raises(HandlerFailed, match=reported):
                await house.get("looped")
            assert (await house.get("sound")).messages


async def test_the_text_of_a_block_is_always_text(house: HandlerBench) -> None:
    """Ours: a place that is all of a text keeps its type in JSON, but what a client reads is text (CAL-1, PRM-2)."""
    block = {"type": "text", "text": "{{ n }}"}
    embedded = {"type": "resource", "resource": {"uri": "note://n", "mimeType": "text/plain", "text": "{{ n }}"}}
    house.has_tool("tells", {"kind": "template", "content": [block, embedded]})
    contents = [{"mimeType": "text/plain", "text": "{{ arguments }}"}]
    house.has_template("note://{id}", {"kind": "template", "contents": contents})
    house.has_prompt("asks", {"kind": "template", "messages": [{"role": "user", "content": block}]}, "n")

    for value, reported in ((5, "5"), (True, "true"), (None, ""), ([1], "[1]"), ({"a": 1.5}, '{"a":1.5}'), ("x", "x")):
        notified, inner = (await house.call("tells", {"n": value}))["content"]
        assert (notified["text"], inner["resource"]["text"]) == (reported, reported)
    assert (await house.read("note://7")).contents[0]["text"] == '{"id":"7"}'
    [message] = (await house.get("asks", {})).messages
    assert message["content"] == {"type": "text", "text": ""}


async def test_a_filled_tree_of_a_wrong_shape_is_a_clean_error(house: HandlerBench) -> None:
    """Ours: the result of a template is checked against the protocol after it is made (CAL-4)."""
    house.has_prompt("odd", {"kind": "template", "messages": [{**MESSAGE, "role": "{{ name }}"}]}, "name")
    house.has_tool("odd", {"kind": "template", "content": [{"type": "{{ kind }}", "text": "x"}]})

    with pytest.raises(HandlerFailed, match="role"):
        await house.get("odd", {"name": "system"})
    result = await house.call("odd", {"kind": "video"})

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert (await house.get("odd", {"name": "user"})).messages


async def test_steps_notify_branch_keep_and_return(house: HandlerBench) -> None:
    """Ours: each step sees the arguments and what earlier steps kept; the first return ends the list."""
    house.has_code(Family.TOOL, "doubles", lambda context: {"n": context.arguments["n"] * 2})
    house.has_tool(
        "works",
        _steps(
            {"progress": {"progress": 1, "total": 2, "message": "at {{ n }}"}},
            {"log": {"level": "warning", "data": {"n": "{{ n }}"}, "logger": "works"}},
            {"sleep": 0},
            {"call": {"tool": "doubles", "arguments": {"n": "{{ n }}"}}, "as": "doubled"},
            {
                "if": {
                    "when": "doubled.structuredContent.n > 10",
                    "then": [{"return": {"text": "many: {{ doubled.structuredContent.n }}"}}],
                    "else": [{"log": "few"}],
                }
            },
            {"return": {"json": {"few": "{{ doubled.structuredContent.n }}"}}},
        ),
    )
    peer = TalkingPeer()

    few = await house.call("works", {"n": 2}, peer)
    many = await house.call("works", {"n": 7})

    assert few["structuredContent"] == {"few": 4}
    assert many["content"][0]["text"] == "many: 14"
    assert peer.notified == [
        ("progress", 1, 2, "at 2"),
        ("log", "warning", {"n": 2}, "works"),
        ("log", "info", "few", None),
    ]


async def test_steps_without_a_return_end_without_content(house: HandlerBench) -> None:
    """Ours: a finished tool may return nothing; a resource must have content (CAL-4)."""
    house.has_tool("works", _steps({"sleep": 0}))
    house.has_resource("note://1", _steps({"sleep": 0}), mimeType="text/plain")
    house.has_prompt("works", _steps({"sleep": 0}))

    assert await house.call("works") == {"content": [], "isError": False}
    with pytest.raises(HandlerFailed):
        await house.read("note://1")
    with pytest.raises(HandlerFailed):
        await house.get("works")


async def test_steps_answer_for_resources_and_prompts(house: HandlerBench) -> None:
    """Ours: every family has its own form of answer."""
    house.has_template("note://{id}", _steps({"return": {"text": "{{ id }}"}}), mimeType="text/plain")
    house.has_prompt("greets", _steps({"return": {"messages": [MESSAGE]}}), "name")

    assert (await house.read("note://7")).contents[0]["text"] == "7"
    assert (await house.get("greets", {"name": "Ann"})).messages[0]["role"] == "user"


async def test_a_tool_that_fails_on_the_way_ends_the_list(house: HandlerBench) -> None:
    """Ours: the failure is the answer; what follows is not done (CAL-4)."""
    house.has_tool("fails", {"kind": "static", "content": [{"type": "text", "text": "broken"}], "isError": True})
    steps = _steps({"call": {"tool": "fails"}}, {"return": {"text": "done"}})
    house.has_tool("works", steps)
    house.has_prompt("works", steps)

    result = await house.call("works")

    assert (result["isError"], result["content"][0]["text"]) == (True, "broken")
    with pytest.raises(HandlerFailed, match="broken"):
        await house.get("works")


async def test_a_tool_that_is_not_there_is_a_clean_error(house: HandlerBench) -> None:
    """Ours: the list names the missing tool instead of failing (CAL-4)."""
    house.has_tool("works", _steps({"call": {"tool": "gone"}}))

    result = await house.call("works")

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert "gone" in result["content"][0]["text"]


async def test_steps_that_call_themselves_come_to_an_end(house: HandlerBench) -> None:
    """Ours: recursion through declared steps is refused at a depth (CAL-4)."""
    house.has_tool("recurses", _steps({"call": {"tool": "recurses"}}))

    with anyio.fail_after(10):
        result = await house.call("recurses")

    assert "nested more than" in str(result)
    assert house.journal.inside == 0


async def test_steps_are_cancelled_where_they_are(house: HandlerBench) -> None:
    """Ours: a client that leaves ends the list (CAL-4)."""
    started = anyio.Event()

    class Leaving(TalkingPeer):
        async def log(self, level: Any, data: object, logger: str | None = None) -> None:
            started.set()

    house.has_tool("sleeps", _steps({"log": "here"}, {"sleep": 30}))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(house.call, "sleeps", None, Leaving())
            await started.wait()
            group.cancel_scope.cancel()

    assert house.journal.lines == ["call sleeps call cancelled"]


async def test_kept_values_of_steps_are_bounded(house: HandlerBench) -> None:
    """Ours: many answers that each pass are not kept without end (CAL-4)."""
    house.has_code(Family.TOOL, "large", lambda context: "x" * 1_500_000)
    house.has_tool("keeps", _steps(*({"call": {"tool": "large"}, "as": f"kept_{n}"} for n in range(4))))

    result = await house.call("keeps")

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert "larger than" in result["content"][0]["text"]


ASKING = _steps(
    {"log": "begun"},
    {"call": {"tool": "reserves", "arguments": {"item": "{{ item }}"}}, "as": "reserved"},
    {
        "ask": {
            "message": "Buy {{ item }}?",
            "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        },
        "as": "bought",
    },
    {
        "if": {
            "when": 'bought.action == "accept"',
            "then": [{"return": {"text": "{{ reserved.content[0].text }}, {{ bought.content.n }} bought"}}],
        }
    },
    {"return": {"text": "not bought"}},
)


def _reserving(house: HandlerBench) -> list[str]:
    made: list[str] = []

    def reserves(context: Context) -> str:
        made.append(str(context.arguments["item"]))
        return f"reserved {made[-1]}"

    house.has_code(Family.TOOL, "reserves", reserves, safety=Safety.MODERATE)
    house.has_tool("buys", ASKING)
    return made


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (accepted(n=2), "reserved tea, 2 bought"),
        ({"action": "decline"}, "not bought"),
        ({"action": "cancel"}, "not bought"),
    ],
)
async def test_steps_ask_the_user_and_go_on(house: HandlerBench, answer: Mapping[str, Any], reported: str) -> None:
    """MCP: the user's answer decides how the call continues."""
    _reserving(house)
    peer = TalkingPeer(answers={"elicitation": answer})

    result = await house.call("buys", {"item": "tea"}, peer)

    assert result["content"][0]["text"] == reported
    [question] = peer.asked.values()
    assert question.params["message"] == "Buy tea?"


async def test_in_rounds_no_step_is_repeated(house: HandlerBench) -> None:
    """Ours: the round that brings the answer goes on where the one before ended (SAF-3)."""
    made = _reserving(house)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("buys", {"item": "tea"}, peer)
    result = await house.call("buys", {"item": "tea"}, peer.answered(bought=accepted(n=1)))

    assert list(asked.value.input_requests) == ["bought"]
    assert result["content"][0]["text"] == "reserved tea, 1 bought"
    assert made == ["tea"]
    assert peer.notified == [("log", "begun")]
    assert [line for line in house.journal.lines if line.startswith("call buys")] == [
        "call buys call input_required",
        "call buys call ok",
    ]


@pytest.mark.parametrize("error", [CapabilityMissing, ClientSilent])
async def test_a_client_that_does_not_answer(house: HandlerBench, error: type[GatewayError]) -> None:
    """MCP: undeclared capabilities are not used; no answer is a clean error."""
    _reserving(house)
    if error is CapabilityMissing:
        with pytest.raises(CapabilityMissing):
            await house.call("buys", {"item": "tea"}, TalkingPeer(cannot=frozenset({"elicitation"})))
    else:
        result = await house.call("buys", {"item": "tea"}, TalkingPeer())
        assert result["_meta"]["gateway/error"]["code"] == "call.client_silent"


async def test_several_questions_are_asked_at_once(house: HandlerBench) -> None:
    """MCP: one round may have several questions, also of different kinds."""
    house.has_tool(
        "gathers",
        _steps(
            {
                "gather": [
                    {"ask": {"message": "Name?"}, "as": "name"},
                    {"sample": {"messages": "Capital of {{ land }}?", "maxTokens": 5}, "as": "capital"},
                    {"roots": {}, "as": "roots"},
                ]
            },
            {"return": {"text": "{{ name.action }} {{ capital.model }} {{ roots[0].uri }}"}},
        ),
    )
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("gathers", {"land": "Italy"}, peer)
    questions = asked.value.input_requests
    answers = {"elicitation": accepted(), "sampling": {"model": "m"}, "roots": {"roots": [{"uri": "file:///a"}]}}
    given = {key: answers[question.kind] for key, question in questions.items()}
    result = await house.call("gathers", {"land": "Italy"}, peer.answered(**given))

    assert len(questions) == 3
    assert result["content"][0]["text"] == "accept m file:///a"


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ({"ask": {"message": "?"}}, {"action": "maybe"}),
        ({"ask": {"message": "?"}}, {"action": "accept", "content": [1]}),
        ({"roots": {}}, {"roots": "none"}),
    ],
)
async def test_a_malformed_answer_of_the_client_is_a_clean_error(
    house: HandlerBench, step: Mapping[str, object], answer: Mapping[str, Any]
) -> None:
    """Ours: a client's answer is not trusted (CAL-4)."""
    house.has_tool("asks", _steps(step))
    peer = TalkingPeer(answers={"elicitation": answer, "roots": answer})

    result = await house.call("asks", peer=peer)

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"


@pytest.mark.parametrize("handler", [b"", b"{", b'{"kind":"magic"}', b'{"kind":"static"}'])
async def test_a_declaration_of_another_version_costs_its_own_calls(house: HandlerBench, handler: bytes) -> None:
    """Ours: an unreadable object is an error of the call, not of the tenant (CAL-4)."""
    house.has_tool("odd", {})
    house.replace_handler("odd", handler)

    result = await house.call("odd")

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"


async def test_a_large_declaration_is_read_beside_the_event_loop(house: HandlerBench) -> None:
    """Ours: the first call of a handler full of placeholders holds up nothing else (CAL-4)."""
    house.has_tool("large", {"kind": "template", "text": "{{a}}" * 13_000})
    turns = 0
    async with anyio.create_task_group() as group:

        async def count() -> None:
            nonlocal turns
            while True:
                await anyio.lowlevel.checkpoint()
                turns += 1

        group.start_soon(count)
        await house.call("large")
        group.cancel_scope.cancel()

    assert turns > 100


async def test_code_that_is_not_there_costs_its_own_calls(house: HandlerBench) -> None:
    """Ours: a replica without the code reports it, and serves the rest (CAL-4)."""
    house.has_code(Family.TOOL, "gone", lambda context: "x")
    house.has_code(Family.RESOURCE, "note://1", lambda context: "x")
    house.code.functions.clear()

    assert (await house.call("gone"))["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    with pytest.raises(CallError):
        await house.read("note://1")


async def test_listed_values_complete_by_prefix(house: HandlerBench) -> None:
    """MCP: those that begin with what was typed, at most a hundred (PRM-3)."""
    values: Sequence[str] = ["Rome", "Rouen", "Oslo", *(f"x{number}" for number in range(150))]
    handler = {
        "kind": "template",
        "text": "{{ city }}",
        "completions": {"city": {"values": values}},
    }
    house.has_prompt("visits", handler, "city", "other")
    house.has_template("city://{city}", handler, mimeType="text/plain")

    assert await house.complete("visits", "city", "ro") == Completions(values=("Rome", "Rouen"), total=2)
    many = await house.complete("city://{city}", "city", "x")
    assert (len(many.values), many.total, many.has_more) == (100, 150, True)
    assert (await house.complete("visits", "other", "")).values == ()
