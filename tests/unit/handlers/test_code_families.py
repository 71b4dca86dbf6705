"""Resources, prompts and completions that are Python functions, with the failures of each."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import anyio
import pytest
from mcp_types import GetPromptResult, PromptMessage, ReadResourceResult, TextContent, TextResourceContents
from structlog.testing import capture_logs

from gateway.domain.primitives import Family
from gateway.domain.refusals import MissingArguments
from gateway.domain.results import Completions, Contents, Messages
from gateway.domain.tenancy.policy import Decision, Policy
from gateway.errors import (
    ArgumentsInvalid,
    CallError,
    GatewayError,
    HandlerFailed,
    NotFound,
    PolicyDenied,
)
from gateway.handlers.python.context import Context
from gateway.handlers.python.signatures import Completing
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench


@pytest.fixture
def house() -> HandlerBench:
    """A tenant without primitives, and with no way out."""
    return HandlerBench(UpstreamClient())


async def test_texts_and_bytes_are_contents_in_the_type_of_the_definition(house: HandlerBench) -> None:
    """Ours: text and blob, with URI and MIME type (RES-1)."""
    house.has_code(Family.RESOURCE, "note://text", lambda context: "hi", mimeType="text/plain")
    house.has_code(Family.RESOURCE, "note://blob", lambda context: b"\x00", mimeType="image/png")
    shown = Contents(contents=({"text": "a"}, {"uri": "note://other", "mimeType": "text/html", "text": "b"}))
    house.has_code(Family.RESOURCE, "note://both", lambda context: shown, mimeType="text/plain")

    assert (await house.read("note://text")).contents == (
        {"uri": "note://text", "mimeType": "text/plain", "text": "hi"},
    )
    assert (await house.read("note://blob")).contents == (
        {"uri": "note://blob", "mimeType": "image/png", "blob": "AA=="},
    )
    assert [content["uri"] for content in (await house.read("note://both")).contents] == ["note://both", "note://other"]


@pytest.mark.parametrize(
    ("returned", "uri"),
    [
        ({"contents": [{"text": "hi"}]}, "note://1"),
        ({"contents": ({"uri": "note://2", "mimeType": "text/plain", "text": "hi"},)}, "note://2"),
        ({"text": "hi"}, "note://1"),
        ({"uri": "note://2", "mimeType": "text/plain", "text": "hi"}, "note://2"),
        (
            ReadResourceResult(contents=[TextResourceContents(uri="note://2", text="hi")]).model_dump(by_alias=True),
            "note://2",
        ),
    ],
)
async def test_a_mapping_in_the_protocols_form_is_contents(
    house: HandlerBench, returned: dict[str, Any], uri: str
) -> None:
    """Ours: a list of contents, or one; the URI and type default to the resource's (RES-1)."""
    house.has_code(Family.RESOURCE, "note://1", lambda context: returned, mimeType="text/plain")

    assert (await house.read("note://1")).contents == ({"uri": uri, "mimeType": "text/plain", "text": "hi"},)


_HI: dict[str, Any] = {"role": "user", "content": {"type": "text", "text": "hi"}}


@pytest.mark.parametrize(
    ("returned", "messages"),
    [
        ([_HI], Messages(messages=(_HI,))),
        ((_HI, _HI), Messages(messages=(_HI, _HI))),
        ({"messages": [_HI]}, Messages(messages=(_HI,))),
        ({"messages": [_HI], "description": "d"}, Messages(messages=(_HI,), description="d")),
        (
            GetPromptResult(
                messages=[PromptMessage(role="user", content=TextContent(type="text", text="hi"))]
            ).model_dump(by_alias=True),
            Messages(messages=(_HI,)),
        ),
    ],
)
async def test_a_list_or_mapping_in_the_protocols_form_is_messages(
    house: HandlerBench, returned: object, messages: Messages
) -> None:
    """Ours: a list of messages, alone or beside a description (PRM-2)."""
    house.has_code(Family.PROMPT, "says", lambda context: returned)

    assert await house.get("says") == messages


async def test_a_template_hands_its_variables_over(house: HandlerBench) -> None:
    """Ours: the function gets the variables of the URI (RES-2)."""
    house.has_code(
        Family.TEMPLATE,
        "pet://{kind}/{id}",
        lambda context: f"{context.uri} {dict(context.arguments)}",
        mimeType="text/plain",
    )

    read = await house.read("pet://cat/7%2F8")

    assert read.contents[0]["uri"] == "pet://cat/7%2F8"
    assert read.contents[0]["text"] == "pet://cat/7%2F8 {'kind': 'cat', 'id': '7/8'}"


async def test_a_resource_without_mime_type_anywhere_is_a_wrong_shape(house: HandlerBench) -> None:
    """Ours: absent from result and definition is not guessed (RES-1)."""
    house.has_code(Family.RESOURCE, "note://1", lambda context: "hi")

    with pytest.raises(HandlerFailed, match="mimeType"):
        await house.read("note://1")


