"""Tools of real editors through the connector: discovery, calls, reload, crash, and failing handlers."""

import asyncio
import os
import re
from pathlib import Path

import pytest

from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import EgressDenied, NotFound
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.neovim.connector import NeovimConnector
from tests.deploy.sockets import free_port
from tests.support.allow_lists import OneAllowList
from tests.support.neovim import ACME, Attached, RecordingListener, attached, running_editor, setup, source_of

NAME = 'whoami = { description = "Name of the editor.", handler = function() return MCP.text("NAME") end }'


async def until(attempt: Attached, expression: str) -> None:
    """Wait until a Lua expression holds in the editor; the tool `eval` evaluates it."""
    async with asyncio.timeout(10):
        while await attempt.text("eval", code=expression) != "true":  # each round is a call: it leaves time to others
            pass


EVAL = """
eval = {
  description = "Evaluate an expression.",
  handler = function(params) return MCP.json(loadstring("return " .. params.code)()) end,
}
"""


async def test_tools_are_discovered_with_their_definitions(tmp_path: Path) -> None:
    """Ours: each tool of the configuration has its description and schema; none is an empty object (DYN-1, DYN-3)."""
    tools = """
    save = {
      description = "Save.",
      title = "Save all",
      annotations = { readOnlyHint = false },
      parameters = {
        type = "object",
        properties = { deep = { type = "object", properties = {}, default = {}, required = {} }, any = {} },
        required = { "deep" },
        additionalProperties = {},
      },
      handler = function() end,
    },
    plain = { description = "Plain.", handler = function() end },
    empty = { description = "Empty.", parameters = {}, handler = function() end },
    """
    async with running_editor(tmp_path, setup(tools)) as editor, attached(editor.address) as one:
        assert (await one.attachment.discover()).title.startswith("Neovim 0.")
        found = await one.tools()

    nothing: dict[str, object] = {"type": "object", "properties": {}}
    assert found["plain"] == {"name": "plain", "description": "Plain.", "inputSchema": nothing}
    assert found["empty"]["inputSchema"] == nothing
    assert found["save"] == {
        "name": "save",
        "title": "Save all",
        "description": "Save.",
        "annotations": {"readOnlyHint": False},
        "inputSchema": {
            "type": "object",
            "properties": {"deep": {"type": "object", "properties": {}, "default": {}, "required": []}, "any": {}},
            "required": ["deep"],
            "additionalProperties": {},
        },
    }


async def test_one_bad_declaration_costs_one_tool(tmp_path: Path) -> None:
    """Ours: each has its notice, in the editor and for the source's author (DYN-3)."""
    configuration = (
        "noticed = {}\nvim.notify = function(text, level) noticed[#noticed + 1] = level .. text end\n"
        + setup(f"""
        mute = {{ handler = function() end }},
        idle = {{ description = "Idle." }},
        odd = 3,
        strange = {{ description = "x", parameters = "string", handler = function() end }},
        looped = {{ description = "x", parameters = (function() local t = {{}} t.properties = t return t end)(),
                    handler = function() end }},
        unreadable = {{ description = "\\255", handler = function() end }},
        [1] = {{ description = "x", handler = function() end }},
        {NAME},
        """)
    )
    async with running_editor(tmp_path, configuration) as editor, attached(editor.address) as one:
        assert set(await one.tools()) == {"whoami"}
        notices = "\n".join((await one.attachment.discover()).notices)
        noticed = b"\n".join(await editor.lua("return noticed")).decode()

    declared = ["mute: missing description", "idle: missing handler", "odd: not a table", "strange: parameters"]
    for fault in [*declared, "a tool has no name"]:
        assert fault in notices
        assert f"4mcp_gateway: {'' if fault.startswith('a tool') else 'tool '}{fault}" in noticed
    assert "tool looped: tables are nested more than 60 deep, or contain themselves" in notices
    assert "tool unreadable: a string is not UTF-8 at byte 1" in notices


