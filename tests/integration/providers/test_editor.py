"""Editors that dial out: real Neovim, the plugin's `provide`, `gateway provide` and the endpoint of providers."""

import asyncio
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import NotFound
from gateway.upstream.live.interfaces import LiveAttachment
from tests.support.neovim import Editor, running_editor, setup
from tests.support.providers import ProviderStand, RecordingClient

TOOLS = """
echo = { description = "Echo.", handler = function(params) return MCP.json(params) end },
never = {
  description = "x", async = true,
  handler = function() vim.g.started = true return function() vim.g.stopped = true end end,
},
large = { description = "x", handler = function() return MCP.text(("x"):rep(4194300)) end },
"""


def configured(folder: Path, stand: ProviderStand, key: str, tools: str = TOOLS) -> str:
    """A configuration that dials the `Stand`."""
    (folder / "key").write_text(f"{key}\n")
    url = f"{stand.url.replace('ws:', 'http:')}/t/acme"
    command = f'{{ "{sys.executable}", "-m", "gateway" }}'
    return setup(
        tools, f'provide = {{url = "{url}", key_file = "{folder}/key", source = "laptop", command = {command} }}'
    )


async def found(stand: ProviderStand, *tools: str) -> LiveAttachment:
    """The editor's attachment, once it offers these tools."""
    for changes in itertools.count(stand.sources.changes["laptop"]):
        attachment = stand.sources.attached.get((TenantId("ten_acme"), "laptop"))
        offered = () if attachment is None else (await attachment.discover()).primitives
        if attachment is not None and {one.name for one in offered if one.family == "tool"} == set(tools):
            return attachment
        await stand.sources.wait_for_change("laptop", changes + 1)
    raise AssertionError


async def until(editor: Editor, expression: str) -> None:
    """Wait in the editor until a Lua expression holds."""
    assert await editor.lua(f"return vim.wait(10000, function() return {expression} end, 10)")


async def call(attachment: LiveAttachment, tool: str, **arguments: object) -> Any:
    """The result of a tool."""
    params = {"name": tool, "arguments": arguments}
    return await attachment.request("tools/call", params, RecordingClient())


async def read(attachment: LiveAttachment, name: str) -> Any:
    """The text of a resource."""
    result = await attachment.request("resources/read", {"uri": f"nvim://laptop/{name}"}, RecordingClient())
    return result["contents"][0]["text"]


async def test_an_editor_that_dials_out_offers_tools_and_resources(stand: ProviderStand, tmp_path: Path) -> None:
    """Ours: the same tools and resources as over the socket, and the list follows `setup` (DYN-1, DYN-6)."""
    key = stand.keys.make("acme")
    async with running_editor(tmp_path, configured(tmp_path, stand, key)) as editor:
        attachment = await found(stand, "echo", "never", "large")
        sent: dict[str, object] = {"quoted": "]] os.exit() \n\u2028😀", "list": [], "object": {}}
        assert (await call(attachment, "echo", **sent))["structuredContent"] == sent
        with pytest.raises(NotFound):
            await call(attachment, "none")
        assert "bytes" in (await call(attachment, "large"))["_meta"]["error"]["message"]

        await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'text' })")
        assert await read(attachment, "buffer/1") == "text"
        assert json.loads(await read(attachment, "buffers"))["total"] == 1
        await attachment.request("resources/subscribe", {"uri": "nvim://laptop/buffer/1"}, RecordingClient())
        await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'other' })")
        await stand.sources.wait_for_update("nvim://laptop/buffer/1")

        later = configured(tmp_path, stand, key, 'other = { description = "x", handler = function() end }')
        await editor.lua(later)
        await found(stand, "other")
        await editor.lua(setup(""))
        await stand.sources.wait_until_gone("laptop")


async def test_a_result_that_the_gateway_would_refuse_is_an_error_of_the_tool(
    stand: ProviderStand, tmp_path: Path
) -> None:
    """Ours: the editor counts values and containers as the gateway does; the connection stays (DYN-1)."""
    tools = """
    build = { description = "x", handler = function(params)
      local items = {}
      for place = 1, params.count do
        items[place] = params.item or place
      end
      return MCP.json({ items = items })
    end },
    """
    async with running_editor(tmp_path, configured(tmp_path, stand, stand.keys.make("acme"), tools)) as editor:
        attachment = await found(stand, "build")
        kinds: list[tuple[Any, int]] = [({"a": 1}, 19_900), ({}, 19_900), ([1, 2, 3, []], 19_900), (None, 99_900)]
        for item, most in kinds:
            for count in (most, most + 200):
                result = await call(attachment, "build", count=count, **({} if item is None else {"item": item}))
                assert "it has more than" in result["content"][0]["text"]
        assert (await call(attachment, "build", count=19_000, item={"a": 1}))["structuredContent"]["items"][18_999]
        assert (await call(attachment, "build", count=99_000))["structuredContent"]["items"][98_999]
        assert await editor.lua("return require('mcp_gateway.provider').status") == b"attached as laptop"


async def test_a_call_over_the_dialled_connection_is_cancelled(stand: ProviderStand, tmp_path: Path) -> None:
    """Ours: the handler's cancel function runs in the editor (DYN-1)."""
    async with running_editor(tmp_path, configured(tmp_path, stand, stand.keys.make("acme"))) as editor:
        attachment = await found(stand, "echo", "never", "large")
        running = asyncio.create_task(call(attachment, "never"))
        await until(editor, "vim.g.started")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(editor, "vim.g.stopped")


async def test_a_wrong_key_is_reported_and_not_tried_again(stand: ProviderStand, tmp_path: Path) -> None:
    """Ours: the user reads why there is no connection (DYN-3)."""
    async with running_editor(tmp_path, configured(tmp_path, stand, "mcpg_live_wrong")) as editor:
        await until(editor, "require('mcp_gateway.provider').status:find('401')")
        assert b"HTTP 401" in await editor.lua("return require('mcp_gateway.provider').status")


async def test_a_broken_connection_is_made_again(stand: ProviderStand, tmp_path: Path) -> None:
    """Ours: the editor resumes, and a call that ran meanwhile gets its result (DYN-6)."""
    tools = """
    slow = {
      description = "x", async = true,
      handler = function(_, done)
        vim.g.started = true
        finish = function() done(MCP.text("done")) end
      end,
    },
    """
    async with running_editor(tmp_path, configured(tmp_path, stand, stand.keys.make("acme"), tools)) as editor:
        attachment = await found(stand, "slow")
        running = asyncio.create_task(call(attachment, "slow"))
        await until(editor, "vim.g.started")
        await editor.lua("""
        for _, channel in ipairs(vim.api.nvim_list_chans()) do
          if channel.stream == "job" then
            vim.loop.kill(vim.fn.jobpid(channel.id), 9)
          end
        end
        """)
        await until(editor, "require('mcp_gateway.provider').status:find('not attached')")
        await editor.lua("finish()")
        async with asyncio.timeout(20):
            assert (await running)["content"][0]["text"] == "done"
