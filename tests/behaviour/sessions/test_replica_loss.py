"""A replica that is killed, ended or frozen: sessions continue elsewhere, and no client waits without end."""

import asyncio
import time

import anyio
import httpx2

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import Events, Wire, call, request
from tests.support.replicas import forget_killed, until


async def _begin(talk: Talk, wire: Wire, events: Events) -> str:
    """Read up to the first progress of a call that then waits; the place."""
    talk.upstream.arrived.clear()
    place = ""
    while True:
        event = await events.next()
        place = event.id or place
        if event.data:
            break
    with anyio.fail_after(10):
        await talk.upstream.arrived.wait()
    del wire
    return place


async def _until_cut(events: Events) -> None:
    try:
        await events.rest()
    except httpx2.HTTPError:
        return


async def test_a_killed_replica_takes_neither_sessions_nor_streams_with_it(talk: Talk) -> None:
    """Ours: the session continues, its stream is resumed, and missed messages are sent (SRV-2, SRV-3)."""
    a, b = talk.replicas.a, talk.replicas.b
    wire = await talk.wire()
    await wire.post(b, request("resources/subscribe", {"uri": "note://1"}))
    async with wire.listening(a) as events:
        await talk.update("note://1", b.gateway)
        seen = [await events.next(), await events.next()]
        a.kill()
        await _until_cut(events)
    await talk.update("note://1", b.gateway)

    async with wire.listening(b, seen[-1].id) as events:
        assert (await events.message())["params"] == {"uri": "note://1"}
    answer = await wire.post(b, call("echo", {"name": "you"}))

    assert answer.json()["result"]["content"][0]["text"] == "hello you"


async def test_a_call_in_flight_ends_with_a_clean_error(talk: Talk) -> None:
    """Ours: a client that resumes the stream of a killed replica learns within 5 s that there is no answer (SRV-3)."""
    a, b = talk.replicas.a, talk.replicas.b
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(a, call("count", request_id="lost", progressToken=1)) as events:
        place = await _begin(talk, wire, events)
        a.kill()
        killed = time.monotonic()
        await _until_cut(events)

    async with wire.listening(b, place) as events:
        reported = [event.message for event in await events.rest(seconds=10) if event.data]
    waited = time.monotonic() - killed
    async with wire.listening(b, place) as events:
        again = [event.message for event in await events.rest(seconds=10) if event.data]

    assert reported[-1]["id"] == "lost"
    assert (reported[-1]["error"]["code"], reported[-1]["error"]["data"]["code"]) == (-32603, "call.replica_lost")
    assert again == reported
    assert waited < 15  # the promise is 5 s; how busy this machine is must not decide


async def test_a_request_id_is_free_again_after_its_replica_is_lost(talk: Talk) -> None:
    """Ours: a lost call does not block its id for ever (SRV-3)."""
    a, b = talk.replicas.a, talk.replicas.b
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(a, call("count", progressToken=1)) as events:
        place = await _begin(talk, wire, events)
        a.kill()
        await _until_cut(events)
    await forget_killed(talk.redis_url)
    async with wire.listening(b, place) as events:
        await events.rest(seconds=10)
    talk.upstream.gate.set()

    async with wire.streaming(b, call("count", progressToken=1)) as events:
        answer = (await events.rest())[-1].message

    assert answer["result"]["content"][0]["text"] == "done"


async def test_a_replica_that_slept_does_not_answer_twice(talk: Talk) -> None:
    """Ours: a call given up for lost stays lost, also when its replica wakes up and finishes it (SRV-3)."""
    a, b = talk.replicas.a, talk.replicas.b
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(a, call("count", progressToken=1)) as events:
        place = await _begin(talk, wire, events)
        a.pause()
        async with wire.listening(b, place) as elsewhere:
            lost = [event.message for event in await elsewhere.rest(seconds=15) if event.data]
        a.resume()
        talk.upstream.gate.set()
        here = [event.message for event in await events.rest() if event.data]

    assert lost[-1]["error"]["data"]["code"] == "call.replica_lost"
    assert here[-1] == lost[-1]


async def test_a_drained_replica_ends_its_streams_properly(talk: Talk) -> None:
    """Ours: on SIGTERM a stream ends, the client goes on elsewhere, and the call in flight finishes (SRV-3)."""
    a, b = talk.replicas.a, talk.replicas.b
    wire = await talk.wire()
    await wire.post(b, request("resources/subscribe", {"uri": "note://1"}))
    talk.upstream.gate = asyncio.Event()
    async with wire.listening(a) as alone, wire.streaming(a, call("wait", progressToken=1)) as events:
        place = (await alone.next()).id
        await _begin(talk, wire, events)
        stopping = asyncio.create_task(a.stop())
        assert await alone.rest() == []
        await talk.update("note://1", b.gateway)
        async with wire.listening(b, place) as again:
            assert (await again.message())["params"] == {"uri": "note://1"}
        talk.upstream.gate.set()
        answer = (await events.rest())[-1].message

    assert answer["result"]["content"][0]["text"] == "done"
    assert await stopping == 0


async def test_a_call_that_outlives_the_drain_reports_it(talk: Talk) -> None:
    """Ours: a client that the end of a replica disconnected finds an answer at another one (SRV-3)."""
    a, b = talk.replicas.a, talk.replicas.b
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    async with wire.streaming(a, call("count", progressToken=1)) as events:
        place = await _begin(talk, wire, events)
        stopping = asyncio.create_task(a.stop())
        await _until_cut(events)
        await stopping

    async with wire.listening(b, place) as events:
        reported = [event.message for event in await events.rest() if event.data]

    assert reported[-1]["error"]["data"]["code"] == "call.replica_lost"


async def test_streams_recover_when_messages_are_lost(talk: Talk) -> None:
    """Ours: pub/sub is a hint; a stream whose subscription broke looks by itself (SRV-2)."""
    wire = await talk.wire()
    await wire.post(talk.replicas.b, request("resources/subscribe", {"uri": "note://1"}))
    async with wire.listening(talk.replicas.b) as events:
        await events.next()
        talk.replicas.b.drop_subscription()
        await talk.update("note://1")
        assert (await events.message())["params"] == {"uri": "note://1"}
        await talk.update("note://1")
        assert (await events.message())["params"] == {"uri": "note://1"}


async def test_an_ended_session_is_noticed_without_a_message(talk: Talk) -> None:
    """Ours: a stream whose session ended without an event ends all the same (RES-6)."""
    wire = await talk.wire()
    async with wire.listening(talk.replicas.b) as events:
        await events.next()
        with talk.replicas.a.muted():
            assert (await wire.delete(talk.replicas.a)).status_code in {200, 503}

            async def is_gone() -> bool:
                return (await wire.post(talk.replicas.b, request("ping"))).status_code == 404

            with talk.replicas.b.hurrying():
                await until(is_gone, seconds=15)
                assert await events.rest(seconds=30) == []
