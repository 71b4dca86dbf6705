"""Validation of `x-mcp-header` marks (arguments mirrored into headers). Clients ignore a tool with an invalid mark."""

import re

from gateway.definitions.field_reader import Faults
from gateway.definitions.json_schema.tree import SchemaNode, SchemaTree
from gateway.domain.json_access import point

KEYWORD = "x-mcp-header"

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_TYPES = ("string", "integer", "boolean")


def check_mirrored_headers(tree: SchemaTree, where: str, faults: Faults) -> None:
    """Add a fault for each mark that clients would refuse (MCP 2026-07-28, transports)."""
    seen: set[str] = set()
    for node in tree.nodes:
        if KEYWORD not in node.schema:
            continue
        name = node.schema[KEYWORD]
        reason = _objection(node)
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            reason = "must be the name of a header"
        elif name.lower() in seen:
            reason = "names the header of another argument"
        else:
            seen.add(name.lower())
        if reason is not None:
            faults.add(where + point(*node.path, KEYWORD), reason)


def _objection(node: SchemaNode) -> str | None:
    if not node.path or any(keyword != "properties" for keyword in node.path[::2]):
        return "is allowed only in properties of the input schema and of its objects"
    if node.schema.get("type") not in _TYPES:
        return f"needs one of the types {', '.join(_TYPES)} beside it"
    return None
