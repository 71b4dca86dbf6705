"""Mapping between records and rows: a member has the column of its name, or that of its marker `StoredAs`."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

from gateway.kinds.members import cached, members_of
from gateway.store.kinds.row_mapper import reader_of

R = TypeVar("R")


def read_record(of: type[R], row: Mapping[Any, Any], **more: object) -> R:
    """The record of a row; `more` are the members that no single column has."""
    own = {name: read(row[column]) for name, column, read in _readers(of) if name not in more}
    build = cast("Callable[..., R]", of)
    return build(**own, **more)


def columns_of(record: object, *without: str) -> dict[str, Any]:
    """The columns of a record, without those of some members."""
    members = [one for one in members_of(type(record)) if one.name not in without]
    return {one.column: _written(getattr(record, one.name)) for one in members}


@cached
def _readers(of: Any) -> Sequence[tuple[str, str, Callable[[Any], Any]]]:
    return [(one.name, one.column, reader_of(one.hint)) for one in members_of(of)]


def _written(value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
