"""Streams of sessions: begun with the first message, resumed anywhere, each event once, one reader at a time."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import Events, Wire, call, request

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")


def _progress(messages: list[dict[str, Any]]) -> list[Any]:
    return [
        reported["params"]["progress"] for reported in messages if reported.get("method") == "notifications/progress"
    ]


async def _arrived(talk: Talk) -> None:
    with anyio.fail_after(10):
        await talk.upstream.arrived.wait()


async def test_a_fast_answer_is_json(talk: Talk) -> None:
    """MCP: the server chooses; an immediate answer needs no stream (SRV-1)."""
    wire = await talk.wire()

    answer = await wire.post(talk.replicas.b, call("echo", {"name": "you"}))

    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["content"][0]["text"] == "hello you"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_messages_before_the_answer_begin_a_stream(talk: Talk, revision: str) -> None:
    """MCP: progress rides on the request's own stream; content-free events only where they exist (SRV-1)."""
    wire = await talk.wire(revision=revision)

    async with wire.streaming(talk.replicas.b, call("count", request_id="c", progressToken="p")) as events:
        headers = events.response.headers
        seen = await events.rest()

    assert headers["content-type"] == "text/event-stream"
    assert headers["x-accel-buffering"] == "no"
    assert "no-cache" in headers["cache-control"]
    assert headers["mcp-session-id"] == wire.session
    primed = [event for event in seen if not event.data]
    assert len(primed) == (1 if revision == "2025-11-25" else 0)
    assert all(event.retry is not None and event is seen[0] for event in primed)
    reported = [event.message for event in seen if event.data]
    assert _progress(reported) == [1, 2, 3, 4, 5, 6]
    assert all(each["params"]["progressToken"] == "p" for each in reported[:-1])
    assert (reported[-1]["id"], reported[-1]["result"]["content"][0]["text"]) == ("c", "done")
    ids = [event.id for event in seen]
    assert len(set(ids)) == len(ids)
    assert None not in ids


async def test_without_a_token_there_is_no_progress_and_no_stream(talk: Talk) -> None:
    """MCP: progress is sent to the client that requested it (SRV-1)."""
    wire = await talk.wire()

    answer = await wire.post(talk.replicas.a, call("count"))

    assert answer.json()["result"]["content"][0]["text"] == "done"


@asynccontextmanager
async def _deferred(talk: Talk, wire: Wire, body: dict[str, Any]) -> AsyncGenerator[Events]:
    """The stream that a call at the first replica becomes when its answer takes long."""
    async with AsyncExitStack() as stack:
        with talk.replicas.a.hurrying():
            events = await stack.enter_async_context(wire.streaming(talk.replicas.a, body))
        yield events


@pytest.mark.parametrize("name", ["silent", "get_pet"])
async def test_an_answer_that_takes_long_becomes_a_stream(talk: Talk, name: str) -> None:
    """Ours: after two seconds the client gets a stream that it can come back to (SRV-2)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()

    async with _deferred(talk, wire, call(name, {"id": 7} if name == "get_pet" else {})) as events:
        primer = await events.next()
        assert (primer.data, primer.id is not None) == ("", True)
        talk.upstream.gate.set()
        answer = await events.message()

    assert answer["id"] == 1
    assert not answer["result"].get("isError")


async def test_a_stream_that_broke_is_resumed_at_the_other_replica(talk: Talk) -> None:
    """MCP: with Last-Event-ID a client gets what it missed, once, while the call goes on elsewhere (SRV-2)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    seen: list[dict[str, Any]] = []
    last: str | None = None
    async with wire.streaming(talk.replicas.a, call("count", progressToken=1)) as events:
        while len(seen) < 2:
            event = await events.next()
            last = event.id
            if event.data:
                seen.append(event.message)
    await _arrived(talk)

    async with wire.listening(talk.replicas.b, last) as events:
        seen.append(await events.message())
        talk.upstream.gate.set()
        seen += [event.message for event in await events.rest()]

    assert _progress(seen) == [1, 2, 3, 4, 5, 6]
    assert seen[-1]["result"]["content"][0]["text"] == "done"


async def test_a_finished_stream_can_be_read_again_from_any_place(talk: Talk) -> None:
    """MCP: resumption replays what came after the named event, nothing else (SRV-2)."""
    wire = await talk.wire()
    async with wire.streaming(talk.replicas.a, call("count", progressToken=1)) as events:
        seen = await events.rest()

    for place in (0, 3, len(seen) - 1):
        async with wire.listening(talk.replicas.b, seen[place].id) as events:
            assert await events.rest() == seen[place + 1 :]


async def test_a_disconnect_is_no_cancellation(talk: Talk) -> None:
    """MCP: in this era the call goes on, and its answer is there when the client comes back (SRV-2)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(talk.replicas.a, call("wait", progressToken=1)) as events:
        last = (await events.next()).id
    await _arrived(talk)
    talk.upstream.gate.set()

    async with wire.listening(talk.replicas.b, last) as events:
        answers = [event.message for event in await events.rest()]

    assert answers[-1]["result"]["content"][0]["text"] == "done"


async def test_streams_run_beside_each_other(talk: Talk) -> None:
    """MCP: each message is on one stream only, however many are open (SRV-1)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    found: dict[str, list[dict[str, Any]]] = {}

    async def run(name: str, number: int) -> None:
        at = talk.replicas.all[number % 2]
        async with wire.streaming(at, call("count", request_id=name, progressToken=name)) as events:
            found[name] = [await events.message() for _ in range(3)]
            if len(found) == 4 and talk.upstream.gate is not None:
                talk.upstream.gate.set()
            found[name] += [event.message for event in await events.rest()]

    async with wire.listening(talk.replicas.b) as alone, anyio.create_task_group() as group:
        await alone.next()
        for number, name in enumerate(("w", "x", "y", "z")):
            group.start_soon(run, name, number)

    for name, reported in found.items():
        assert _progress(reported) == [1, 2, 3, 4, 5, 6]
        assert {each["params"]["progressToken"] for each in reported[:-1]} == {name}
        assert reported[-1]["id"] == name


