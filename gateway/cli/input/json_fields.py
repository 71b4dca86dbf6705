"""JSON access: strict parsing of user input, lenient access to responses, because the gateway guarantees their form."""

import json
from collections.abc import Sequence
from typing import NoReturn, TypeGuard, cast

JsonObject = dict[str, object]


def read_json(text: str) -> object:
    """Parse a JSON text without duplicate keys, NaN or infinity.

    Raises:
        ValueError: the text is not such JSON.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return value


def is_object(value: object) -> TypeGuard[JsonObject]:
    """True if the value is a JSON object."""
    return isinstance(value, dict)


def to_object(value: object) -> JsonObject:
    """Return the value if it is a JSON object, else an empty object."""
    return value if is_object(value) else {}


def to_list(value: object) -> list[object]:
    """Return the value if it is a JSON array, else an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def to_objects(value: object) -> list[JsonObject]:
    """Return the items of a JSON array; an item that is not an object becomes an empty one."""
    return [to_object(item) for item in to_list(value)]


def pick(value: object, *path: str) -> object:
    """Return the value at this path of names; None if the path ends early."""
    for name in path:
        value = to_object(value).get(name)
    return value


def text_at(value: object, *path: str) -> str:
    """Return the value at this path as text."""
    return as_text(pick(value, *path))


def number_at(value: object, *path: str) -> int:
    """Return the whole number at this path; 0 if there is none."""
    found = pick(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def as_text(value: object) -> str:
    """Format a JSON value as a table cell: null as an empty text, lists with commas, the set members of objects."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_object(value):
        return " ".join(f"{name}={text}" for name, member in value.items() if (text := as_text(member)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        return ("; " if any(map(is_object, items)) else ", ").join(map(as_text, items))
    return str(value)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _distinct(pairs: list[tuple[str, object]]) -> JsonObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return members
