"""Type checks of JSON values against the type names of a schema."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeGuard

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a JSON number: Python counts booleans among the integers, JSON does not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object) -> TypeGuard[int]:
    """True for a non-negative integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def has_type(value: object, types: Collection[str]) -> bool:
    """True if the value has one of the types, or if `types` is empty."""
    return not types or any(_CHECKS[name](value) for name in types)


def _is_integer(value: object) -> bool:
    return is_number(value) and (isinstance(value, int) or value.is_integer())


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": _is_integer,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
