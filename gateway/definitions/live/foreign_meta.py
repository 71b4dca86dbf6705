"""Members of `_meta` that a live source may set: those that neither MCP nor the gateway reserves."""

from collections.abc import Mapping
from typing import Final

from gateway.definitions.live.page_uris import shown_meta
from gateway.domain.live_sources import PAGES_EXTENSION

_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp", "gateway"})
"""Labels of reserved prefixes (MCP 2025-11-25, General fields), and the gateway's own."""
_KNOWN: Final = frozenset({PAGES_EXTENSION})
"""Reserved members that servers set for clients."""
_OF_REQUESTS: Final = frozenset({"progressToken"})


def foreign_meta(source: str, meta: Mapping[str, object]) -> dict[str, object]:
    """Return the members without reserved ones, by which a source could claim a task or a decision of the gateway.

    URIs of pages in them are those that clients see.
    """
    kept = {name: value for name, value in meta.items() if not _is_reserved(name)}  # guard: live-meta
    return {name: shown_meta(source, value) for name, value in kept.items()}


def _is_reserved(name: str) -> bool:
    prefix, slash, _ = name.partition("/")
    labels = prefix.lower().split(".") if slash else ()
    return name in _OF_REQUESTS or (name not in _KNOWN and not _RESERVED.isdisjoint(labels))