async def test_a_function_may_report_a_missing_resource(house: HandlerBench) -> None:
    """Ours: a template knows which of its URIs exist (CAL-3)."""

    def reads(context: Context) -> str:
        raise NotFound("no such pet")

    house.has_code(Family.TEMPLATE, "pet://{id}", reads, mimeType="text/plain")

    with pytest.raises(NotFound):
        await house.read("pet://7")
    assert house.journal.lines == ["read pet://7 call not_found"]


async def test_texts_and_messages_are_a_prompt(house: HandlerBench) -> None:
    """Ours: a text is a message of the role user (PRM-2)."""
    reported = Messages(messages=({"role": "assistant", "content": {"type": "text", "text": "a"}},), description="d")
    house.has_code(Family.PROMPT, "text", lambda context: f"hi {context.arguments}")
    house.has_code(Family.PROMPT, "messages", lambda context: reported)

    assert (await house.get("text")).messages == ({"role": "user", "content": {"type": "text", "text": "hi {}"}},)
    assert await house.get("messages") == reported


async def test_every_missing_argument_is_named(house: HandlerBench) -> None:
    """Ours: one error names every missing argument (PRM-1)."""
    arguments = [{"name": name, "required": name != "c"} for name in "abc"]
    house.has_code(Family.PROMPT, "asks", lambda context: "x", arguments=arguments)

    with pytest.raises(MissingArguments, match="a, b"):
        await house.get("asks", {"c": "1"})
    with pytest.raises(ArgumentsInvalid, match="d, e"):
        await house.get("asks", {"a": "1", "b": "2", "e": "", "d": ""})
    with pytest.raises(ArgumentsInvalid, match="more than"):
        await house.get("asks", {"a": "1", "b": "x" * 100_000})
    assert (await house.get("asks", {"a": "1", "b": "2"})).messages


def _raises(context: Context) -> str:
    raise RuntimeError("password=hunter2")


async def _hangs(context: Context) -> str:
    await anyio.sleep_forever()
    return ""


_WRONG: Sequence[Callable[[Context], object]] = (
    _raises,
    _hangs,
    lambda context: 3,
    lambda context: None,
    lambda context: "x" * (11 * 1024 * 1024),
    lambda context: Contents(contents=({"text": "a", "blob": "AA=="},)),
    lambda context: Contents(contents=cast("Any", 5)),
    lambda context: Contents(contents=cast("Any", ("text",))),
    lambda context: Messages(messages=cast("Any", ("text",))),
    lambda context: Messages(messages=(), description=cast("Any", 5)),
    lambda context: Messages(messages=(), description="\ud800"),
    lambda context: Messages(messages=({"role": "system", "content": {"type": "text", "text": ""}},)),
    lambda context: Messages(messages=({"role": "user"},)),
    lambda context: {"n": 1},
    lambda context: {"contents": [{"text": "x"}], "messages": [_HI]},
    lambda context: {"contents": "x"},
    lambda context: {"messages": "x"},
    lambda context: {"text": "x", "txt": "y"},
    lambda context: {"messages": [{"role": "system", "content": {"type": "text", "text": ""}}]},
    lambda context: [{"role": "user", "content": "hi"}],
    lambda context: ["hi"],
    lambda context: {"content": [{"type": "text", "text": "x"}]},
)


def _typed(family: Family) -> dict[str, Any]:
    return {} if family is Family.PROMPT else {"mimeType": "text/plain"}


@pytest.mark.parametrize("number", range(len(_WRONG)))
@pytest.mark.parametrize("family", [Family.RESOURCE, Family.TEMPLATE, Family.PROMPT])
async def test_raising_hanging_wrong_and_huge_answers_are_clean_errors(
    house: HandlerBench, family: Family, number: int
) -> None:
    """Ours: logged with the correlation id, without internal details in the response, one record, and the gateway
    continues (CAL-4).
    """
    name = {Family.RESOURCE: "note://x", Family.TEMPLATE: "note://{id}"}.get(family, "prompt")
    timeout_s = 0.01 if _WRONG[number] is _hangs else 60
    house.has_code(family, name, _WRONG[number], timeout_s=timeout_s, **_typed(family))

    with capture_logs() as logs, anyio.fail_after(10), pytest.raises(CallError) as caught:
        await (house.get(name) if family is Family.PROMPT else house.read("note://x"))

    assert "hunter2" not in caught.value.message
    assert any(line.get("correlation_id") == "c-1" for line in logs)
    assert len(house.journal.records) == 1
    assert house.journal.inside == 0


@pytest.mark.parametrize("family", [Family.RESOURCE, Family.PROMPT])
async def test_a_cancelled_reading_is_recorded(house: HandlerBench, family: Family) -> None:
    """Ours: a client that left is in the trail, and the place is free (SAF-4)."""
    started = anyio.Event()

    async def hangs(context: Context) -> str:
        started.set()
        await anyio.sleep_forever()
        return ""

    name = "note://x" if family is Family.RESOURCE else "prompt"
    house.has_code(family, name, hangs)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(house.read if family is Family.RESOURCE else house.get, name)
            await started.wait()
            group.cancel_scope.cancel()

    assert house.journal.lines[0].endswith("call cancelled")
    assert house.journal.inside == 0


