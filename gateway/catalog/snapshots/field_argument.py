"""The argument `_fields` in listed definitions of imported tools, for profiles that offer it (decision 53)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.catalog.snapshots.limits import MAX_FIELDS
from gateway.definitions.limits import MAX_POINTER_LENGTH
from gateway.domain.json_text import decode_json
from gateway.domain.tools import FIELDS, PrimitiveOrigin, Tool


class _ListedArguments(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}


class _ListedDefinition(msgspec.Struct):
    schema: _ListedArguments = msgspec.field(name="inputSchema", default_factory=_ListedArguments)


_decode = msgspec.json.Decoder(_ListedDefinition).decode
_OWN = f'"{FIELDS}"'.encode()
FIELDS_SCHEMA: Mapping[str, object] = {
    "type": "array",
    "items": {"type": "string", "maxLength": MAX_POINTER_LENGTH},
    "minItems": 1,
    "maxItems": MAX_FIELDS,
    "description": "JSON Pointers of the parts of the result to return; * is every element. Example: /items/*/id",
}


def offers_fields(tool: Tool) -> bool:
    """True for an imported tool without an argument of this name in its document."""
    if tool.origin is not PrimitiveOrigin.SOURCE:
        return False
    return _OWN not in tool.definition or FIELDS not in _properties(tool.definition)  # guard: own-fields-argument


def with_fields_of_operations(definition: bytes) -> bytes:
    """Return the definition of `call_endpoint` with `_fields` among the arguments of an operation."""
    found: dict[str, Any] = decode_json(definition)
    found["inputSchema"]["properties"]["arguments"]["properties"] = {FIELDS: FIELDS_SCHEMA}
    return msgspec.json.encode(found)


def _properties(definition: bytes) -> Mapping[str, object]:
    """The arguments in a definition; nested properties and values may have the same name."""
    return _decode(definition).schema.properties


def with_fields(definition: bytes) -> bytes:
    """Return the definition with the argument, and without the output schema, because a selection may not match it."""
    found: dict[str, Any] = decode_json(definition)
    found.pop("outputSchema", None)
    schema = dict(found["inputSchema"])
    found["inputSchema"] = schema | {"properties": {**schema.get("properties", {}), FIELDS: FIELDS_SCHEMA}}
    return msgspec.json.encode(found)
