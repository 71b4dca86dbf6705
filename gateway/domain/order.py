"""Sort order of a list, and the positions of its items, encoded as text."""

from dataclasses import dataclass
from datetime import UTC, datetime

_SEPARATOR = "\0"  # no name, URI or id contains it


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Order by the column `by`, then by id. Without `by`, items are ordered by their keys."""

    by: str | None = None
    is_descending: bool = False


KEYED = Order()
"""The default order of a list."""


def join_position(*parts: str) -> str:
    """Encode the position of an item: its key, or the value of the `by` column and the item's id."""
    return _SEPARATOR.join(parts)


def split_position(position: str) -> tuple[str, ...]:
    """Decode a position to the parts that `join_position` received."""
    return tuple(position.split(_SEPARATOR))


def write_moment(moment: datetime | None) -> str:
    """Encode a time as text in sort order; None sorts first."""
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def follows(parts: tuple[str, ...], after: str | None, order: Order) -> bool:
    """True if the position `parts` comes after the position `after`, or `after` is None."""
    if after is None:
        return True
    return parts < split_position(after) if order.is_descending else parts > split_position(after)
