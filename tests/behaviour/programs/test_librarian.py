"""The example program that users of FastMCP compare: its length, and each of its primitives in memory."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import anyio.to_thread
import pytest
from mcp_types import LoggingMessageNotificationParams

from examples.library.upstream import Library, build_upstream
from examples.serving import serving

EXAMPLES = Path(__file__).parents[3] / "examples"
MAX_LINES = 30
"""Lines with text. The same program for FastMCP 4.2.3 had 34, without an imported document."""


def test_the_program_is_short() -> None:
    """Ours: tools, a template, a prompt, an imported document and the start fit in thirty lines (PRG-1)."""
    lines = [line for line in (EXAMPLES / "librarian.py").read_text().splitlines() if line.strip()]

    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 120


async def test_the_program_keeps_its_promise(tmp_path: Path) -> None:
    """Ours: each primitive of the example is called by a client in memory, against the sample API (PRG-1)."""
    with serving(build_upstream(Library()), port=0) as port:
        gateway = (await anyio.to_thread.run_sync(_load, tmp_path, port)).gateway
        logged: list[object] = []
        reported: list[float] = []

        async def on_log(params: LoggingMessageNotificationParams) -> None:
            logged.append(params.data)

        async def on_progress(progress: float, _: float | None, __: str | None) -> None:
            reported.append(progress)

        async with gateway.client(logging_callback=on_log) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"compare", "estimate", "getBook", "getCover", "listBooks"}
            assert tools["estimate"].input_schema["properties"]["pace"] == {"enum": ["fast", "slow"], "default": "slow"}
            estimated = await client.call_tool("estimate", {"pages": 120, "pace": "fast"})
            assert getattr(estimated.content[0], "text", None) == "2.0"
            books = (await client.call_tool("listBooks", {"limit": 2})).structured_content
            assert books is not None
            numbers = [book["number"] for book in books["books"]]
            compared = await client.call_tool("compare", {"numbers": numbers}, progress_callback=on_progress)
            assert compared.structured_content == {book["title"]: book["year"] for book in books["books"]}
            assert logged == [f"looking up book {number}" for number in numbers]
            assert reported[-1] == 2
            (read,) = (await client.read_resource("shelves://c")).contents
            assert getattr(read, "text", None) == "Shelf 3, from the left."
            (message,) = (await client.get_prompt("recommend", {"topic": "bees"})).messages
            assert getattr(message.content, "text", None) == "Recommend a book about bees to a curious reader."


def _load(folder: Path, port: int) -> ModuleType:
    """Import the example, with the sample API on this port."""
    shutil.copy(EXAMPLES / "librarian.py", folder)
    (folder / "library").mkdir()
    document = (EXAMPLES / "library" / "openapi.yaml").read_text()
    (folder / "library" / "openapi.yaml").write_text(document.replace("127.0.0.1:8091", f"127.0.0.1:{port}"))
    spec = importlib.util.spec_from_file_location("copied_librarian", folder / "librarian.py")
    if spec is None or spec.loader is None:
        pytest.fail("the example cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
