"""Pings of the server: a client that answers keeps its stream, one that does not loses it, whichever replica receives
the answer.
"""

from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
from mcp import Client

from tests.behaviour.sessions.conftest import IDLE_S, Talk
from tests.support.events import Event, Events, Wire, call
from tests.support.gateway import ACCEPT
from tests.support.replicas import commanding, until

PING_S = IDLE_S / 3
"""Seconds without a message after which a stream sends a ping."""

PATIENCE_S = 60.0


@pytest.fixture
def talk(impatient_talk: Talk) -> Talk:
    """At replicas that are impatient with quiet streams."""
    return impatient_talk


async def _ping(talk: Talk, events: Events) -> Event:
    """The next ping on a stream of the first replica, which is due by now."""
    talk.replicas.a.advance(PING_S)
    while True:
        event = await events.next(seconds=PATIENCE_S)
        if event.data:
            assert event.message == {"jsonrpc": "2.0", "id": event.message["id"], "method": "ping"}
            assert event.id is None, "a place to come back to"
            return event


def _fields(talk: Talk, session: str, prefix: bytes) -> set[bytes]:
    """Redis fields of a session's questions: `q:` and the name of each, `a:` and the name of each answered one."""
    states = talk.stored(f"*:s:{session}:state")
    with commanding(talk.redis_url) as command:
        names = [name for state in states for name in cast(list[bytes], command("HKEYS", state))]
    return {name for name in names if name.startswith(prefix)}


async def test_an_answer_keeps_the_stream_wherever_it_arrives(talk: Talk) -> None:
    """MCP: a ping is answered, with whatever; ours: at any replica (SRV-1, SRV-2)."""
    wire = await talk.wire()
    names: set[str] = set()
    async with wire.listening(talk.replicas.a) as events:
        await events.next()
        for at in (talk.replicas.b, talk.replicas.a, talk.replicas.b):
            ping = (await _ping(talk, events)).message
            names.add(ping["id"])
            assert (await wire.answer(at, ping, {})).status_code == 202
        refused = {
            "jsonrpc": "2.0",
            "id": (await _ping(talk, events)).message["id"],
            "error": {"code": -32601, "message": "?"},
        }
        assert (await wire.post(talk.replicas.b, refused)).status_code == 202
        names.add((await _ping(talk, events)).message["id"])

    assert len(names) == 4
    assert all(len(name) >= 16 for name in names)


async def test_a_client_without_pongs_loses_the_stream_and_not_the_session(talk: Talk) -> None:
    """Ours: the stream of a client that is gone ends properly; old pings are not sent again (SRV-2, TEN-5)."""
    wire, other = await talk.wire(), await talk.wire()
    async with wire.listening(talk.replicas.a) as events:
        place = (await events.next()).id
        pings: list[str] = []
        for _ in range(2):
            ping = (await _ping(talk, events)).message
            pings.append(ping["id"])
            await wire.post(talk.replicas.b, call("echo", {"name": "x"}))
            assert (await other.answer(talk.replicas.b, ping, {})).status_code == 202, "counts in its own session only"
        with talk.replicas.a.hurrying():
            assert await events.rest(seconds=PATIENCE_S) == []

    async def is_tidy() -> bool:
        return _fields(talk, wire.session, b"q:") == set()

    await until(is_tidy)
    late: dict[str, Any] = {"jsonrpc": "2.0", "id": pings[-1], "result": {}}
    assert (await wire.post(talk.replicas.b, late)).status_code == 202
    async with wire.listening(talk.replicas.a, place) as events:
        fresh = (await _ping(talk, events)).message
    assert fresh["id"] not in pings


async def test_the_sdks_client_keeps_its_stream(talk: Talk) -> None:
    """MCP: the SDK's client answers by itself, at whatever replica comes next (SRV-1)."""
    async with talk.replicas.client(talk.slug, talk.key, "legacy") as client:
        await _receive_pings(talk, 4)
        opened = [method for _, method in talk.replicas.turns].count("GET")
        await client.call_tool("echo", {"name": "x"})

    assert opened == 1


async def test_the_sdks_client_of_the_old_transport_keeps_its_stream(talk: Talk) -> None:
    """MCP: the same over HTTP+SSE, whose session ends with its stream (SRV-1)."""
    async with talk.old_client(stream=talk.replicas.a, messages=talk.replicas.b) as client:
        await _receive_pings(talk, 4)
        await _echo(client)


async def test_an_old_stream_that_answers_no_ping_ends_with_its_session(talk: Talk) -> None:
    """Ours: a session of HTTP+SSE is its stream, so nothing stays of it (RES-6, SRV-2)."""
    wire = Wire(talk.replicas, talk.slug, talk.key)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(wire.close)
        client = wire.client(talk.replicas.a)
        opening = client.stream("GET", f"/t/{talk.slug}/sse", headers={"accept": "text/event-stream"})
        events = Events(await stack.enter_async_context(opening))
        path = (await events.next()).data
        with talk.replicas.a.hurrying():
            reported = [event.message["method"] for event in await events.rest(seconds=PATIENCE_S)]
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

        async def is_gone() -> bool:
            answer = await client.post(path, json=ping, headers={"accept": ACCEPT})
            assert answer.status_code in (202, 404)
            return answer.status_code == 404

        assert reported == ["ping", "ping"]
        await until(is_gone, seconds=PATIENCE_S)  # the stream ends a moment before its session


async def _receive_pings(talk: Talk, count: int) -> None:
    """Let time pass until the one session with a stream has answered so many pings."""
    old, seen = _fields(talk, "*", b"a:"), set[bytes]()

    async def is_another() -> bool:
        fresh = _fields(talk, "*", b"a:") - old - seen
        seen.update(fresh)
        return bool(fresh)

    for _ in range(count):
        for replica in talk.replicas.all:
            replica.advance(PING_S)
        await until(is_another, seconds=PATIENCE_S)


async def _echo(client: Client) -> None:
    answer = await client.call_tool("echo", {"name": "x"})
    assert not answer.is_error
