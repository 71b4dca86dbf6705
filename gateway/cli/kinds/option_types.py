"""Types of options of declared members that click does not have."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import click

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import only_one, read_declarations
from gateway.cli.input.references import parse_reference
from gateway.cli.input.times import TimeType, write_duration, write_milliseconds
from gateway.domain.members.markers import Shape
from gateway.kinds.members import Member, entries_of, settable


def read_member(spec: str, member: str) -> object:
    """Read a file, JSON or YAML, that has exactly one member of an object; `-` is standard input.

    Raises:
        Failure: it has others, or cannot be read.
    """
    content = only_one(read_declarations(spec)).content
    if content.keys() != {member}:
        raise Failure(f"{spec}: must have exactly the member `{member}`", ExitCode.USAGE)
    return content[member]


_WRITERS: Mapping[Shape, Callable[[int], str]] = {
    Shape.DURATION: write_duration,
    Shape.MILLISECONDS: write_milliseconds,
    Shape.DAYS: lambda days: f"{days}d",
}


def write_number(member: Member, value: object) -> str | None:
    """Write a number that is a duration as the options take it; None for any other value."""
    write = next((write for shape, write in _WRITERS.items() if shape in member.marks), None)
    return write(value) if write is not None and isinstance(value, int) else None


class Assignment(click.ParamType[Any]):
    """A member of an object, written NAME=NUMBER, or an entry of a mapping, written NAME=VALUE."""

    name = "assignment"

    def __init__(self, of: Any) -> None:
        entries = entries_of(of)
        self._types: Mapping[str, Any] = {} if entries else {one.name: one.hint for one in settable(of)}
        self._of_values: Any = entries and entries[1]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name and the value."""
        name, equals, raw = str(value).partition("=")
        if self._of_values is not None:
            return self._entry(name, raw if equals and name else None, param, ctx)
        if not equals or name not in self._types:
            self.fail(f"must be NAME=NUMBER; the names are {', '.join(self._types)}", param, ctx)
        try:
            return name, self._types[name](raw)
        except ValueError:
            self.fail(f"{raw!r} is not a number", param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The form of a value."""
        return "NAME=NUMBER" if self._of_values is None else "NAME=VALUE"

    def _entry(
        self, name: str, raw: str | None, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, object]:
        """Return an entry of a mapping."""
        if raw is None:
            self.fail("must be NAME=VALUE", param, ctx)
        of = self._of_values
        if isinstance(of, type) and issubclass(of, StrEnum):
            return name, click.Choice([each.value for each in of]).convert(raw, param, ctx)
        return name, raw


class ReferenceText(click.ParamType[Any]):
    """A reference to a secret in an external store, written STORE:PATH."""

    name = "reference"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the members of the reference."""
        return parse_reference(str(value), _name_of(param))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The form of a value."""
        return "STORE:PATH"


def _name_of(param: click.Parameter | None) -> str:
    return "" if param is None else param.opts[0]


class FutureTime(TimeType):
    """A time, or a duration from now, as it is written in JSON."""

    def __init__(self) -> None:
        super().__init__(is_future=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the time with its offset; any other format is a usage error."""
        found: datetime = super().convert(value, param, ctx)
        return found.isoformat()


class OrNothing(click.ParamType[Any]):
    """A value of another type, or an empty text or a word for null; both become an empty text."""

    def __init__(self, of: click.ParamType[Any], word: str) -> None:
        self._of = of
        self._word = word
        self.name = of.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value that is not null."""
        return "" if value in {"", self._word} else self._of.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The placeholder of the other type."""
        return self._of.get_metavar(param, ctx)
