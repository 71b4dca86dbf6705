"""Levels that a tenant declares for its own tools: recorded, and in policy never below an aliased operation's."""

from typing import Any

import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, tool
from tests.support.upstream import recording_upstream

ALIAS = {"kind": "openapi", "source": "api", "operation": "delete_pet", "arguments": {"id": 7}}
STEPS = {"kind": "steps", "steps": [{"call": {"tool": "tidy"}}, {"return": {"text": "done"}}]}


async def _call(gateway: RunningGateway, key: str, name: str) -> dict[str, Any]:
    result: dict[str, Any] = (await gateway.rpc("acme", key, "tools/call", {"name": name})).json()["result"]
    return result


async def _entries(gateway: RunningGateway, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await gateway.admin.get(f"/tenants/acme/audit?kind={kind}")).json()["items"]
    return found


@pytest.mark.parametrize("decision", ["deny", "confirm"])
async def test_an_alias_declared_safe_is_judged_as_its_operation(
    database_url: str, redis_url: str, decision: str
) -> None:
    """Ours: it passes neither by itself nor inside steps; both levels are shown and recorded (SAF-1, SAF-2, SAF-4)."""
    async with (
        recording_upstream() as upstream,
        running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as gateway,
    ):
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", pets(upstream.url))
        (await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": decision})).raise_for_status()
        made = await add(gateway, "acme", "tools", tool("tidy", ALIAS, safety="safe"))
        await add(gateway, "acme", "tools", tool("outer", STEPS, safety="safe"))
        await add(gateway, "acme", "tools", tool("undeclared", STEPS))
        key = await gateway.create_key("acme")

        for name in ("tidy", "outer", "undeclared"):
            result = await _call(gateway, key, name)
            assert result["_meta"]["gateway/error"]["code"] in {"policy.denied", "approval.required"}, name
        assert upstream.seen == []

        assert (made["status"]["safety"], made["safety"]) == ("safe", "safe")
        shown = (await gateway.admin.get("/tenants/acme/tools/tidy")).json()["status"]["safety_reasons"]
        assert any("the policy treats it as dangerous" in reason for reason in shown)
        [change] = [one for one in await _entries(gateway, "change") if one["target"] == "tidy"]
        levels = {"safety": "safe", "assessed": "dangerous", "counted": "dangerous"}
        assert levels.items() <= change["detail"].items()
        calls = [one for one in await _entries(gateway, "call") if one["target"] == "tidy"]
        assert calls
        calls = [one for one in calls if not one["action"].startswith("approval.")]
        assert all({"safety": "safe", "assessed": "dangerous"}.items() <= one["detail"].items() for one in calls)
        assert (await gateway.admin.get("/tenants/acme/audit/verify")).json()["ok"] is True


async def test_the_operation_itself_may_be_declared_less(database_url: str, redis_url: str) -> None:
    """Ours: the level of an operation is declared at the operation, and its aliases follow (SAF-1)."""
    async with (
        recording_upstream() as upstream,
        running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as gateway,
    ):
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", pets(upstream.url))
        (await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "deny"})).raise_for_status()
        (await gateway.admin.patch("/tenants/acme/tools/delete_pet", json={"safety": "safe"})).raise_for_status()
        await add(gateway, "acme", "tools", tool("tidy", ALIAS, safety="safe"))
        await add(gateway, "acme", "tools", tool("outer", STEPS))
        key = await gateway.create_key("acme")

        for name in ("tidy", "outer"):
            assert (await _call(gateway, key, name))["isError"] is False
        assert [seen.method for seen in upstream.seen] == ["DELETE", "DELETE"]