async def test_arguments_arrive_as_they_were_sent(tmp_path: Path) -> None:
    """Ours: they are data, whatever they spell; null members are absent, empty objects stay objects (DYN-1)."""
    tools = 'echo = { description = "Echo.", handler = function(params) return MCP.json(params) end }'
    sent: dict[str, object] = {
        "quoted": "]] .. os.exit() --[[ \" ' \\ \n\r\t\0 \u2028 😀",
        "numbers": [0, -1, 1.5, 2**53, -(2**53), 1e300],
        "nested": {"list": [], "object": {}, "deep": [[[{"a": [True, False]}]]]},
        "holes": [None, 1, None],
        "name": "os.exit()",
    }
    async with running_editor(tmp_path, setup(tools)) as editor, attached(editor.address) as one:
        result = await one.call("echo", **sent, absent=None)
        assert result["structuredContent"] == sent
        assert await one.text("echo") == "{}"
        assert (await one.call('echo"]] os.exit() --'))["_meta"]["error"]["code"] == "TOOL_NOT_FOUND"
        for inexact in (2**53 + 1, [{"a": -(2**63)}], 10**30):
            with pytest.raises(LiveSourceFailed, match="2\\^53"):
                await one.call("echo", value=inexact)
        with pytest.raises(LiveSourceFailed, match="1048576 bytes"):
            await one.call("echo", value="x" * (1 << 20))
        assert len(await one.text("echo", value="x" * 900_000)) > 900_000


async def test_results_of_each_form_arrive(tmp_path: Path) -> None:
    """Ours: success, error, text and json, and blocks of a handler's own (DYN-4)."""
    tools = """
    done = { description = "x", handler = function() return MCP.success("saved") end },
    counted = { description = "x", handler = function() return MCP.success({ count = 2 }) end },
    listed = { description = "x", handler = function() return MCP.json({ 1, "a", vim.NIL }) end },
    nothing = { description = "x", handler = function() return MCP.json(nil) end },
    refused = {
      description = "x",
      handler = function() return MCP.error("NO_FILE", "No such file", { path = "a" }) end,
    },
    own = {
      description = "x",
      handler = function() return { content = { { type = "image", data = "AA==", mimeType = "image/png" } } } end,
    },
    """
    async with running_editor(tmp_path, setup(tools)) as editor, attached(editor.address) as one:
        assert await one.call("done") == {"content": [{"type": "text", "text": "saved"}]}
        assert await one.call("counted") == {
            "content": [{"type": "text", "text": '{"count":2}'}],
            "structuredContent": {"count": 2},
        }
        assert await one.text("listed") == '[1,"a",null]'
        assert await one.text("nothing") == "null"
        assert (await one.call("own"))["content"][0]["mimeType"] == "image/png"
        assert await one.call("refused") == {
            "isError": True,
            "content": [{"type": "text", "text": "No such file"}],
            "_meta": {"error": {"code": "NO_FILE", "message": "No such file", "data": {"path": "a"}}},
        }


WRONG = [
    ('error("boom")', "boom"),
    ("error({ code = 3 })", "table: 0x"),
    ('error(setmetatable({}, { __tostring = function() error("again") end }))', "an error without text"),
    ("local x = nil; return x.y", "attempt to index"),
    ("return 42", "the handler returned a number"),
    ("return nil", "the handler returned a nil"),
    ("return {}", "the handler returned a table"),
    ("return { content = 'text' }", "the handler returned a table"),
    ("return { content = { 'text' } }", "not a list of content blocks"),
    ("return { content = { { type = 'text' } } }", "not a list of content blocks"),
    ("return { content = { a = { type = 'text', text = '' } } }", "not a list of content blocks"),
    ("return { content = {}, isError = 'yes' }", "isError of the result is not a boolean"),
    ("return MCP.json({ print })", "a function cannot be sent"),
    ("return MCP.json({ a = io.stdout })", "a userdata cannot be sent"),
    ("return MCP.json({ 0 / 0 })", "a number is not finite"),
    ("return MCP.json({ -1 / 0 })", "a number is not finite"),
    ("return MCP.json({ 1, nil, 3 })", "a list has holes"),
    ("return MCP.json({ 1, a = 2 })", "both names and positions"),
    ("return MCP.json({ [true] = 2 })", "both names and positions"),
    ("local t = {}; t.t = t; return MCP.json(t)", "contain themselves"),
    ("local t = {}; for _ = 1, 99 do t = { t } end; return MCP.json(t)", "nested more than 60 deep"),
    ("return MCP.text('a\\255')", "a string is not UTF-8 at byte 2"),
    ("return MCP.text('\\237\\160\\128')", "a string is not UTF-8 at byte 1"),
    ("return MCP.text(('x'):rep(5 * 1024 * 1024))", "more than 4194304 bytes"),
    ("return MCP.error('A', 'b', { print })", "a function cannot be sent"),
    (
        "local t = { 1, 1, 1 }; for _ = 1, 50 do t = { t, t, t } end; return MCP.json(t)",
        "more than 19900 containers",
    ),
]
"""Bodies of failing handlers, with the reason in the error."""


