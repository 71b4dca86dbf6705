"""Elicitation form schemas: the flat subset of JSON Schema that clients can show to a user (MCP, elicitation)."""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from gateway.definitions.contract.limits import MAX_CHOICES, MAX_FORM_FIELDS
from gateway.definitions.field_reader import Faults, FieldReader
from gateway.definitions.json_schema.validator import Validator
from gateway.domain.json_access import as_list, as_object, point

_COMMON = ("type", "title", "description", "default")
_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "string": (*_COMMON, "minLength", "maxLength", "pattern", "format", "enum", "enumNames", "oneOf"),
    "number": (*_COMMON, "minimum", "maximum"),
    "integer": (*_COMMON, "minimum", "maximum"),
    "boolean": _COMMON,
    "array": (*_COMMON, "items", "minItems", "maxItems", "uniqueItems"),
}
_FORMATS = ("email", "uri", "date", "date-time")
_MEMBER = "requestedSchema"
_COMPILED = 256
"""Number of compiled schemas in the cache; compiling one takes tens of microseconds."""


def check_ask_schema(schema: Mapping[str, object], where: str, faults: Faults) -> None:
    """Add faults for the parts of the schema that a client could not show as a form.

    Limits such as `minLength` and the `default` are not checked.
    """
    reader = FieldReader(schema, ("$schema", "type", "properties", "required"), where=where, faults=faults)
    reader.choice("type", ("object",), required=True)
    properties = reader.members("properties", required=True) or {}
    if len(properties) > MAX_FORM_FIELDS:
        reader.refuse("properties", f"has more than {MAX_FORM_FIELDS} fields")
        return
    for name, raw in properties.items():
        _check_field(raw, reader.at("properties") + point(name), faults)
    for index, name in enumerate(reader.strings("required", max_items=MAX_FORM_FIELDS, max_length=200)):
        if name not in properties:
            faults.add(reader.at("required") + point(index), "is not one of the properties")


def compile_ask_schema(schema: object) -> Validator:
    """Return the validator for the values that a user enters.

    Raises:
        ValueError: the schema cannot be compiled, for example because a pattern uses look-around.
    """
    try:
        return _compile(msgspec.json.encode({_MEMBER: schema}))
    except TypeError as error:  # a schema from Python code may contain values that are not JSON
        raise ValueError(str(error)) from error


@lru_cache(_COMPILED)
def _compile(definition: bytes) -> Validator:
    return Validator(definition, _MEMBER)


def _check_field(raw: object, where: str, faults: Faults) -> None:
    members = as_object(raw) or {}
    kind = members.get("type")
    known = _KEYWORDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        faults.add(where + "/type", f"must be one of {', '.join(_KEYWORDS)}; a form has no nested objects")
        return
    reader = FieldReader(raw, known, where=where, faults=faults)
    reader.string("title", max_length=200)
    reader.string("description", max_length=2_000)
    if reader.has("format"):
        reader.choice("format", _FORMATS)
    reader.strings("enum", max_items=MAX_CHOICES, max_length=500, min_items=1)
    reader.strings("enumNames", max_items=MAX_CHOICES, max_length=500)
    if reader.has("pattern"):
        _check_pattern(reader)
    _check_choices(reader, "oneOf")
    if kind == "array":
        items = reader.nested("items", ("type", "enum", "anyOf"))
        reader.require("items")
        if items is not None:
            items.strings("enum", max_items=MAX_CHOICES, max_length=500, min_items=1)
            _check_choices(items, "anyOf")
            if items.has("enum") is items.has("anyOf"):
                faults.add(items.where, "must have either enum or anyOf: a form offers choices only")


def _check_pattern(reader: FieldReader) -> None:
    try:
        compile_ask_schema({"pattern": reader.raw("pattern")})
    except ValueError:
        reader.refuse("pattern", "must be a regular expression without look-around and back-references")


def _check_choices(reader: FieldReader, name: str) -> None:
    for index, raw in enumerate(as_list(reader.raw(name)) or ()):
        choice = FieldReader(raw, ("const", "title"), where=reader.at(name) + point(index), faults=reader.faults)
        choice.string("const", max_length=500, required=True, is_blank_allowed=True)
        choice.string("title", max_length=500, required=True)
