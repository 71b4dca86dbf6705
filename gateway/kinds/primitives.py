"""The kinds of primitives that a tenant defines: tools, resources, resource templates and prompts.

The lists of these kinds also show primitives of other origins.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from gateway.domain.json_text import decode_json
from gateway.domain.members.formats import PRIMITIVE_NAME, PRINTABLE
from gateway.domain.tenancy.own_primitives import (
    OwnPrimitive,
    OwnPrompt,
    OwnResource,
    OwnTemplate,
    OwnTool,
    definition_texts,
    key_of,
)
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin
from gateway.kinds.kind import Kind, ListFilter


def _owner(_: OwnPrimitive) -> str:
    """The owner of names of primitives that are stored, beside `builtin`, `code` and `source:NAME`."""
    return "custom"


def _texts(one: OwnPrimitive) -> Iterable[str | None]:
    return (key_of(one), *definition_texts(one.definition))


def _refers(one: OwnPrimitive) -> Iterator[tuple[str, str]]:
    """The objects that a handler names, at any depth: tools, sources and credentials."""
    waiting: list[object] = [decode_json(one.handler)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found = cast("dict[str, object]", value)
            named = (
                ("tool", found.get("tool")),
                ("source", found.get("source")),
                ("credential", found.get("credential")),
            )
            yield from ((kind, name) for kind, name in named if isinstance(name, str))
            waiting += found.values()
        elif isinstance(value, list):
            waiting += cast("list[object]", value)


def _filters() -> Mapping[str, ListFilter[Any]]:
    return {
        "origin": ListFilter(
            type=PrimitiveOrigin, about="Only items of this origin.", value=lambda one: one.status.origin
        ),
        "safety": ListFilter(
            type=Safety, about="Only items with this effective safety level.", value=lambda one: one.status.safety
        ),
        "enabled": ListFilter(
            type=bool, about="Only items that are enabled (true) or disabled (false).", value=lambda one: one.enabled
        ),
    }


TOOL = Kind(
    of=OwnTool,
    stem="Tool",
    name="tool",
    plural="tools",
    id_prefix="tol",
    about="what clients call, as a definition and a handler",
    limit=None,
    form=PRIMITIVE_NAME,
    key_in=("definition", "name"),
    owner=_owner,
    sorts=("name",),
    example={
        "definition": {
            "name": "greet",
            "description": "Greets a person by name.",
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "handler": {"kind": "template", "text": "Hello, {{ name }}!"},
    },
    texts=_texts,
    refers=_refers,
    filters={
        **_filters(),
        "source": ListFilter(
            type=str, about="Only tools of the source of this name.", value=lambda one: one.status.source
        ),
    },
)

RESOURCE = Kind(
    of=OwnResource,
    stem="Resource",
    name="resource",
    plural="resources",
    id_prefix="res",
    about="what clients read at a URI, as a definition and a handler",
    limit=None,
    form=PRINTABLE,
    keyed="uri",
    address="id",
    key_in=("definition", "uri"),
    is_found_by_key=True,
    owner=_owner,
    sorts=("uri", "created_at"),
    example={
        "definition": {"uri": "note://1", "name": "First note", "mimeType": "text/plain"},
        "handler": {"kind": "static", "contents": [{"uri": "note://1", "text": "Buy milk."}]},
    },
    texts=_texts,
    refers=_refers,
    filters={
        **_filters(),
        "uri": ListFilter(type=str, about="Only the item of this URI.", value=lambda one: one.uri),
    },
)

TEMPLATE = Kind(
    of=OwnTemplate,
    stem="Template",
    name="resource_template",
    plural="resource-templates",
    id_prefix="tpl",
    about="what clients read at the URIs of a pattern, as a definition and a handler",
    limit=None,
    form=PRINTABLE,
    keyed="uri_template",
    address="id",
    key_in=("definition", "uriTemplate"),
    key_parameter="uri",
    is_found_by_key=True,
    owner=_owner,
    sorts=("uri", "created_at"),
    example={
        "definition": {"uriTemplate": "memo://{id}", "name": "Memos", "mimeType": "text/plain"},
        "handler": {"kind": "template", "text": "This is memo {{ id }}.", "mimeType": "text/plain"},
    },
    texts=_texts,
    refers=_refers,
    filters={
        **_filters(),
        "uri": ListFilter(type=str, about="Only the item of this URI template.", value=lambda one: one.uri_template),
    },
)

PROMPT = Kind(
    of=OwnPrompt,
    stem="Prompt",
    name="prompt",
    plural="prompts",
    id_prefix="pro",
    about="messages that clients get, as a definition and a handler",
    limit=None,
    form=PRIMITIVE_NAME,
    key_in=("definition", "name"),
    owner=_owner,
    example={
        "definition": {
            "name": "review",
            "description": "Asks for a review of a text.",
            "arguments": [{"name": "text", "required": True}],
        },
        "handler": {
            "kind": "template",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Please review:\n{{ text }}"}}],
        },
    },
    texts=_texts,
    refers=_refers,
    filters=_filters(),
)