async def test_a_handler_that_goes_wrong_is_an_error_with_a_reason(tmp_path: Path) -> None:
    """Ours: EXECUTION_ERROR and why; the tool beside it goes on (DYN-3, DYN-4)."""
    bad = (
        f'bad_{number} = {{ description = "x", handler = function() {body} end }}'
        for number, (body, _) in enumerate(WRONG)
    )
    async with running_editor(tmp_path, setup(", ".join([*bad, NAME]))) as editor, attached(editor.address) as one:
        for number, (body, reason) in enumerate(WRONG):
            result = await one.call(f"bad_{number}")
            assert result["isError"] is True, body
            assert result["_meta"]["error"]["code"] == "EXECUTION_ERROR", body
            assert reason in result["_meta"]["error"]["message"], body
            assert result["content"] == [{"type": "text", "text": result["_meta"]["error"]["message"]}], body
            assert await one.text("whoami") == "NAME"


async def test_a_large_result_arrives_whole(tmp_path: Path) -> None:
    """Ours: up to 4 MiB, in parts, beside other calls (DYN-1)."""
    tools = f"""
    large = {{ description = "x", handler = function() return MCP.text(("é\\n"):rep(700000)) end }}, {NAME}
    """
    async with running_editor(tmp_path, setup(tools)) as editor, attached(editor.address) as one:
        texts = await asyncio.gather(*(one.text(name) for name in ("large", "whoami", "large")))

    assert texts == ["é\n" * 700_000, "NAME", "é\n" * 700_000]


async def test_asynchronous_tools_run_beside_each_other(tmp_path: Path) -> None:
    """Ours: a job of the editor ends its call when it is done, from any callback, once (DYN-1)."""
    tools = f"""
    job = {{
      description = "x", async = true,
      handler = function(params, done)
        vim.loop.spawn("sh", {{ args = {{ "-c", "read line < " .. params.pipe }} }}, function(code)
          done(MCP.success({{ code = code }}))
          done(MCP.text("twice"))
        end)
      end,
    }},
    raising = {{ description = "x", async = true, handler = function(_, done) error("early") end }}, {NAME}
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with running_editor(tmp_path, setup(tools)) as editor, attached(editor.address) as one:
        job = asyncio.create_task(one.call("job", pipe=str(pipe)))
        assert await one.text("whoami") == "NAME"
        assert "early" in await one.text("raising")
        assert not job.done()
        await asyncio.to_thread(pipe.write_text, "\n")
        assert (await job)["structuredContent"] == {"code": 0}


NEVER = """
never = {
  description = "x", async = true,
  handler = function() vim.g.started = true return function() vim.g.stopped = true end end,
}
"""


async def test_a_tool_that_never_returns_ends_in_time(tmp_path: Path) -> None:
    """Ours: the call fails, its handler is cancelled, and the attachment goes on (DYN-1)."""
    async with (
        running_editor(tmp_path, setup(f"{NEVER}, {EVAL}")) as editor,
        attached(editor.address, timeout_s=0.3) as one,
    ):
        with pytest.raises(LiveSourceFailed, match="did not respond within"):
            await one.call("never")
        await until(one, "vim.g.stopped == true")


async def test_a_cancelled_call_is_cancelled_in_the_editor(tmp_path: Path) -> None:
    """Ours: the handler's cancel function runs; nothing is left of the call (DYN-1)."""
    async with running_editor(tmp_path, setup(f"{NEVER}, {EVAL}")) as editor, attached(editor.address) as one:
        call = asyncio.create_task(one.call("never"))
        await until(one, "vim.g.started == true")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(one, "vim.g.stopped == true")


async def test_running_calls_end_with_the_attachment(tmp_path: Path) -> None:
    """Ours: detaching cancels the calls that an editor runs for the gateway (DYN-1)."""
    async with running_editor(tmp_path, setup(f"{NEVER}, {EVAL}")) as editor, attached(editor.address) as other:
        async with attached(editor.address) as one:
            call = asyncio.create_task(one.call("never"))
            await until(other, "vim.g.started == true")
        with pytest.raises(LiveSourceDetached):
            await call
        await until(other, "vim.g.stopped == true")


