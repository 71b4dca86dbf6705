"""Order of a list, and positions of its items as text."""

from dataclasses import dataclass
from datetime import UTC, datetime

_BETWEEN = "\0"  # no name, URI or id contains it


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Order by the column `by`, then by id. Without `by`, items are ordered by their keys."""

    by: str | None = None
    is_descending: bool = False


KEYED = Order()
"""The default order of a list."""


def join_position(*parts: str) -> str:
    """Return the position of an item: its key, or the value of the `by` column and the item's id."""
    return _BETWEEN.join(parts)


def split_position(position: str) -> tuple[str, ...]:
    """Return the parts that were given to `join_position`."""
    return tuple(position.split(_BETWEEN))


def write_moment(moment: datetime | None) -> str:
    """Return a moment as text, so that texts sort by time; None sorts first."""
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def follows(parts: tuple[str, ...], after: str | None, order: Order) -> bool:
    """True if the position `parts` comes after the position `after`, or `after` is None."""
    if after is None:
        return True
    return parts < split_position(after) if order.is_descending else parts > split_position(after)
