"""Capabilities that a connection declares and those that work are the same, in both eras."""

from typing import Any

import pytest

from tests.behaviour.primitives.conftest import Tenant
from tests.support.handshake import Session, open_session
from tests.support.primitives import add_profile, prompt, static_tool, template, text_prompt, text_resource, tool
from tests.support.replicas import Mode

FAMILIES = ("resources", "prompts", "completions", "logging")
METHODS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "resources": (
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "docs://readme"}),
    ),
    "prompts": (("prompts/list", {}), ("prompts/get", {"name": "greet"})),
    "completions": (
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}},
        ),
    ),
}


async def _bare(tenant: Tenant, *names: str) -> str:
    """A profile without what the tenant has of code; the place of its URL."""
    await add_profile(tenant.replicas.a.gateway, tenant.slug, "bare", include=[{"names": ["own_*", *names]}])
    return f"{tenant.slug}/bare"


async def _declared(tenant: Tenant, place: str, era: Mode) -> dict[str, Any]:
    async with tenant.replicas.client(place, tenant.key, era) as client:
        assert client.server_capabilities is not None
        declared = client.server_capabilities.model_dump(by_alias=True, exclude_none=True, mode="json")
    declared.pop("extensions", None)  # tasks, in 2026-07-28
    return declared


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_capabilities_that_a_profile_lacks_are_not_declared(tenant: Tenant, era: Mode) -> None:
    """MCP: capabilities are declared when they are there; ours: tools always (CAP-1)."""
    place = await _bare(tenant)

    declared = await _declared(tenant, place, era)

    assert declared["tools"]["listChanged"] is True
    assert declared.keys() == {"tools"}


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_each_family_is_declared_as_soon_as_there_is_one(tenant: Tenant, era: Mode) -> None:
    """MCP: resources with a template alone, prompts, completions and logging by what there is (CAP-1)."""
    place = await _bare(tenant, "rows://*")
    completing = {"kind": "template", "text": "x", "completions": {"a": {"values": ["x"]}}}
    found: list[set[str]] = []
    for nouns, body in (
        ("tools", static_tool("own_say")),
        ("resource-templates", template("rows://{id}", {"kind": "template", "text": "x"}, mimeType="text/plain")),
        ("prompts", text_prompt("own_greet")),
        ("prompts", prompt("own_complete", completing, arguments=[{"name": "a"}])),
        ("tools", tool("own_steps", {"kind": "steps", "steps": [{"log": "x"}, {"return": {"text": "x"}}]})),
    ):
        await tenant.add(nouns, body)
        found.append(set(await _declared(tenant, place, era)))

    assert found == [
        {"tools"},
        {"tools", "resources"},
        {"tools", "resources", "prompts"},
        {"tools", "resources", "prompts", "completions"},
        {"tools", "resources", "prompts", "completions", "logging"},
    ]


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_capabilities_of_code_are_declared(tenant: Tenant, era: Mode) -> None:
    """Ours: functions may log, and the almanac has all families (CAP-1, PRG-1)."""
    declared = await _declared(tenant, tenant.slug, era)

    assert declared.keys() == {"tools", *FAMILIES}
    assert declared["resources"] == {"subscribe": True, "listChanged": True}


@pytest.mark.parametrize("family", list(METHODS))
async def test_the_methods_of_a_family_that_is_not_declared_do_not_exist(tenant: Tenant, family: str) -> None:
    """MCP: an undeclared method is -32601, over HTTP 404 in 2026-07-28 (CAP-1)."""
    place = await _bare(tenant)
    gateway = tenant.replicas.b.gateway
    session = await open_session(tenant.replicas.a.gateway, place, tenant.key)
    for method, params in METHODS[family]:
        named = {"mcp_name": params["uri"]} if method == "resources/read" else {}
        modern = await gateway.rpc(place, tenant.key, method, params, **named)
        handshake = await session.rpc(method, params)

        assert (modern.status_code, modern.json()["error"]["code"]) == (404, -32601), method
        assert handshake["error"]["code"] == -32601, method


async def test_methods_answer_from_the_present_catalog(tenant: Tenant) -> None:
    """Ours: primitives that were added after `initialize` answer, removed ones are gone (CAP-1)."""
    place = await _bare(tenant, "docs://*")
    session: Session = await open_session(tenant.replicas.a.gateway, place, tenant.key)
    before = await session.rpc("resources/list")
    stored = await tenant.add("resources", text_resource("docs://readme"))
    during = await session.rpc("resources/list")
    path = f"/tenants/{tenant.slug}/resources/{stored['id']}"
    (await tenant.replicas.a.gateway.admin.delete(path)).raise_for_status()
    after = await session.rpc("resources/list")

    assert "resources" not in session.opened["capabilities"]
    assert before["error"]["code"] == -32601
    assert [each["uri"] for each in during["result"]["resources"]] == ["docs://readme"]
    assert after["error"]["code"] == -32601
