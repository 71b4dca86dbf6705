"""Tools that are Python functions: what they are given, what they may return, and how they fail."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import anyio
import pytest
from mcp_types import CallToolResult, TextContent
from structlog.testing import capture_logs

from gateway.domain.identifiers import IssuerId
from gateway.domain.primitives import Family
from gateway.domain.results import Result
from gateway.domain.tenancy.policy import Decision, Policy, Safety
from gateway.domain.tenancy.principals import InboundToken
from gateway.errors import CapabilityMissing
from gateway.handlers.python.context import Context
from gateway.handlers.python.results import audio, embed, error, image, json, success, text
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench
from tests.support.peers import TalkingPeer, accepted


@pytest.fixture
def house() -> HandlerBench:
    """A tenant without primitives, and with no way out."""
    return HandlerBench(UpstreamClient())


def _note(ran: list[int]) -> str:
    ran.append(1)
    return "ran"


async def _answer(house: HandlerBench, returned: object) -> dict[str, Any]:
    house.has_code(Family.TOOL, "answers", lambda context: returned)
    return await house.call("answers")


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ("hello", {"content": [{"type": "text", "text": "hello"}], "isError": False}),
        (
            {"n": 1},
            {"content": [{"type": "text", "text": '{"n":1}'}], "structuredContent": {"n": 1}, "isError": False},
        ),
        (text("t"), {"content": [{"type": "text", "text": "t"}], "isError": False}),
        (json([1]), {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1], "isError": False}),
        (success(2), {"content": [{"type": "text", "text": "2"}], "structuredContent": 2, "isError": False}),
        (success(None), {"content": [{"type": "text", "text": "null"}], "isError": False}),
        (Result(), {"content": [], "isError": False}),
        (
            image(b"\x89"),
            {"content": [{"type": "image", "data": "iQ==", "mimeType": "image/png"}], "isError": False},
        ),
        (
            audio(b"\x00"),
            {"content": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}], "isError": False},
        ),
        (
            embed("note://1", "hi"),
            {
                "content": [
                    {"type": "resource", "resource": {"uri": "note://1", "mimeType": "text/plain", "text": "hi"}}
                ],
                "isError": False,
            },
        ),
        (
            error("NO_SUCH_CITY", "there is no such city", {"city": "Oz"}),
            {
                "content": [{"type": "text", "text": "there is no such city"}],
                "isError": True,
                "_meta": {
                    "error": {"code": "NO_SUCH_CITY", "message": "there is no such city", "data": {"city": "Oz"}}
                },
            },
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_returned_value_comes_back_in_protocol_form(
    house: HandlerBench, returned: object, result: dict[str, Any]
) -> None:
    """Ours: results, texts and mappings are answers of a tool (CAL-1)."""
    assert await _answer(house, returned) == result


_NO: dict[str, Any] = {"type": "text", "text": "no"}


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ({"content": [_NO], "isError": True}, {"content": [_NO], "isError": True}),
        ({"content": [_NO]}, {"content": [_NO], "isError": False}),
        ({"content": (_NO, _NO), "isError": False}, {"content": [_NO, _NO], "isError": False}),
        ({"content": [], "isError": True}, {"content": [], "isError": True}),
        ({"isError": True}, {"content": [], "isError": True}),
        (
            {"content": [_NO], "structuredContent": {"n": None}, "_meta": {"a": None}},
            {"content": [_NO], "structuredContent": {"n": None}, "isError": False, "_meta": {"a": None}},
        ),
        (
            {"structuredContent": {"n": 1}, "isError": True},
            {"content": [{"type": "text", "text": '{"n":1}'}], "structuredContent": {"n": 1}, "isError": True},
        ),
        (
            CallToolResult(content=[TextContent(type="text", text="no")], is_error=True).model_dump(by_alias=True),
            {"content": [_NO], "isError": True},
        ),
    ],
)
async def test_a_mapping_in_the_protocols_form_is_a_result(
    house: HandlerBench, returned: object, result: dict[str, Any]
) -> None:
    """Ours: a mapping with `isError: true` never becomes a success (CAL-1)."""
    assert await _answer(house, returned) == result


@pytest.mark.parametrize(
    "returned",
    [
        {"content": "all of the file"},
        {"content": [{"type": "paragraph", "text": "x"}]},
        {"content": [{"text": "x"}], "totalPages": 1},
        {"content": []},
        {"content": [_NO], "id": "msg_1", "role": "assistant"},
        {"content": "x", "isError": False},
        {"isError": True, "reason": "of the upstream's own"},
        {"structuredContent": {"n": 1}},
        {"contents": [{"uri": "note://1", "text": "x"}]},
    ],
)
async def test_any_other_mapping_is_structured_content(house: HandlerBench, returned: dict[str, Any]) -> None:
    """Ours: an object that happens to have a member of a result stays one JSON value (CAL-1)."""
    result = await _answer(house, returned)

    assert result["structuredContent"] == returned
    assert result["isError"] is False


async def test_an_answer_of_another_tool_is_passed_on_unchanged(house: HandlerBench) -> None:
    """Ours: a failure inside a call is a failure of the call (CAL-1)."""

    async def passes_on(context: Context) -> Mapping[str, object]:
        return await context.invoke("fails")

    house.has_code(Family.TOOL, "fails", lambda context: error("GONE", "It is gone."))
    house.has_code(Family.TOOL, "passes_on", passes_on)

    result = await house.call("passes_on")

    assert result["isError"] is True
    assert result["_meta"]["error"]["code"] == "GONE"


async def test_an_async_and_a_plain_function_see_the_same_call(house: HandlerBench) -> None:
    """Ours: tenant, principal, arguments and correlation id are there for both (PRG-1)."""
    seen: list[object] = []

    async def asynchronous(context: Context) -> str:
        seen.append((context.tenant, context.principal.subject, dict(context.arguments), context.correlation_id))
        return "ok"

    def plain(context: Context) -> str:
        seen.append((context.tenant, context.principal.subject, dict(context.arguments), context.correlation_id))
        assert threading.current_thread() is not threading.main_thread()
        return "ok"

    house.has_code(Family.TOOL, "asynchronous", asynchronous)
    house.has_code(Family.TOOL, "plain", plain)
    for name in ("asynchronous", "plain"):
        assert (await house.call(name, {"a": [1, None]}))["isError"] is False

    assert seen == [("acme", "alice", {"a": [1, None]}, "c-1")] * 2


async def test_a_function_does_not_get_the_access_token_of_its_caller(house: HandlerBench) -> None:
    """Ours: code cannot pass the token on, by itself or in a log line (TEN-4)."""
    seen: list[object] = []

    def plain(context: Context) -> str:
        seen.append(context.principal)
        return "ok"

    house.principal = replace(house.principal, token=InboundToken(IssuerId("iss_1"), "eyJ.secret.token"))
    house.has_code(Family.TOOL, "plain", plain)
    assert (await house.call("plain", {}))["isError"] is False

    assert seen == [house.principal]  # equal but for the token
    assert [getattr(each, "token", "") for each in seen] == [None]
    assert "secret" not in repr(house.principal)


async def test_arguments_that_break_the_schema_reach_no_function(house: HandlerBench) -> None:
    """Ours: the path and the reason are the result, the function is not run (CAL-2)."""
    ran: list[int] = []
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    house.has_code(Family.TOOL, "counts", lambda context: _note(ran), schema=schema)

    result = await house.call("counts", {"n": "one"})

    assert result["isError"] is True
    assert "/n" in result["content"][0]["text"]
    assert ran == []


def _raises(context: Context) -> str:
    raise RuntimeError("password=hunter2")


async def _raises_later(context: Context) -> str:
    await anyio.lowlevel.checkpoint()
    raise KeyError("password=hunter2")


def _exits(context: Context) -> str:
    raise SystemExit(3)


async def _exits_later(context: Context) -> str:
    raise SystemExit(3)


async def _interrupts(context: Context) -> str:
    raise KeyboardInterrupt


async def _interrupts_in_a_group(context: Context) -> str:
    raise BaseExceptionGroup("several", [KeyboardInterrupt()])


def _stops(context: Context) -> str:
    raise StopIteration


async def _cancels_itself(context: Context) -> str:
    raise anyio.get_cancelled_exc_class()


@pytest.mark.parametrize(
    "function",
    [
        _raises,
        _raises_later,
        _exits,
        _exits_later,
        _interrupts,
        _interrupts_in_a_group,
        _stops,
        _cancels_itself,
    ],
    ids=lambda f: f.__name__,
)
async def test_every_error_of_a_function_is_a_clean_error(
    house: HandlerBench, function: Callable[[Context], object]
) -> None:
    """Ours: nothing internal reaches the client, the log has the correlation id, the gateway goes on (CAL-4)."""
    house.has_code(Family.TOOL, "breaks", function)

    with capture_logs() as logs:
        result = await house.call("breaks")

    assert result["isError"] is True
    assert "hunter2" not in str(result)
    assert result["_meta"]["gateway/error"] == {"code": "call.handler_failed", "correlation_id": "c-1"}
    assert any(line["correlation_id"] == "c-1" for line in logs)
    assert house.journal.lines == ["call breaks call crashed"]
    assert (await _answer(house, "still here"))["isError"] is False


@pytest.mark.parametrize(
    ("returned", "place"),
    [
        ({"content": [{"text": "x"}]}, "/content/0"),
        ({"content": [_NO, {"text": "x"}], "isError": False}, "/content/1"),
        ({"content": ["one", "two"]}, "/content/0"),
        ({"content": [{"type": None, "text": "x"}], "structuredContent": {"n": 1}}, "/content/0"),
        ({"content": ({"type": 3},), "is_error": False, "structured_content": None}, "/content/0"),
    ],
)
async def test_content_without_a_type_is_refused_with_its_place(
    house: HandlerBench, returned: object, place: str
) -> None:
    """Ours: a result that misses a type is never passed on as data (CAL-1, CAL-4)."""
    result = await _answer(house, returned)

    assert result["isError"] is True
    assert "structuredContent" not in result
    assert place in result["content"][0]["text"]


@pytest.mark.parametrize(
    "returned",
    [
        None,
        3,
        [1],
        object(),
        Result(content=({"type": "video", "data": ""},)),
        Result(content=({"type": "text"},)),
        Result(content=({"type": "image", "data": "not base64!", "mimeType": "image/png"},)),
        Result(content=cast("Any", ("text",))),
        Result(content=cast("Any", "text")),
        Result(structured={"at": object()}),
        Result(structured={"text": "\ud800"}),
        {"at": object()},
        {"content": "no", "isError": True},
        {"content": ["no"], "isError": True},
        {"content": [_NO], "isError": True, "code": 7},
        {"content": [_NO], "isError": "yes"},
        {"content": [_NO], "_meta": "none"},
        {"content": [{"type": "text", "txt": "no"}]},
        {"content": [{"type": "image", "data": "not base64!", "mimeType": "image/png"}]},
        {"content": [_NO], "resultType": "input_required"},
        CallToolResult(content=[TextContent(type="text", text="no")], is_error=True).model_dump(),
        Result(is_error=cast("Any", "yes")),
        Result(meta=cast("Any", 5)),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_wrong_shape_is_a_clean_error(house: HandlerBench, returned: object) -> None:
    """Ours: a value that no tool may return is an error result, logged, without the value (CAL-4)."""
    with capture_logs() as logs:
        result = await _answer(house, returned)

    assert result["isError"] is True
    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert logs[0]["event"] == "handler_failed"
    assert logs[0]["correlation_id"] == "c-1"


async def test_a_structure_that_holds_itself_is_a_clean_error(house: HandlerBench) -> None:
    """Ours: no value a function can build breaks the gateway (CAL-4)."""
    ring: dict[str, object] = {}
    ring["ring"] = ring

    looped: list[object] = []
    looped.append({"type": "text", "text": "x", "annotations": looped})
    for returned in (ring, {"content": looped, "isError": True}, {"content": [{"type": "text", "_meta": ring}]}):
        assert (await _answer(house, returned))["_meta"]["gateway/error"]["code"] == "call.handler_failed"


async def test_a_huge_result_is_refused(house: HandlerBench) -> None:
    """Ours: an answer has a largest size (CAL-4)."""
    result = await _answer(house, "x" * (11 * 1024 * 1024))

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"


async def test_an_async_function_that_hangs_is_stopped(house: HandlerBench) -> None:
    """Ours: a time limit ends the call, and the function with it (CAL-4)."""
    ended: list[str] = []

    async def hangs(context: Context) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cleaned up")
        return ""

    house.has_code(Family.TOOL, "hangs", hangs, timeout_s=0.01)

    with anyio.fail_after(30):
        result = await house.call("hangs")

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
    assert ended == ["cleaned up"]
    assert house.journal.lines == ["call hangs call call.handler_failed"]


async def test_a_plain_function_that_hangs_is_left_behind(house: HandlerBench) -> None:
    """Ours: the call ends though its thread cannot be stopped, and the function can see that it did (CAL-4)."""
    seen = threading.Event()

    def hangs(context: Context) -> str:
        while not context.cancelled:
            time.sleep(0.001)
        seen.set()
        return "too late"

    house.has_code(Family.TOOL, "hangs", hangs, timeout_s=0.01)

    with anyio.fail_after(30):
        result = await house.call("hangs")
        await anyio.to_thread.run_sync(seen.wait)

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"


async def test_a_cancelled_call_is_recorded_and_ends_its_function(house: HandlerBench) -> None:
    """Ours: a client that leaves leaves nothing behind (CAL-4, SAF-4)."""
    started = anyio.Event()

    async def hangs(context: Context) -> str:
        started.set()
        await anyio.sleep_forever()
        return ""

    house.has_code(Family.TOOL, "hangs", hangs)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(house.call, "hangs")
            await started.wait()
            group.cancel_scope.cancel()

    assert house.journal.lines == ["call hangs call cancelled"]
    assert house.journal.inside == 0


async def test_progress_and_log_reach_the_client(house: HandlerBench) -> None:
    """MCP: a running call reports its progress."""

    def works(context: Context) -> str:
        context.wait(context.progress(1, 2, "half"))
        context.wait(context.log("info", {"done": 1}, "worker"))
        return "ok"

    house.has_code(Family.TOOL, "works", works)
    peer = TalkingPeer()

    await house.call("works", peer=peer)

    assert peer.notified == [("progress", 1, 2, "half"), ("log", "info", {"done": 1}, "worker")]


async def test_a_function_asks_the_user_and_the_model_and_for_roots(house: HandlerBench) -> None:
    """MCP: elicitation, sampling and roots are asked of the client that declared them."""

    async def asks(context: Context) -> Mapping[str, object]:
        form = await context.ask("How many?", {"type": "object", "properties": {"n": {"type": "integer"}}})
        page = await context.ask_url("Sign in", "https://example.com/in")
        reported = await context.sample([{"role": "user", "content": {"type": "text", "text": "Hi"}}], max_tokens=5)
        roots = await context.roots()
        return {"n": form.content["n"], "page": page.is_accepted, "said": reported["model"], "roots": len(roots)}

    house.has_code(Family.TOOL, "asks", asks)
    peer = TalkingPeer(
        answers={
            "question/1": accepted(n=3),
            "question/2": {"action": "decline"},
            "sampling": {"model": "m"},
            "roots": {"roots": [{"uri": "file:///a"}]},
        }
    )

    result = await house.call("asks", peer=peer)

    assert result["structuredContent"] == {"n": 3, "page": False, "said": "m", "roots": 1}
    assert peer.asked["question/2"].params["mode"] == "url"


async def test_a_malformed_answer_of_the_client_is_a_clean_error(house: HandlerBench) -> None:
    """Ours: a client's answer is not trusted (CAL-4)."""

    async def asks(context: Context) -> str:
        return (await context.ask("Sure?")).action

    house.has_code(Family.TOOL, "asks", asks)

    result = await house.call("asks", peer=TalkingPeer(answers={"elicitation": {"action": "maybe"}}))

    assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"


