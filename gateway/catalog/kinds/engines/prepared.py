"""Objects that were prepared before their transaction, and the comparison of objects by what admins set."""

from dataclasses import replace
from typing import Any

from gateway.catalog.kinds.engines.special_functions import Compose
from gateway.domain.members.markers import Shape
from gateway.errors import Conflict
from gateway.kinds.kind import Kind, T
from gateway.kinds.members import settable, stored, values_of

_KEPT = ("id", "version", "created_at", "updated_at")
"""Members of the current object that a prepared object does not replace."""


def is_equal(kind: Kind[T], one: T, other: T) -> bool:
    """True if both objects have the same stored members of those that admins set."""
    return values_of(one, stored(kind.of)) == values_of(other, stored(kind.of))


def as_prepared(kind: Kind[T], compose: Compose[T], first: T, prepared: T) -> Compose[T]:
    """The function that composes a prepared object in the transaction; `first` is the object before preparation."""
    members = settable(kind.of)
    kept = (*_KEPT, *(one.name for one in members if Shape.REFERENCE in one.marks))

    def finish(now: T | None) -> T:
        wanted: Any = compose(now)
        if values_of(wanted, members) != values_of(first, members):  # guard: prepared-unchanged
            raise Conflict(f"the {kind.words} was changed at the same time; read it again")
        return replace(prepared, **{each: getattr(wanted, each) for each in kept if hasattr(wanted, each)})

    return finish
