"""Real editors behind two replicas: a tenant's MCP clients list and call their tools and read their buffers."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from tests.support.neovim import Editor, running_editor, setup
from tests.support.primitives import add
from tests.support.replicas import Replicas, running_replicas, tool_names, until
from tests.support.servers import TestServers

WHO = """
whoami = {
  description = "Name of the editor.",
  parameters = { type = "object", properties = { loud = { type = "boolean" } }, additionalProperties = false },
  handler = function(params)
    return params.loud and MCP.error("LOUD", "NAME!", { name = "NAME" }) or MCP.text("NAME")
  end,
}
"""
NEVER = 'never = { description = "x", async = true, handler = function() vim.g.started = true end }'
SEEN_S = 20
"""A change is listed within seconds; a busy machine may take longer."""


@pytest.fixture(scope="module")
async def replicas(servers: TestServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Replicas]:
    """Two gateway processes."""
    folder = tmp_path_factory.mktemp("replicas")
    with servers.database() as database:
        async with running_replicas(database.app_url, servers.empty_redis(), folder) as started:
            yield started


async def attach(replicas: Replicas, slug: str, **editors: Editor) -> str:
    """A tenant with these editors as live sources; its key."""
    admin = replicas.a.gateway.admin
    await replicas.a.gateway.create_tenant(slug)
    key = await replicas.a.gateway.create_key(slug, "mcp")
    allowed = [editor.address for editor in editors.values()]
    (await admin.put(f"/tenants/{slug}/egress", json={"allow": allowed})).raise_for_status()
    for name, editor in editors.items():
        body = {
            "kind": "neovim",
            "settings": {"address": editor.address},
            "prefix": f"{name}_",
            "accepts_changes": True,
        }
        await add(replicas.a.gateway, slug, "live-sources", {"name": name, **body})
    return key


async def listed(client: Client, *names: str) -> None:
    """Wait until the client lists exactly these tools."""

    async def is_so() -> bool:
        return sorted(await tool_names(client)) == sorted(names)

    await until(is_so, seconds=SEEN_S)


async def called(client: Client, tool: str, **arguments: object) -> Any:
    """The result of a tool."""
    with anyio.fail_after(SEEN_S):
        return await client.call_tool(tool, arguments)


async def test_editors_of_equal_tools_are_called_at_any_replica(replicas: Replicas, tmp_path: Path) -> None:
    """Ours: each editor's tool has its prefix, and each call reaches the editor it names (DYN-1, DYN-2, DYN-4)."""
    async with (
        running_editor(tmp_path / "one", setup(WHO.replace("NAME", "first"))) as first,
        running_editor(tmp_path / "two", setup(WHO.replace("NAME", "second"))) as second,
    ):
        key = await attach(replicas, "acme", one=first, two=second)
        for replica in replicas.all:
            async with replicas.client("acme", key, to=replica) as client:
                await listed(client, "one_whoami", "two_whoami")
                assert (await called(client, "one_whoami")).content[0].text == "first"
                assert (await called(client, "two_whoami")).content[0].text == "second"
                loud = await called(client, "two_whoami", loud="true")
                fault = {"code": "LOUD", "message": "second!", "data": {"name": "second"}}
                assert (loud.is_error, loud.meta["error"]) == (True, fault)
                wrong = await called(client, "one_whoami", connection_id="two")
                assert wrong.is_error
                assert "connection_id" in wrong.content[0].text


async def test_buffers_are_read_and_their_updates_arrive(replicas: Replicas, tmp_path: Path) -> None:
    """Ours: resources of the editor at the replica that does not hold it, updates included (DYN-1, RES-4)."""
    async with running_editor(tmp_path / "one", setup(WHO)) as editor:
        key = await attach(replicas, "buffers", one=editor)
        for replica in replicas.all:
            async with replicas.client("buffers", key, to=replica) as client:
                await listed(client, "one_whoami")
                uri = "nvim://one/buffer/1"
                async with client.listen(resource_subscriptions=[uri]) as events:
                    text = f"text of {replica.name}"
                    await editor.lua(f"vim.api.nvim_buf_set_lines(0, 0, -1, false, {{ '{text}' }})")
                    with anyio.fail_after(SEEN_S):
                        assert (await anext(events)) == ResourceUpdated(uri=uri)
                    found = (await client.read_resource(uri)).contents[0]
                    assert found.text == text  # type: ignore[union-attr]


async def test_undeclared_tools_of_a_configuration_are_gone(replicas: Replicas, tmp_path: Path) -> None:
    """Ours: `setup` again changes the lists of open clients at both replicas (DYN-1)."""
    async with running_editor(tmp_path / "one", setup(WHO)) as editor:
        key = await attach(replicas, "reload", one=editor)
        async with (
            replicas.client("reload", key, to=replicas.a) as one,
            replicas.client("reload", key, to=replicas.b) as two,
        ):
            await listed(one, "one_whoami")
            await editor.lua(
                setup('other = { description = "x", handler = function() return MCP.text("o") end }, bad = {}')
            )
            for client in (one, two):
                await listed(client, "one_other")
                assert (await called(client, "one_other")).content[0].text == "o"
                with pytest.raises(MCPError):
                    await called(client, "one_whoami")
        shown = (await replicas.b.gateway.admin.get("/tenants/reload/live-sources/one")).json()
        assert shown["status"]["notices"] == ["tool bad: missing description"]


async def test_a_killed_editor_takes_its_tools_with_it(replicas: Replicas, tmp_path: Path) -> None:
    """Ours: the call in flight ends cleanly within 5 s, the list is empty, the other editor serves on (DYN-1)."""
    async with (
        running_editor(tmp_path / "one", setup(f"{WHO}, {NEVER}")) as first,
        running_editor(tmp_path / "two", setup(WHO.replace("NAME", "second"))) as second,
    ):
        key = await attach(replicas, "killed", one=first, two=second)
        async with (
            replicas.client("killed", key, to=replicas.a) as one,
            replicas.client("killed", key, to=replicas.b) as two,
        ):
            for client in (one, two):
                await listed(client, "one_whoami", "one_never", "two_whoami")
            calls = [asyncio.create_task(called(client, "one_never")) for client in (one, two)]
            assert await first.lua("return vim.wait(10000, function() return vim.g.started end, 10)")
            await asyncio.gather(called(one, "two_whoami"), called(two, "two_whoami"))
            first.kill()
            with anyio.fail_after(5):
                for ended in await asyncio.gather(*calls):
                    assert ended.is_error
                    assert "attach" in ended.content[0].text
            for client in (one, two):
                await listed(client, "two_whoami")
                assert (await called(client, "two_whoami")).content[0].text == "second"
