"""Pages of lists: the rows after a position, in the requested order."""

from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, DateTime, Select, tuple_

from gateway.domain.order import Order, split_place

_BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)


class Columns(Protocol):
    """The columns of a table or function, by name."""

    def __getitem__(self, key: str, /) -> ColumnElement[Any]: ...


def select_part(
    wanted: Select[*tuple[object, ...]],
    columns: Columns,
    key: str,
    *,
    after: str | None,
    limit: int,
    order: Order,
) -> Select[*tuple[object, ...]]:
    """At most `limit` rows after the position `after`. If `order` names a column, the column `id` breaks its ties."""
    compared = [columns[key]] if order.by is None else [columns[order.by], columns["id"]]
    if after is not None:
        row, place = tuple_(*compared), tuple_(*_read(compared, after))
        wanted = wanted.where(row < place if order.is_descending else row > place)
    return wanted.order_by(*(column.desc() if order.is_descending else column for column in compared)).limit(limit)


def _read(compared: list[ColumnElement[Any]], after: str) -> list[object]:
    """The parts of a position, each converted to the type of its column."""
    parts = zip(compared, split_place(after), strict=True)
    return [_read_moment(part) if isinstance(column.type, DateTime) else part for column, part in parts]


def _read_moment(text: str) -> datetime:
    return datetime.fromisoformat(text) if text else _BEFORE_ALL
