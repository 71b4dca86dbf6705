"""Costs of JSON Schema keywords: units of work, and the number of values that their violations copy.

Measured with jsonschema-rs 0.60 on one core. The expensive keywords compare numbers exactly, compare values part by
part, or match patterns. `docs/decisions/0018` has the table.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from gateway.definitions.json_schema.pattern_costs import BYTE, cost_of_pattern
from gateway.definitions.json_schema.tree import types_of
from gateway.domain.json_access import Object, as_list, as_object, is_number


class Load(NamedTuple):
    """Units per container (object or list), per other value and per 64 bytes; copied values per container and value."""

    container: int
    plain: int
    byte: int
    copied_container: int
    copied_plain: int

    def __add__(self, other: "Load") -> "Load":  # type: ignore[override]  # a sum of loads, not a longer tuple
        a, b, c, d, e = self
        f, g, h, i, j = other
        return Load(a + f, b + g, c + h, d + i, e + j)

    def __or__(self, other: "Load") -> "Load":
        return Load(*map(max, self, other))

    def capped(self, limit: int) -> "Load":
        """Return the load with each number limited to `limit`."""
        return Load(*(min(limit, number) for number in self))


NOTHING = Load(0, 0, 0, 0, 0)

_VISIT = Load(1, 1, 0, 1, 1)
"""Load of a visit to a schema. A `false` schema causes one violation."""

_TEXT = Load(0, 2, BYTE // 8, 0, 1)
_NUMBER = Load(0, 90, 0, 0, 1)
_FIXED_COSTS: Mapping[str, Load] = {
    **dict.fromkeys(("type", "not", "anyOf", "oneOf", "contains", "additionalProperties"), Load(1, 1, 0, 1, 1)),
    **dict.fromkeys(("additionalItems", "unevaluatedItems", "unevaluatedProperties"), Load(1, 0, 0, 1, 0)),
    **dict.fromkeys(("minItems", "maxItems", "minProperties", "maxProperties", "propertyNames"), Load(1, 0, 0, 1, 0)),
    **dict.fromkeys(("minLength", "maxLength", "contentEncoding", "contentMediaType"), _TEXT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    "format": Load(0, 13, BYTE // 2, 0, 1),
    "uniqueItems": Load(2, 0, 0, 1, 0),
}
_NAME = 2
_EQUAL_PART = 30
"""Units of the comparison of one part of a list or object with a part of the schema's value."""
_EQUAL_NUMBER = 200
"""Units of an exact comparison with a float, which takes up to 5 µs."""
_EQUAL_TEXT = 2
_FINE_STEP = 3_000
_STEP = 150
_STEP_BYTE = 20 * BYTE
"""`multipleOf` divides exactly: up to 60 µs (`_FINE_STEP`) for a fraction; the time grows with the number of digits."""
_EVERY_PART: Mapping[str, int] = {
    "additionalProperties": 2,
    "contains": 12,
    "properties": 3,
    "propertyNames": 2,
    "unevaluatedItems": 4,
    "unevaluatedProperties": 4,
}
_UNIQUE_TEXT = 10
_UNIQUE_ELEMENT = 700
"""Units per element for `uniqueItems`. Up to fifteen elements are compared pairwise, floats exactly."""
_PAIRWISE_BYTE = 32 * BYTE
_PATTERN = 10
_QUICKLY_COMPARED = frozenset({"string", "boolean", "null"})


def load_of(schema: Object) -> Load:
    """Return the cost of a schema's own keywords at the value to which the schema applies."""
    load = _VISIT
    for keyword, value in schema.items():
        known = _FIXED_COSTS.get(keyword)
        if known is not None:
            load += known
        elif keyword in _COMPUTED_COSTS:
            load += _COMPUTED_COSTS[keyword](value)
    if "patternProperties" in schema:  # the names of an object count as part of its bytes
        load += Load(0, 0, _of_patterns(schema), 0, 0)
    if schema.get("uniqueItems") is True and not _has_plain_items(schema):
        load += Load(0, 0, _PAIRWISE_BYTE, 0, 0)  # up to fifteen elements are compared pairwise, in every part
    return load


def loads_of_parts(schema: Object) -> Load:
    """Return the cost of a schema's own keywords at each part of its value, without subschemas for the part."""
    units = sum(cost for keyword, cost in _EVERY_PART.items() if keyword in schema)
    units += _PATTERN * len(as_object(schema.get("patternProperties")) or ())
    if schema.get("uniqueItems") is True:
        units += _UNIQUE_TEXT if _has_plain_items(schema) else _UNIQUE_ELEMENT
    return Load(units, units, 0, 0, 0) if units else NOTHING


def _of_patterns(schema: Object) -> int:
    return sum(cost_of_pattern(pattern) for pattern in as_object(schema.get("patternProperties")) or ())


def _has_plain_items(schema: Object) -> bool:
    types = types_of(as_object(schema.get("items")) or {})
    return bool(types) and _QUICKLY_COMPARED.issuperset(types)


def _required(value: object) -> Load:
    names = len(as_list(value) or ())
    return Load(_NAME * names, 0, 0, names, 0)  # guard: work-of-names


def _dependent(value: object) -> Load:
    lists = [as_list(names) for names in (as_object(value) or {}).values()]
    names = sum(len(one or ()) for one in lists)
    return Load(_NAME * (len(lists) + names), 0, 0, names, 0)


def _enum(value: object) -> Load:
    return _any_of(as_list(value) or ())


def _const(value: object) -> Load:
    return _any_of((value,))


def _any_of(values: Sequence[object]) -> Load:
    """Cost of `enum` and `const`: text is found in a set, numbers are compared exactly, containers part by part."""
    parts = sum(_parts(value) for value in values)
    has_containers = any(isinstance(value, dict | list | tuple) for value in values)
    numbers = sum(1 for value in values if is_number(value))
    others = len(values) - numbers
    plain = 2 + _EQUAL_NUMBER * numbers + (_EQUAL_TEXT * others if numbers or has_containers else others // 16)
    container = 1 + (_EQUAL_PART * parts if has_containers else 0)
    return Load(container, plain, BYTE // 32, 1 + parts, 1 + parts)


def _parts(value: object) -> int:
    """Number of values in a value, including the value itself and the names of members."""
    count = 0
    left: list[object] = [value]
    while left:
        part = left.pop()
        count += 1
        if isinstance(part, dict):
            members = cast("Mapping[str, object]", part)
            left.extend(members.values())
            count += len(members)
        elif isinstance(part, list | tuple):
            left.extend(cast("Sequence[object]", part))
    return count


def _multiple_of(value: object) -> Load:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return Load(0, _STEP if is_whole else _FINE_STEP, _STEP_BYTE, 0, 1)


def _pattern(value: object) -> Load:
    return Load(0, _PATTERN, cost_of_pattern(str(value)), 0, 1)


_COMPUTED_COSTS = {
    "required": _required,
    "dependentRequired": _dependent,
    "dependencies": _dependent,
    "enum": _enum,
    "const": _const,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
}
