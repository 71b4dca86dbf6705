"""Whatever mix of streams, calls, questions and cancellations there was, nothing of it stays in use."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import anyio
import httpx2
import pytest

from gateway.protocol.http.sse_streams import OpenStreams
from gateway.protocol.in_flight import InFlightLimiter
from gateway.protocol.sessions.running_requests import RunningRequests
from gateway.protocol.stateless.subscriptions import SubscriptionHub
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.stream_limiter import StreamLimiter
from gateway.redis.wakeups import Wakeups
from gateway.registry.connections.connections import Connections
from tests.behaviour.sessions.conftest import talking_tools
from tests.support.documents import pets
from tests.support.events import Events, call
from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway, running_gateway
from tests.support.live_objects import born_since, living
from tests.support.primitives import add, text_resource, tool
from tests.support.replicas import commanding, until
from tests.support.serving import NO_TLS
from tests.support.upstream import RecordingUpstream, recording_upstream

SEED = 20261121
COUNT = 120
LAST = 3
AT_ONCE = 12
MAX_S = 0.004
CLIENTS = 16


@dataclass(frozen=True, slots=True)
class House:
    """A gateway, its parts that count, and what reaches it."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    redis_url: str
    key: str
    connections: Connections
    counted: Sequence[Any]

    def in_use(self) -> dict[str, int]:
        """Number of each resource in use."""
        parts = {type(part).__name__: len(part) for part in self.counted}
        return {**parts, "open": self.connections.open_count, "following": self.connections.subscriber_count}


@pytest.fixture
async def house(database_url: str, redis_url: str) -> AsyncGenerator[House]:
    kinds = (Connections, StreamLimiter, OpenStreams, SubscriptionHub, RunningRequests, Wakeups, InFlightLimiter)
    before = living(kinds)
    async with (
        recording_upstream() as upstream,
        running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as gateway,
    ):
        connections, *counted = [made for (made,) in born_since(before).values()]
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", pets(upstream.url))
        for body in talking_tools():
            await add(gateway, "acme", "tools", body)
        await add(gateway, "acme", "resources", text_resource("note://1"))
        limits = {"limits": {"sessions": 1000, "streams": 1000, "calls_per_second": 10_000, "burst": 10_000}}
        (await gateway.admin.patch("/tenants/acme/policy", json=limits)).raise_for_status()
        yield House(gateway, upstream, redis_url, await gateway.create_key("acme"), connections, counted)


