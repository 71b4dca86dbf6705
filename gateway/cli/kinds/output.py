"""Tables and descriptions of the objects of a declared kind."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_object, to_objects
from gateway.cli.input.references import write_reference
from gateway.cli.kinds.option_types import write_number
from gateway.cli.output.printing import Shown, join
from gateway.cli.output.tables import render_pairs, render_table, shorten, thousands
from gateway.domain.members.markers import JsonFormat, Shape
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.kinds.kind import Kind
from gateway.kinds.members import STATUS, Member, element_of, is_declared, shown, status_of, visible, without_none
from gateway.kinds.singleton import Singleton

_TIMES = ("created_at", "updated_at")
_RELATIVE = JsonFormat("uri-reference")
_LONGEST = ("description",)
_DESCRIPTION_WIDTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A member of a response, at any depth."""

    path: tuple[str, ...]
    member: Member

    @property
    def title(self) -> str:
        """The name for people: a time is named by its event."""
        unit = "_s" if self.is_duration else "_ms" if Shape.MILLISECONDS in self.member.marks else "_at"
        if Shape.AGE in self.member.marks:
            return f"{self.member.name.removesuffix(unit)} age"
        words = self.path[1:] if self.path[0] == STATUS else self.path[-1:]  # parts of a status have equal names
        return " ".join(words).removesuffix(unit).replace("_", " ")

    @property
    def is_duration(self) -> bool:
        """True for a number of seconds that is shown as a duration."""
        return Shape.DURATION in self.member.marks

    @property
    def is_object(self) -> bool:
        """True for a JSON object; a table has its description."""
        return self.member.hint is bytes

    def text(self, found: JsonObject, base: str = "") -> str:
        """The value for people."""
        value = pick(found, *self.path)
        if self.is_object:
            return shorten(text_at(found, *self.path, "description"), _DESCRIPTION_WIDTH)
        if without_none(self.member.hint) is SecretReference and value:
            return write_reference(to_object(value))
        if value is None and self.member.option.nothing:
            return self.member.option.nothing
        if Shape.AGE in self.member.marks and isinstance(value, str):
            return f"{(datetime.now(UTC) - datetime.fromisoformat(value)).days}d"
        if written := write_number(self.member, value):
            return written
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if self.member.mark(JsonFormat) == _RELATIVE and str(value).startswith("/"):
            return f"{base}{value}"
        return thousands(value) if is_number and isinstance(value, int) else as_text(value)


def render_list(kind: Kind[Any], items: Sequence[JsonObject]) -> Shown:
    """Render the listed members of objects as a table."""
    listed = [one for one in _fields(kind) if one.member.is_listed]
    # The longest text is the last column.
    columns = sorted(listed, key=lambda one: one.path == _LONGEST or one.is_object)
    numbers = [place for place, one in enumerate(columns, 1) if one.member.hint is int and not one.is_duration]
    first = _key_of(kind)
    titles = [first.replace("_", " "), *(_column_title(one) for one in columns)]
    rows = [[as_text(item.get(first)), *(one.text(item) for one in columns)] for item in items]
    return render_table(titles, rows, numbers=numbers)


def render_object(
    kind: Kind[Any] | Singleton[Any], found: JsonObject, *, base: str = "", facts: Sequence[tuple[str, str]] = ()
) -> Shown:
    """Render all members of an object; null and empty ones are omitted. Paths are completed by the URL `base`.

    `facts` are further lines. JSON objects follow the lines.
    """
    fields = list(_fields(kind))
    own = {one.path for one in fields}
    keys = dict.fromkeys(("name", kind.keyed if isinstance(kind, Kind) else "name", "id"))
    first = [name for name in keys if name in found and (name,) not in own]
    pairs: list[tuple[str, str]] = [(name.replace("_", " "), as_text(found.get(name))) for name in first]
    for one in fields:
        if one.is_object:
            continue
        value = pick(found, *one.path)
        pairs += [(one.title, text) for text in _rows(one, value)] or [(one.title, one.text(found, base))]
    pairs += [(name.removesuffix("_at"), as_text(found.get(name))) for name in _TIMES]
    objects = [(one.title, pick(found, *one.path)) for one in fields if one.is_object and len(one.path) == 1]
    parts = [f"{title}:\n{_indent(value)}" for title, value in objects if value is not None]
    return join([render_pairs([*pairs, *facts]), *parts], "\n\n")


def _key_of(kind: Kind[Any]) -> str:
    """The member that names an object for people."""
    return kind.keyed if kind.is_named or kind.is_found_by_key or kind.is_operators else "id"


def _indent(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _rows(one: Field, value: object) -> list[str]:
    """The elements of a list of objects, or of sentences of the status, each for a row of its own."""
    if is_declared(element_of(one.member.hint)):
        return [as_text(each) or "everything" for each in to_objects(value)]
    return [as_text(each) for each in to_list(value)] if one.path[0] == STATUS else []


def _fields(kind: Kind[Any] | Singleton[Any]) -> Iterator[Field]:
    yield from _nested(visible(kind.of), ())
    status = kind.status or status_of(kind.of)
    if status is not None:
        yield from _nested(shown(status), (STATUS,))


def _column_title(one: Field) -> str:
    return "description" if one.is_object else one.title


def _nested(members: Sequence[Member], path: tuple[str, ...]) -> Iterator[Field]:
    for one in members:
        bare: Any = without_none(one.hint)
        if is_declared(bare) and bare is not SecretReference:
            yield from _nested(shown(bare), (*path, one.shown_name))
        else:
            yield Field(path=(*path, one.shown_name), member=one)
