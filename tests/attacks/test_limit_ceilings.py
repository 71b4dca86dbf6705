"""A tenant's own admin raises its limits: it moves them below the operator's ceilings and never above."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from benchmarks.requests import modern
from gateway.domain.tenancy.ceilings import DEFAULT_CEILINGS, LIMIT_NAMES
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, static_tool
from tests.support.servers import TestServers

CEILINGS = "/tenants/{}/ceilings"
POLICY = "/tenants/{}/policy"


@pytest.fixture(scope="module")
async def gateway(servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """One gateway for all tests here; each has a tenant of its own."""
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.own_redis()) as gateway:
            yield gateway


async def _tenant(gateway: RunningGateway, slug: str) -> dict[str, str]:
    """A new tenant, and what its own admin key is sent as."""
    await gateway.create_tenant(slug)
    return {"authorization": f"Bearer {await gateway.create_key(slug, 'admin')}"}


async def _set(gateway: RunningGateway, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await gateway.admin.patch(path, json=body, **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["errors"][0]["pointer"]


@pytest.mark.parametrize("name", LIMIT_NAMES)
async def test_no_limit_goes_above_its_default_ceiling(gateway: RunningGateway, name: str) -> None:
    """ISO-3: the review's own attempt, each limit alone: refused, with the limit, its ceiling and who raises it."""
    bearer = await _tenant(gateway, f"greedy-{name.replace('_', '-')}")
    path = POLICY.format(f"greedy-{name.replace('_', '-')}")
    ceiling = getattr(DEFAULT_CEILINGS, name)

    above = await gateway.admin.patch(path, json={"limits": {name: 1_000_000}}, headers=bearer)
    just = await gateway.admin.patch(path, json={"limits": {name: ceiling + 1}}, headers=bearer)
    at = await _set(gateway, path, {"limits": {name: ceiling}}, headers=bearer)

    assert _refused(above) == _refused(just) == (403, f"/limits/{name}")
    for reported in (name, f"{ceiling:g}", "operator", "gateway ceilings"):
        assert reported in above.json()["detail"]
    assert at["status"]["effective"][name] == at["status"]["ceilings"][name] == ceiling


async def test_the_refused_change_stores_nothing(gateway: RunningGateway) -> None:
    """ISO-3: a PUT with one limit above its ceiling changes neither that limit nor anything else in it."""
    bearer = await _tenant(gateway, "half")
    before = (await gateway.admin.get(POLICY.format("half"))).text
    body = {"moderate": "deny", "limits": {"burst": 3, "concurrency": 1_000_000}}

    answer = await gateway.admin.patch(POLICY.format("half"), json=body, headers=bearer)

    assert answer.status_code == 403
    assert (await gateway.admin.get(POLICY.format("half"))).text == before


async def test_a_tenant_admin_reads_its_ceilings_and_cannot_set_them(gateway: RunningGateway) -> None:
    """ISO-3: with any of its keys."""
    bearer = await _tenant(gateway, "reader")
    shown = await gateway.admin.get(CEILINGS.format("reader"), headers=bearer)

    assert shown.status_code == 200
    assert shown.json()["status"]["defaulted"] == list(LIMIT_NAMES)
    for scope in ("admin", "mcp", "audit", "approve", "provide"):
        other = {"authorization": f"Bearer {await gateway.create_key('reader', scope)}"}
        answer = await gateway.admin.put(CEILINGS.format("reader"), json={"burst": 900_000}, headers=other)
        assert answer.status_code == 403, scope
    assert (await gateway.admin.get(CEILINGS.format("reader"))).json() == shown.json()


async def test_a_lowered_ceiling_cuts_the_stored_limit_and_a_raised_one_restores_it(gateway: RunningGateway) -> None:
    """ISO-3: the smaller of both is in force without a change of the policy."""
    bearer = await _tenant(gateway, "cut")
    await _set(gateway, POLICY.format("cut"), {"limits": {"burst": 300}}, headers=bearer)
    await _set(gateway, CEILINGS.format("cut"), {"burst": 20})

    cut = (await gateway.admin.get(POLICY.format("cut"))).json()
    other = await _set(gateway, POLICY.format("cut"), {"dangerous": "deny"}, headers=bearer)
    resent = await gateway.admin.patch(POLICY.format("cut"), json={"limits": {"burst": 300}}, headers=bearer)
    higher = await gateway.admin.patch(POLICY.format("cut"), json={"limits": {"burst": 301}}, headers=bearer)
    await _set(gateway, CEILINGS.format("cut"), {"burst": None})
    whole = (await gateway.admin.get(POLICY.format("cut"))).json()

    now = cut["status"]
    assert (cut["limits"]["burst"], now["effective"]["burst"], now["ceilings"]["burst"]) == (300, 20, 20)
    assert (other["dangerous"], other["limits"]["burst"]) == ("deny", 300)
    assert (resent.status_code, _refused(higher)) == (200, (403, "/limits/burst"))
    assert whole["status"]["effective"]["burst"] == 300


