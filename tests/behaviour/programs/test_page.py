"""The page "Your own tool in Python": its blocks run in order, and its tests pass."""

import re
from pathlib import Path
from typing import Any

import anyio.to_thread

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def test_the_page_of_python_is_true() -> None:
    """Ours: program, test and import of the page are one module, whose test passes (PRG-1)."""
    blocks = _BLOCK.findall((ROOT / "docs" / "python.md").read_text())
    source = "\n".join(blocks).replace('"examples/', f'"{ROOT}/examples/')
    names: dict[str, Any] = {"__name__": "page"}

    await anyio.to_thread.run_sync(exec, compile(source, "python.md", "exec"), names)
    await names["test_readers_are_reminded"]()

    assert len(blocks) == 4
    async with names["gateway"].client() as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
    assert listed == {"estimate", "remind", "listBooks", "getBook", "getCover", "lendBook"}
