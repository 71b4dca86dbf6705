"""Members of `_meta` that a live source may set: those that neither MCP nor the gateway reserves."""

from collections.abc import Mapping
from typing import Final

_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp", "gateway"})
"""Labels of reserved prefixes (MCP 2025-11-25, General fields), and the gateway's own."""
_KNOWN: Final = frozenset({"io.modelcontextprotocol/ui"})
"""Reserved members that servers set for clients."""
_OF_REQUESTS: Final = frozenset({"progressToken"})


def foreign_meta(meta: Mapping[str, object]) -> dict[str, object]:
    """Return the members without reserved ones: a source could otherwise claim a task or a decision of the gateway."""
    return {name: value for name, value in meta.items() if not _is_reserved(name)}  # guard: live-meta


def _is_reserved(name: str) -> bool:
    prefix, slash, _ = name.partition("/")
    labels = prefix.lower().split(".") if slash else ()
    return name in _OF_REQUESTS or (name not in _KNOWN and not _RESERVED.isdisjoint(labels))