async def test_a_lowered_ceiling_holds_for_calls_sessions_and_primitives(gateway: RunningGateway) -> None:
    """ISO-3: the limits in force are what every gate reads, not only what is shown."""
    bearer = await _tenant(gateway, "bound")
    key = await gateway.create_key("bound")
    await add(gateway, "bound", "tools", static_tool("ping"))
    await _set(gateway, POLICY.format("bound"), {"limits": {"calls_per_second": 150, "burst": 300}}, headers=bearer)
    await _set(gateway, CEILINGS.format("bound"), {"calls_per_second": 0.001, "burst": 2, "primitives": 1})

    answers = [await gateway.rpc("bound", key, "tools/call", {"name": "ping"}) for _ in range(3)]
    full = await gateway.admin.post("/tenants/bound/tools", json=static_tool("more"), headers=bearer)

    assert [("error" in answer.json()) for answer in answers] == [False, False, True]
    assert answers[-1].json()["error"]["code"] == 42900
    assert full.status_code == 429


async def test_the_operator_raises_a_default_ceiling_by_giving_a_limit(gateway: RunningGateway) -> None:
    """Ours: an operator's script that sets limits goes on working; a ceiling that was set is not moved by it."""
    bearer = await _tenant(gateway, "big")
    raised = await _set(gateway, POLICY.format("big"), {"limits": {"burst": 5_000}})
    entry = (await gateway.admin.get("/tenants/big/audit", params={"limit": 1})).json()["items"][0]
    lower = await _set(gateway, CEILINGS.format("big"), {"burst": 100})
    refused = await gateway.admin.patch(POLICY.format("big"), json={"limits": {"burst": 6_000}})
    tenants = await gateway.admin.patch(POLICY.format("big"), json={"limits": {"streams": 5_000}}, headers=bearer)

    assert raised["status"]["effective"]["burst"] == raised["status"]["ceilings"]["burst"] == 5_000
    assert (entry["action"], entry["detail"]["ceilings"]) == ("policy.update", {"burst": 5_000})
    assert "burst" not in lower["status"]["defaulted"]
    assert _refused(refused) == (403, "/limits/burst")
    assert _refused(tenants) == (403, "/limits/streams")


async def test_a_policy_that_is_sent_back_changes_no_ceiling(gateway: RunningGateway) -> None:
    """ISO-3: only changed limits count as given, so an exported policy can be applied below a lowered ceiling."""
    bearer = await _tenant(gateway, "exported")
    path, ceilings = POLICY.format("exported"), CEILINGS.format("exported")
    await _set(gateway, path, {"limits": {"burst": 300}})
    await _set(gateway, ceilings, {"burst": 20, "admin_bounds": {"keys": 9}})
    stored, before = await gateway.admin.get(path), (await gateway.admin.get(ceilings)).text
    for headers in (bearer, {}):
        same = await gateway.admin.put(path, json=stored.json(), headers=headers)
        assert (same.status_code, same.headers["etag"]) == (200, stored.headers["etag"])
    changed = await gateway.admin.put(path, json={**stored.json(), "safe": "confirm"}, headers=bearer)
    assert (changed.status_code, changed.json()["limits"]["burst"]) == (200, 300)
    assert (await gateway.admin.get(ceilings)).text == before


async def test_a_rate_without_a_burst_is_in_force_at_once(gateway: RunningGateway) -> None:
    """ISO-3: a low rate is not suspended for the first 200 calls; a burst that was chosen is only lowered."""
    await gateway.create_tenant("paced")
    chosen: list[int] = []
    for limits in (
        {"calls_per_second": 10},
        {"calls_per_second": 0.1},
        {"calls_per_second": 100},
        {"burst": 50},
        {"calls_per_second": 150},
        {"calls_per_second": 20},
        {"calls_per_second": 30, "burst": 5},
        {"streams": 50},
    ):
        found = await _set(gateway, POLICY.format("paced"), {"limits": limits})
        chosen.append(found["limits"]["burst"])

    assert chosen == [20, 1, 200, 50, 50, 40, 5, 5]