async def test_a_blocked_editor_costs_its_own_calls_only(tmp_path: Path) -> None:
    """Ours: a handler that blocks the editor ends in time for the gateway, and the next call finds it again (DYN-1)."""
    tools = (
        f'busy = {{ description = "x", handler = function() vim.loop.sleep(1500) return MCP.text("late") end }}, {NAME}'
    )
    async with (
        running_editor(tmp_path / "a", setup(tools)) as slow,
        running_editor(tmp_path / "b", setup(NAME)) as quick,
        attached(slow.address, timeout_s=0.3) as blocked,
        attached(quick.address) as free,
    ):
        call = asyncio.create_task(blocked.call("busy"))
        assert await free.text("whoami") == "NAME"
        with pytest.raises(LiveSourceFailed, match="did not respond"):
            await call
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await blocked.text("whoami") == "NAME"
                    break
                except LiveSourceFailed:
                    continue


async def test_two_editors_are_never_merged(tmp_path: Path) -> None:
    """Ours: equal names of two editors are two tools, and each call reaches its own editor (DYN-2)."""
    own = 'only_b = { description = "x", handler = function() return MCP.text("b") end }'
    async with (
        running_editor(tmp_path / "a", setup(NAME.replace("NAME", "a"))) as first,
        running_editor(tmp_path / "b", setup(f"{NAME.replace('NAME', 'b')}, {own}")) as second,
        attached(first.address, name="a") as one,
        attached(second.address, name="b") as two,
    ):
        assert (set(await one.tools()), set(await two.tools())) == ({"whoami"}, {"whoami", "only_b"})
        calls = [(attempt, "whoami") for attempt in (one, two) * 50]
        assert await asyncio.gather(*(a.text(tool) for a, tool in calls[:16])) == ["a", "b"] * 8
        assert (await one.call("only_b"))["_meta"]["error"]["code"] == "TOOL_NOT_FOUND"
        with pytest.raises(NotFound):
            await one.read("nvim://b/buffers")


async def test_two_editors_under_load(tmp_path: Path) -> None:
    """Ours: hundreds of calls to two editors at once, each answered by its own (DYN-2)."""
    tools = 'echo = { description = "x", handler = function(p) return MCP.text("NAME" .. p.n .. ("x"):rep(p.n)) end }'
    async with (
        running_editor(tmp_path / "a", setup(tools.replace("NAME", "a"))) as first,
        running_editor(tmp_path / "b", setup(tools.replace("NAME", "b"))) as second,
        attached(first.address) as one,
        attached(second.address) as two,
    ):

        async def work(which: Attached, name: str, part: int) -> None:
            for number in range(part, 200, 8):
                assert await which.text("echo", n=number) == f"{name}{number}{'x' * number}"

        await asyncio.gather(
            *(work(which, name, part) for which, name in ((one, "a"), (two, "b")) for part in range(8))
        )


async def test_an_editor_that_is_killed_ends_its_calls(tmp_path: Path) -> None:
    """Ours: a clean error at once, with the attachment's end; the other editor goes on (DYN-1)."""
    async with (
        running_editor(tmp_path / "a", setup(f"{NEVER}, {EVAL}")) as first,
        running_editor(tmp_path / "b", setup(NAME)) as second,
        attached(first.address) as one,
        attached(second.address) as two,
    ):
        call = asyncio.create_task(one.call("never"))
        await until(one, "vim.g.started == true")
        first.kill()
        async with asyncio.timeout(5):
            with pytest.raises(LiveSourceDetached):
                await call
            assert await one.attachment.wait_closed() == "the editor closed the connection"
        with pytest.raises(LiveSourceDetached):
            await one.call("eval", code="1")
        with pytest.raises(LiveSourceDetached):
            await one.attachment.discover()
        assert await two.text("whoami") == "NAME"


async def test_a_reloaded_configuration_is_reported(tmp_path: Path) -> None:
    """Ours: `setup` again, even by a fresh copy of the module, reports the change to each gateway (DYN-1)."""
    reload = """
    for name in pairs(package.loaded) do
      if vim.startswith(name, "mcp_gateway") then package.loaded[name] = nil end
    end
    """
    async with (
        running_editor(tmp_path, setup(NAME)) as editor,
        attached(editor.address) as one,
        attached(editor.address) as two,
    ):
        await editor.lua(setup('other = { description = "x", handler = function() return MCP.text("2") end }'))
        await asyncio.gather(one.listener.wait(changes=1), two.listener.wait(changes=1))
        assert set(await one.tools()) == {"other"}
        await editor.lua(reload + setup(NAME.replace("NAME", "again")))
        await one.listener.wait(changes=2)
        assert await two.text("whoami") == "again"


