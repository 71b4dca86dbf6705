"""Parts that fail while others work: the probe, the doctor and calls, and the way back without a restart."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.integration.redis.conftest import OwnRedis, own_redis
from tests.support.documents import pets
from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.primitives import add, static_tool
from tests.support.replicas import commanding, until
from tests.support.servers import TestServers, execute
from tests.support.stand import Stand, running_stand

__all__ = ["own_redis"]  # a fixture

SLUG = "acme"
_CUT_OFF = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %r and usename = 'gateway_app'"


@pytest.fixture
async def stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """One of this test alone, because its stores become read-only."""
    async with running_stand(servers, upstreams=1) as started:
        await started.gateway.create_tenant(SLUG)
        await started.gateway.import_document(SLUG, pets(started.upstreams[0].url))
        yield started


async def _state(gateway: RunningGateway) -> tuple[int, str, list[str]]:
    """Status, word and failing parts of `/readyz`, as the operator sees them."""
    answer = await gateway.http.get("/readyz", headers={"authorization": f"Bearer {OPERATOR_KEY}"})
    reported = answer.json()
    return answer.status_code, reported["status"], [one["part"] for one in reported.get("failing", [])]


async def _finding(gateway: RunningGateway, check: str) -> str:
    found = (await gateway.admin.get("/doctor")).json()["findings"]
    return next(str(one["status"]) for one in found if one["check"] == check)


async def _call(gateway: RunningGateway, key: str, tool: str) -> Any:
    return (await gateway.rpc(SLUG, key, "tools/call", {"name": tool, "arguments": {"id": 7}})).json()


def _is_ok(answer: Any) -> bool:
    return "result" in answer and not answer["result"].get("isError")


async def test_a_read_only_postgresql_is_seen_and_left(stand: Stand) -> None:
    """Ours: safe calls go on, changes are refused without PostgreSQL's words, and all goes on by itself (SRV-4)."""
    gateway, database = stand.gateway, stand.database
    key = await gateway.create_key(SLUG)
    assert _is_ok(await _call(gateway, key, "get_pet"))
    assert await _state(gateway) == (200, "ready", [])
    name = database.app_url.rpartition("@/")[2].partition("?")[0]
    await execute(database.superuser_url, f"alter database {name} set default_transaction_read_only = on")
    await execute(database.superuser_url, _CUT_OFF % name)

    async def is_degraded() -> bool:
        return (await _state(gateway))[:2] == (200, "degraded")

    await until(is_degraded)
    assert _is_ok(await _call(gateway, key, "get_pet"))
    refused = await _call(gateway, key, "delete_pet")
    assert refused["error"]["data"]["code"] == "unavailable.audit"
    change = await gateway.admin.post("/tenants", json={"slug": "other"})
    assert (change.status_code, change.json()["code"]) == (503, "unavailable.database")
    assert "cannot execute" not in change.text

    async def is_seen() -> bool:
        return await _state(gateway) == (200, "degraded", ["database_writes", "audit_entries"])

    await until(is_seen)
    assert await _finding(gateway, "readiness") == "failed"
    assert await _finding(gateway, "database") == "failed"

    # Sessions that began read-only stay so: only new connections can write again.
    await execute(database.superuser_url, f"alter database {name} reset default_transaction_read_only")

    async def is_writable() -> bool:
        return (await gateway.admin.post("/tenants", json={"slug": "other"})).status_code == 201

    await until(is_writable)
    assert _is_ok(await _call(gateway, key, "delete_pet"))

    async def is_ready() -> bool:
        return await _state(gateway) == (200, "ready", [])

    await until(is_ready)


async def test_a_redis_that_takes_no_writes_is_seen(own_redis: OwnRedis, database_url: str) -> None:
    """Ours: sessions wait, calls outside them go on, and the replica stays in its balancer (SRV-4)."""
    await own_redis.start()
    async with running_gateway(database_url, own_redis.url) as gateway:
        await gateway.create_tenant(SLUG)
        await add(gateway, SLUG, "tools", static_tool("get_pet"))
        key = await gateway.create_key(SLUG)
        with commanding(own_redis.url) as command:
            command("CONFIG", "SET", "min-replicas-to-write", "1")

            async def is_degraded() -> bool:
                return await _state(gateway) == (200, "degraded", ["redis_writes"])

            await until(is_degraded)
            assert _is_ok(await _call(gateway, key, "get_pet"))
            assert await _finding(gateway, "readiness") == "failed"
            command("CONFIG", "SET", "min-replicas-to-write", "0")

        async def is_ready() -> bool:
            return await _state(gateway) == (200, "ready", [])

        await until(is_ready)


async def test_a_loop_that_fails_again_and_again_is_seen(servers: TestServers, redis_url: str) -> None:
    """Ours: a bug in background work shows at the probe, and takes no replica from its balancer (SRV-4)."""
    rename = "alter table live_sources rename column {} to {}"
    with servers.database() as database:
        await execute(database.superuser_url, rename.format("enabled", "unknown"))
        try:
            async with running_gateway(database.app_url, redis_url) as gateway:

                async def is_degraded() -> bool:
                    return await _state(gateway) == (200, "degraded", ["background"])

                await until(is_degraded)
        finally:
            await execute(database.superuser_url, rename.format("unknown", "enabled"))
