"""Mapping between the objects of a kind and the rows of its table, derived from the members of the class."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Generic, cast, get_origin

import msgspec
from sqlalchemy import ARRAY, FromClause, RowMapping, Table, Text

from gateway.domain.json_text import decode_json
from gateway.domain.members.markers import Setter, Shape
from gateway.domain.members.secret import SecretStatus
from gateway.kinds.kind import TIMES, T
from gateway.kinds.members import (
    REQUIRED,
    STATUS,
    Member,
    alternatives,
    element_of,
    entries_of,
    is_declared,
    members_of,
    status_of,
    without_none,
)
from gateway.store.kinds.packed_members import from_column, has_packed, to_column

SECRET_TIME = "secret_at"  # noqa: S105 - the name of a column
"""The column with the time of the newest secret; only `Rows.note_secret` and an insertion write it."""
_NEW_KEYS = frozenset({"id", "version"})
_KEYS = TIMES | _NEW_KEYS | {"tenant"}
_Read = Callable[[Any], Any]


class RowMapper(Generic[T]):
    """The columns of a kind. Members without a column of their name are one JSON object in the column `packed`.

    `copies` are columns that repeat parts of this object for queries; nothing is read from them. `derived` are members
    that follow from a row and have no column. `fixed` are columns with one value for all rows of the kind, in a table
    of several kinds. Members of the status have columns of their own. A text column that cannot be null has an empty
    text for None.
    """

    def __init__(
        self,
        of: type[T],
        table: Table,
        *,
        packed: str = "",
        copies: Mapping[str, Callable[[T], object]] | None = None,
        derived: Mapping[str, Callable[[RowMapping], object]] | None = None,
        fixed: Mapping[str, str | None] | None = None,
    ) -> None:
        self.of = of
        self.table = table
        self._packed_in = packed
        self._copies = copies or {}
        self._derived = derived or {}
        self.fixed = fixed or {}

    @property
    def view(self) -> FromClause:
        """The statement that is read: the table, or a subclass's, which has the table's columns and further ones."""
        return self.table

    @cached_property
    def _read_members(self) -> Sequence[Member]:
        """The members with a column, those that are not written included."""
        known = set(self.view.c.keys()) - self._copies.keys() - {STATUS}
        return [one for one in members_of(self.of) if one.column in known]

    @cached_property
    def _own(self) -> Sequence[Member]:
        return [one for one in self._read_members if one.column in self.table.c]

    @cached_property
    def _packed(self) -> Sequence[Member]:
        held = {one.name for one in self._read_members} | {STATUS}
        packed = [
            one
            for one in members_of(self.of)
            if one.name not in held and one.is_stored and one.about and not one.is_secret
        ]
        return packed if self._packed_in else []

    @property
    def stores_status(self) -> bool:
        """True if a member of the status has a column."""
        return bool(self._of_status)

    @cached_property
    def _of_status(self) -> Sequence[Member]:
        status = status_of(self.of)
        members: Sequence[Member] = () if status is None else members_of(status)
        return [one for one in members if one.column in self.table.c and one.column != SECRET_TIME]

    @cached_property
    def has_secret_time(self) -> bool:
        """True if the status has the time of the newest secret."""
        status = status_of(self.of)
        return status is not None and issubclass(status, SecretStatus) and SECRET_TIME in self.table.c

    @cached_property
    def _struct(self) -> type[msgspec.Struct]:
        """The struct of the packed members, which omits defaults, so that rows of older releases can be read."""
        fields = [
            (one.name, one.hint) if one.default is REQUIRED else (one.name, one.hint, one.default)
            for one in self._packed
        ]
        return msgspec.defstruct(f"{self.of.__name__}Members", fields, omit_defaults=True, kw_only=True)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._struct)

    @cached_property
    def _reads(self) -> Sequence[tuple[str, str, _Read]]:
        return [(one.name, one.column, self._reader(one)) for one in self._read_members]

    @cached_property
    def _status_reads(self) -> Sequence[tuple[str, str, _Read]]:
        return [(one.name, one.column, reader_of(one.hint)) for one in self._of_status]

    def settable_values(self, one: T) -> dict[str, Any]:
        """The columns that a change by an admin writes: the members, and what it resets of the status."""
        values = {
            member.column: self._written(member.column, getattr(one, member.name))
            for member in self._own
            if member.name not in _KEYS and member.setter is not Setter.GATEWAY
        }
        if self._packed_in:
            values[self._packed_in] = self._pack(one)
        values |= {name: read(one) for name, read in self._copies.items()}
        return values | {member.column: member.default for member in self._of_status if Shape.RESET in member.marks}

    def new_values(self, one: T) -> dict[str, Any]:
        """The columns of a new row."""
        status = self.columns_of_status(getattr(one, STATUS)) if self._of_status else {}
        keys = {member.column: getattr(one, member.name) for member in self._own if member.name in _NEW_KEYS}
        return {**status, **self.settable_values(one), **self.fixed, **keys}

    def columns_of_status(self, status: object) -> dict[str, Any]:
        """The columns of a status."""
        return {member.column: self._written(member.column, getattr(status, member.name)) for member in self._of_status}

    def read(self, row: Mapping[Any, Any]) -> T:
        """The object of a row."""
        values: dict[str, Any] = {name: read(row[column]) for name, column, read in self._reads}
        if self._packed_in:
            packed = self._unpack(row[self._packed_in])
            values |= {member.name: getattr(packed, member.name) for member in self._packed}
        status = status_of(self.of)
        if status is not None and self._of_status:
            values[STATUS] = status(**{name: read(row[column]) for name, column, read in self._status_reads})
        values |= {name: read(cast("RowMapping", row)) for name, read in self._derived.items()}
        if self.has_secret_time and status is not None:
            values[STATUS] = replace(values.get(STATUS) or status(), secret_at=self._secret_time(row))
        return self.of(**values)

    def _secret_time(self, row: Mapping[Any, Any]) -> datetime | None:
        """The time of the newest secret; of an object that never changed, it is that of the creation."""
        first = row["created_at"] if row["version"] == 1 and self._has_secret(row) else None
        found: datetime | None = row[SECRET_TIME] or first
        return found

    @staticmethod
    def _has_secret(row: Mapping[Any, Any]) -> bool:
        return any(row.get(name) is not None for name in ("sealed", "secret"))

    def _pack(self, one: T) -> bytes:
        packed: Any = self._struct(**{member.name: getattr(one, member.name) for member in self._packed})
        return msgspec.json.encode(to_column(self.of, msgspec.to_builtins(packed)) if has_packed(self.of) else packed)

    def _unpack(self, stored: bytes) -> msgspec.Struct:
        if has_packed(self.of):
            return msgspec.convert(from_column(self.of, decode_json(stored)), self._struct)
        return cast("msgspec.Struct", self._decoder.decode(stored))

    def _written(self, column: str, value: object) -> object:
        if isinstance(value, StrEnum):
            return value.value
        if value is None and self._is_never_null(column):
            return ""
        if is_declared(type(value)):
            return msgspec.to_builtins(value)
        if isinstance(value, frozenset):
            return sorted(msgspec.to_builtins(value))
        if isinstance(self.table.c[column].type, ARRAY):
            return list(cast("tuple[object, ...]", value))
        return msgspec.to_builtins(value) if isinstance(value, tuple) else value

    def _reader(self, one: Member) -> _Read:
        if one.is_nullable and self._is_never_null(one.column):
            return lambda value: value or None
        return reader_of(one.hint)

    def _is_never_null(self, column: str) -> bool:
        of = self.table.c.get(column)
        return of is not None and isinstance(of.type, Text) and not of.nullable


def reader_of(hint: Any) -> _Read:
    """Return a function that converts the value of a column to a member of this type."""
    if is_declared(hint):
        return lambda value: msgspec.convert(value, hint)
    element = element_of(hint)
    if get_origin(hint) is frozenset and isinstance(element, type) and issubclass(element, StrEnum):
        known = {each.value: each for each in element}  # a later release may have stored others
        return lambda value: frozenset(known[each] for each in value if each in known)
    if get_origin(hint) is frozenset:
        return frozenset[Any]
    if element is not None:
        convert = reader_of(element)
        return lambda value: tuple(convert(each) for each in value)
    entries = entries_of(without_none(hint))
    if entries is not None:
        read = reader_of(entries[1])
        return lambda value: value and {name: read(each) for name, each in value.items()}
    for part in alternatives(hint):
        if isinstance(part, type) and issubclass(part, StrEnum):
            enumeration = part
            return lambda value: None if value is None else enumeration(value)
        if is_declared(part):
            return partial(_read_object, part)
    return lambda value: value


def _read_object(declared: Any, value: object) -> Any:
    return None if value is None else msgspec.convert(value, declared)
