"""The plugin by itself, run by the editor: `setup`, `execute_tool` and the command, as a configuration has them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.neovim import PLUGIN, command_of, setup


def run_in_editor(folder: Path, lua: str) -> str:
    """The texts that `say` is given by Lua code, and what the editor shows."""
    script, shown = folder / "script.lua", folder / "shown"
    begins = f"""
    vim.opt.runtimepath:prepend([[{PLUGIN}]])
    local file = io.open([[{shown}]], "w")
    function say(...) file:write(vim.inspect(...), "\\n") file:flush() end
    vim.notify = function(text, level) say(level .. " " .. text) end
    """
    script.write_text(begins + lua)
    command, variables = command_of()
    ended = subprocess.run(
        [*command, "-u", "NONE", "-c", f"luafile {script}", "-c", "qall!"],
        env=variables,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Error" not in ended.stderr, ended.stderr
    return shown.read_text()


def test_tools_are_run_by_name(tmp_path: Path) -> None:
    """Ours: `execute_tool` returns a result for every outcome, and waits for asynchronous tools (DYN-4)."""
    tools = """
    hello = { description = "x", handler = function(params) return MCP.text("hello " .. (params.name or "?")) end },
    raises = { description = "x", handler = function() error("boom", 0) end },
    later = {
      description = "x", async = true,
      handler = function(_, done) vim.defer_fn(function() done(MCP.text("late")) end, 5) end,
    },
    """
    shown = run_in_editor(
        tmp_path,
        setup(tools)
        + """
        say(MCP.execute_tool("hello", { name = "you" }).content[1].text)
        say(MCP.execute_tool("hello").content[1].text)
        say(MCP.execute_tool("later", {}).content[1].text)
        say(MCP.execute_tool("raises", {})._meta.error)
        say(MCP.execute_tool("none", {})._meta.error.code)
        say(vim.tbl_keys(MCP.get_registered_tools()))
        """,
    )

    expected = ['"hello you"', '"hello ?"', '"late"', '"Tool execution failed: boom"', '"TOOL_NOT_FOUND"', '"raises"']
    places = [shown.index(text) for text in expected]
    assert places == sorted(places)


def test_setup_loads_nothing_else(tmp_path: Path) -> None:
    """Ours: a start costs one module; the others are read when a gateway attaches (DYN-1)."""
    shown = run_in_editor(
        tmp_path,
        setup('hello = { description = "x", handler = function() end }')
        + 'say(vim.tbl_filter(function(name) return name:find("mcp_gateway") end, vim.tbl_keys(package.loaded)))',
    )

    assert shown.strip() == '{ "mcp_gateway" }'


def test_the_command_shows_tools_faults_and_gateways(tmp_path: Path) -> None:
    """Ours: information for a user about a missing tool (DYN-3)."""
    shown = run_in_editor(
        tmp_path,
        setup(
            'hello = { description = "x", handler = function() end }, bad = {},'
            'list = { description = "x", parameters = { type = "array" }, handler = function() end },'
            'unreadable = { description = "\\255", handler = function() end }'
        )
        + 'vim.cmd("McpGateway status") vim.cmd("McpGateway") vim.cmd("McpGateway other")',
    )

    assert '"4 mcp_gateway: tool bad: missing description"' in shown
    assert shown.count("attached gateways: 0") == 2
    assert shown.count("tools: hello") == 2
    assert shown.count("refused: tool bad: missing description") == 2
    assert shown.count("refused: tool list: the type of parameters must be object") == 2
    assert shown.count("refused: tool unreadable: a string is not UTF-8 at byte 1") == 2
    assert "unknown command" in shown


@pytest.mark.parametrize("given", ["nil", "3", "{}", "{ custom_tools = 3 }", "{ custom_tools = { 1, 2 } }"])
def test_setup_survives_wrong_configurations(tmp_path: Path, given: str) -> None:
    """Ours: a wrong configuration is an error message, never an error at the start of the editor (DYN-3)."""
    shown = run_in_editor(
        tmp_path, f'local MCP = require("mcp_gateway") MCP.setup({given}) say(MCP.get_registered_tools())'
    )

    assert shown.strip().endswith("vim.empty_dict()")


def test_objects_are_never_lost(tmp_path: Path) -> None:
    """A fixed bug: LuaJIT of Debian 12 compiled `pairs` so that one object in some thousands came out empty (DYN-1)."""
    shown = run_in_editor(
        tmp_path,
        setup('echo = { description = "x", handler = function(p) return MCP.text(("x"):rep(p.n)) end }')
        + """
        local short, whole = 0, 0
        vim.rpcnotify = function(_, _, kind, _, part)
          if kind == "part" then
            short, whole = short + (#part < 30 and 1 or 0), whole + 1
          end
        end
        local rpc = require("mcp_gateway.rpc")
        for n = 1, 20000 do
          rpc.execute(7, n, "echo", '{"n":' .. (n % 400) .. "}")
          if n % 8 == 0 then
            vim.wait(0, function() return false end)
          end
        end
        vim.wait(5000, function() return whole == 20000 end)
        say({ short, whole })
        """,
    )

    assert shown.strip() == "{ 0, 20000 }"


def test_the_folder_is_a_package_with_a_manual(tmp_path: Path) -> None:
    """Ours: in `pack/*/start` nothing is configured, and `:help mcp_gateway` finds the manual (DYN-1)."""
    package = tmp_path / "site/pack/mcp/start/mcp_gateway"
    shutil.copytree(PLUGIN, package)
    shown = run_in_editor(
        tmp_path,
        f"""
        vim.opt.runtimepath:remove([[{PLUGIN}]])
        vim.opt.packpath:prepend([[{tmp_path}/site]])
        vim.cmd("packloadall")
        vim.cmd("helptags {package}/doc")
        vim.cmd("help mcp_gateway-setup")
        say(vim.fn.expand("%:t"))
        say(type(require("mcp_gateway").setup))
        """,
    )

    assert shown.split() == ['"mcp_gateway.txt"', '"function"']
