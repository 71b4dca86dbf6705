"""Deep copies of Python values, validated as JSON."""

import math
from collections.abc import Mapping
from typing import cast

from gateway.domain.json_access import point

_DEEPEST = 128
_MOST = 200_000
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
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

    def copy(self, value: object, place: tuple[str | int, ...]) -> object:
        self._count += 1
        if self._count > _MOST or len(place) > _DEEPEST:
            raise NotJson(f"has more than {_DEEPEST} levels or {_MOST} values", point(*place[:_DEEPEST]))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _text(value, place)
        if isinstance(value, int | float):
            return _number(value, place)
        if isinstance(value, _OBJECTS):
            members = cast("Mapping[object, object]", value)
            return {_name(name, place): self.copy(member, (*place, str(name))) for name, member in members.items()}
        if isinstance(value, list | tuple):
            elements = cast("list[object]", value)
            return [self.copy(element, (*place, index)) for index, element in enumerate(elements)]
        raise NotJson(f"is a {type(value).__name__}, which JSON does not have", point(*place))


def _name(name: object, place: tuple[str | int, ...]) -> str:
    if not isinstance(name, str):
        raise NotJson("has a name that is no text", point(*place))
    return _text(name, place)


def _text(text: str, place: tuple[str | int, ...]) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotJson("is not valid Unicode", point(*place)) from None
    return str.__str__(text)  # the plain text, also for a member of a `StrEnum`


def _number(number: float, place: tuple[str | int, ...]) -> float:
    is_json = _SMALLEST <= number <= _LARGEST if isinstance(number, int) else math.isfinite(number)
    if not is_json:
        raise NotJson("is a number that JSON readers do not agree on", point(*place))
    return int(number) if isinstance(number, int) else float(number)
