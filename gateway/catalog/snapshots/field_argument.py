"""The argument `_fields` in listed definitions of imported tools, for profiles that offer it (decision 53)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.definitions.projection import MAX_POINTER_LENGTH
from gateway.domain.tools import FIELDS, PrimitiveOrigin, Tool

MAX_FIELDS = 50

_OWN = f'"{FIELDS}"'.encode()
_SCHEMA: Mapping[str, object] = {
    "type": "array",
    "items": {"type": "string", "maxLength": MAX_POINTER_LENGTH},
    "minItems": 1,
    "maxItems": MAX_FIELDS,
    "description": "JSON Pointers of the parts of the result to return; * is every element. Example: /items/*/id",
}


def offers_fields(tool: Tool) -> bool:
    """True for an imported tool without an argument of this name in its document."""
    return tool.origin is PrimitiveOrigin.SOURCE and _OWN not in tool.definition  # guard: own-fields-argument


def with_fields(definition: bytes) -> bytes:
    """Return the definition with the argument, and without the output schema, because a selection may not match it."""
    found: dict[str, Any] = msgspec.json.decode(definition)
    found.pop("outputSchema", None)
    schema = dict(found["inputSchema"])
    found["inputSchema"] = schema | {"properties": {**schema.get("properties", {}), FIELDS: _SCHEMA}}
    return msgspec.json.encode(found)