async def test_a_client_without_a_capability_gets_a_reason(house: HandlerBench) -> None:
    """MCP: a client is asked only for declared capabilities."""

    async def asks(context: Context) -> str:
        return (await context.ask("Sure?")).action

    house.has_code(Family.TOOL, "asks", asks)

    with pytest.raises(CapabilityMissing):
        await house.call("asks")
    assert house.journal.lines == ["call asks call call.capability_missing"]


async def test_the_clock_stops_while_the_user_answers(house: HandlerBench) -> None:
    """Ours: a time limit counts what the handler takes, not what the user takes."""
    limit = 0.05

    class SlowPeer(TalkingPeer):
        async def ask(self, input_requests: Any) -> Any:
            deadline = anyio.current_effective_deadline()
            assert deadline == float("inf")
            return {key: accepted() for key in input_requests}

    async def asks(context: Context) -> str:
        return (await context.ask("Sure?")).action

    house.has_code(Family.TOOL, "asks", asks, timeout_s=limit)

    assert (await house.call("asks", peer=SlowPeer()))["content"][0]["text"] == "accept"


async def test_a_result_is_held_to_the_output_schema(house: HandlerBench) -> None:
    """Ours: a result that breaks the declared schema is an error result, with the returned content (TDF-5).

    The words of the tool are in it (langchain-ai/deepagents#6276).
    """
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    house.has_code(Family.TOOL, "good", lambda context: {"n": 1}, output=schema)
    house.has_code(Family.TOOL, "bad", lambda context: {"n": "one"}, output=schema)
    house.has_code(Family.TOOL, "bare", lambda context: "one", output=schema)
    house.has_code(Family.TOOL, "fails", lambda context: error("E", "no"), output=schema)

    assert (await house.call("good"))["structuredContent"] == {"n": 1}
    for name in ("bad", "bare"):
        result = await house.call(name)
        assert result["_meta"]["gateway/error"]["code"] == "call.output_invalid"
        assert "structuredContent" not in result
        assert "one" in result["content"][1]["text"]
    assert (await house.call("fails"))["_meta"]["error"]["code"] == "E"


async def test_members_of_the_same_name_inside_are_not_mistaken(house: HandlerBench) -> None:
    """Ours: the short way finds structured content and isError by how they are written, wherever others are."""
    tricky = Result(
        content=({"type": "text", "text": "t", "_meta": {"a": 1, "structuredContent": 5, "isError": True}},),
        structured=[1],
        meta={"a": 1, "isError": {"structuredContent": 2}},
    )
    house.has_code(Family.TOOL, "tricky", lambda context: tricky)
    bound = await house.tool("tricky")
    assert bound is not None

    raw = await house.calls.run(house.principal, bound, {}, correlation_id="c-1")

    assert raw.count(b',"structuredContent":') == 1
    assert raw.count(b',"isError":') == 1


@pytest.mark.parametrize("decision", [Decision.DENY, Decision.APPROVE])
async def test_a_refused_call_does_not_run(house: HandlerBench, decision: Decision) -> None:
    """Ours: policy comes before the handler, for code as for imports (SAF-2)."""
    ran: list[int] = []
    house.has_code(Family.TOOL, "acts", lambda context: _note(ran), safety=Safety.MODERATE)
    house.set_policy(Policy(moderate=decision))

    result = await house.call("acts")

    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert ran == []
