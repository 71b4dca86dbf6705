"""The kinds of values in an OpenAPI document; `bundle` and `schema_ids` use them to find references.

A kind `map:X` is an object with a value of kind X under each key.
"""

from collections.abc import Mapping, Sequence

from gateway.openapi.schema.keywords import CHILD, IN_PLACE, IN_PLACE_LISTS

ANY = "any"
"""A value of unknown kind. A `$ref` in it is a reference."""
LITERAL = "literal"
"""Plain data, such as an example. A `$ref` in it is not a reference."""

SECTIONS: Mapping[str, Sequence[str]] = {
    kind: ("components", kind)
    for kind in (
        "schemas",
        "responses",
        "parameters",
        "examples",
        "requestBodies",
        "headers",
        "securitySchemes",
        "links",
        "callbacks",
    )
}
"""The path to the section of the document for each kind of component."""

SWAGGER_SECTIONS: Mapping[str, Sequence[str]] = {
    "schemas": ("definitions",),
    "parameters": ("parameters",),
    "responses": ("responses",),
}

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_SCHEMAS = (*CHILD, *IN_PLACE, *IN_PLACE_LISTS, "items", "prefixItems", "additionalItems")
_SCHEMA_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_PARAMETER = {"schema": "schemas", "content": "map:mediaTypes", "examples": "map:examples", "items": "schemas"}
_ENCODINGS = {"encoding": "map:encodings", "prefixEncoding": "encodings", "itemEncoding": "encodings"}

_MEMBERS: Mapping[str, Mapping[str, str]] = {
    "document": {
        "paths": "map:pathItems",
        "webhooks": "map:pathItems",
        "components": "components",
        "definitions": "map:schemas",
        "parameters": "map:parameters",
        "responses": "map:responses",
        "securityDefinitions": "map:securitySchemes",
    },
    "components": {kind: f"map:{kind}" for kind in (*SECTIONS, "pathItems", "mediaTypes")},
    "pathItems": {
        **dict.fromkeys(_METHODS, "operations"),
        "parameters": "parameters",
        "additionalOperations": "map:operations",
    },
    "operations": {
        "parameters": "parameters",
        "requestBody": "requestBodies",
        "responses": "map:responses",
        "callbacks": "map:callbacks",
    },
    "parameters": _PARAMETER,
    "headers": _PARAMETER,
    "requestBodies": {"content": "map:mediaTypes"},
    "mediaTypes": {
        "schema": "schemas",
        "itemSchema": "schemas",
        "examples": "map:examples",
        **_ENCODINGS,
    },
    "encodings": {"headers": "map:headers", **_ENCODINGS},
    "responses": {
        "headers": "map:headers",
        "content": "map:mediaTypes",
        "links": "map:links",
        "schema": "schemas",
    },
    "schemas": {**dict.fromkeys(_SCHEMAS, "schemas"), **dict.fromkeys(_SCHEMA_MAPS, "map:schemas")},
    "examples": {"value": LITERAL},
    "links": {},
    "securitySchemes": {},
}
_DATA = frozenset(("example", "default", "enum", "const", "externalValue"))


def kind_of_member(kind: str, key: str) -> str:
    """Return the kind of the member `key` in a value of `kind`."""
    if kind.startswith("map:"):
        return kind.removeprefix("map:")
    if kind == "callbacks":
        return LITERAL if key.startswith("x-") else "pathItems"
    known = _MEMBERS.get(kind, {}).get(key)
    if known is not None:
        return known
    is_data = key in _DATA or key.startswith("x-") or kind in {"schemas", "examples"}
    return LITERAL if is_data else ANY
