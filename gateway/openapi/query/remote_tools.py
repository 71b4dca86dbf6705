"""The tools of a live source in the form in which the query tools show operations of documents."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.domain.json_access import as_object
from gateway.domain.json_text import decode_object
from gateway.domain.tools import Tool
from gateway.openapi.query.outline import Outline, OutlinedOperation

REMOTE_METHOD: Final = "TOOL"
"""The method of all tools; a tool's path is its name."""
_MAX_SUMMARY_LENGTH = 200
_MAX_PARAMETERS = 100
_SHOWN = ("outputSchema", "annotations")


def outline_tools(name: str, tools: Mapping[str, Tool]) -> Outline:
    """Return the outline of a live source's tools; it has no schemas, because each tool contains its own."""
    endpoints = tuple(_endpoint(tool) for tool in sorted(tools.values(), key=lambda tool: tool.name))
    return Outline(title=name, version="", summary="Tools of a live source", endpoints=endpoints)


def outline_listed(name: str, tools: Mapping[str, Tool]) -> Outline:
    """Return the outline of operations that are listed as tools; their details are limited to the tools'
    definitions.
    """
    endpoints = tuple(_operation(tool) for tool in sorted(tools.values(), key=lambda tool: tool.name))
    return Outline(title=name, version="", summary="Operations that are listed as tools", endpoints=endpoints)


def _operation(tool: Tool) -> OutlinedOperation:
    method, _, path = tool.identity.partition(" ")
    return msgspec.structs.replace(_endpoint(tool), method=method, path=path)


def _endpoint(tool: Tool) -> OutlinedOperation:
    definition = decode_object(tool.definition)
    description = str(definition.get("description") or "")
    summary = str(definition.get("title") or description.strip().partition("\n")[0])
    properties = as_object(definition["inputSchema"].get("properties")) or {}
    return OutlinedOperation(
        method=REMOTE_METHOD,
        path=tool.name,
        summary=summary[:_MAX_SUMMARY_LENGTH],
        description=description,
        parameters=tuple(properties)[:_MAX_PARAMETERS],
        details=msgspec.Raw(msgspec.json.encode({key: definition[key] for key in _SHOWN if key in definition})),
    )
