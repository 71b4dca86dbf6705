"""The reference of the admin API as headings, lists and tables, made from its OpenAPI document.

`gateway.admin.openapi.reference_page` writes it as HTML for `/admin/docs`; the site of the documents has it as
Markdown. Texts are one line each, with code in backticks and links to objects as `[Name](#name)`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gateway.admin.endpoint import Route

Json = Mapping[str, Any]

_OF_ALL = ("400", "401", "403", "500", "503")
"""Statuses with which every operation can be refused."""
_JSON, _PROBLEM = "application/json", "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceHeading:
    """A heading below the title of the page: 2 for a tag, 3 for an operation or an object."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceParagraph:
    """One paragraph."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceList:
    """The facts of an operation."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTable:
    """The members of an object."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = ReferenceHeading | ReferenceParagraph | ReferenceList | ReferenceTable


def write_reference(document: Json, routes: Sequence[Route]) -> Iterator[Block]:
    """Write what holds for all operations, each operation by tag and path, then each object by name."""
    for paragraph in document["info"]["description"].split("\n\n"):
        yield ReferenceParagraph(text=_line(paragraph))
    refusals = ", ".join(f"`{status}`" for status in _OF_ALL)
    yield ReferenceParagraph(text=f"Every operation can be refused with {refusals}; it lists its further statuses.")
    known = {(route.method.lower(), route.path): route for route in routes}
    for tag in document["tags"]:
        yield ReferenceHeading(level=2, text=tag["name"], anchor=f"tag-{tag['name']}")
        yield ReferenceParagraph(text=_line(tag["description"]))
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][0] == tag["name"]:
                    yield from _operation(f"{method.upper()} {path}", operation, known.get((method, path)))
    yield ReferenceHeading(level=2, text="Objects", anchor="objects")
    schemas: Json = document["components"]["schemas"]
    for name in sorted(schemas):
        yield from describe_object(name, schemas[name])


def describe_object(name: str, schema: Json) -> Iterator[Block]:
    """Describe an object of the document, or of another JSON Schema, with a table of its members."""
    yield ReferenceHeading(level=3, text=name, anchor=name.lower())
    if meaning := schema.get("description"):
        yield ReferenceParagraph(text=_line(meaning))
    properties: Json = schema.get("properties", {})
    if not properties:
        yield ReferenceParagraph(text=_type({key: value for key, value in schema.items() if key != "description"}))
        return
    required: Sequence[str] = schema.get("required", ())
    rows = [
        (f"`{field}`{'' if field in required else ' (optional)'}", _type(value), _line(value.get("description", "")))
        for field, value in properties.items()
    ]
    yield ReferenceTable(head=("field", "type", "meaning"), rows=rows)


def _operation(title: str, operation: Json, route: Route | None) -> Iterator[Block]:
    yield ReferenceHeading(level=3, text=title, anchor=operation["operationId"])
    yield ReferenceParagraph(text=_line(operation["summary"]))
    yield ReferenceList(items=[*_facts(operation, route)])


def _facts(operation: Json, route: Route | None) -> Iterator[str]:
    if route is not None:
        yield f"permitted to: {_permitted(route)}"
    for parameter in operation.get("parameters", ()):
        if parameter["in"] != "path":
            where = "" if parameter["in"] == "query" else f" ({parameter['in']})"
            yield f"`{parameter['name']}`{where}: {_type(parameter['schema'])}. {_line(parameter['description'])}"
    if "requestBody" in operation:
        yield f"body: {_type(operation['requestBody']['content'][_JSON]['schema'])}"
    refused: list[str] = []
    for status, answer in operation["responses"].items():
        content: Mapping[str, Any] = answer.get("content", {})
        if _PROBLEM in content:
            refused += [] if status in _OF_ALL else [f"`{status}`"]
            continue
        media_type, shown = next(iter(content.items()), ("", cast("dict[str, Any]", {})))
        lines = "" if media_type in {"", _JSON} else f", one per line (`{media_type}`)"
        yield f"`{status}`: {_type(shown['schema']) + lines if shown else 'no body'}"
    if refused:
        yield f"refused with: {', '.join(refused)}"


def _permitted(route: Route) -> str:
    scopes = [f"`{scope}`" for scope in sorted(route.scopes)]
    return " or ".join(["the operator", *(["a key of the tenant with " + " or ".join(scopes)] if scopes else [])])


def _type(schema: Json) -> str:
    """Return the type of a value in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[word]))
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of {_type(schema['additionalProperties'])}"
        case str(named):
            return named if "format" not in schema else f"{named} ({schema['format']})"
        case _:
            return "anything"


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
