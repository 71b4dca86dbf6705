"""The order of a list, and the place of an item in it, as text that compares like the item."""

from dataclasses import dataclass
from datetime import UTC, datetime

_BETWEEN = "\0"  # no name, URI or id holds it


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Items by the column `by`, ties by id; without `by` the order is that of the key that addresses an item."""

    by: str | None = None
    is_descending: bool = False


KEYED = Order()
"""The order of a list for which none was asked."""


def join_place(*parts: str) -> str:
    """The place of an item: its key alone, or the value it is ordered by and its id."""
    return _BETWEEN.join(parts)


def split_place(place: str) -> tuple[str, ...]:
    """The parts that `join_place` was given."""
    return tuple(place.split(_BETWEEN))


def write_moment(moment: datetime | None) -> str:
    """A moment as text that compares like it; no moment comes before all."""
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def follows(parts: tuple[str, ...], after: str | None, order: Order) -> bool:
    """True if an item at this place follows another place in an order."""
    if after is None:
        return True
    return parts < split_place(after) if order.is_descending else parts > split_place(after)
