"""One key that opens whatever it can: streams, and requests whose bodies never end (security C4)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from gateway.protocol.in_flight import SPARE
from gateway.web.edge import EdgeLimits
from tests.support.events import Events, request
from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway, running_gateway
from tests.support.replicas import until
from tests.support.serving import NO_TLS

METHOD = "subscriptions/listen"
PATIENCE_S = 300.0
"""For how long the edge waits for a body here."""


@pytest.fixture
async def gateway(database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[RunningGateway]:
    patient = partial(EdgeLimits, body_s=PATIENCE_S, body_grace_s=PATIENCE_S)
    monkeypatch.setattr("gateway.web.edge.EdgeLimits", patient)
    async with running_gateway(database_url, redis_url) as running:
        await running.create_tenant("acme")
        yield running


def _listening(key: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {key}", "accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": METHOD}
    params: dict[str, Any] = {"_meta": META, "notifications": {"toolsListChanged": True}}
    return {"json": request(METHOD, params), "headers": headers}


async def test_a_key_has_fifty_streams_by_default(gateway: RunningGateway) -> None:
    """Ours: the next one is refused with a hint, and another key of the tenant has streams left (TEN-3, TEN-5)."""
    greedy, other = await gateway.create_key("acme"), await gateway.create_key("acme")
    held: list[Events] = []
    async with AsyncExitStack() as stack:
        limits = httpx2.Limits(max_connections=None)
        client = httpx2.AsyncClient(verify=NO_TLS, base_url=gateway.url, timeout=60, trust_env=False, limits=limits)
        await stack.enter_async_context(client)

        async def listen(key: str) -> None:
            opened = await stack.enter_async_context(client.stream("POST", "/t/acme/mcp", **_listening(key)))
            held.append(Events(opened))  # a stream without an owner is closed
            assert (await held[-1].message())["method"] == "notifications/subscriptions/acknowledged"

        for _ in range(50):
            await listen(greedy)
        with anyio.fail_after(30):
            refused = await client.post("/t/acme/mcp", **_listening(greedy))
        await listen(other)

    error = refused.json()["error"]
    assert error["code"] == 42900
    assert "50 per key" in error["message"]
    assert error["data"]["retry_after_s"] > 0


async def test_a_key_cannot_take_all_connections(gateway: RunningGateway) -> None:
    """Ours: beyond what its calls and streams need a key has few requests open at once (TEN-3, TEN-5)."""
    policy = {"limits": {"concurrency": 2, "streams": 2}}
    (await gateway.admin.patch("/tenants/acme/policy", json=policy)).raise_for_status()
    greedy, other = await gateway.create_key("acme"), await gateway.create_key("acme")
    place = urlsplit(gateway.url)
    head = (
        f"POST /t/acme/mcp HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer {greedy}\r\n"
        f"accept: {ACCEPT}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
    )
    async with AsyncExitStack() as stack:
        for _ in range(2 + 2 + SPARE):
            _, writer = await asyncio.open_connection("127.0.0.1", place.port)
            stack.callback(writer.close)
            writer.write(head.encode() + b" ")

        async def is_full() -> bool:
            return (await gateway.rpc("acme", greedy, "tools/list")).status_code == 429

        await until(is_full, seconds=120, pause=0.2)
        refused = await gateway.rpc("acme", greedy, "tools/list")
        served = await gateway.rpc("acme", other, "tools/list")

    assert int(refused.headers["retry-after"]) > 0
    assert refused.json()["error"]["code"] == 42900
    assert "too many concurrent requests of this key" in refused.json()["error"]["message"]
    assert served.status_code == 200

    async def is_free() -> bool:
        return (await gateway.rpc("acme", greedy, "tools/list")).status_code == 200

    await until(is_free, seconds=60, pause=0.2)
