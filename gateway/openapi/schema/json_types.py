"""Type checks of JSON values against the type names of a schema."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeGuard

from gateway.domain.json_access import as_list

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})

_ANY = ""
_READ_AS: Mapping[str, str] = {
    **{name: name for name in TYPES},
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("int", "int32", "int64", "long", "short"), "integer"),
    "bool": "boolean",
    **dict.fromkeys(("str", "text", "date", "date-time", "datetime", "uuid", "password"), "string"),
    "any": _ANY,
}
"""Types by the names that documents give them, in lower case: also those of formats and of programming languages."""


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


def read_types(named: Sequence[object]) -> tuple[Sequence[str], Mapping[str, str] | None]:
    """Return the types that the names in `type` mean, none for any type, and what unusual names are read as.

    The second is None, and there are no types, if one of the names has no meaning.
    """
    meanings = [_READ_AS.get(name.casefold()) if isinstance(name, str) else None for name in named]
    types = [meaning for meaning in meanings if meaning is not None]
    if len(types) != len(named):
        return (), None
    unusual = {str(name): type_ or "any type" for name, type_ in zip(named, types, strict=True) if name != type_}
    return () if _ANY in types else tuple(dict.fromkeys(types)), unusual


def types_of(schema: Mapping[str, object]) -> list[str]:
    """Return the names in the `type` of a translated schema; none if it allows any type."""
    named = schema.get("type")
    names: Sequence[object] = [named] if isinstance(named, str) else as_list(named) or ()
    return [name for name in names if isinstance(name, str)]


def type_of(value: object) -> str:
    """Return the name of the JSON type of a value; `integer` for a number without a fraction."""
    return next(name for name in _BY_PRECEDENCE if _CHECKS[name](value))


_BY_PRECEDENCE = ("null", "boolean", "integer", "number", "string", "array", "object")
