"""Content blocks for older revisions: a kind that a revision lacks is replaced by a text block that names it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

_SINCE: Final[Mapping[str, str]] = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The first revision with each content kind that is newer than 2024-11-05."""

Block = Mapping[str, Any]


def known_blocks(blocks: Iterable[Block], revision: str) -> list[Block]:
    """Adapt the blocks of a tool's result: unsupported links become text with their URI, unsupported audio a note."""
    return [_known(block, revision) for block in blocks]


def known_messages(messages: Iterable[Mapping[str, Any]], revision: str) -> list[Mapping[str, Any]]:
    """Adapt the messages of a prompt or sampling request, like `known_blocks`.

    Lists of blocks are returned unchanged: a revision that allows lists knows every kind.
    """
    return [
        message
        if isinstance(message["content"], list)
        else {**message, "content": _known(message["content"], revision)}
        for message in messages
    ]


def _known(block: Block, revision: str) -> Block:
    kind = block["type"]
    if revision >= _SINCE.get(kind, ""):
        return block
    kept = {"annotations": block["annotations"]} if "annotations" in block else {}
    return {"type": "text", "text": _link(block) if kind == "resource_link" else _omitted(block), **kept}


def _link(block: Block) -> str:
    lines = (f"{block.get('title') or block['name']}: {block['uri']}", block.get("description"))
    return "\n".join(line for line in lines if line)


def _omitted(block: Block) -> str:
    size = len(block["data"].rstrip("=")) * 3 // 4
    return f"[audio omitted: {block['mimeType']}, {size} bytes; clients of MCP 2025-03-26 and later get it]"
