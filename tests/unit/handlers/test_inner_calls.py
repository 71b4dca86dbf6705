"""Calls inside calls: through every gate, as the same principal, never without end, and never done twice."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from gateway.calls.limits import MAX_CALLS, MAX_NESTED_CALLS
from gateway.domain.primitives import Family
from gateway.domain.results import Contents, Messages
from gateway.domain.tenancy.policy import Decision, Policy, Safety
from gateway.errors import GatewayError, HandlerFailed, LimitExceeded, NotFound
from gateway.handlers.interfaces import InputRequired
from gateway.handlers.python.context import Context
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench
from tests.support.peers import RoundsPeer, TalkingPeer, accepted


@pytest.fixture
def house() -> HandlerBench:
    """A tenant without primitives, and with no way out."""
    return HandlerBench(UpstreamClient())


async def _invokes(context: Context) -> Mapping[str, object]:
    return await context.invoke(str(context.arguments["name"]), context.arguments.get("with"))


async def test_a_tool_calls_another_through_all_gates(house: HandlerBench) -> None:
    """Ours: the inner call is validated, limited and recorded under the same correlation id (PRG-1, SAF-4)."""
    house.has_code(Family.TOOL, "outer", _invokes)
    house.has_code(
        Family.TOOL,
        "inner",
        lambda context: {"doubled": context.arguments["n"] * 2},
        schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        safety=Safety.MODERATE,
    )

    result = await house.call("outer", {"name": "inner", "with": {"n": 4}})

    assert result["structuredContent"] == {"doubled": 8}
    assert house.journal.lines == [
        "call inner call.intent intended",
        "call inner call ok",
        "call outer call ok",
    ]
    assert {record.correlation_id for record in house.journal.records} == {"c-1"}
    assert {record.subject for record in house.journal.records} == {"alice"}


async def test_an_inner_call_with_bad_arguments_is_an_error_result_for_the_outer(house: HandlerBench) -> None:
    """Ours: the inner tool's own failure is a result that the outer one reads (CAL-2)."""
    house.has_code(Family.TOOL, "outer", _invokes)
    house.has_code(Family.TOOL, "inner", lambda context: "x", schema={"type": "object", "properties": {}, "not": {}})

    result = await house.call("outer", {"name": "inner", "with": {}})

    assert result["isError"] is True


async def test_an_inner_call_obeys_the_policy(house: HandlerBench) -> None:
    """Ours: no way around a decision leads through another tool (SAF-2)."""
    house.has_code(Family.TOOL, "outer", _invokes)
    house.has_code(Family.TOOL, "inner", lambda context: "x", safety=Safety.DANGEROUS)
    house.set_policy(Policy(dangerous=Decision.DENY))

    result = await house.call("outer", {"name": "inner"})

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"


async def test_a_missing_tool_is_an_error_of_the_outer_call(house: HandlerBench) -> None:
    """Ours: a name that the principal cannot see cannot be called from inside either (TEN-1)."""
    house.has_code(Family.TOOL, "outer", _invokes)

    result = await house.call("outer", {"name": "missing"})

    assert result["_meta"]["gateway/error"]["code"] == "not_found"


async def test_a_tool_that_calls_itself_comes_to_an_end(house: HandlerBench) -> None:
    """Ours: recursion through invoke is refused at a depth, cleanly (CAL-4)."""
    depths: list[int] = []

    async def recurses(context: Context) -> Mapping[str, object]:
        depths.append(1)
        return await context.invoke("recurses")

    house.has_code(Family.TOOL, "recurses", recurses)

    with anyio.fail_after(10):
        result = await house.call("recurses")

    assert "call.recursion" in str(result)
    assert len(depths) == MAX_NESTED_CALLS + 1
    assert house.journal.inside == 0


async def test_resources_that_read_each_other_come_to_an_end(house: HandlerBench) -> None:
    """Ours: recursion through read_resource is refused too (CAL-4)."""

    async def reads(context: Context) -> Contents:
        return await context.read_resource("ring://1")

    house.has_code(Family.RESOURCE, "ring://1", reads)

    with anyio.fail_after(10), pytest.raises(GatewayError, match="nested more than"):
        await house.read("ring://1")


