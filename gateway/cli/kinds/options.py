"""Options of declared members, and the fields of a request that the given options describe."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil
from typing import Any

import click

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, to_list, to_object, to_objects
from gateway.cli.input.options import DURATION_OR_SECONDS, names_of
from gateway.cli.input.secrets import read_secret
from gateway.cli.input.times import DaysType, MillisecondsType
from gateway.cli.kinds.option_types import (
    Assignment,
    FutureTime,
    OrNothing,
    ReferenceText,
    read_member,
    write_number,
)
from gateway.domain.members.markers import Bounds, Names, Setter, Shape
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.kinds.kind import Kind
from gateway.kinds.members import Member, element_of, is_declared, settable, without_none
from gateway.kinds.singleton import Singleton

Command = Callable[..., Any]
_ENABLED = "enabled"
_NONE = "_none"
"""The suffix of the parameter of a flag that empties a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionOf:
    """The option of one member: its parameter, the path of the member, and what the option adds."""

    name: str
    parent: Member | None
    member: Member
    older: Sequence[str] = ()
    """Names of earlier releases."""
    is_new: bool = False
    """True for the option of a command that gives a whole object, where what is absent has its default."""

    @property
    def parameter(self) -> str:
        """The name under which a command receives the value; the prefix keeps it apart from other parameters."""
        return f"member_{self.name.replace('-', '_')}"

    @property
    def is_many(self) -> bool:
        """True if the option may be repeated."""
        return element_of(without_none(self.member.hint)) is not None and not self.member.option.is_file

    def value_of(self, text: str) -> Any:
        """The value that an argument gives."""
        kind = _type(without_none(self.member.hint), self.member)
        return text if kind is None else kind.convert(text, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialOptions:
    """Options of one kind for its members that are marked `is_special`."""

    add: Callable[[Command], Command]
    fields: Callable[[Mapping[str, Any]], JsonObject]
    """Returns the fields of a request that the given options describe."""
    write: Callable[[JsonObject], Iterator[str]]
    """Yields the options that describe fields, for an example."""


def options_of(kind: Kind[Any] | Singleton[Any], *, is_new: bool) -> Sequence[OptionOf]:
    """The options of a kind, in the order of its members; those of members that only a creation sets, if it is one."""
    return list(_options(kind.of, is_new=is_new))


def add_options(command: Command, options: Sequence[OptionOf]) -> Command:
    """Add these options to a command; none has a default, so that what is not given is not sent."""
    for one in reversed(options):
        command = _click_option(one)(command)
    return command


def replace_option(command: Command) -> Command:
    """Add the option of `set` that permits the removal of kept members."""
    text = "Also remove stored rules and other members that are not given."
    return click.option("--replace", is_flag=True, help=text)(command)


def fields_of(options: Sequence[OptionOf], given: Mapping[str, Any]) -> JsonObject:
    """The fields of a request; an empty text sends null for a member that may be null, and empties a list."""
    fields: JsonObject = {}
    for one in options:
        value: Any = [] if given.get(f"{one.parameter}{_NONE}") else given[one.parameter]
        if value is None or value == ():
            continue
        if one.is_many and "" in value and len(value) > 1:
            raise Failure(f"--{one.name}: an empty value excludes others", ExitCode.USAGE)
        if one.member.is_secret and value:
            value = read_secret(f"--{one.name}", value)
        if one.member.option.is_file and isinstance(value, str):
            value = read_member(value, one.member.name)
        if one.member.option.is_map:
            value = dict(value)
        elif value in ("", ("",)) and one.member.is_nullable:
            value = None
        elif one.is_many:
            value = [] if value == ("",) else list(value)
        _add(fields, one, value)
    return fields


def defaults_of(options: Sequence[OptionOf]) -> JsonObject:
    """The fields of a creation that options not given describe."""
    given = {one.member.name: one.member.option.default for one in options if one.member.option.default}
    many = {one.member.name for one in options if one.is_many}
    return {name: [value] if name in many else value for name, value in given.items()}


def write_options(kind: Kind[Any] | Singleton[Any], fields: JsonObject) -> Iterator[str]:
    """Yield the options that describe these fields, for an example."""
    for one in options_of(kind, is_new=True):
        for value in _values(one, fields):
            if one.member.option.is_map:
                yield from (f"--{one.name} {name}={each}" for name, each in to_object(value).items())
            elif one.member.option.is_file:
                yield f"--{one.name} {one.name}.yaml"
            elif one.member.is_secret:
                yield f"--{one.name} env:{str(fields.get('name', one.name)).upper()}_{one.name.upper()}"
            elif written := write_number(one.member, value):
                yield f"--{one.name} {written}"
            elif one.member.name == _ENABLED:
                yield "--enable" if value else "--disable"
            elif isinstance(value, bool):
                yield f"--{one.name}" if value else f"--no-{one.name}"
            else:
                yield f"--{one.name} {shlex.quote(str(value))}"


def _options(of: type, *, is_new: bool, parent: Member | None = None) -> Iterator[OptionOf]:
    prefix = "" if parent is None else f"{parent.option.name or parent.name}-"
    for member in settable(of):
        if member.setter in {Setter.CREATION, Setter.ONCE} and not is_new:
            continue
        if member.option.is_special:
            continue
        nested = element_of(member.hint) or without_none(member.hint)
        is_whole = member.option.is_file or member.option.is_map or nested is SecretReference
        if is_declared(nested) and parent is None and not is_whole:
            yield from _options(nested, is_new=is_new, parent=member)
        else:
            name = prefix + (member.option.name or _without_unit(member))
            older = [each.option.older.get(member.name, "") for each in (parent, member) if each is not None]
            found = [each for each in older if each]
            if Shape.MILLISECONDS in member.marks:
                found.append(f"{prefix}{member.name}".replace("_", "-"))
            yield OptionOf(name=name.replace("_", "-"), parent=parent, member=member, older=found, is_new=is_new)


def _click_option(one: OptionOf) -> Callable[[Command], Command]:
    hint = one.member.hint
    bare = element_of(without_none(hint)) or without_none(hint)
    about = _about(one)
    if bare is bool:
        flags = "--enable/--disable" if one.member.name == _ENABLED else f"--{one.name}/--no-{one.name}"
        older = (f"--{each.replace('/', '/--')}" for each in one.older)
        return click.option(flags, *older, one.parameter, cls=_RenamedOption, default=None, help=about)
    if one.member.option.is_file:
        return _file_option(one, about)
    named = one.member.mark(Names)
    return click.option(
        *(f"--{name}" for name in (one.name, *one.older)),
        one.parameter,
        cls=_RenamedOption,
        type=_type(bare, one.member),
        multiple=one.is_many or one.member.option.is_map,
        metavar=one.member.option.metavar or ("VALUE" if one.member.is_secret else None),
        shell_complete=None if named is None else names_of(named.kind),
        help=about,
    )


def _file_option(one: OptionOf, about: str) -> Callable[[Command], Command]:
    """Two options: a file with the member, and a flag for an empty list."""
    is_list = element_of(without_none(one.member.hint)) is not None

    def add(command: Command) -> Command:
        removal = f"Remove all {one.member.name.replace('_', ' ')}."
        if is_list:
            command = click.option(f"--no-{one.name}", f"{one.parameter}{_NONE}", is_flag=True, help=removal)(command)
        text = f"{about} FILE (JSON or YAML; - reads stdin) has the member `{one.member.name}`."
        return click.option(f"--{one.name}", one.parameter, metavar="FILE", help=text)(command)

    return add


def _without_unit(member: Member) -> str:
    units = {Shape.DURATION: "_s", Shape.MILLISECONDS: "_ms"}
    return member.name.removesuffix(next((unit for shape, unit in units.items() if shape in member.marks), ""))


class _RenamedOption(click.Option):
    """An option whose further names are those of earlier releases; help shows the first name only."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the description for the help."""
        shown = copy(self)
        shown.opts, shown.secondary_opts = self.opts[:1], self.secondary_opts[:1]
        return click.Option.get_help_record(shown, ctx)


def _type(bare: Any, member: Member) -> click.ParamType[Any] | None:
    found = _type_of_value(bare, member)
    if not member.is_nullable or (found is None and not member.option.nothing):
        return found
    return OrNothing(found or click.STRING, member.option.nothing)


def _type_of_value(bare: Any, member: Member) -> click.ParamType[Any] | None:
    if member.option.is_map:
        return Assignment(bare)
    if bare is SecretReference:
        return ReferenceText()
    if Shape.DAYS in member.marks:
        return DaysType()
    if bare is datetime:
        return FutureTime()
    if Shape.DURATION in member.marks:
        return DURATION_OR_SECONDS
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return click.Choice([each.value for each in bare])
    bounds = member.mark(Bounds)
    if bounds is not None and Shape.MILLISECONDS in member.marks:
        return MillisecondsType(int(bounds.least), int(bounds.most))
    if bounds is not None and bare is float:
        return click.FloatRange(bounds.least, bounds.most, min_open=bounds.is_open)
    if bounds is not None:
        return click.IntRange(0 if bounds.or_zero else int(bounds.least), int(bounds.most))
    return click.INT if bare is int else None


def _about(one: OptionOf) -> str:
    text = one.member.about
    if one.member.is_secret:
        text += " VALUE may be @FILE or env:NAME."
    bounds = one.member.mark(Bounds)
    if bounds is not None:
        least, most = (write_number(one.member, one_bound) for one_bound in (ceil(bounds.least), int(bounds.most)))
        text = text.replace(" in seconds", f" ({least} to {most})") if Shape.DURATION in one.member.marks else text
        text = text.replace("Milliseconds that", f"Time ({least} to {most}) that")
    if without_none(one.member.hint) is datetime:
        text += " A date, a time in UTC, or a duration from now such as 30d."
    if one.parent is not None:
        text = f"{one.parent.name.replace('_', ' ').capitalize()}: {text}"
    nothing = one.member.option.nothing
    text = f"{text} `{nothing}` means null." if nothing else text
    if one.is_many:
        default = f" Default: {one.member.option.default}." if one.member.option.default and one.is_new else ""
        return f"{text} May be repeated.{default}"
    return text + (_default(one.member) if one.is_new else "")


def _default(member: Member) -> str:
    """The words about a default; an empty one and that of a switch go without saying."""
    value = member.default
    if isinstance(value, bool) or not isinstance(value, int | StrEnum):
        return ""
    return f" Default: {write_number(member, value) or value}."


def _add(fields: JsonObject, one: OptionOf, value: object) -> None:
    """Add the value of an option to the fields."""
    name = one.member.name
    if one.parent is None:
        fields[name] = value
    elif element_of(one.parent.hint) is None:
        fields[one.parent.name] = {**to_object(fields.get(one.parent.name)), name: value}
    elif one.parent.option.is_split:
        fields[one.parent.name] = [*to_list(fields.get(one.parent.name)), {name: value}]
    else:
        [*_, current] = [{}, *to_objects(fields.get(one.parent.name))]
        fields[one.parent.name] = [{**current, name: value}]


def _values(one: OptionOf, fields: JsonObject) -> Sequence[object]:
    holders: Sequence[JsonObject] = [fields]
    if one.parent is not None:
        held = fields.get(one.parent.name)
        holders = to_objects(held) or [to_object(held)]
    found: list[object] = []
    for holder in holders:
        value = holder.get(one.member.name)
        found += to_list(value) if one.is_many else [] if value is None else [value]
    return found
