"""Redis is away for a while: impossible requests are refused with a hint, begun ones are finished, streams continue."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.behaviour.sessions.conftest import furnish
from tests.integration.redis.conftest import OwnRedis
from tests.support.events import Events, call
from tests.support.gateway import ACCEPT, RunningGateway, running_gateway
from tests.support.replicas import until
from tests.support.servers import TestServers
from tests.support.serving import NO_TLS
from tests.support.upstream import RecordingUpstream, recording_upstream


@dataclass(frozen=True, slots=True)
class Acme:
    """A gateway whose Redis can be frozen, and a session of its tenant."""

    gateway: RunningGateway
    redis: OwnRedis
    upstream: RecordingUpstream
    headers: dict[str, str]

    def client(self) -> httpx2.AsyncClient:
        """A client of the session."""
        return httpx2.AsyncClient(
            verify=NO_TLS, base_url=self.gateway.url, headers=self.headers, timeout=20, trust_env=False
        )


@dataclass(frozen=True, slots=True)
class World:
    """A gateway whose Redis can be frozen, for all tests."""

    gateway: RunningGateway
    redis: OwnRedis
    upstream: RecordingUpstream


@pytest.fixture(scope="module")
async def world(servers: TestServers) -> AsyncGenerator[World]:
    with tempfile.TemporaryDirectory(prefix="gwr-") as folder, servers.database() as database:
        redis = OwnRedis(Path(folder))
        await redis.start()
        try:
            async with (
                recording_upstream() as upstream,
                running_gateway(database.app_url, redis.url, egress_allow=[upstream.authority]) as gateway,
            ):
                await furnish(gateway, "acme", upstream, ("wait",))
                yield World(gateway, redis, upstream)
        finally:
            redis.kill()


@pytest.fixture
async def acme(world: World) -> Acme:
    world.upstream.arrived.clear()
    gateway = world.gateway
    headers = {"authorization": f"Bearer {await gateway.create_key('acme')}", "accept": ACCEPT}
    params: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    opened = await gateway.http.post("/t/acme/mcp", json=body, headers=headers)
    headers["mcp-session-id"] = opened.headers["mcp-session-id"]
    return Acme(gateway, world.redis, world.upstream, headers)


async def test_a_session_is_refused_with_a_hint_and_continues_afterwards(acme: Acme) -> None:
    """Ours: without Redis no session is known: 503 with a retry hint, then it works as before (SRV-4)."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with acme.client() as client:
        acme.redis.freeze()

        async def is_refused() -> bool:
            answer = await client.post("/t/acme/mcp", json=ping)
            return answer.status_code == 503 and int(answer.headers["retry-after"]) > 0

        await until(is_refused, seconds=15)
        acme.redis.thaw()

        async def is_served() -> bool:
            return (await client.post("/t/acme/mcp", json=ping)).status_code == 200

        await until(is_served, seconds=10)


async def test_an_answer_that_cannot_be_written_down_is_sent_all_the_same(acme: Acme) -> None:
    """Ours: a connected client has its answer, and the entry is written when that is possible again (SRV-4)."""
    acme.upstream.gate = asyncio.Event()
    async with acme.client() as client:
        async with client.stream("POST", "/t/acme/mcp", json=call("wait", progressToken=1)) as response:
            events = Events(response)
            place = (await events.next()).id
            await events.message()
            with anyio.fail_after(10):
                await acme.upstream.arrived.wait()
            acme.redis.freeze()
            acme.upstream.gate.set()
            answer = await events.message()
            assert await events.rest() == []
        acme.redis.thaw()

        async def is_kept() -> bool:
            headers = {"last-event-id": place or "", "accept": "text/event-stream"}
            async with client.stream("GET", "/t/acme/mcp", headers=headers) as response:
                if response.status_code != 200:
                    return False
                again = Events(response)
                await again.message()
                return await again.message() == answer

        await until(is_kept, seconds=20)

    assert answer["result"]["content"][0]["text"] == "done"


async def test_a_stream_outlives_the_absence_of_redis(acme: Acme) -> None:
    """Ours: an open stream waits and goes on with what comes afterwards (SRV-4)."""
    async with acme.client() as client:
        subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "note://1"}}
        assert (await client.post("/t/acme/mcp", json=subscribe)).status_code == 200
        async with client.stream("GET", "/t/acme/mcp") as response:
            events = Events(response)
            await events.next()
            acme.redis.freeze()
            refused = await acme.gateway.admin.post("/tenants/acme/resources/updated", json={"uri": "note://1"})
            acme.redis.thaw()

            async def is_accepted() -> bool:
                body = {"uri": "note://1"}
                return (await acme.gateway.admin.post("/tenants/acme/resources/updated", json=body)).status_code == 202

            await until(is_accepted, seconds=10)
            assert (await events.message())["params"] == {"uri": "note://1"}

    assert refused.status_code == 503
