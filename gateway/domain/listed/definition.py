"""Definitions of tools as clients receive them, made of the stored ones."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.domain.json_access import Object, as_object
from gateway.domain.json_text import decode_json
from gateway.domain.listed.arguments import describe_original, renamed_arguments
from gateway.domain.listed.output_schema import loose_output_schema
from gateway.domain.listed.schema import listed_output_schema, listed_schema

_DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def names_dialect(stored: Object) -> bool:
    """True if the input schema names 2020-12: a tenant's own tool with such a schema is listed keyword for keyword."""
    schema = as_object(stored.get("inputSchema")) or {}
    return schema.get("$schema") == _DEFAULT_DIALECT


def renamed_definition(stored: Object, name: str) -> dict[str, Any]:
    """Return a stored definition under a listed name, keyword for keyword."""
    return {**stored, "name": name}


def listed_definition(stored: Object, name: str, *, is_imported: bool = False) -> dict[str, Any]:
    """Return the listed form of a stored definition under this name; that of an imported operation has loose output."""
    schema = as_object(stored.get("inputSchema")) or {}
    listed = {**stored, "name": name, "inputSchema": with_listed_arguments(listed_schema(schema))}
    if (output := as_object(stored.get("outputSchema"))) is not None:
        listed["outputSchema"] = loose_output_schema(output) if is_imported else listed_output_schema(output)
    return listed


def served_bytes(definition: bytes, *, is_imported: bool = False) -> int:
    """Return the bytes of a tool in a list, under its stored name."""
    stored = decode_json(definition)
    return len(written(listed_definition(stored, stored["name"], is_imported=is_imported)))


def written(value: object) -> bytes:
    """Return a JSON value as lists contain it: compact, and with numbers as Python writes them."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def with_listed_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Rename the arguments of a listed schema that some client refuses; the description begins with the stored name."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    renamed = renamed_arguments(properties)
    if not renamed:
        return schema
    listed = {
        renamed.get(name, name): (
            {**one, "description": describe_original(name, one.get("description"))} if name in renamed else one
        )
        for name, one in properties.items()
    }
    required = [renamed.get(name, name) for name in schema.get("required", ())]
    return {**schema, "properties": listed, **({"required": required} if required else {})}


def renamed_of(stored: Object) -> Mapping[str, str]:
    """The listed names of a stored definition's arguments, by stored name; empty for almost all tools."""
    return renamed_arguments(listed_schema(as_object(stored.get("inputSchema")) or {}).get("properties", ()))
