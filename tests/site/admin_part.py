"""The reference of the admin API, from its OpenAPI document and the table of its routes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gateway.admin.endpoint import Route
from gateway.admin.openapi.document import describe
from gateway.admin.routes.index import ENDPOINTS, ROOT

Json = Mapping[str, Any]

_OF_ALL = ("400", "401", "403", "500", "503")
_JSON, _PROBLEM = "application/json", "application/problem+json"


def admin_part() -> str:
    """Text about all operations, then every operation by its path, then every object."""
    said: str = _document()["info"]["description"]
    refusals = ", ".join(f"`{status}`" for status in _OF_ALL)
    return f"{said}\n\nEvery operation can be refused with {refusals}; further statuses are listed with it.\n\n{_body()}"


def _body() -> str:
    document = _document()
    routes = {(route.method.lower(), route.path): route for route in ENDPOINTS}
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            told = "\n".join(_operation(method, path, operation, routes.get((method, path))))
            by_tag.setdefault(operation["tags"][0], []).append(told)
    operations = [f"## {tag}\n\n" + "\n".join(by_tag[tag]) for tag in sorted(by_tag)]
    schemas = document["components"]["schemas"]
    objects = ["\n".join(_schema(name, schemas[name])) for name in sorted(schemas)]
    return "\n".join([*operations, "## Objects\n", *objects]).rstrip()


def _document() -> Json:
    return cast("Json", describe(ENDPOINTS, server=ROOT))


def _operation(method: str, path: str, operation: Json, route: Route | None) -> Iterator[str]:
    yield f"### {method.upper()} {path}\n\n{operation['summary']}\n"
    if route is not None:
        yield f"- who: {_who(route)}"
    for parameter in operation.get("parameters", ()):
        if parameter["in"] != "path":
            where = "" if parameter["in"] == "query" else f" ({parameter['in']})"
            said = _type(parameter["schema"])
            yield f"- `{parameter['name']}`{where}: {said}. {_line(parameter['description'])}"
    if "requestBody" in operation:
        yield f"- body: {_type(operation['requestBody']['content'][_JSON]['schema'])}"
    refused: list[str] = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if _PROBLEM in content:
            refused += [] if status in _OF_ALL else [f"`{status}`"]
        else:
            none: tuple[str, Any] = "", {}
            media_type, shown = next(iter(cast("Mapping[str, Any]", content).items()), none)
            lines = "" if media_type in {"", _JSON} else f", one per line (`{media_type}`)"
            yield f"- `{status}`: {_type(shown['schema']) + lines if shown else 'no body'}"
    if refused:
        yield f"- refused with: {', '.join(refused)}"
    yield ""


def _who(route: Route) -> str:
    scopes = [f"`{scope}`" for scope in sorted(route.scopes)]
    return " or ".join(["the operator", *(["a key of the tenant with " + " or ".join(scopes)] if scopes else [])])


def _schema(name: str, schema: Json) -> Iterator[str]:
    yield f"### {name}\n"
    if said := schema.get("description"):
        yield f"{_line(said)}\n"
    properties: Json = schema.get("properties", {})
    if not properties:
        yield f"{_type({key: value for key, value in schema.items() if key != 'description'})}\n"
        return
    required: Sequence[str] = schema.get("required", ())
    yield "| field | type | meaning |\n| --- | --- | --- |"
    for field, described in properties.items():
        mark = "" if field in required else " (optional)"
        yield f"| `{field}`{mark} | {_cell(_type(described))} | {_cell(described.get('description', ''))} |"
    yield ""


def _type(schema: Json) -> str:
    """What a value may be, in a few words."""
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


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")