async def test_one_call_makes_only_so_many_others(house: HandlerBench) -> None:
    """Ours: a tree of calls that is flat but wide is bounded as well (CAL-4)."""
    made: list[int] = []

    async def fans_out(context: Context) -> str:
        while True:
            await context.invoke("leaf")
            made.append(1)

    house.has_code(Family.TOOL, "fans_out", fans_out)
    house.has_code(Family.TOOL, "leaf", lambda context: "x")

    with anyio.fail_after(30):
        result = await house.call("fans_out")

    assert result["_meta"]["gateway/error"]["code"] == "call.recursion"
    assert len(made) == MAX_CALLS


async def test_an_inner_call_has_no_more_time_than_the_outer(house: HandlerBench) -> None:
    """Ours: the limit of the outermost call holds for everything inside (CAL-4)."""

    async def hangs(context: Context) -> str:
        await anyio.sleep_forever()
        return ""

    house.has_code(Family.TOOL, "outer", _invokes, timeout_s=0.01)
    house.has_code(Family.TOOL, "hangs", hangs)

    with anyio.fail_after(30):
        result = await house.call("outer", {"name": "hangs"})

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert house.journal.lines == ["call hangs call cancelled", "call outer call call.handler_failed"]


async def test_a_limit_that_an_inner_call_exceeds_reaches_the_caller(house: HandlerBench) -> None:
    """Ours: calls inside calls count, and the caller learns when to try again (TEN-3)."""

    async def fills(context: Context) -> Mapping[str, object]:
        house.journal.full = True
        return await context.invoke("inner")

    house.has_code(Family.TOOL, "fills", fills)
    house.has_code(Family.TOOL, "inner", lambda context: "x")

    with pytest.raises(LimitExceeded) as caught:
        await house.call("fills")
    assert caught.value.retry_after_s == 1.5


async def test_an_inner_call_sends_no_progress_of_its_own(house: HandlerBench) -> None:
    """MCP: progress of one request only ever rises, so only the outer call reports it; logs pass."""

    async def notifies(context: Context) -> str:
        await context.progress(1)
        await context.log("info", "inner")
        return "x"

    house.has_code(Family.TOOL, "outer", _invokes)
    house.has_code(Family.TOOL, "tells", notifies)
    peer = TalkingPeer()

    await house.call("outer", {"name": "tells"}, peer)

    assert peer.notified == [("log", "info", "inner", None)]


async def test_inner_calls_before_a_question_run_once(house: HandlerBench) -> None:
    """Ours: in 2026-07-28 the function runs again, but not the tools that it had called (SAF-3)."""
    made: list[str] = []

    async def orders(context: Context) -> Mapping[str, object]:
        first = await context.invoke("reserve", {"item": "a"})
        sure = await context.ask("Sure?")
        second = await context.invoke("reserve", {"item": "b"})
        return {"first": first["content"], "second": second["content"], "sure": sure.action}

    def reserves(context: Context) -> str:
        made.append(str(context.arguments["item"]))
        return f"reserved {context.arguments['item']}"

    house.has_code(Family.TOOL, "orders", orders)
    house.has_code(Family.TOOL, "reserve", reserves)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("orders", peer=peer)
    assert house.journal.lines[-1] == "call orders call input_required"
    result = await house.call("orders", peer=peer.answered(**{key: accepted() for key in asked.value.input_requests}))

    assert made == ["a", "b"]
    assert result["structuredContent"]["first"][0]["text"] == "reserved a"


async def test_a_plain_function_asks_in_rounds_too(house: HandlerBench) -> None:
    """Ours: a question ends the round of a function in a thread as it does elsewhere."""

    def asks(context: Context) -> str:
        done = context.wait(context.invoke("leaf"))
        return f"{context.wait(context.ask('Sure?')).action} {done['isError']}"

    house.has_code(Family.TOOL, "asks", asks)
    house.has_code(Family.TOOL, "leaf", lambda context: "x")
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("asks", peer=peer)
    result = await house.call("asks", peer=peer.answered(**{key: accepted() for key in asked.value.input_requests}))

    assert result["content"][0]["text"] == "accept False"
    assert house.journal.lines.count("call leaf call ok") == 1


