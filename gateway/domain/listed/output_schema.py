"""Output schemas of imported operations: looser than what the document promises (decision 71).

APIs write dates without an offset, leave members out and send null against their own documents. A call that was done
must not look like a failure for that. So clients receive this form, and results are checked against it; the stored
schema stays as the document has it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.domain.json_access import Object, as_list, as_object

_CONDITIONS = ("not", "if", "then", "else", "contains", "minContains", "maxContains")
_DEPENDENCIES = ("dependentRequired", "dependencies")
_PROMISES = ("format", "required", "minProperties", "minItems", "uniqueItems", "propertyNames")
_CLOSED = ("unevaluatedItems", "unevaluatedProperties")
_DEFINITIONS = "#/$defs/"


def loose_output_schema(schema: Object) -> dict[str, Any]:
    """Return the form that accepts what the schema accepts, and also absent members, null and texts of any format.

    The result itself is an object still, because the protocol wants one.
    """
    loose = _parts(schema)
    return loose | {"type": "object"} if schema.get("type") == "object" else loose


def _any_schema(schema: object) -> object:
    members = as_object(schema)
    return schema if members is None else _nullable(_parts(members))


def _parts(schema: Object) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for keyword, value in schema.items():
        _WRITERS.get(keyword, _copy)(written, keyword, value)
    return written


def _nullable(written: dict[str, Any]) -> dict[str, Any]:
    """Permit null where the keywords of one schema exclude it."""
    types = written.get("type")
    listed = as_list(types)
    if types is not None and "null" not in (named := [types] if listed is None else listed):
        written["type"] = [*named, "null"]
    values = as_list(written.get("enum"))
    if values is not None and None not in values:
        written["enum"] = [*values, None]
    return written


def _copy(written: dict[str, Any], keyword: str, value: object) -> None:
    written[keyword] = value


def _values(written: dict[str, Any], keyword: str, value: object) -> None:
    """A closed list of plain values; objects in it would require their members."""
    values = (as_list(value) or ()) if keyword == "enum" else [value]
    if not any(isinstance(one, dict | list) for one in values):
        known = frozenset(written.get("enum", values))
        written["enum"] = [one for one in values if one in known]


def _drop(_: dict[str, Any], __: str, ___: object) -> None:
    """Leave out a keyword."""


def _single(written: dict[str, Any], keyword: str, value: object) -> None:
    """A schema for all members or elements; `false` closes an object, which a later version of an API opens."""
    if value is not False:
        written[keyword] = _any_schema(value)


def _members(written: dict[str, Any], keyword: str, value: object) -> None:
    written[keyword] = {name: _any_schema(one) for name, one in (as_object(value) or {}).items()}


def _branches(written: dict[str, Any], keyword: str, value: object) -> None:
    written[keyword] = [*written.get(keyword, ()), *map(_any_schema, as_list(value) or ())]


def _choice(written: dict[str, Any], _: str, value: object) -> None:
    """`anyOf`, because loose branches overlap; below `allOf` if the schema has both kinds of choices."""
    if "anyOf" in written:
        _branches(written, "allOf", [{"anyOf": value}])
    else:
        _branches(written, "anyOf", value)


def _reference(written: dict[str, Any], keyword: str, value: object) -> None:
    """A reference to a definition; another one would lead to a place that this form may not have."""
    if isinstance(value, str) and value.startswith(_DEFINITIONS) and "/" not in value.removeprefix(_DEFINITIONS):
        written[keyword] = value


_Writer = Callable[[dict[str, Any], str, object], None]

_WRITERS: Mapping[str, _Writer] = {
    **dict.fromkeys((*_CONDITIONS, *_DEPENDENCIES, *_PROMISES, *_CLOSED, "$dynamicRef", "$recursiveRef"), _drop),
    **dict.fromkeys(("additionalProperties", "items", "contentSchema"), _single),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "$defs"), _members),
    **dict.fromkeys(("allOf", "prefixItems"), _branches),
    **dict.fromkeys(("enum", "const"), _values),
    "anyOf": _choice,
    "oneOf": _choice,
    "$ref": _reference,
}
