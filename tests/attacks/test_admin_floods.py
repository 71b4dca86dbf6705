"""Floods of the admin API and of wrong keys from one address: what is admitted, and who still gets in."""

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import anyio
import httpx
import pytest
import structlog.testing

from gateway.domain.tenancy.keys import mint_key
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, static_tool, tool
from tests.support.servers import TestServers

RATE = 1.0
"""Requests a second of a key here: a fiftieth of the default, so that a few requests are a flood."""
FAILURES = 0.25
Send = Callable[[int], Coroutine[Any, Any, httpx.Response]]


@pytest.fixture(scope="module")
async def pair(servers: TestServers) -> AsyncGenerator[tuple[RunningGateway, RunningGateway]]:
    """Two replicas: one without limits, to prepare with, and the one that is flooded."""
    with servers.database() as database:
        redis_url = servers.own_redis()
        async with (
            running_gateway(database.app_url, redis_url) as calm,
            running_gateway(database.app_url, redis_url, admin_rate=RATE, auth_failure_rate=FAILURES) as limited,
        ):
            for slug in ("evil", "third", "minting"):
                await calm.create_tenant(slug)
            await add(calm, "third", "tools", static_tool("hello"))
            yield calm, limited


@pytest.fixture(scope="module")
def calm(pair: tuple[RunningGateway, RunningGateway]) -> RunningGateway:
    """The replica to prepare with."""
    return pair[0]


@pytest.fixture(scope="module")
def gateway(pair: tuple[RunningGateway, RunningGateway]) -> RunningGateway:
    """The replica that is flooded."""
    return pair[1]


async def _flood(send: Send, *, times: int, at_once: int = 25) -> tuple[Counter[int], float, list[httpx.Response]]:
    """The statuses of so many requests, how long they took, and all answers."""
    answers: list[httpx.Response] = []
    places = anyio.Semaphore(at_once)
    began = time.monotonic()

    async def one(number: int) -> None:
        async with places:
            answers.append(await send(number))

    async with anyio.create_task_group() as group:
        for number in range(times):
            group.start_soon(one, number)
    return Counter(answer.status_code for answer in answers), time.monotonic() - began, answers


def _admin(gateway: RunningGateway, key: str) -> Send:
    async def send(_: int) -> httpx.Response:
        return await gateway.http.get("/admin/v1/tenants/evil", headers={"authorization": f"Bearer {key}"})

    return send


async def _is_served(gateway: RunningGateway, key: str) -> bool:
    """True if the neighbour's call is answered."""
    return (await gateway.rpc("third", key, "tools/call", {"name": "hello", "arguments": {}})).status_code == 200


