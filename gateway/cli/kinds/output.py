"""Tables and descriptions of the objects of a declared kind."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.cli.input.json_fields import JsonObject, as_text, pick, to_list, to_objects
from gateway.cli.input.options import write_duration
from gateway.cli.output.tables import render_pairs, render_table, thousands
from gateway.domain.members.markers import JsonFormat, Setter, Shape
from gateway.kinds.kind import Kind
from gateway.kinds.members import STATUS, Member, element_of, is_declared, settable, shown, status_of, without_none
from gateway.kinds.singleton import Singleton

_TIMES = ("created_at", "updated_at")
_RELATIVE = JsonFormat("uri-reference")
_LONGEST = ("description",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A member of a response, at any depth."""

    path: tuple[str, ...]
    member: Member

    @property
    def title(self) -> str:
        """The name for people: a time is named by its event."""
        unit = "_s" if self.is_duration else "_at"
        return self.path[-1].removesuffix(unit).replace("_", " ")

    @property
    def is_duration(self) -> bool:
        """True for a number of seconds that is shown as a duration."""
        return Shape.DURATION in self.member.marks

    def text(self, found: JsonObject, base: str = "") -> str:
        """The value for people."""
        value = pick(found, *self.path)
        if value is None and self.member.option.nothing:
            return self.member.option.nothing
        if self.is_duration and isinstance(value, int):
            return write_duration(value)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if self.member.mark(JsonFormat) == _RELATIVE and value:
            return f"{base}{value}"
        return thousands(value) if is_number and isinstance(value, int) else as_text(value)


def render_list(kind: Kind[Any], items: Sequence[JsonObject]) -> str:
    """Render the listed members of objects as a table."""
    listed = [one for one in _fields(kind) if one.member.is_listed]
    columns = sorted(listed, key=lambda one: one.path == _LONGEST)  # the longest text is the last column
    numbers = [place for place, one in enumerate(columns, 1) if one.member.hint is int and not one.is_duration]
    first = "name" if kind.is_named else "id"
    titles = [first, *(one.title for one in columns)]
    rows = [[as_text(item.get(first)), *(one.text(item) for one in columns)] for item in items]
    return render_table(titles, rows, numbers=numbers)


def render_object(kind: Kind[Any] | Singleton[Any], found: JsonObject, *, base: str = "") -> str:
    """Render all members of an object; null and empty ones are omitted. Paths are completed by the URL `base`."""
    fields = list(_fields(kind))
    own = {one.path for one in fields}
    first = [name for name in ("name", "id") if name in found and (name,) not in own]
    pairs: list[tuple[str, str]] = [(name, as_text(found.get(name))) for name in first]
    for one in fields:
        value = pick(found, *one.path)
        pairs += [(one.title, text) for text in _rows(one, value)] or [(one.title, one.text(found, base))]
    pairs += [(name.removesuffix("_at"), as_text(found.get(name))) for name in _TIMES]
    return render_pairs(pairs)


def _rows(one: Field, value: object) -> list[str]:
    """The elements of a list of objects, or of sentences of the status, each for a row of its own."""
    if is_declared(element_of(one.member.hint)):
        return [as_text(each) or "everything" for each in to_objects(value)]
    return [as_text(each) for each in to_list(value)] if one.path[0] == STATUS else []


def _fields(kind: Kind[Any] | Singleton[Any]) -> Iterator[Field]:
    own = [one for one in settable(kind.of) if one.setter is not Setter.ONCE]
    yield from _nested(own, ())
    status = kind.status or status_of(kind.of)
    if status is not None:
        yield from _nested(shown(status), (STATUS,))


def _nested(members: Sequence[Member], path: tuple[str, ...]) -> Iterator[Field]:
    for one in members:
        bare: Any = without_none(one.hint)
        if is_declared(bare):
            yield from _nested(shown(bare), (*path, one.name))
        else:
            yield Field(path=(*path, one.name), member=one)
