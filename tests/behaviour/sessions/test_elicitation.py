"""Questions of a call to its client: on its own stream, answered at any replica, once, and not waited for
without end.
"""

import asyncio
from typing import Any, cast

import pytest
from mcp_types import (
    LOG_LEVEL_META_KEY,
    ElicitResult,
    LoggingMessageNotificationParams,
    RequestParamsMeta,
    TextContent,
)

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import call
from tests.support.primitives import add, tool
from tests.support.replicas import Mode

REVISIONS = ("2025-06-18", "2025-11-25")
YES = {"action": "accept", "content": {"confirm": True}}


def _text(answer: dict[str, Any]) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_answer_may_reach_another_replica_than_the_call(talk: Talk, revision: str) -> None:
    """MCP: `elicitation/create` on the request's stream, its answer in a POST of its own (SRV-1)."""
    wire = await talk.wire(revision=revision, elicitation={})

    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        asked = await events.message()
        accepted = await wire.answer(talk.replicas.b, asked, YES)
        answer = await events.message()

    assert asked["method"] == "elicitation/create"
    assert asked["params"]["message"] == "Really?"
    assert asked["params"]["requestedSchema"]["properties"] == {"confirm": {"type": "boolean"}}
    assert asked["params"].get("mode", "form") == "form"
    assert (accepted.status_code, accepted.content) == (202, b"")
    assert _text(answer) == "accept true"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_content_that_does_not_match_the_form_ends_the_call(talk: Talk, mode: Mode) -> None:
    """MCP: content that a user filled in is validated; the handler never sees invalid content (SRV-1, CAL-4)."""
    contents: list[dict[str, Any]] = [{"confirm": "yes"}, {}, {"confirm": True}]

    async def answer(*_: Any) -> ElicitResult:
        return ElicitResult(action="accept", content=contents.pop(0))

    async with talk.replicas.client(talk.slug, talk.key, mode, elicitation_callback=answer) as client:
        wrong, empty, right = [await client.call_tool("danger", {}) for _ in range(3)]

    for refused, place in ((wrong, "/confirm: "), (empty, "/: ")):
        assert refused.is_error
        reported = cast(TextContent, refused.content[0]).text
        assert reported.startswith("the client's response does not match the schema of its form\n" + place)
        assert (refused.meta or {})["gateway/error"]["code"] == "call.client_silent"
    assert cast(TextContent, right.content[0]).text == "accept true"


async def test_a_page_is_opened_where_the_client_can(talk: Talk) -> None:
    """MCP: URL mode needs its own capability (SRV-1)."""
    wire = await talk.wire(elicitation={"form": {}, "url": {}})
    async with wire.streaming(talk.replicas.a, call("page")) as events:
        asked = await events.message()
        await wire.answer(talk.replicas.b, asked, {"action": "accept"})
        answer = await events.message()

    assert (asked["params"]["mode"], asked["params"]["url"]) == ("url", "https://example.com/x")
    assert asked["params"]["elicitationId"]  # 2025-11-25 requires it, and its clients refuse a request without
    assert _text(answer) == "done"


@pytest.mark.parametrize(
    ("name", "capabilities"),
    [("danger", {}), ("page", {"elicitation": {}}), ("sample", {"elicitation": {}}), ("roots", {"sampling": {}})],
)
async def test_a_client_is_asked_only_for_declared_capabilities(
    talk: Talk, name: str, capabilities: dict[str, Any]
) -> None:
    """MCP: only declared capabilities are used; otherwise the call fails with a result that names the missing one
    (SRV-1).
    """
    wire = await talk.wire(**capabilities)

    answer = (await wire.post(talk.replicas.a, call(name))).json()

    assert answer["result"]["isError"]
    assert "did not declare" in _text(answer)


async def test_sampling_and_roots_are_passed_through(talk: Talk) -> None:
    """MCP: both are the client's to answer (SRV-1)."""
    wire = await talk.wire(sampling={}, roots={})
    reported = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"}
    async with wire.streaming(talk.replicas.a, call("sample")) as events:
        asked = await events.message()
        await wire.answer(talk.replicas.b, asked, reported)
        sampled = await events.message()
    async with wire.streaming(talk.replicas.b, call("roots")) as events:
        listing = await events.message()
        await wire.answer(talk.replicas.a, listing, {"roots": [{"uri": "file:///home"}]})
        listed = await events.message()

    assert (asked["method"], asked["params"]["maxTokens"]) == ("sampling/createMessage", 10)
    assert _text(sampled) == "hello"
    assert listing["method"] == "roots/list"
    assert _text(listed) == "file:///home"


