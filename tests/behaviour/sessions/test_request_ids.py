"""Request ids of a session: one that is in use is refused, also at a replica that does not run the request."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import Events, Wire, call
from tests.support.gateway import ACCEPT
from tests.support.replicas import Replica, commanding, forget_killed, until

JSON = "application/json"
"""Accept header of a client that takes no stream, so that its request never becomes one."""


def _is_claimed(talk: Talk, session: str) -> bool:
    states = talk.stored(f"*:s:{session}:state")
    with commanding(talk.redis_url) as command:
        return any(command("HEXISTS", state, "id:1") for state in states)


@asynccontextmanager
async def _running(talk: Talk, wire: Wire, at: Replica) -> AsyncGenerator["asyncio.Task[httpx2.Response]"]:
    """A silent call of id 1 that goes on until the upstream's gate is opened."""
    talk.upstream.gate = asyncio.Event()
    running = asyncio.create_task(wire.post(at, call("silent"), accept=JSON))
    try:
        with anyio.fail_after(20):
            await talk.upstream.arrived.wait()

        async def is_claimed() -> bool:
            return _is_claimed(talk, wire.session)

        await until(is_claimed, seconds=20)
        yield running
    finally:
        talk.upstream.gate.set()
        running.cancel()


async def test_an_id_in_use_elsewhere_is_refused_before_there_is_a_stream(talk: Talk) -> None:
    """Ours: a short request keeps its id from the other replica, and releases it with its answer (SRV-2)."""
    a, b = talk.replicas.all
    wire, other = await talk.wire(), await talk.wire()
    async with _running(talk, wire, a) as running:
        silent = await wire.post(b, call("silent"), accept=JSON)
        telling = await wire.post(b, call("wait", progressToken=1))
        assert talk.upstream.gate is not None
        talk.upstream.gate.set()
        elsewhere = await other.post(b, call("echo", {"name": "x"}))
        answer = await running
        assert not _is_claimed(talk, wire.session)
        again = await wire.post(b, call("wait", progressToken=1))

    assert [refused.status_code for refused in (silent, telling)] == [400, 400]
    assert silent.json()["error"]["code"] == telling.json()["error"]["code"] == -32600
    assert silent.json()["error"]["message"] == "a request with this id is running"
    assert elsewhere.status_code == 200
    assert answer.json()["result"]["content"][0]["text"] == "done"
    assert again.status_code == 200


async def test_a_killed_replica_keeps_no_ids(talk: Talk) -> None:
    """Ours: a claim of a replica that is gone is free (SRV-2, SRV-3)."""
    a, b = talk.replicas.all
    wire = await talk.wire()
    async with _running(talk, wire, a) as running:
        a.kill()
        await asyncio.wait([running])
        assert _is_claimed(talk, wire.session)
        assert talk.upstream.gate is not None
        talk.upstream.gate.set()
        await forget_killed(talk.redis_url)

        async def is_free() -> bool:
            answer = await wire.post(b, call("wait", progressToken=1))
            return answer.status_code == 200

        await until(is_free, seconds=20)


async def test_a_session_of_the_old_transport_has_each_id_once_too(talk: Talk) -> None:
    """Ours: over HTTP+SSE the refusal comes on the stream, without the id, which is the other request's (SRV-2)."""
    a, b = talk.replicas.all
    wire = Wire(talk.replicas, talk.slug, talk.key)
    talk.stack.push_async_callback(wire.close)
    opening = wire.client(a).stream("GET", f"/t/{talk.slug}/sse", headers={"accept": "text/event-stream"})
    events = Events(await talk.stack.enter_async_context(opening))
    path = (await events.next()).data
    session = path.partition("session_id=")[2]

    async def post(at: Replica, body: dict[str, Any]) -> None:
        answer = await wire.client(at).post(path, json=body, headers={"accept": ACCEPT})
        assert answer.status_code == 202, answer.text

    client = {"name": "t", "version": "1"}
    begin = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client}
    await post(a, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin})
    assert (await events.message())["id"] == 0
    talk.upstream.gate = asyncio.Event()
    await post(a, call("silent"))

    async def is_claimed() -> bool:
        return _is_claimed(talk, session)

    await until(is_claimed, seconds=20)
    await post(b, call("silent"))
    refused = await events.message()
    talk.upstream.gate.set()
    answer = await events.message()

    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, "done")
    assert not _is_claimed(talk, session)
