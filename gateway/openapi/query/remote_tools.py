"""Tools in the form in which the query tools show operations of documents."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.domain.json_text import decode_object
from gateway.domain.tools import Tool
from gateway.openapi.query.argument_words import argument_words
from gateway.openapi.query.limits import MAX_SUMMARY_LENGTH
from gateway.openapi.query.outline import Outline, OutlinedOperation

REMOTE_METHOD: Final = "TOOL"
"""The method of tools that are no operations of a document; a tool's path is its name."""
_SHOWN = ("outputSchema", "annotations")


def outline_tools(name: str, tools: Mapping[str, Tool]) -> Outline:
    """Return the outline of tools by identity: `TOOL name`, or `METHOD path` of an operation that is listed as a tool.

    Their details are limited to the tools' definitions; it has no schemas, because each tool contains its own.
    """
    ordered = sorted(tools.items(), key=lambda item: item[1].name)
    endpoints = tuple(_endpoint(identity, tool) for identity, tool in ordered)
    return Outline(title=name, version="", summary="Tools", endpoints=endpoints)


def _endpoint(identity: str, tool: Tool) -> OutlinedOperation:
    method, _, path = identity.partition(" ")
    definition = decode_object(tool.definition)
    description = str(definition.get("description") or "")
    summary = str(definition.get("title") or description.strip().partition("\n")[0])
    names, texts = argument_words(definition["inputSchema"])
    return OutlinedOperation(
        method=method,
        path=path,
        summary=summary[:MAX_SUMMARY_LENGTH],
        description=description,
        parameters=names,
        argument_text=texts,
        details=msgspec.Raw(msgspec.json.encode({key: definition[key] for key in _SHOWN if key in definition})),
    )