async def test_a_flood_of_validate_is_limited_to_the_keys_rate(calm: RunningGateway, gateway: RunningGateway) -> None:
    """Security review 8: 100 KB schemas, 80 a second, moved a neighbour x 6.1; a few of them pass now (ISO-6)."""
    key = await calm.create_key("evil", "admin")
    properties = {f"field_{number}": {"type": "string", "description": "x" * 70} for number in range(900)}
    body = json.dumps(
        tool("big", static_tool("x")["handler"], schema={"type": "object", "properties": properties})
    ).encode()
    assert 95_000 < len(body) < 140_000

    async def send(_: int) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        return await gateway.http.post("/admin/v1/tenants/evil/tools/validate", content=body, headers=headers)

    seen, seconds, answers = await _flood(send, times=20)

    cost = min(1 + len(body) // 4096, 2 * RATE)
    assert seen.keys() == {200, 429}
    assert seen[200] <= (4 * RATE + seconds * RATE) / cost
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["content-type"] == "application/problem+json"
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["code"] == "limit.exceeded"
    assert "limit 1 per second" in refused.json()["detail"]


async def test_a_body_without_a_length_counts_before_it_is_parsed(
    calm: RunningGateway, gateway: RunningGateway
) -> None:
    """Ours: leaving Content-Length out does not make a body small (ISO-6)."""
    key = await calm.create_key("evil", "admin")

    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(3):
            yield b" " * 4096

    async def send(_: int) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        return await gateway.http.post("/admin/v1/tenants/evil/tools/validate", content=chunks(), headers=headers)

    seen, seconds, _ = await _flood(send, times=8, at_once=4)

    assert seen[400] <= (4 * RATE + seconds * RATE) / (2 * RATE)
    assert seen[429] == 8 - seen[400]


async def test_many_keys_of_a_tenant_are_no_way_around(calm: RunningGateway, gateway: RunningGateway) -> None:
    """Ours: the keys of a tenant share a limit of twice a key's (ISO-6)."""
    keys = [await calm.create_key("minting", "admin") for _ in range(3)]

    async def send(number: int) -> httpx.Response:
        headers = {"authorization": f"Bearer {keys[number % 3]}"}
        return await gateway.http.get("/admin/v1/tenants/minting", headers=headers)

    seen, seconds, _ = await _flood(send, times=40)

    assert seen.keys() == {200, 429}
    assert seen[200] <= 8 * RATE + 2 * seconds * RATE + 1


async def test_the_operator_is_not_locked_out_by_a_tenant_at_the_same_address(
    calm: RunningGateway, gateway: RunningGateway
) -> None:
    """Ours: behind one proxy a flood with a valid key takes nothing from the operator (ISO-6)."""
    key = await calm.create_key("evil", "admin")
    statuses: list[int] = []

    async def look() -> None:
        statuses.append((await gateway.admin.get("/tenants/third")).status_code)

    async def flood() -> None:
        seen, _, _ = await _flood(_admin(gateway, key), times=15)
        assert seen[429]

    async with anyio.create_task_group() as group:
        group.start_soon(flood)
        for _ in range(3):
            await look()

    assert statuses == [200, 200, 200]


async def test_wrong_keys_are_cut_and_valid_ones_get_in_from_the_same_address(
    calm: RunningGateway, gateway: RunningGateway
) -> None:
    """Security review 8: 1,703 wrong keys a second moved a neighbour x 3.5 and wrote a line each (ISO-6)."""
    seen_before, fresh = await calm.create_key("third"), await calm.create_key("third")
    admin = await calm.create_key("third", "admin")
    assert await _is_served(gateway, seen_before)

    async def wrong(_: int) -> httpx.Response:
        headers = {"authorization": f"Bearer {mint_key().text}"}
        return await gateway.http.get("/admin/v1/tenants/third", headers=headers)

    results: list[tuple[Counter[int], float, list[httpx.Response]]] = []
    with structlog.testing.capture_logs() as lines:
        async with anyio.create_task_group() as group:

            async def flood() -> None:
                results.append(await _flood(wrong, times=60))

            group.start_soon(flood)
            await anyio.wait_all_tasks_blocked()
            assert await _is_served(gateway, seen_before)
            assert await _is_served(gateway, fresh)
            headers = {"authorization": f"Bearer {admin}"}
            assert (await gateway.http.get("/admin/v1/tenants/third", headers=headers)).status_code == 200
            assert (await gateway.admin.get("/tenants/third")).status_code == 200

    (seen, seconds, answers), *_ = results
    assert seen.keys() == {401, 429}
    assert seen[401] <= 20 * FAILURES + seconds * FAILURES + 1
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "failed authentications" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) >= 1
    events = Counter(line["event"] for line in lines)
    assert events["authentication_failures_limited"] <= 1 + seconds / 10
    assert events["credential_refused"] <= seen[401]


async def test_wrong_keys_at_the_mcp_url_count_with_those_of_the_admin_api(gateway: RunningGateway) -> None:
    """Ours: an address has one limit on failures, wherever it fails (ISO-6)."""

    async def wrong(number: int) -> httpx.Response:
        if number % 2:
            return await gateway.rpc("third", mint_key().text, "tools/list")
        return await gateway.http.get("/admin/v1/tenants")

    seen, seconds, answers = await _flood(wrong, times=40)

    assert seen.keys() <= {401, 429}
    assert seen[401] <= 20 * FAILURES + seconds * FAILURES + 1
    mcp = [answer for answer in answers if answer.status_code == 429 and "/t/third" in str(answer.url)]
    assert mcp
    assert "failed authentications" in mcp[0].text
