"""Primitives written in Python, installed as a package and named in the settings, on two replicas."""

import json
from typing import Any

from tests.behaviour.primitives.conftest import Tenant
from tests.behaviour.primitives.test_kinds import era
from tests.support.handshake import open_session
from tests.support.primitives import static_tool, text_resource
from tests.support.replicas import Mode, tool_names


@era
async def test_an_installed_package_serves_every_tenant(tenant: Tenant, era: Mode) -> None:
    """Ours: tools, resources, templates, prompts and completions of code, beside a tenant's own (PRG-1, PRG-2)."""
    await tenant.add("tools", static_tool("say"))

    async with tenant.replicas.client(tenant.slug, tenant.key, era) as client:
        assert await tool_names(client) == ["days_between", "say", "weekday_of"]
        for _ in range(2):  # once at each replica
            notified = await client.call_tool("weekday_of", {"date": "2026-07-28"})
            counted = await client.call_tool("days_between", {"start": "2026-07-01", "end": "2026-07-28"})
            (months,) = (await client.read_resource("almanac://months")).contents
            (month,) = (await client.read_resource("almanac://months/may")).contents
            (message,) = (await client.get_prompt("plan_week", {"first_day": "Sunday"})).messages
            assert notified.structured_content == {"weekday": "Tuesday"}
            assert counted.structured_content == {"days": 27, "ends_on": "Tuesday"}
            assert json.loads(getattr(months, "text", "[]"))[4] == "may"
            assert json.loads(getattr(month, "text", "{}")) == {"name": "may", "number": 5, "days": 31}
            assert "begins on Sunday" in getattr(message.content, "text", "")


async def test_values_of_code_are_suggested(tenant: Tenant) -> None:
    """Ours: a completion function is asked with what was typed (PRM-3, PRG-1)."""
    asked: list[tuple[dict[str, str], str, str, list[str]]] = [
        ({"type": "ref/prompt", "name": "plan_week"}, "first_day", "t", ["Tuesday", "Thursday"]),
        ({"type": "ref/resource", "uri": "almanac://months/{name}"}, "name", "J", ["january", "june", "july"]),
    ]
    for ref, name, value, expected in asked:
        found = await tenant.rpc("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})
        assert found["result"]["completion"]["values"] == expected


async def test_an_error_of_code_has_its_code_message_and_data(tenant: Tenant) -> None:
    """Ours: the arguments of `error(code, message, data)` reach the client in `_meta.error` (CAL-1)."""
    arguments = {"start": "2026-07-28", "end": "2026-07-01"}
    result = (await tenant.rpc("tools/call", {"name": "days_between", "arguments": arguments}))["result"]

    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The end is before the start."}]
    assert result["_meta"]["error"] == {
        "code": "END_BEFORE_START",
        "message": "The end is before the start.",
        "data": {"start": "2026-07-28", "end": "2026-07-01"},
    }


async def test_arguments_of_code_are_validated_before_it_runs(tenant: Tenant) -> None:
    """Ours: a function never sees arguments that break its schema (CAL-2)."""
    for arguments in ({}, {"date": 7}, {"date": "2026-07-28", "more": 1}):
        result = (await tenant.rpc("tools/call", {"name": "weekday_of", "arguments": arguments}))["result"]
        assert result["isError"] is True
        assert result["_meta"]["gateway/error"]["code"] == "call.arguments_invalid"
    of_another_format = {"name": "weekday_of", "arguments": {"date": "no date"}}
    assert (await tenant.rpc("tools/call", of_another_format))["result"]["_meta"]["error"]["code"] == "INVALID_DATE"


async def test_progress_of_code_reaches_the_client(tenant: Tenant) -> None:
    """MCP: a call with a progress token reports its progress (PRG-1)."""
    received: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        received.append((progress, total, message))

    async with tenant.replicas.client(tenant.slug, tenant.key, "2026-07-28") as client:
        arguments = {"start": "2026-07-01", "end": "2026-07-28"}
        await client.call_tool("days_between", arguments, progress_callback=on_progress)

    assert received == [(1, 2, "counted"), (2, 2, "looked up")]


async def test_a_tenants_own_name_hides_that_of_code(tenant: Tenant) -> None:
    """Ours: an update of the gateway's code never takes a name away from a tenant (PRG-4)."""
    path = f"/tenants/{tenant.slug}/tools"
    refused = await tenant.replicas.a.gateway.admin.post(path, json=static_tool("weekday_of"))
    shown: Any = (await tenant.replicas.a.gateway.admin.get(f"{path}/weekday_of")).json()

    assert refused.status_code == 409
    assert shown["status"]["origin"] == "code"
    assert shown["status"]["safety"] == "safe"


async def test_tools_of_code_are_in_the_admin_lists(tenant: Tenant) -> None:
    """Ours: an admin of a tenant sees what its clients see (PRG-1)."""
    await tenant.add("resources", text_resource("docs://readme"))
    admin = tenant.replicas.b.gateway.admin
    for nouns, expected in (
        ("tools", {"weekday_of", "days_between"}),
        ("resources", {"almanac://months", "docs://readme"}),
        ("resource-templates", {"almanac://months/{name}"}),
        ("prompts", {"plan_week"}),
    ):
        listed = (await admin.get(f"/tenants/{tenant.slug}/{nouns}")).json()["items"]
        assert {each.get("uri") or each.get("uri_template") or each["name"] for each in listed} == expected, nouns


async def test_old_revisions_call_code_too(tenant: Tenant) -> None:
    """Ours: a handler answers once, each revision gets what it has (SRV-1)."""
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        session = await open_session(tenant.replicas.a.gateway, tenant.slug, tenant.key, version=version)
        params = {"name": "weekday_of", "arguments": {"date": "2026-07-28"}}
        result = (await session.rpc("tools/call", params))["result"]
        assert json.loads(result["content"][0]["text"]) == {"weekday": "Tuesday"}
        assert result["isError"] is False
