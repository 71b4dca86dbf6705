"""Markers of the members of objects that a tenant configures.

A member with `About` is part of the outside form of its object, and so is a property whose result has it. The engines
derive columns, models, options and reference pages from the markers; `gateway.kinds.members` reads them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class Setter(Enum):
    """The author of a member's value; a member without this marker is set by admins at any time."""

    CREATION = auto()
    """Admins, at creation only."""
    ONCE = auto()
    """Admins, at creation only; the value has its effect then and is not stored."""
    GATEWAY = auto()
    """The gateway; shown under `status`."""


class Shape(Enum):
    """Special treatment of a member's value."""

    ONE_VALUE = auto()
    """An object that PATCH replaces whole instead of merging it."""
    DISTINCT = auto()
    """A list without equal elements."""
    LISTED = auto()
    """A column of the tables that the command line prints."""
    RESET = auto()
    """A member of the status that every change by an admin sets to its default."""
    DAYS = auto()
    """A number of days, for which the command line takes `90d`."""
    DURATION = auto()
    """A number of seconds, for which the command line takes a duration such as `15m`."""
    MILLISECONDS = auto()
    """A number of milliseconds, for which the command line takes a duration such as `500ms`."""
    AGE = auto()
    """A time for which tables show the age in days."""
    SETTING = auto()
    """A member whose default is a setting of the installation."""
    FILLED = auto()
    """A member that the gateway fills if admins give none, so that responses have no null."""
    OWN = auto()
    """A member that only stored objects have; responses show null for those of another origin."""
    KEPT = auto()
    """A member that a PUT empties or resets only with `If-Match` or `?replace=true`."""
    RECEIVER = auto()
    """A member that names a receiver of the object's secret: the stored secret is kept only while it is unchanged."""
    REFERENCE = auto()
    """A reference to the secret in an external store, in place of the secret."""


@dataclass(frozen=True, slots=True)
class About:
    """The description of a member, for the OpenAPI document, JSON Schemas, help and reference pages."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Bounds of the characters of a text or of the elements of a list."""

    least: int = 0
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of a number; `or_zero` also permits 0, which switches something off; `is_open` excludes `least`."""

    least: float
    most: int
    or_zero: bool = False
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A regular expression for texts, described in `gateway.domain.members.formats.WORDS`."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Check:
    """A function that returns the text to store, or raises `ValueError` with the reason for a refusal."""

    check: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The `format` of a text in JSON Schemas, such as `uri`."""

    name: str


@dataclass(frozen=True, slots=True)
class StoredAs:
    """The column of a member, if it has another name."""

    column: str


@dataclass(frozen=True, slots=True)
class ShownAs:
    """The name of a member in responses, and of a part of an object in requests, if it has another."""

    name: str


COMPUTED = StoredAs("")
"""A value without a column, although the table has one of its name."""


@dataclass(frozen=True, slots=True)
class Veil:
    """A function that returns a value as responses show it, without its secret parts."""

    show: Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Names:
    """A text that names an object of this kind."""

    kind: str


@dataclass(frozen=True, slots=True)
class Packed:
    """The name and the values of a member in a JSON column, where they differ from the member's."""

    name: str
    values: Mapping[str, object]
    """The stored value of each value of the member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The option of a member on the command line, where it is not derived from the name and the type.

    `is_argument`: a creation also takes the value as an argument. `is_split`: each option of a list of objects adds an
    object of its own; otherwise all options describe one object. `is_file`: the option names a file with the member.
    `is_map`: each option sets a member of the object, written NAME=VALUE. `is_special`: the kind has options of its
    own for the member. `nothing`: the word for null. `default`: the value, or element of a list, that a creation sends
    without the option. `older` are names of earlier releases, by the member itself or,
    for an object, by its member; help does not show them. Those of a flag are written `on/off`.
    """

    name: str = ""
    metavar: str = ""
    is_argument: bool = False
    is_split: bool = False
    is_file: bool = False
    is_map: bool = False
    is_special: bool = False
    nothing: str = ""
    default: str = ""
    older: Mapping[str, str] = field(default_factory=dict[str, str])