@pytest.mark.parametrize("decision", [Decision.DENY, Decision.APPROVE])
async def test_the_policy_holds_for_every_family(house: HandlerBench, decision: Decision) -> None:
    """Ours: resources, prompts and completions pass the same gates as tools (SAF-2)."""
    house.has_code(Family.RESOURCE, "note://x", lambda context: "x", mimeType="text/plain")
    house.has_code(Family.PROMPT, "prompt", lambda context: "x", arguments=[{"name": "a"}])
    house.set_policy(Policy(safe=decision))

    for refused in (house.read("note://x"), house.get("prompt"), house.complete("prompt", "a", "")):
        with pytest.raises(PolicyDenied):
            await refused


async def test_a_function_completes_arguments_and_variables(house: HandlerBench) -> None:
    """MCP: at most a hundred values, and whether there are more (PRM-3)."""
    seen: list[Completing] = []

    def completes(completing: Completing) -> Sequence[str]:
        seen.append(completing)
        return [f"{completing.value}{number}" for number in range(250)]

    async def knows(completing: Completing) -> Completions:
        return Completions(values=("a",), total=1000, has_more=True)

    house.has_code(Family.PROMPT, "prompt", lambda context: "x", complete=completes, arguments=[{"name": "a"}])
    house.has_code(Family.TEMPLATE, "pet://{id}", lambda context: "x", complete=knows)

    found = await house.complete("prompt", "a", "v", {"b": "1"})

    assert (len(found.values), found.values[0], found.has_more, found.total) == (100, "v0", True, 250)
    assert (seen[0].argument, seen[0].chosen, seen[0].principal.subject) == ("a", {"b": "1"}, "alice")
    assert await house.complete("pet://{id}", "id", "") == Completions(values=("a",), total=1000, has_more=True)
    assert house.journal.lines[0] == "complete prompt call ok"


async def test_a_completion_without_a_function_has_no_values(house: HandlerBench) -> None:
    """MCP: an argument that does not exist is an invalid parameter (PRM-3)."""
    house.has_code(Family.PROMPT, "prompt", lambda context: "x", arguments=[{"name": "a"}])

    assert await house.complete("prompt", "a", "") == Completions(values=(), total=0)
    with pytest.raises(ArgumentsInvalid):
        await house.complete("prompt", "b", "")


def _states(returned: object) -> Callable[[Completing], object]:
    def completes(completing: Completing) -> object:
        return returned

    return completes


async def test_a_completion_that_hangs_is_stopped(house: HandlerBench) -> None:
    """Ours: suggestions are bounded in time like everything else (CAL-4)."""

    async def hangs(completing: Completing) -> Sequence[str]:
        await anyio.sleep_forever()
        return ()

    house.has_code(
        Family.PROMPT, "prompt", lambda context: "x", timeout_s=0.01, complete=hangs, arguments=[{"name": "a"}]
    )

    with anyio.fail_after(30), pytest.raises(HandlerFailed):
        await house.complete("prompt", "a", "")
    assert house.journal.lines == ["complete prompt call call.handler_failed"]


@pytest.mark.parametrize("returned", ["abc", [1], None, 3])
async def test_a_completion_of_a_wrong_shape_is_a_clean_error(house: HandlerBench, returned: object) -> None:
    """Ours: a text is no list of its letters (CAL-4)."""
    house.has_code(
        Family.PROMPT,
        "prompt",
        lambda context: "x",
        complete=cast("Any", _states(returned)),
        arguments=[{"name": "a"}],
    )

    with pytest.raises(GatewayError, match="did not return a list of values"):
        await house.complete("prompt", "a", "")


@pytest.mark.parametrize(
    "returned",
    [
        Completions(values=cast("Any", (1,))),
        Completions(values=("a",), total=cast("Any", "many")),
    ],
)
async def test_completions_of_a_wrong_shape_are_a_clean_error(house: HandlerBench, returned: Completions) -> None:
    """Ours: a value that is no text, or a number of them, is reported as a wrong shape (CAL-4)."""
    arguments = [{"name": "a"}]
    house.has_code(
        Family.PROMPT, "prompt", lambda context: "x", complete=cast("Any", _states(returned)), arguments=arguments
    )

    with pytest.raises(HandlerFailed, match="the form that the protocol requires"):
        await house.complete("prompt", "a", "")


async def test_a_completion_that_is_no_text_for_json_is_a_clean_error(house: HandlerBench) -> None:
    """Ours: half a surrogate pair cannot be sent (CAL-4)."""
    suggested, arguments = Completions(values=("\ud800",)), [{"name": "a"}]
    house.has_code(
        Family.PROMPT, "prompt", lambda context: "x", complete=cast("Any", _states(suggested)), arguments=arguments
    )

    with pytest.raises(HandlerFailed, match="is not JSON"):
        await house.complete("prompt", "a", "")
