"""Deep copies of Python values, validated as JSON."""

import math
from collections.abc import Mapping
from typing import cast

from gateway.definitions.limits import MAX_INTEGER, MAX_JSON_DEPTH, MAX_JSON_VALUES, MIN_INTEGER
from gateway.domain.json_access import point

_OBJECTS = (dict, Mapping)


class NotJson(Exception):
    """The value is not JSON, or exceeds the limits; the message is the reason."""

    def __init__(self, reason: str, pointer: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.pointer = pointer


def copy_json(value: object) -> object:
    """Return a deep copy of the value that contains only JSON types.

    Tuples become lists, mappings become dictionaries; members of `StrEnum` and `IntEnum` become their values.

    Raises:
        NotJson: the value contains another type, invalid Unicode or a number out of range, or is too deep or large.
    """
    return _Copier().copy(value, ())


def copy_containers(value: object) -> object:
    """Return a copy with new lists and dictionaries at every level; other values are shared with the original."""
    if isinstance(value, _OBJECTS):
        members = cast("Mapping[object, object]", value)
        return {name: copy_containers(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [copy_containers(element) for element in cast("list[object]", value)]
    return value


class _Copier:
    """One pass over a value that counts its parts."""

    def __init__(self) -> None:
        self._count = 0

    def copy(self, value: object, path: tuple[str | int, ...]) -> object:
        self._count += 1
        if self._count > MAX_JSON_VALUES or len(path) > MAX_JSON_DEPTH:
            raise NotJson(
                f"has more than {MAX_JSON_DEPTH} levels or {MAX_JSON_VALUES} values", point(*path[:MAX_JSON_DEPTH])
            )
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _text(value, path)
        if isinstance(value, int | float):
            return _number(value, path)
        if isinstance(value, _OBJECTS):
            members = cast("Mapping[object, object]", value)
            return {_name(name, path): self.copy(member, (*path, str(name))) for name, member in members.items()}
        if isinstance(value, list | tuple):
            elements = cast("list[object]", value)
            return [self.copy(element, (*path, index)) for index, element in enumerate(elements)]
        raise NotJson(f"is a {type(value).__name__}, which is not a JSON type", point(*path))


def _name(name: object, path: tuple[str | int, ...]) -> str:
    if not isinstance(name, str):
        raise NotJson("has a member name that is not a string", point(*path))
    return _text(name, path)


def _text(text: str, path: tuple[str | int, ...]) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotJson("is not valid Unicode", point(*path)) from None
    return str.__str__(text)  # the plain text, also for a member of a `StrEnum`


def _number(number: float, path: tuple[str | int, ...]) -> float:
    is_json = MIN_INTEGER <= number <= MAX_INTEGER if isinstance(number, int) else math.isfinite(number)
    if not is_json:
        raise NotJson("is a number that JSON parsers represent differently", point(*path))
    return int(number) if isinstance(number, int) else float(number)
