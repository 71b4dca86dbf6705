"""Names and values of members in a JSON column, for members that `Packed` marks, at any depth of the object."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.domain.members.markers import Packed
from gateway.kinds.members import cached, element_of, is_declared, members_of, without_none

_Object = Mapping[str, Any]


@cached
def has_packed(of: Any) -> bool:
    """True if a member of the class, or of a class within it, has another name in the column."""
    return any(
        one.mark(Packed) is not None or (is_declared(nested := _class_of(one.hint)) and has_packed(nested))
        for one in members_of(of)
    )


def to_column(of: Any, values: _Object) -> dict[str, Any]:
    """The JSON object of a column, given the JSON values of members."""
    found: dict[str, Any] = {}
    for one in members_of(of):
        if one.name in values:
            packed, value = one.mark(Packed), values[one.name]
            name = one.name if packed is None else packed.name
            found[name] = _within(one.hint, value, to_column) if packed is None else packed.values[value]
    return found


def from_column(of: Any, stored: _Object) -> dict[str, Any]:
    """The JSON values of members, given the JSON object of a column."""
    found: dict[str, Any] = {}
    for one in members_of(of):
        packed = one.mark(Packed)
        name = one.name if packed is None else packed.name
        if name in stored and packed is None:
            found[one.name] = _within(one.hint, stored[name], from_column)
        elif name in stored and packed is not None:
            found[one.name] = next(value for value, each in packed.values.items() if each == stored[name])
    return found


def _within(hint: Any, value: Any, convert: Callable[[Any, _Object], dict[str, Any]]) -> Any:
    nested = _class_of(hint)
    if value is None or not is_declared(nested):
        return value
    return (
        [convert(nested, each) for each in cast("list[_Object]", value)] if element_of(hint) else convert(nested, value)
    )


def _class_of(hint: Any) -> Any:
    """The class of a value, or of the elements of a list."""
    return element_of(hint) or without_none(hint)
