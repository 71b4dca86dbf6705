"""Buffers, diagnostics and the selection of real editors through the connector, and reports of their changes."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import NotFound
from tests.support.neovim import Attached, Editor, attached, running_editor, setup

URI = "nvim://editor/"


async def content(one: Attached, name: str) -> Any:
    """The JSON content of a resource."""
    found = await one.read(URI + name)
    assert (found["uri"], found["mimeType"]) == (URI + name, "application/json")
    return json.loads(found["text"])


async def autocommands(editor: Editor) -> int:
    """The number of autocommands that the plugin has in the editor."""
    count = "return #vim.tbl_filter(function(one) return (one.group_name or ''):find('mcp_gateway') end, "
    return int(await editor.lua(count + "vim.api.nvim_get_autocmds({}))"))


async def nothing_left(editor: Editor) -> bool:
    """Wait in the editor until the plugin has no autocommand there."""
    return bool(
        await editor.lua("""
        return vim.wait(5000, function()
          return #vim.tbl_filter(function(one)
            return (one.group_name or ""):find("mcp_gateway")
          end, vim.api.nvim_get_autocmds({})) == 0
        end, 10)
        """)
    )


async def test_the_resources_of_an_editor_are_listed_beside_its_tools(tmp_path: Path) -> None:
    """Ours: three resources and the template of buffers, below the name of the source (DYN-1)."""
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address, name="my editor") as one:
        found = await one.attachment.discover()

    assert found.can_subscribe
    assert [primitive.name for primitive in found.primitives] == [
        "nvim://my%20editor/buffers",
        "nvim://my%20editor/diagnostics",
        "nvim://my%20editor/selection",
        "nvim://my%20editor/buffer/{number}",
    ]


async def test_buffers_are_read(tmp_path: Path) -> None:
    """Ours: the listed buffers, and the text as it is in the editor, saved or not (RES-1)."""
    (tmp_path / "a.txt").write_text("print('é')\n")
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as one:
        await editor.lua(f"vim.cmd('edit {tmp_path}/a.txt') vim.api.nvim_buf_set_lines(0, 1, 1, false, {{'x', ''}})")
        buffers = await content(one, "buffers")
        number = buffers["buffers"][-1]["number"]
        assert (buffers["total"], buffers["truncated"]) == (len(buffers["buffers"]), False)
        assert buffers["buffers"][-1] == {
            "number": number,
            "path": f"{tmp_path}/a.txt",
            "filetype": "text",
            "modified": True,
            "loaded": True,
            "lines": 3,
            "current": True,
        }
        assert await one.read(f"{URI}buffer/{number}") == {
            "uri": f"{URI}buffer/{number}",
            "mimeType": "text/plain",
            "text": "print('é')\nx\n",
        }


async def test_binary_large_and_unlisted_buffers(tmp_path: Path) -> None:
    """Ours: bytes arrive as a blob, a file beyond the limit is refused whole, other buffers do not exist (RES-1)."""
    (tmp_path / "bytes").write_bytes(b"a\xff\nb\n")
    (tmp_path / "large").write_bytes(b"x" * 5_000_000 + b"\n")
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as one:
        await editor.lua(f"vim.cmd('edit ++bin {tmp_path}/bytes')")
        found = await one.read(f"{URI}buffer/{(await content(one, 'buffers'))['buffers'][-1]['number']}")
        assert b64decode(found["blob"]) == b"a\xff\nb"
        await editor.lua(f"vim.cmd('edit {tmp_path}/large')")
        with pytest.raises(LiveSourceFailed, match="5000001 bytes; the limit is 4194304"):
            await one.read(f"{URI}buffer/{(await content(one, 'buffers'))['buffers'][-1]['number']}")
        secret = await editor.lua("return vim.api.nvim_create_buf(false, true)")
        for name in (
            f"buffer/{secret}",
            "buffer/999",
            "buffer/0",
            "buffer/-1",
            "buffer/1e3",
            "buffer/1/2",
            "other",
            "",
        ):
            with pytest.raises(NotFound):
                await one.read(URI + name)
        for uri in ("nvim://other/buffers", "file:///etc/passwd", URI + "buffer/" + "9" * 30, 3):
            with pytest.raises(NotFound):
                await one.read(uri)  # type: ignore[arg-type]  # a caller may send any value


async def test_diagnostics_and_the_selection_are_read(tmp_path: Path) -> None:
    """Ours: places count from one; texts of other plugins are made valid (RES-1)."""
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as one:
        await editor.lua("""
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { "first line", "zweite Zeile é", "third" })
        vim.diagnostic.set(vim.api.nvim_create_namespace("x"), 0, {
          { lnum = 1, col = 2, severity = 2, message = "odd \\255", source = "lint", code = 7 },
        })
        vim.cmd("normal! gg0wv")
        vim.cmd("normal! j$h")
        """)
        buffer = (await content(one, "buffers"))["buffers"][0]["number"]
        assert (await content(one, "diagnostics"))["diagnostics"] == [
            {
                "buffer": buffer,
                "path": "",
                "line": 2,
                "column": 3,
                "severity": "warning",
                "message": "odd ?",
                "source": "lint",
                "code": "7",
            }
        ]
        selection = await content(one, "selection")
        assert selection["active"] is True
        assert selection["text"] == "line\nzweite Zeile é"
        assert (selection["first"], selection["last"]) == ({"line": 1, "column": 7}, {"line": 2, "column": 14})
        await editor.lua("""vim.cmd([[execute "normal! \\<Esc>ggV"]])""")
        assert (await content(one, "selection"))["text"] == "first line"
        await editor.lua("""vim.cmd([[execute "normal! \\<Esc>gg0\\<C-v>jll\\<Esc>"]])""")
        after = await content(one, "selection")
        assert (after["active"], after["text"]) == (False, "fir\nzwe")


async def test_changes_are_reported_to_subscribers(tmp_path: Path) -> None:
    """Ours: each subscribed resource by its URI, no other; nothing is left in the editor afterwards (RES-4)."""
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as idle:
        async with attached(editor.address) as one:
            assert await autocommands(editor) == 0
            for name in ("buffer/1", "diagnostics", "selection"):
                await one.subscribe(URI + name)
            assert await autocommands(editor) > 0
            await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a', 'b' })")
            await one.listener.wait(uri=f"{URI}buffer/1")
            await editor.lua(
                "vim.diagnostic.set(vim.api.nvim_create_namespace('x'), 0, { { lnum = 0, col = 0, message = 'm' } })"
            )
            await one.listener.wait(uri=f"{URI}diagnostics")
            await editor.lua("vim.cmd('doautocmd CursorMoved')")
            await one.listener.wait(uri=f"{URI}selection")

            one.listener.updates.clear()
            await one.subscribe(f"{URI}buffer/1", ends=True)
            await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'c' }) vim.cmd('doautocmd CursorMoved')")
            await one.listener.wait(uri=f"{URI}selection")
            assert set(one.listener.updates) == {f"{URI}selection"}
            with pytest.raises(NotFound):
                await one.subscribe("nvim://other/buffers")
        assert await nothing_left(editor)
        assert idle.listener.updates == []


async def test_the_list_of_buffers_brings_their_texts(tmp_path: Path) -> None:
    """Ours: a subscriber of `buffers` learns of changes of each buffer's text, of one opened later too (RES-4)."""
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as one:
        await one.subscribe(f"{URI}buffers")
        await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a' })")
        await one.listener.wait(uri=f"{URI}buffer/1")
        number = await editor.lua(f"vim.cmd('edit {tmp_path}/b.txt') return vim.fn.bufnr()")
        await one.listener.wait(uri=f"{URI}buffers")
        await editor.lua(f"vim.cmd('enew') vim.api.nvim_buf_set_lines({number}, 0, -1, false, {{ 'b' }})")
        await one.listener.wait(uri=f"{URI}buffer/{number}")


