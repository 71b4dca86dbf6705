"""An object that is stored at one replica is visible to open clients of the other."""

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.behaviour.primitives.conftest import Tenant
from tests.behaviour.primitives.test_kinds import era
from tests.support.primitives import static_tool, text_prompt, text_resource
from tests.support.replicas import Mode, until

NOTIFIED_S = 5
"""An event is there within a second; a busy machine may take longer to look."""


async def _states(client: Client, name: str, text: str) -> None:
    """Wait until the open client's call answers this."""

    async def states_it() -> bool:
        try:
            result = await client.call_tool(name)
        except MCPError:  # not there yet
            return False
        return [getattr(block, "text", None) for block in result.content] == [text]

    await until(states_it, seconds=NOTIFIED_S)


@era
async def test_a_tool_lives_with_its_declaration_in_open_clients(tenant: Tenant, era: Mode) -> None:
    """Ours: added, changed, disabled, enabled, removed: each is true for the next call everywhere (PRG-3)."""
    a, b = tenant.replicas.a, tenant.replicas.b
    path = f"/tenants/{tenant.slug}/tools/say"

    async with tenant.replicas.client(tenant.slug, tenant.key, era, to=b) as client:
        await client.list_tools()
        await tenant.add("tools", static_tool("say", "first"))
        await _states(client, "say", "first")
        (await a.gateway.admin.put(path, json=static_tool("say", "second"))).raise_for_status()
        await _states(client, "say", "second")
        for is_enabled in (False, True):
            (await a.gateway.admin.patch(path, json={"enabled": is_enabled})).raise_for_status()
            await _is_there(client, "say", is_enabled=is_enabled)
        (await a.gateway.admin.delete(path)).raise_for_status()
        await _is_there(client, "say", is_enabled=False)


async def _is_there(client: Client, name: str, *, is_enabled: bool) -> None:
    async def as_wanted() -> bool:
        listed = await client.list_tools(cache_mode="refresh")
        return (name in {tool.name for tool in listed.tools}) is is_enabled

    await until(as_wanted, seconds=NOTIFIED_S)


async def test_listeners_at_the_other_replica_are_notified_of_every_family(tenant: Tenant) -> None:
    """MCP: `subscriptions/listen` notifies of tools, resources and prompts, each by its own notification (CAP-2)."""
    added: list[tuple[str, dict[str, Any], str]] = [
        ("tools", static_tool("say"), "ToolsListChanged"),
        ("resources", text_resource("docs://readme"), "ResourcesListChanged"),
        ("prompts", text_prompt("greet"), "PromptsListChanged"),
    ]
    async with (
        tenant.replicas.client(tenant.slug, tenant.key, to=tenant.replicas.b) as client,
        client.listen(tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True) as received,
    ):
        for nouns, body, event in added:
            await tenant.add(nouns, body)
            with anyio.fail_after(NOTIFIED_S):
                assert type(await anext(received)).__name__ == event


@pytest.mark.parametrize("nouns", ["tools", "resources", "prompts"])
async def test_a_taken_name_is_refused_and_the_original_is_still_called(tenant: Tenant, nouns: str) -> None:
    """Ours: 409 names what is taken; what was there answers as before, at both replicas (PRG-4)."""
    bodies: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "tools": (static_tool("say", "first"), static_tool("say", "second")),
        "resources": (text_resource("docs://x", "first"), text_resource("docs://x", "second")),
        "prompts": (text_prompt("greet", "first"), text_prompt("greet", "second")),
    }
    first, second = bodies[nouns]
    await tenant.add(nouns, first)
    refused = await tenant.replicas.b.gateway.admin.post(f"/tenants/{tenant.slug}/{nouns}", json=second)

    assert refused.status_code == 409
    assert refused.json()["conflicts"][0]["name"] in {"say", "docs://x", "greet"}
    async with tenant.replicas.client(tenant.slug, tenant.key) as client:
        for _ in range(2):
            if nouns == "tools":
                reported: Any = (await client.call_tool("say")).content[0]
            elif nouns == "resources":
                reported = (await client.read_resource("docs://x")).contents[0]
            else:
                reported = (await client.get_prompt("greet")).messages[0].content
            assert reported.text == "first"