async def test_nothing_stays_in_use(house: House) -> None:
    """Ours: gauges return to where they were after any mix, cancellations included (CON-1, RES-6)."""
    chance = Random(SEED)
    print(f"seed {SEED}")
    before = house.in_use()
    async with httpx2.AsyncClient(verify=NO_TLS, base_url=house.gateway.url, timeout=30, trust_env=False) as client:
        for _ in range(COUNT // 20):
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(_visit, house, client, chance.choice(_VISITS), chance.random() * 0.4)
    keys = (await house.gateway.admin.get("/tenants/acme/keys")).json()["items"]
    for key in keys:  # in this era who is gone has not cancelled: what waits for an answer waits, until its key ends
        (await house.gateway.admin.post(f"/tenants/acme/keys/{key['id']}/revoke")).raise_for_status()

    async def is_settled() -> bool:
        return house.in_use() == before

    await until(is_settled, seconds=20)
    assert {name: count for name, count in before.items() if count} == {"Wakeups": 1}, "the inbox of the replica alone"
    with commanding(house.redis_url) as command:

        async def is_forgotten() -> bool:
            named = command("KEYS", "*:streams*"), command("PUBSUB", "CHANNELS", "*:wake")
            return named == ([], [])

        await until(is_forgotten)
    assert living([EventBus])[EventBus]


@pytest.mark.parametrize("rounds", [120, pytest.param(2_000, marks=pytest.mark.long)])
async def test_no_response_outlives_a_session_that_ends_beside_its_answer(house: House, rounds: int) -> None:
    """Ours: a session that ends between the storing of an answer and its reading ends the stream (CON-1, SRV-2)."""
    chance, left = Random(SEED), iter(range(rounds))
    steps = [*({"progress": {"progress": number}} for number in range(1, LAST + 1)), {"return": {"text": "done"}}]
    await add(house.gateway, "acme", "tools", tool("tick", {"kind": "steps", "steps": steps}, safety="safe"))
    before = house.in_use()
    async with httpx2.AsyncClient(verify=NO_TLS, base_url=house.gateway.url, timeout=30, trust_env=False) as client:

        async def go_on() -> None:
            for number in left:
                await _end_beside_the_answer(house, client, chance.random() * MAX_S, cancels=number % 3 == 0)

        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(go_on)

        async def is_settled() -> bool:
            return house.in_use() == before

        await until(is_settled)
    scraped = await house.gateway.admin.get(f"{house.gateway.url}/metrics")
    assert "\ngateway_http_requests_open 1.0\n" in scraped.text  # the scrape itself


@pytest.mark.parametrize("rounds", [96, pytest.param(2_000, marks=pytest.mark.long)])
async def test_a_stream_of_a_deleted_session_gives_its_place_back_at_once(house: House, rounds: int) -> None:
    """A fixed bug: streams took the connection to Redis in turn, so those that had ended kept their places (RES-6)."""
    before, left = house.in_use(), iter(range(rounds))
    open_requests = next(part for part in house.counted if isinstance(part, InFlightLimiter))
    most = 0
    async with httpx2.AsyncClient(verify=NO_TLS, base_url=house.gateway.url, timeout=30, trust_env=False) as client:

        async def go_on() -> None:
            nonlocal most
            for _ in left:
                headers = await _session(house, client)
                async with anyio.create_task_group() as group:
                    group.start_soon(_read_stream, client, headers)
                    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                    assert (await client.post("/t/acme/mcp", json=ping, headers=headers)).status_code == 200
                    await client.delete("/t/acme/mcp", headers=headers)
                    group.cancel_scope.cancel()
                most = max(most, len(open_requests))

        async with anyio.create_task_group() as group:
            for _ in range(CLIENTS):
                group.start_soon(go_on)

    async def is_settled() -> bool:
        return house.in_use() == before

    await until(is_settled)
    assert most <= 3 * CLIENTS, "a request, a stream, and the stream before it of each client"


async def _read_stream(client: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    async with client.stream("GET", "/t/acme/mcp", headers=headers) as response:
        await Events(response).rest(seconds=30)


async def _end_beside_the_answer(house: House, client: httpx2.AsyncClient, delay_s: float, *, cancels: bool) -> None:
    headers = await _session(house, client)
    body = call("tick", progressToken=1)

    async def end() -> None:
        await anyio.sleep(delay_s)  # the race is about these milliseconds
        if cancels:  # as clients do that give up and close
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            await client.post("/t/acme/mcp", json=cancel, headers=headers)
        await client.delete("/t/acme/mcp", headers=headers)

    async with client.stream("POST", "/t/acme/mcp", json=body, headers=headers) as response:
        events = Events(response)
        while (await events.message())["params"]["progress"] != LAST:
            pass
        async with anyio.create_task_group() as group:
            group.start_soon(end)
            await events.rest()


async def _visit(house: House, client: httpx2.AsyncClient, visit: Any, patience_s: float) -> None:
    """One client that does something and, more often than not, leaves in the middle of it."""
    with anyio.move_on_after(patience_s):
        await visit(house, client)


async def _session(house: House, client: httpx2.AsyncClient, **capabilities: Any) -> dict[str, str]:
    headers = {"authorization": f"Bearer {house.key}", "accept": ACCEPT}
    params: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    opened = await client.post("/t/acme/mcp", json=body, headers=headers)
    return {**headers, "mcp-session-id": opened.headers["mcp-session-id"]}


async def _listen_alone(house: House, client: httpx2.AsyncClient) -> None:
    headers = await _session(house, client)
    await _read_stream(client, headers)


async def _count(house: House, client: httpx2.AsyncClient) -> None:
    headers = await _session(house, client)
    body = call("count", progressToken=1)
    async with client.stream("POST", "/t/acme/mcp", json=body, headers=headers) as response:
        events = Events(response)
        await events.next()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        await client.post("/t/acme/mcp", json=cancel, headers=headers)
        await events.rest()


async def _be_asked(house: House, client: httpx2.AsyncClient) -> None:
    headers = await _session(house, client, elicitation={})
    async with client.stream("POST", "/t/acme/mcp", json=call("danger"), headers=headers) as response:
        events = Events(response)
        await events.message()
        await client.delete("/t/acme/mcp", headers=headers)
        await events.rest()


async def _listen(house: House, client: httpx2.AsyncClient) -> None:
    headers = {"authorization": f"Bearer {house.key}", "accept": ACCEPT, "mcp-protocol-version": MODERN}
    params: dict[str, Any] = {"_meta": META, "notifications": {"toolsListChanged": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    sent = {**headers, "mcp-method": "subscriptions/listen"}
    async with client.stream("POST", "/t/acme/mcp", json=body, headers=sent) as response:
        await Events(response).rest(seconds=30)


async def _old(house: House, client: httpx2.AsyncClient) -> None:
    headers = {"authorization": f"Bearer {house.key}", "accept": "text/event-stream"}
    async with client.stream("GET", "/t/acme/sse", headers=headers) as response:
        events = Events(response)
        path = (await events.next()).data
        await client.post(path, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
        await events.rest(seconds=30)


_VISITS = (_listen_alone, _count, _be_asked, _listen, _old)