async def test_only_the_first_answer_counts(talk: Talk) -> None:
    """Ours: a second answer to the same question has no effect (SRV-2)."""
    wire = await talk.wire(elicitation={})
    async with wire.streaming(talk.replicas.a, call("twice")) as events:
        first = await events.message()
        for action in ("accept", "decline"):
            answer = {"action": action, "content": {"confirm": True}} if action == "accept" else {"action": action}
            assert (await wire.answer(talk.replicas.b, first, answer)).status_code == 202
        second = await events.message()
        await wire.answer(talk.replicas.a, first, {"action": "cancel"})
        await wire.answer(talk.replicas.b, second, {"action": "decline"})
        answered = await events.message()

    assert first["id"] != second["id"]
    assert _text(answered) == "accept decline"


async def test_an_answer_counts_in_its_own_session_only(talk: Talk) -> None:
    """Ours: the id of another session's question does not permit an answer to it (TEN-1, TEN-5)."""
    wire, thief = await talk.wire(elicitation={}), await talk.wire(elicitation={})
    stranger = await talk.wire(key=await talk.gateway.create_key(talk.slug), elicitation={})
    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        asked = await events.message()
        for other in (thief, stranger):
            assert (await other.answer(talk.replicas.b, asked, YES)).status_code == 202
        await wire.answer(talk.replicas.b, asked, {"action": "decline"})
        answer = await events.message()

    assert _text(answer) == "decline "


async def test_a_resumed_stream_brings_the_question_again(talk: Talk) -> None:
    """Ours: a question that was lost with its connection is asked by the stream's continuation (SRV-2)."""
    wire = await talk.wire(elicitation={})
    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        place = (await events.next()).id
        first = await events.message()

    async with wire.listening(talk.replicas.b, place) as events:
        again = await events.message()
        await wire.answer(talk.replicas.b, again, YES)
        answer = await events.message()

    assert again == first
    assert _text(answer) == "accept true"


@pytest.mark.parametrize(
    "reported",
    [{"action": "perhaps"}, {}, {"action": "accept", "content": {"confirm": {"deep": 1}}}],
)
async def test_an_invalid_answer_fails_the_call(talk: Talk, reported: dict[str, Any]) -> None:
    """Ours: a handler never sees something else than what it asked for (SRV-1)."""
    wire = await talk.wire(elicitation={})
    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        await wire.answer(talk.replicas.b, await events.message(), reported)
        answer = await events.message()

    assert "error" in answer or answer["result"]["isError"]


async def test_a_client_that_answers_with_an_error_fails_the_call(talk: Talk) -> None:
    """MCP: a client may refuse a request of the server (SRV-1)."""
    wire = await talk.wire(elicitation={})
    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        asked = await events.message()
        refused = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "User rejected"}}
        assert (await wire.post(talk.replicas.b, refused)).status_code == 202
        answer = await events.message()

    assert "error" in answer or answer["result"]["isError"]


async def test_an_answer_is_found_when_its_message_is_lost(talk: Talk) -> None:
    """Ours: the answer is stored, so that a lost hint only delays it (SRV-2)."""
    wire = await talk.wire(elicitation={})
    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        asked = await events.message()
        with talk.replicas.b.muted():
            assert (await wire.answer(talk.replicas.b, asked, YES)).status_code == 202
            answer = await events.message()

    assert _text(answer) == "accept true"


async def test_a_call_that_is_cancelled_takes_its_question_back(talk: Talk) -> None:
    """MCP: the server cancels its request when its caller no longer waits (SRV-1)."""
    wire = await talk.wire(elicitation={})
    async with wire.streaming(talk.replicas.a, call("danger")) as events:
        asked = await events.message()
        await wire.notify(talk.replicas.b, "notifications/cancelled", {"requestId": 1})
        reported = [event.message for event in await events.rest()]

    assert [each["method"] for each in reported] == ["notifications/cancelled"]
    assert reported[0]["params"]["requestId"] == asked["id"]


async def test_a_call_can_be_cancelled_at_any_replica(own_talk: Talk) -> None:
    """MCP: `notifications/cancelled` stops the call, wherever it runs; its stream ends without an answer (SRV-1)."""
    wire = await own_talk.wire()
    own_talk.upstream.gate = asyncio.Event()
    async with wire.streaming(own_talk.replicas.a, call("wait", request_id="w", progressToken=1)) as events:
        last = next(event for event in [await events.next(), await events.next()] if event.data)
        await wire.notify(own_talk.replicas.b, "notifications/cancelled", {"requestId": "w", "reason": "enough"})
        assert await events.rest() == []
    tried = own_talk.gateway.admin.get(f"/tenants/{own_talk.slug}/audit", params={"limit": 50})

    async with wire.listening(own_talk.replicas.b, last.id) as again:
        assert again.response.status_code == 204  # a client that comes back comes back no more
    outcomes = [(entry.get("target"), entry.get("outcome")) for entry in (await tried).json()["items"]]
    assert any(outcome == "cancelled" for _, outcome in outcomes), outcomes


