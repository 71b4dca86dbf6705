"""Reads what came back as JSON, whose shape is the gateway's promise and not this program's knowledge."""

from collections.abc import Sequence
from typing import TypeGuard, cast

JsonObject = dict[str, object]


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