async def test_questions_of_two_inner_calls_have_different_names(house: HandlerBench) -> None:
    """Ours: each inner call asks under names of its own, the same in every round."""

    async def asks(context: Context) -> str:
        reply = await context.ask("Which?", {"type": "object", "properties": {"n": {"type": "integer"}}})
        return f"{context.arguments['who']}={reply.content['n']}"

    async def both(context: Context) -> Mapping[str, object]:
        reported = [await context.invoke("asks", {"who": who}) for who in ("x", "y")]
        return {"said": [each["content"][0]["text"] for each in reported]}

    house.has_code(Family.TOOL, "both", both)
    house.has_code(Family.TOOL, "asks", asks)
    peer = RoundsPeer()
    result: dict[str, Any] = {}

    for number in (1, 2, 3):
        try:
            result = await house.call("both", peer=peer)
        except InputRequired as asked:
            peer = peer.answered(**{key: accepted(n=number) for key in asked.input_requests})

    assert result["structuredContent"] == {"said": ["x=1", "y=2"]}


async def test_an_answer_too_large_to_be_carried_is_never_asked_for_twice(house: HandlerBench) -> None:
    """Ours: rather no answer than a side effect twice (SAF-3)."""
    made: list[int] = []

    async def orders(context: Context) -> str:
        await context.invoke("large")
        return (await context.ask("Sure?")).action

    def large(context: Context) -> str:
        made.append(1)
        return "x" * 100_000

    house.has_code(Family.TOOL, "orders", orders)
    house.has_code(Family.TOOL, "large", large)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await house.call("orders", peer=peer)
    result = await house.call("orders", peer=peer.answered(**{key: accepted() for key in asked.value.input_requests}))

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert made == [1]


async def test_a_resource_of_code_reads_another_as_the_same_principal(house: HandlerBench) -> None:
    """Ours: reading from inside passes the gates of reading (PRM-2)."""

    async def joins(context: Context) -> str:
        read = await context.read_resource("note://1")
        return f"{context.uri}: {read.contents[0]['text']}"

    house.has_code(Family.RESOURCE, "note://all", joins, mimeType="text/plain")
    house.has_code(Family.RESOURCE, "note://1", lambda context: "one", mimeType="text/plain")

    read = await house.read("note://all")

    assert read.contents[0]["text"] == "note://all: one"
    assert house.journal.lines == ["read note://1 call ok", "read note://all call ok"]


async def test_a_prompt_embeds_a_resource_by_its_uri(house: HandlerBench) -> None:
    """Ours: an embedded resource is read as the principal that gets the prompt (PRM-2)."""
    message = {"role": "user", "content": {"type": "resource", "resource": {"uri": "note://1"}}}
    house.has_code(Family.PROMPT, "reviews", lambda context: Messages(messages=(message,)))
    house.has_code(Family.RESOURCE, "note://1", lambda context: "one", mimeType="text/plain")

    reported = await house.get("reviews")

    embedded = {"uri": "note://1", "mimeType": "text/plain", "text": "one"}
    assert reported.messages == ({"role": "user", "content": {"type": "resource", "resource": embedded}},)
    assert house.journal.lines == ["read note://1 call ok", "get reviews call ok"]


async def test_a_prompt_with_a_missing_resource_reports_it(house: HandlerBench) -> None:
    """Ours: a resource that this principal cannot read is not embedded, and not distinguished from an absent one
    (TEN-1).
    """
    message = {"role": "user", "content": {"type": "resource", "resource": {"uri": "note://1"}}}
    house.has_code(Family.PROMPT, "reviews", lambda context: Messages(messages=(message,)))

    with pytest.raises(HandlerFailed, match="note://1"):
        await house.get("reviews")


async def test_a_finder_is_needed_to_find(house: HandlerBench) -> None:
    """Ours: a call without a registry reaches nothing else."""
    house.has_code(Family.TOOL, "outer", _invokes)
    bound = await house.tool("outer")
    assert bound is not None

    raw = await house.calls.run(house.principal, bound, {"name": "outer"}, correlation_id="c-1")

    assert NotFound.code.encode() in raw