async def test_a_result_larger_than_an_entry_is_not_lost(talk: Talk) -> None:
    """Ours: a large answer comes whole, also over a resumed stream (SRV-2)."""
    wire = await talk.wire()
    large = "ünï\u2028 " * 10_000
    talk.upstream.gate = asyncio.Event()
    talk.upstream.body = b'{"text":"' + large.encode() + b'"}'
    try:
        async with _deferred(talk, wire, call("get_pet", {"id": 7})) as events:
            last = (await events.next()).id
        talk.upstream.gate.set()
        async with wire.listening(talk.replicas.b, last) as events:
            answer = await events.message()
            assert await events.rest() == []
    finally:
        talk.upstream.body = b'{"ok":true}'

    assert large in answer["result"]["content"][0]["text"]


async def test_the_newest_stream_is_the_one_that_is_served(talk: Talk) -> None:
    """Ours: a client that opens its stream again, anywhere, ends the old one properly (SRV-2)."""
    wire = await talk.wire()
    async with wire.listening(talk.replicas.a) as old:
        await old.next()
        async with wire.listening(talk.replicas.b) as new:
            await new.next()
            assert await old.rest() == []
            await wire.post(talk.replicas.a, request("resources/subscribe", {"uri": "note://1"}))
            await talk.update("note://1")
            assert (await new.message())["params"] == {"uri": "note://1"}


@pytest.mark.parametrize(
    "place",
    [
        "x",
        "g/1",
        "g/1-1",
        "r123456789/1",
        "r123456789/1-1/3",
        "../g/1-1/1",
        "g/1-1/1/",
        "g/99999999999999999999-0/1",
        "r123456789/18446744073709551615-18446744073709551615",
    ],
)
async def test_a_place_that_is_none_is_refused(talk: Talk, place: str) -> None:
    """Ours: an event id that was never ours, or that no entry can have, is no place and no stream (TEN-5)."""
    wire = await talk.wire()

    async with wire.listening(talk.replicas.a, place) as events:
        refused = json.loads(await events.response.aread())

    assert (events.response.status_code, refused["error"]["code"]) == (400, -32600)


async def test_a_stream_that_never_was_ends_at_once(talk: Talk) -> None:
    """Ours: a client that resumes an empty stream does not wait without end (SRV-2)."""
    wire = await talk.wire()

    async with wire.listening(talk.replicas.a, "rabcdefgh12345678/1-1") as events:
        assert (events.response.status_code, await events.rest()) == (204, [])


async def test_a_client_without_event_streams_gets_none(talk: Talk) -> None:
    """MCP: GET needs `text/event-stream` in Accept, and a session (SRV-1)."""
    wire = await talk.wire()

    async with wire.listening(talk.replicas.a, accept="application/json") as events:
        assert events.response.status_code == 406
    wire.session = ""
    async with wire.listening(talk.replicas.a) as events:
        assert events.response.status_code == 400


async def test_a_request_id_in_use_is_refused(talk: Talk) -> None:
    """Ours: two running requests of one id cannot be distinguished, so the second is refused, anywhere (SRV-1)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(talk.replicas.a, call("wait", progressToken=1)) as events:
        await events.message()
        here = await wire.post(talk.replicas.a, call("echo", {"name": "x"}))
        there = await wire.post(talk.replicas.b, call("wait", progressToken=2))
        other = await wire.post(talk.replicas.a, call("echo", {"name": "x"}, request_id="1"))
        talk.upstream.gate.set()
        await events.rest()

    assert [answer.status_code for answer in (here, there, other)] == [400, 400, 200]
    assert here.json()["error"]["code"] == -32600
    again = await wire.post(talk.replicas.b, call("echo", {"name": "x"}))
    assert again.status_code == 200


async def test_a_stream_is_another_sessions_own_business(talk: Talk) -> None:
    """Ours: the place of one session's stream leads nowhere in another, nor for another key (TEN-1, TEN-5)."""
    wire, other = await talk.wire(), await talk.wire()
    stranger = await talk.gateway.create_key(talk.slug)
    async with wire.streaming(talk.replicas.a, call("count", progressToken=1)) as events:
        seen = await events.rest()

    async with other.listening(talk.replicas.b, seen[0].id) as events:
        assert await events.rest() == []
    thief = Wire(talk.replicas, talk.slug, stranger, session=wire.session)
    talk.stack.push_async_callback(thief.close)
    async with thief.listening(talk.replicas.b, seen[0].id) as events:
        assert events.response.status_code == 404
    async with thief.listening(talk.replicas.b) as events:
        assert events.response.status_code == 404


async def test_a_client_without_streams_gets_its_answer_as_json(talk: Talk) -> None:
    """Ours: an Accept header without `text/event-stream` is kept to, at the price of progress and questions (CAL-5)."""
    wire = await talk.wire(elicitation={})

    counted = await wire.post(talk.replicas.a, call("count", progressToken=1), accept="application/json")
    asked = await wire.post(talk.replicas.a, call("danger"), accept="application/json")

    assert counted.headers["content-type"] == "application/json"
    assert counted.json()["result"]["content"][0]["text"] == "done"
    assert "accepts no stream" in asked.text