async def test_many_changes_are_one_report(tmp_path: Path) -> None:
    """Ours: reports of one resource are at least half a second apart (RES-4)."""
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as one:
        await one.subscribe(f"{URI}buffer/1")
        await editor.lua("for n = 1, 500 do vim.api.nvim_buf_set_lines(0, 0, -1, false, { tostring(n) }) end")
        await one.listener.wait(uri=f"{URI}buffer/1")
        assert (await one.read(f"{URI}buffer/1"))["text"] == "500"
        assert one.listener.updates == [f"{URI}buffer/1"]


async def test_subscriptions_of_one_editor_are_bounded(tmp_path: Path) -> None:
    """Ours: one hundred watched resources; the next is refused, and the others stay (ISO-3)."""
    async with running_editor(tmp_path, setup("")) as editor, attached(editor.address) as one:
        for number in range(1, 101):
            await one.subscribe(f"{URI}buffer/{number}")
        with pytest.raises(LiveSourceFailed, match="at most 100"):
            await one.subscribe(f"{URI}buffers")


async def test_a_user_may_keep_the_editor_to_itself(tmp_path: Path) -> None:
    """Ours: with `resources = false` there are tools only, whatever is requested (DYN-2)."""
    async with running_editor(tmp_path, setup("", "resources = false")) as editor, attached(editor.address) as one:
        found = await one.attachment.discover()
        assert (list(found.primitives), found.can_subscribe) == ([], False)
        for name in ("buffers", "buffer/1", "diagnostics", "selection"):
            with pytest.raises(NotFound):
                await one.read(URI + name)
            await one.subscribe(URI + name)
        assert await autocommands(editor) == 0


async def test_an_attachment_that_broke_leaves_nothing_in_the_editor(tmp_path: Path) -> None:
    """Ours: after a crash of the gateway the first report that finds no channel removes the rest (RES-6)."""
    async with running_editor(tmp_path, setup("")) as editor:
        async with attached(editor.address) as one:
            await one.subscribe(f"{URI}selection")
            one.attachment._rpc._writer.transport.abort()  # type: ignore[attr-defined]  # as a killed process would
            await one.attachment.wait_closed()
        await editor.lua("vim.cmd('doautocmd CursorMoved')")
        assert await nothing_left(editor)