async def test_without_the_plugin_there_is_a_notice(tmp_path: Path) -> None:
    """Ours: the editor is attached, with no tools and what to do (DYN-3)."""
    async with running_editor(tmp_path, plugin=False) as editor, attached(editor.address) as one:
        found = await one.attachment.discover()
        assert list(found.primitives) == []
        assert "mcp_gateway is not installed" in found.notices[0]
        with pytest.raises(NotFound):
            await one.call("whoami")
        with pytest.raises(NotFound):
            await one.read("nvim://editor/buffers")


async def test_an_editor_is_reached_over_tcp(tmp_path: Path) -> None:
    """Ours: `tcp:HOST:PORT`, where the operator allowed it (DYN-1)."""
    place = f"127.0.0.1:{free_port()}"
    async with running_editor(tmp_path, setup(NAME), listen=place), attached(f"tcp:{place}") as one:
        assert await one.text("whoami") == "NAME"


async def test_only_allowed_addresses_are_dialled(tmp_path: Path) -> None:
    """Ours: a tenant's setting opens nothing that the operator did not (ISO-5)."""
    async with running_editor(tmp_path, setup(NAME)) as editor, UpstreamClient(egress_allow=["8.8.8.8:1"]) as upstream:
        connector = NeovimConnector(upstream)
        for address in (editor.address, "tcp:8.8.8.8:6666", "tcp:127.0.0.1:22"):
            with pytest.raises(EgressDenied):
                async with connector.attach(source_of(address), RecordingListener()):
                    pass
        for address in (str(editor.socket), "unix:nvim.sock", "tcp:unix:/tmp/x", "127.0.0.1:80", "http://x:80", ""):
            with pytest.raises(LiveSourceFailed, match="must be unix:"):
                async with connector.attach(source_of(address), RecordingListener()):
                    pass


async def test_a_withdrawn_permission_ends_the_attachment(tmp_path: Path) -> None:
    """Ours: the next request is refused, and the attachment ends (ISO-5)."""
    async with running_editor(tmp_path, setup(NAME)) as editor, UpstreamClient() as upstream:
        lists = OneAllowList(ACME, editor.address)
        upstream.set_allow_lists(lists)
        async with attached(editor.address, upstream=upstream) as one:
            assert await one.text("whoami") == "NAME"
            lists.entries = ()
            with pytest.raises(EgressDenied):
                await one.call("whoami")
            assert "no longer allows" in await one.attachment.wait_closed()


async def test_calls_beyond_the_limit_of_an_attachment_are_refused(tmp_path: Path) -> None:
    """Ours: sixteen requests of one attachment run at once; the next is refused, and each ends (ISO-3)."""
    async with running_editor(tmp_path, setup(f"{NEVER}, {NAME}")) as editor, attached(editor.address) as one:
        calls = [asyncio.create_task(one.call("never")) for _ in range(16)]
        await asyncio.sleep(0)
        with pytest.raises(LiveSourceFailed, match="16 requests"):
            await one.call("whoami")
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert await one.text("whoami") == "NAME"


async def test_the_examples_of_the_manual_run(tmp_path: Path) -> None:
    """Ours: each tool of docs/neovim.md does what the page describes (DYN-1)."""
    declared, _, patterns = re.findall(
        r"```lua\n(.*?)```", (Path(__file__).parents[5] / "docs/neovim.md").read_text(), re.DOTALL
    )
    (tmp_path / "Makefile").write_text("test:\n\t@echo green\n")
    async with (
        running_editor(tmp_path, declared) as first,
        running_editor(tmp_path / "second", setup(patterns)) as second,
        attached(first.address) as one,
        attached(second.address) as two,
    ):
        await first.lua(
            f"vim.cmd('edit {tmp_path}/note.txt') vim.api.nvim_buf_set_lines(0, 0, -1, false, {{ 'kept' }})"
        )
        assert await one.text("save_all") == "saved"
        assert (tmp_path / "note.txt").read_text() == "kept\n"

        await second.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a cat, a category, cat' })")
        renamed = await two.call("rename_word", buffer=1, **{"from": "cat", "to": "100%1"})
        assert renamed["structuredContent"] == {"replaced": 2}
        assert (await two.read("nvim://editor/buffer/1"))["text"] == "a 100%1, a category, 100%1"
        missing = await two.call("rename_word", buffer=9, **{"from": "a", "to": "b"})
        assert missing["_meta"]["error"]["code"] == "NO_BUFFER"
        await second.lua(f"vim.cmd('cd {tmp_path}')")
        assert (await two.call("run_tests"))["structuredContent"] == {"code": 0, "output": "green\n"}
