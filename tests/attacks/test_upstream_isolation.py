"""An upstream that hangs or is dead, and everybody who has nothing to do with it."""

import asyncio
from typing import Any

import anyio
import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase
from tests.support.upstream import recording_upstream

AT_ONCE = 64


async def _call(gateway: RunningGateway, slug: str, key: str, tool: str = "get_pet") -> dict[str, Any]:
    answer = await gateway.rpc(slug, key, "tools/call", {"name": tool, "arguments": {"id": 7}})
    result: dict[str, Any] = answer.json().get("result", answer.json())
    return result


async def _listed(gateway: RunningGateway, slug: str, key: str) -> int:
    return len((await gateway.rpc(slug, key, "tools/list")).json()["result"]["tools"])


def _code(result: dict[str, Any]) -> object:
    return result.get("_meta", {}).get("gateway/error", {}).get("code")


async def test_64_calls_that_hang_cost_no_other_call_and_no_list(database: TestDatabase, redis_url: str) -> None:
    """Ours: not the other tenant's, not the same tenant's at another upstream; half of the 64 wait in vain (R9)."""
    async with (
        recording_upstream() as slow,
        recording_upstream() as other,
        running_gateway(
            database.app_url, redis_url, egress_allow=[slow.authority, other.authority], log_level="error"
        ) as gateway,
    ):
        keys: dict[str, str] = {}
        for slug in ("acme", "globex"):
            await gateway.create_tenant(slug)
            await gateway.import_document(slug, pets(other.url), name="other", prefix="other_")
            keys[slug] = await gateway.create_key(slug)
        await gateway.import_document("acme", pets(slow.url), name="slow")
        slow.gate = gate = asyncio.Event()
        results: list[dict[str, Any]] = []
        half = asyncio.Event()

        async def hang() -> None:
            results.append(await _call(gateway, "acme", keys["acme"]))
            if len(results) == AT_ONCE // 2:
                half.set()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(hang)
                await slow.arrived.wait()
                for _ in range(50):
                    assert "structuredContent" in await _call(gateway, "globex", keys["globex"], "other_get_pet")
                    assert await _listed(gateway, "globex", keys["globex"]) == 4
                    assert await _listed(gateway, "acme", keys["acme"]) == 8
                await half.wait()
                assert "structuredContent" in await _call(gateway, "acme", keys["acme"], "other_get_pet")
                assert {_code(result) for result in results} == {"upstream.busy"}
                assert len(slow.seen) == AT_ONCE // 2
                gate.set()

    assert len([result for result in results if "structuredContent" in result]) == AT_ONCE // 2


@pytest.mark.parametrize("status", [200, 503])
async def test_an_upstream_that_failed_for_one_tenant_is_called_for_another(
    database: TestDatabase, redis_url: str, status: int
) -> None:
    """Ours: one tenant's experience with an upstream decides nothing for the next, even at the same upstream
    (TEN-5).
    """
    async with (
        recording_upstream() as upstream,
        running_gateway(database.app_url, redis_url, egress_allow=[upstream.authority], log_level="error") as gateway,
    ):
        keys: dict[str, str] = {}
        for slug in ("acme", "globex"):
            await gateway.create_tenant(slug)
            await gateway.import_document(slug, pets(upstream.url))
            keys[slug] = await gateway.create_key(slug)
        upstream.status = 503
        for _ in range(5):
            assert (await _call(gateway, "acme", keys["acme"]))["isError"]
        upstream.status, seen = status, len(upstream.seen)

        left_alone = await _call(gateway, "acme", keys["acme"])
        asked = await _call(gateway, "globex", keys["globex"])

        assert _code(left_alone) == "upstream.suspended"
        assert asked["isError"] is (status == 503)
        assert _code(asked) is None
        assert len(upstream.seen) - seen == (1 if status == 200 else 3)
        assert {one.header("authorization") for one in upstream.seen} == {None}