async def test_a_plain_call_can_be_cancelled_too(talk: Talk) -> None:
    """MCP: also one that streams nothing; its response is an event stream without events (SRV-1)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()

    async def cancel() -> None:
        await talk.upstream.arrived.wait()
        await wire.notify(talk.replicas.b, "notifications/cancelled", {"requestId": 1})

    cancelling = asyncio.create_task(cancel())
    answer = await wire.post(talk.replicas.a, call("get_pet", {"id": 7}))
    await cancelling

    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "text/event-stream", b"")
    again = await wire.post(talk.replicas.a, call("echo", {"name": "you"}))
    assert _text(again.json()) == "hello you"  # its id is free


async def test_cancelling_an_ended_request_does_nothing(talk: Talk) -> None:
    """MCP: a cancellation that comes too late, names nothing or another session's request is ignored (SRV-1)."""
    wire, other = await talk.wire(), await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(talk.replicas.a, call("wait", progressToken=1)) as events:
        await events.message()
        for params in ({"requestId": 99}, {"requestId": "1"}, {"requestId": [1]}, {}):
            await wire.notify(talk.replicas.b, "notifications/cancelled", params)
        await other.notify(talk.replicas.b, "notifications/cancelled", {"requestId": 1})
        await other.notify(talk.replicas.a, "notifications/cancelled", {"requestId": 1})
        talk.upstream.gate.set()
        answer = (await events.rest())[-1].message

    assert _text(answer) == "done"


async def test_the_log_level_is_the_sessions_and_holds_everywhere(talk: Talk) -> None:
    """MCP: `logging/setLevel` decides what is sent; before it everything is (SRV-1)."""
    wire = await talk.wire()

    async def levels() -> list[str]:
        async with wire.streaming(talk.replicas.a, call("chatter")) as events:
            reported = [event.message for event in await events.rest() if event.data]
        return [each["params"]["level"] for each in reported if each.get("method") == "notifications/message"]

    assert await levels() == ["debug", "error"]
    body = {"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel", "params": {"level": "warning"}}
    assert (await wire.post(talk.replicas.b, body)).json()["result"] == {}
    assert await levels() == ["error"]
    body["params"] = {"level": "loudest"}
    assert (await wire.post(talk.replicas.b, body)).json()["error"]["code"] == -32602


async def test_pings_go_both_ways(talk: Talk) -> None:
    """MCP: a ping is answered at once; an answer to an expired ping of ours is accepted (SRV-1)."""
    wire = await talk.wire()

    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    assert (await wire.post(talk.replicas.b, ping)).json() == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert (await wire.answer(talk.replicas.a, {"id": "unasked"}, {})).status_code == 202


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_notifications_of_a_call_are_throttled(own_talk: Talk, mode: Mode) -> None:
    """Ours: in both eras the newest of its progress is sent, and the number of suppressed log messages (TEN-5,
    SRV-1).
    """
    lines, last = 69, 30
    steps: list[dict[str, Any]] = [{"log": {"level": "error", "data": f"line {n}"}} for n in range(lines)]
    steps += [{"progress": {"progress": n, "total": last}} for n in range(1, last + 1)]
    flood = {"kind": "steps", "steps": [*steps, {"return": {"text": "done"}}]}
    await add(own_talk.gateway, own_talk.slug, "tools", tool("flood", flood, safety="safe"))
    notified: list[float] = []
    logged: list[Any] = []

    async def receive(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        notified.append(progress)

    async def note(params: LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    meta = cast(RequestParamsMeta, {LOG_LEVEL_META_KEY: "debug"} if mode == "2026-07-28" else {})
    async with own_talk.replicas.client(own_talk.slug, own_talk.key, mode, logging_callback=note) as client:
        answer = await client.call_tool("flood", {}, progress_callback=receive, meta=meta)

    assert not answer.is_error
    assert notified == sorted(notified)
    assert notified[-1] == last
    notes = [reported for reported in logged if "were dropped" in reported]
    dropped = sum(int(reported.split()[0]) for reported in notes)
    assert len(logged) - len(notes) + dropped == lines
