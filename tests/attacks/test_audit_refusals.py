"""Refusals in the audit trail: Entries of a flood of refused requests, and the trail that has them."""

import zlib
from collections import Counter
from typing import Any

from gateway.store.audit.refusals import FIRST
from tests.support.documents import many
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase
from tests.support.upstream import recording_upstream


async def test_refused_requests_are_counted_in_their_tenants_trail(database: TestDatabase, redis_url: str) -> None:
    """Ours: failed sign-ins, missing scopes and limits are entries: the first, then one with a number each (SAF-4)."""
    async with recording_upstream() as upstream:
        async with running_gateway(database.app_url, redis_url, egress_allow=[upstream.authority]) as gateway:
            keys = await _prepare(gateway, upstream.url)
            await _attack(gateway, keys)
        async with running_gateway(database.app_url, redis_url) as gateway:
            entries = {slug: await _refusals(gateway, slug) for slug in ("acme", "other")}
            verified = (await gateway.admin.get("/tenants/acme/audit/verify")).json()

    named = {name: key.split("_")[2] for name, key in keys.items()}
    assert entries["acme"] == {
        (f"key:key_{named['client']}", "sign-in", "auth.unauthenticated.wrong"): 30,
        (f"key:key_{named['revoked']}", "sign-in", "auth.unauthenticated.ended"): 20,
        (f"key:key_{named['auditor']}", "request", "auth.forbidden"): 10 + 5,
        (f"key:key_{named['client']}", "call", "limited"): entries["acme"][
            f"key:key_{named['client']}", "call", "limited"
        ],
    }
    assert entries["acme"][f"key:key_{named['client']}", "call", "limited"] >= 20
    assert entries["other"] == {}
    assert verified["ok"] is True


async def _prepare(gateway: RunningGateway, url: str) -> dict[str, str]:
    for slug in ("acme", "other"):
        await gateway.create_tenant(slug)
    await gateway.import_document("acme", many(url, 1))
    names = {"client": "mcp", "revoked": "mcp", "auditor": "audit"}
    keys = {name: await gateway.create_key("acme", scope) for name, scope in names.items()}
    revoked = f"/tenants/acme/keys/key_{keys['revoked'].split('_')[2]}/revoke"
    (await gateway.admin.post(revoked)).raise_for_status()
    return keys


async def _attack(gateway: RunningGateway, keys: dict[str, str]) -> None:
    client = keys["client"]
    prefix, digits = client[:-9], client[-9:-8]
    forged = _with_checksum(prefix + ("A" if digits != "A" else "B"))
    for _ in range(30):
        assert (await gateway.rpc("acme", forged, "tools/list")).status_code == 401
    for _ in range(20):
        assert (await gateway.rpc("acme", keys["revoked"], "tools/list")).status_code == 401
    for _ in range(5):
        assert (await gateway.rpc("acme", "mcpg_live_nobody", "tools/list")).status_code == 401
    for _ in range(10):
        assert (await gateway.rpc("acme", keys["auditor"], "tools/list")).status_code == 403
    for _ in range(5):
        headers = {"authorization": f"Bearer {keys['auditor']}"}
        assert (await gateway.admin.get("/tenants/acme/keys", headers=headers)).status_code == 403
    limits = {"limits": {"calls_per_second": 1, "burst": 1}}
    answer = await gateway.admin.patch("/tenants/acme/policy", json=limits)
    assert answer.status_code == 200, answer.text
    for _ in range(30):
        await gateway.rpc("acme", client, "tools/call", {"name": "op_0000", "arguments": {}})


def _with_checksum(body: str) -> str:
    return f"{body}{zlib.crc32(body.encode()):08x}"


async def _refusals(gateway: RunningGateway, slug: str) -> dict[tuple[str, str, str], int]:
    items: list[dict[str, Any]] = (await gateway.admin.get(f"/tenants/{slug}/audit?limit=200")).json()["items"]
    found: Counter[tuple[str, str, str]] = Counter()
    entries: Counter[tuple[str, str, str, str]] = Counter()
    for item in items:
        if rule := item["detail"].get("rule"):
            refused = item["principal"], item["action"], item["outcome"]
            found[refused] += item["detail"].get("count", 1)
            entries[*refused, rule["name"]] += 1
    assert max(entries.values(), default=0) <= FIRST + 1
    return dict(found)
