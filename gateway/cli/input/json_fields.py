"""Reads JSON: what a person wrote, strictly; what came back, whose shape is the gateway's promise, with patience."""

import json
from collections.abc import Sequence
from typing import NoReturn, TypeGuard, cast

JsonObject = dict[str, object]


def read_json(text: str) -> object:
    """The value of a JSON text that means one thing only: no key twice, no NaN or infinity.

    Raises:
        ValueError: it is no such text.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def as_object(value: object) -> JsonObject:
    """The value if it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> list[object]:
    """The value if it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def as_objects(value: object) -> list[JsonObject]:
    """The objects in a JSON array."""
    return [as_object(item) for item in as_list(value)]


def pick(value: object, *path: str) -> object:
    """What stands at this path of names; None where it ends early."""
    for name in path:
        value = as_object(value).get(name)
    return value


def text_at(value: object, *path: str) -> str:
    """What stands at this path, as a person reads it."""
    return as_text(pick(value, *path))


def number_at(value: object, *path: str) -> int:
    """The whole number at this path; 0 if there is none."""
    found = pick(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def as_text(value: object) -> str:
    """A JSON value as a cell of a table: nothing for null, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(as_text(item) for item in cast("Sequence[object]", value))
    return str(value)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _distinct(pairs: list[tuple[str, object]]) -> JsonObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return members
