"""Keyset pagination: selects the rows after a position, in the requested order."""

from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, DateTime, Select, tuple_

from gateway.domain.order import Order, split_position

_BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)
"""The first moment that `datetime` and PostgreSQL both represent: the position of a row without a time."""


class Columns(Protocol):
    """The columns of a table or function, by name."""

    def __getitem__(self, key: str, /) -> ColumnElement[Any]: ...


def select_page(
    query: Select[*tuple[object, ...]],
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
        row, position = tuple_(*compared), tuple_(*_read(compared, after))
        query = query.where(row < position if order.is_descending else row > position)
    return query.order_by(*(column.desc() if order.is_descending else column for column in compared)).limit(limit)


def _read(compared: list[ColumnElement[Any]], after: str) -> list[object]:
    """The parts of a position, each converted to the type of its column."""
    parts = zip(compared, split_position(after), strict=True)
    return [_parse_timestamp(part) if isinstance(column.type, DateTime) else part for column, part in parts]


def _parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text) if text else _BEFORE_ALL