async def test_ceilings_are_versioned_and_audited(gateway: RunningGateway) -> None:
    """ADM-1: ETag, If-Match and an entry of the trail, as for every object; SAF-4."""
    await gateway.create_tenant("tagged")
    first = await gateway.admin.get(CEILINGS.format("tagged"))
    policy = await gateway.admin.get(POLICY.format("tagged"))
    tag = {"if-match": first.headers["etag"]}

    changed = await gateway.admin.put(CEILINGS.format("tagged"), json={"sessions": 9}, headers=tag)
    late = await gateway.admin.put(CEILINGS.format("tagged"), json={"sessions": 10}, headers=tag)
    entry = (await gateway.admin.get("/tenants/tagged/audit", params={"limit": 1})).json()["items"][0]
    stale = await gateway.admin.put(
        POLICY.format("tagged"), json={"moderate": "deny"}, headers={"if-match": policy.headers["etag"]}
    )

    assert (changed.status_code, changed.json()["sessions"], late.status_code) == (200, 9, 412)
    assert (entry["action"], entry["detail"]["after"]["sessions"]) == ("ceilings.update", 9)
    assert stale.status_code == 412  # the policy that was shown had other ceilings


async def test_a_flood_of_requests_without_a_limit_is_paced(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ISO-3: lists have no limit; above the tenant's pace they wait, are all answered, and no other tenant waits."""
    monkeypatch.setattr("gateway.protocol.request_rate.MIN_PER_S", 16.0)  # a busy machine serves more than that
    for slug in ("flood", "calm"):
        await gateway.create_tenant(slug)
        await _set(gateway, POLICY.format(slug), {"limits": {"calls_per_second": 1}})
    evil, calm = await gateway.create_key("flood"), await gateway.create_key("calm")
    port = urlsplit(gateway.url).port
    raw = modern("/t/flood/mcp", "tools/list", {}, key=evil)
    lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
    before = await _paced(gateway)

    for _, writer in lines:
        writer.write(raw)
    answer = await gateway.rpc("calm", calm, "tools/list")
    with anyio.fail_after(60):
        heads = [await reader.readuntil(b"\r\n\r\n") for reader, _ in lines]
    paced = await _paced(gateway)
    for _ in range(3):
        await gateway.rpc("calm", calm, "tools/list")

    for _, writer in lines:
        writer.close()
    assert answer.status_code == 200
    assert {head[9:12] for head in heads} == {b"200"}
    assert paced > before
    assert await _paced(gateway) == paced


async def test_a_handshake_is_charged_as_several_requests(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ISO-3: after a handshake the next request of its tenant waits, after a list it does not."""
    monkeypatch.setattr("gateway.protocol.request_rate.MIN_PER_S", 2.5)
    monkeypatch.setattr("gateway.protocol.request_rate.RATE_BURST_S", 1.0)
    waited: dict[str, float] = {}
    for slug, first in (("shake", "initialize"), ("list", "tools/list")):
        await gateway.create_tenant(slug)
        await _set(gateway, POLICY.format(slug), {"limits": {"calls_per_second": 1}})
        key, before = await gateway.create_key(slug), await _paced(gateway)
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": first, "params": client if first == "initialize" else {}}
        accept = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
        for _ in range(2):
            await gateway.http.post(f"{gateway.url}/t/{slug}/mcp", json=message, headers=accept)
        waited[slug] = await _paced(gateway) - before

    assert waited == {"shake": 1, "list": 0}


async def _paced(gateway: RunningGateway) -> float:
    headers = {"authorization": gateway.admin.headers["authorization"]}
    page = (await gateway.http.get("/metrics", headers=headers)).text
    (line,) = [line for line in page.splitlines() if line.startswith("gateway_requests_paced_total ")]
    return float(line.split()[1])


@pytest.mark.parametrize("value", [0, -1, 1_000_001, 1.5, "7", True, [], {}])
async def test_a_ceiling_is_a_positive_count(gateway: RunningGateway, value: object) -> None:
    """ADM-1: a value that is no ceiling is refused with its pointer."""
    await gateway.create_tenant(f"odd-{abs(hash(str(value)))}")
    answer = await gateway.admin.put(CEILINGS.format(f"odd-{abs(hash(str(value)))}"), json={"burst": value})

    assert _refused(answer) == (400, "/burst")


async def test_tools_created_at_once_reach_the_limit_and_no_further(gateway: RunningGateway) -> None:
    """Ours: imported tools count, another tenant's do not, and requests at the same time pass no limit (TEN-5)."""
    for slug in ("crowded", "beside"):
        await gateway.create_tenant(slug)
    for number in range(3):
        await add(gateway, "beside", "tools", static_tool(f"beside_{number}"))
    policy = {"limits": {"primitives": 8}}
    (await gateway.admin.patch("/tenants/crowded/policy", json=policy)).raise_for_status()
    await gateway.import_document("crowded", pets("https://pets.example"))
    statuses: list[int] = []

    async def create(number: int) -> None:
        answer = await gateway.admin.post("/tenants/crowded/tools", json=static_tool(f"tool_{number}"))
        statuses.append(answer.status_code)

    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(create, number)
    key = await gateway.create_key("crowded")
    listed = (await gateway.rpc("crowded", key, "tools/list")).json()["result"]["tools"]
    assert (statuses.count(201), statuses.count(429), len(listed)) == (4, 8, 8)
