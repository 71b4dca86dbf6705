"""The keywords of a schema that are listed, and their valid values.

A keyword that is neither in this module nor in `translation` is dropped, such as `example`, `discriminator`, `xml`,
`externalDocs`, `x-…`, identifiers and anchors.
"""

from collections.abc import Callable, Mapping, Sequence

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.schema.json_types import is_count, is_number

CHILD = frozenset(("additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"))
"""Keywords with one schema for a part of the value."""

IN_PLACE = frozenset(("not", "if", "then", "else"))
"""Keywords with one schema for the same value."""

IN_PLACE_LISTS = frozenset(("allOf", "anyOf", "oneOf"))
"""Keywords with several schemas for the same value."""

_COMPOSED = frozenset(("$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"))
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_WIDE_FORMATS = frozenset(("int64", "uint64"))
_AS_TEXT = "as text beyond 2^53"
ANNOTATIONS = ("title", "description", "default", "deprecated")


def is_accepted(keyword: str, value: object) -> bool | None:
    """True if the value is valid for the keyword; None for a keyword that is not checked here."""
    check = _CHECKS.get(keyword)
    return None if check is None else check(value)


def is_nullable(node: Object) -> bool:
    """True if the schema allows null by the keyword of OpenAPI 3.0, or its extension for Swagger 2.0."""
    return node.get("nullable") is True or node.get("x-nullable") is True


def with_null(schema: dict[str, object]) -> dict[str, object]:
    """Return the translated schema with null as an additional value."""
    if not _COMPOSED.isdisjoint(schema):
        kept = {key: schema[key] for key in ANNOTATIONS if key in schema}
        rest = {key: value for key, value in schema.items() if key not in kept}
        return {"anyOf": [rest, {"type": "null"}], **kept}
    types = schema.get("type")
    named = [types] if isinstance(types, str) else as_list(types) or ()
    return schema if not named or "null" in named else schema | {"type": [*named, "null"]}


def complete_types(out: dict[str, object], types: Sequence[str], *, is_request: bool) -> None:
    """Add `items` to a list without any, and to an argument of 64 bits how a client sends it that has no such integers.

    JavaScript rounds integers beyond 2^53, so such clients have to send digits as text (docs/tool-schema.md).
    """
    if "array" in types:
        out.setdefault("items", {})
    if is_request and "integer" in types and out.get("format") in _WIDE_FORMATS:
        words = out.get("description")
        out["description"] = f"{words} ({_AS_TEXT})" if isinstance(words, str) and words else _AS_TEXT.capitalize()


def settle_bounds(out: dict[str, object], node: Object) -> Sequence[str]:
    """Translate boolean exclusive bounds, and return the exclusive bounds with invalid values."""
    if _BOUNDS.keys().isdisjoint(node):
        return ()
    invalid: list[str] = []
    for exclusive, bound in _BOUNDS.items():
        value = node.get(exclusive)
        if value is None or value is False:
            continue
        if value is True and is_number(node.get(bound)):
            out[exclusive] = out.pop(bound)
        elif is_number(value):
            out[exclusive] = value
        else:
            invalid.append(exclusive)
    return invalid


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_factor(value: object) -> bool:
    return is_number(value) and value > 0


def _names_names(value: object) -> bool:
    mapping = as_object(value)
    return mapping is not None and all(_are_names(names) for names in mapping.values())


def _are_names(value: object) -> bool:
    names = as_list(value)
    return names is not None and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("deprecated", "writeOnly", "uniqueItems"), _is_flag),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), is_count),
    **dict.fromkeys(("minContains", "maxContains"), is_count),
    **dict.fromkeys(("minimum", "maximum"), is_number),
    "multipleOf": _is_factor,
    "dependentRequired": _names_names,
}
