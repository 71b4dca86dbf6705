"""Redis or PostgreSQL away for a while: what goes on, what is refused, and how soon all is well again."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any

import anyio
import httpx
import httpx2
import pytest

from tests.support.events import Wire, request
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.history import History, end_server, running_history
from tests.support.replicas import URL, Replica, grant_redis, until

SLUG = "acme"
BACK_S = 5.0
"""Time after its return until everything is as before (R7, R8); tests wait several times as long."""

_FORGOTTEN_S = 6.0
"""After this long nothing is taken for known without asking; what is kept for an outage lasts ten times as long."""


@pytest.fixture(scope="module")
async def world() -> AsyncGenerator[History]:
    """Two replicas over servers that may be taken away."""
    async with running_history(1) as history:
        yield history


async def _call(world: History, tool: str, number: int) -> httpx.Response:
    """A call in 2026-07-28 at each replica in turn."""
    gateway = world.replicas.all[number % 2].gateway
    return await gateway.rpc(SLUG, world.keys[SLUG], "tools/call", {"name": tool, "arguments": {"id": number}})


def _is_ok(answer: httpx.Response) -> bool:
    reported = answer.json()
    return answer.status_code == 200 and "result" in reported and reported["result"].get("isError") is not True


async def _is_ready(replica: Replica) -> bool:
    return (await replica.gateway.http.get("/readyz")).status_code == 200


async def _messages(answer: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            message: dict[str, Any] = json.loads(line[5:])
            yield message


async def test_redis_away_costs_sessions_only(world: History) -> None:
    """Ours: calls of 2026-07-28 and lists continue, sessions wait, listeners are notified to read again (SRV-4,
    RES-4).
    """
    wire = Wire(world.replicas, SLUG, world.keys[SLUG])
    await wire.initialize(world.replicas.a)
    headers = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen"}
    wanted = {"toolsListChanged": True, "resourceSubscriptions": [f"note://{SLUG}"]}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {"notifications": wanted, "_meta": META},
    }
    async with (
        world.replicas.http(world.keys[SLUG], to=world.replicas.b) as http,
        http.stream("POST", f"{URL}/t/{SLUG}/mcp", json=body, headers=headers) as listening,
    ):
        messages = _messages(listening)
        await anext(messages)
        end_server(world.servers["redis"])
        try:
            calls = [await _call(world, ("look", "act")[number % 2], 1000 + number) for number in range(40)]
            listed = await world.replicas.b.gateway.rpc(SLUG, world.keys[SLUG], "tools/list")
            session = await wire.post(world.replicas.b, request("tools/list"))
        finally:
            await world.servers["redis"].revive()
            grant_redis(world.redis_url, [replica.redis_user for replica in world.replicas.all])
        with anyio.fail_after(BACK_S * 6):
            notified = {(await anext(messages))["method"] for _ in range(2)}

    assert [answer.text for answer in calls if not _is_ok(answer)] == []
    assert listed.status_code == 200
    assert (session.status_code, "retry-after" in session.headers) == (503, True)
    assert notified == {"notifications/tools/list_changed", "notifications/resources/updated"}
    assert (await wire.post(world.replicas.b, request("tools/list"))).status_code == 200
    await wire.close()


async def test_postgresql_away_refuses_changes(world: History) -> None:
    """Ours: reads continue and are recorded afterwards; other calls are refused at once (SRV-4)."""
    for replica in world.replicas.all:  # what is kept of keys is dropped once the bus is back, so it has to be back
        await until(partial(_is_ready, replica), seconds=30)
    for number in range(4):
        assert _is_ok(await _call(world, "look", 2000 + number))
    end_server(world.servers["postgres"])
    try:
        reads = [await _call(world, "look", 2100 + number) for number in range(12)]
        await anyio.sleep(_FORGOTTEN_S)
        reads += [await _call(world, "look", 2150 + number) for number in range(4)]
        acts = [await _call(world, "act", 2200 + number) for number in range(4)]
        changed = await world.replicas.a.gateway.admin.post("/tenants", json={"slug": "late"})
    finally:
        await world.servers["postgres"].revive()

    async def is_back() -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return _is_ok(await _call(world, "act", 2300)) and _is_ok(await _call(world, "act", 2301))
        return False

    await until(is_back, seconds=BACK_S * 6)

    async def is_recorded() -> bool:
        answer = await world.replicas.a.gateway.admin.get(f"/tenants/{SLUG}/audit?kind=call&tool=look&limit=200")
        ids = {each["correlation_id"] for each in answer.json()["items"] if each["outcome"] == "ok"}
        return {each.headers["x-request-id"] for each in reads} <= ids

    assert [answer.text for answer in reads if not _is_ok(answer)] == []
    assert {answer.json()["error"]["code"] for answer in acts} == {50300}
    assert not any(_is_ok(answer) for answer in acts)
    assert changed.status_code == 503
    assert not [one for one in world.upstream.seen if one.method == "POST" and 2200 <= one.id < 2300]
    await until(is_recorded, seconds=BACK_S * 6)
