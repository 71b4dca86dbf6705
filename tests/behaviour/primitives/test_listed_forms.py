"""Tools in the form that clients take: what is listed, what is called by which name, and which name rules see."""

import re
from typing import Any

import pytest

from gateway.settings import Settings
from tests.behaviour.primitives.conftest import Tenant
from tests.support.documents import many
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.openapi import document
from tests.support.primitives import tool
from tests.support.servers import TestServers

EVERY_CLIENT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""Claude, OpenAI, Codex and Copilot take these characters and this length, Gemini this beginning."""
ECHO = {"kind": "template", "json": "{{ arguments }}"}
ODD: dict[str, Any] = {
    "type": "object",
    "properties": {"ids[]": {"type": "array"}, "部門": {"type": "string", "description": "A department."}},
    "required": ["部門"],
    "oneOf": [{"required": ["ids[]"]}, {"properties": {"all": {"type": "boolean"}}, "required": ["all"]}],
    "additionalProperties": False,
}


async def _listed(tenant: Tenant, **more: Any) -> dict[str, dict[str, Any]]:
    answer = await tenant.rpc("tools/list", **more)
    return {each["name"]: each for each in answer["result"]["tools"]}


async def _call(tenant: Tenant, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = await tenant.rpc("tools/call", {"name": name, "arguments": arguments or {}})
    return answer


async def test_every_listed_tool_is_one_that_clients_take(tenant: Tenant) -> None:
    """Ours: names, arguments and roots of imported tools, of own ones and of code (CLN-1)."""
    paths: dict[str, Any] = {"/now": {"get": {"operationId": "sites.reboot.now"}}, "/files/{name}.json": {"get": {}}}
    source = {**document(paths), "servers": [{"url": tenant.upstream.url}]}
    await tenant.replicas.a.gateway.import_document(tenant.slug, source)
    await tenant.add("tools", tool("2fa/enable", ECHO, schema=ODD))

    listed = await _listed(tenant)

    assert {"sites_reboot_now", "_2fa_enable"} <= set(listed)
    for name, shown in listed.items():
        assert EVERY_CLIENT.fullmatch(name), name
        assert {"oneOf", "anyOf", "allOf", "additionalProperties", "$schema"}.isdisjoint(shown["inputSchema"]), name
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in shown["inputSchema"]["properties"])
    assert listed["_2fa_enable"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "ids__": {"type": "array", "items": {}, "description": "`ids[]`"},
            "__": {"type": "string", "description": "`部門`: A department."},
            "all": {"type": "boolean"},
        },
        "required": ["__"],
    }


async def test_a_tool_is_called_by_its_listed_and_by_its_stored_name(tenant: Tenant) -> None:
    """Ours: arguments likewise; the stored schema, with its alternatives, decides what is valid (CLN-1, CAL-1)."""
    await tenant.add("tools", tool("2fa/enable", ECHO, schema=ODD))
    stored = {"部門": "x", "ids[]": [1]}
    for name in ("2fa/enable", "_2fa_enable"):
        for arguments in ({"__": "x", "ids__": [1]}, stored, {"__": "x", "ids[]": [1]}):
            result = (await _call(tenant, name, arguments))["result"]
            assert result["structuredContent"] == stored, (name, arguments)
    neither = (await _call(tenant, "_2fa_enable", {"__": "x"}))["result"]
    unknown = (await _call(tenant, "_2fa_enable", {"__": "x", "all": True, "more": 1}))["result"]

    assert neither["isError"]
    assert unknown["isError"]
    audit = (await tenant.replicas.a.gateway.admin.get(f"/tenants/{tenant.slug}/audit")).json()
    assert {entry["target"] for entry in audit["items"] if entry["kind"] != "change"} == {"2fa/enable"}


async def test_another_tool_leaves_a_renamed_tool_callable(tenant: Tenant) -> None:
    """Ours: the exact name wins, the other gets a digest, and both of its forms call it (CLN-1)."""
    await tenant.add("tools", tool("a.b", {"kind": "template", "text": "dot"}))
    alone = set(await _listed(tenant))
    await tenant.add("tools", tool("a_b", {"kind": "template", "text": "line"}, enabled=False))
    [marked] = [name for name in await _listed(tenant) if name.startswith("a_b")]
    missing = await _call(tenant, "a_b")
    path = f"/tenants/{tenant.slug}/tools/a_b"
    (await tenant.replicas.a.gateway.admin.patch(path, json={"enabled": True})).raise_for_status()
    texts = [(await _call(tenant, name))["result"]["content"][0]["text"] for name in ("a_b", "a.b", marked)]
    (await tenant.replicas.a.gateway.admin.delete(path)).raise_for_status()
    after = set(await _listed(tenant))
    again = [(await _call(tenant, name))["result"]["content"][0]["text"] for name in ("a_b", "a.b", marked)]

    assert "a_b" in alone
    assert re.fullmatch("a_b_[0-9a-f]{8}", marked)
    assert missing["error"]["code"] == -32602  # a disabled tool keeps its name
    assert texts == ["line", "dot", "dot"]
    assert after == alone
    assert again == ["dot"] * 3


async def test_rules_see_the_stored_name_alone(tenant: Tenant) -> None:
    """Ours: no rule is passed by calling a tool by another of its names (CLN-1, SAF-2, IDN-4)."""
    await tenant.add("tools", tool("a.b", {"kind": "template", "text": "dot"}))
    await tenant.add("tools", tool("c.d", {"kind": "template", "text": "dot"}))
    admin, place = tenant.replicas.a.gateway.admin, f"/tenants/{tenant.slug}"
    rules = [{"tool": "a.b", "decision": "deny", "reason": "never"}, {"tool": "c_d", "decision": "deny"}]
    (await admin.patch(f"{place}/policy", json={"rules": rules})).raise_for_status()
    denied = [(await _call(tenant, name))["result"]["isError"] for name in ("a.b", "a_b")]
    allowed = (await _call(tenant, "c_d"))["result"]["isError"]
    body = {"include": [{"names": ["c.d"]}]}
    (await admin.put(f"{place}/profiles/some", json=body)).raise_for_status()
    hidden = {"rules": [{"effect": "deny", "who": ["everyone"], "what": {"names": ["c.d"]}}]}

    assert denied == [True, True]
    assert allowed is False
    assert set(await _listed(tenant, profile="some")) == {"c_d"}
    (await admin.patch(f"{place}/access", json=hidden)).raise_for_status()
    assert "c_d" not in await _listed(tenant)
    assert [(await _call(tenant, name))["error"]["code"] for name in ("c.d", "c_d")] == [-32602] * 2


async def test_the_admin_api_shows_the_listed_form_and_refusing_clients(tenant: Tenant) -> None:
    """Ours: limits that no form can meet are named with the remedy (CLN-1)."""
    long = {"description": "x" * 1100}
    exact: dict[str, Any] = {**ODD, "$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {}}}
    await tenant.add("tools", tool("n" * 60, ECHO, definition=long))
    await tenant.add("tools", tool("exact", ECHO, schema=exact))
    admin, place = tenant.replicas.a.gateway.admin, f"/tenants/{tenant.slug}/tools"
    shown = (await admin.get(f"{place}/{'n' * 60}/listed")).json()
    kept = (await admin.get(f"{place}/exact/listed")).json()

    assert shown["name"] == shown["definition"]["name"] == "n" * 60
    assert [limit["clients"] for limit in shown["limits"]] == [["Cursor"], ["Claude Code", "Codex"], ["OpenAI API"]]
    assert kept["definition"]["inputSchema"] == exact == (await _listed(tenant))["exact"]["inputSchema"]
    assert "Claude API" in kept["limits"][0]["clients"]


@pytest.fixture(scope="module")
async def plain(servers: TestServers) -> Any:
    """A gateway with the page limits of production."""
    limits = {"list_page_items": Settings.model_fields["list_page_items"].default}
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.empty_redis(), **limits) as gateway:
            yield gateway


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_thousand_tools_are_one_page(plain: RunningGateway, era: Any) -> None:
    """Ours: clients that read the first page alone have every tool, in each era (CLN-1)."""
    slug = f"many-{era}"
    await plain.create_tenant(slug)
    key = await plain.create_key(slug)
    await plain.import_document(slug, many("http://127.0.0.1:1", 990))
    async with plain.client(slug, key, era) as client:
        first = await client.list_tools()
        again = await client.list_tools(cache_mode="refresh")

    assert (len(first.tools), first.next_cursor) == (990, None)
    assert again.tools == first.tools
