"""Order of a list, and the position of an item in it as text that sorts like the item."""

from dataclasses import dataclass
from datetime import UTC, datetime

_BETWEEN = "\0"  # no name, URI or id contains it


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Items ordered by the column `by`, ties by id. Without `by` the order is that of the items' keys."""

    by: str | None = None
    is_descending: bool = False


KEYED = Order()
"""The default order of a list."""


def join_place(*parts: str) -> str:
    """Return the position of an item: its key alone, or the value it is ordered by and its id."""
    return _BETWEEN.join(parts)


def split_place(place: str) -> tuple[str, ...]:
    """Return the parts that were given to `join_place`."""
    return tuple(place.split(_BETWEEN))


def write_moment(moment: datetime | None) -> str:
    """Return a moment as text that sorts like it; None sorts first."""
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def follows(parts: tuple[str, ...], after: str | None, order: Order) -> bool:
    """True if the item at this position comes after the position `after` in an order."""
    if after is None:
        return True
    return parts < split_place(after) if order.is_descending else parts > split_place(after)
