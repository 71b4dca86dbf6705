"""Members of a declared class: name, type hint, default and markers, read from its annotations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from inspect import getmembers
from types import NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gateway.domain.members.markers import About, Option, Setter, Shape, ShownAs, StoredAs
from gateway.domain.members.secret import Secret

M = TypeVar("M")
P = ParamSpec("P")
R = TypeVar("R")

REQUIRED = MISSING
"""The default of a member without one."""
STATUS = "status"
"""The member that holds what the gateway sets, if a class has such a member."""


def cached(function: Callable[P, R]) -> Callable[P, R]:
    """`functools.cache` with the signature of the function; that of `cache` refuses `type[Any]`."""
    return cast("Callable[P, R]", cache(function))


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member with its type hint, which keeps the markers of its parts but not those of the member itself."""

    name: str
    hint: Any
    marks: tuple[object, ...]
    default: object

    @property
    def about(self) -> str:
        """The description; empty for a member that is not part of the outside form."""
        found = self.mark(About)
        return "" if found is None else found.text

    @property
    def setter(self) -> Setter | None:
        """The author of the value; None: admins, at any time."""
        return self.mark(Setter)

    @property
    def option(self) -> Option:
        """The declared parts of the option on the command line."""
        return self.mark(Option) or Option()

    @property
    def column(self) -> str:
        """The name of the column that holds the value, if there is one."""
        stored = self.mark(StoredAs)
        return self.name if stored is None else stored.column

    @property
    def shown_name(self) -> str:
        """The name outside."""
        named = self.mark(ShownAs)
        return self.name if named is None else named.name

    @property
    def is_required(self) -> bool:
        """True if a creation has to give the value."""
        return self.default is REQUIRED

    @property
    def is_nullable(self) -> bool:
        """True if the value may be None."""
        return NoneType in alternatives(self.hint)

    @property
    def is_stored(self) -> bool:
        """True unless the value only has an effect at creation."""
        return self.setter is not Setter.ONCE

    @property
    def is_secret(self) -> bool:
        """True for a part of the object's secret, which is sealed apart and never shown."""
        return split(without_none(self.hint))[0] is Secret

    @property
    def is_listed(self) -> bool:
        """True if tables show the member."""
        return Shape.LISTED in self.marks

    def mark(self, of: type[M]) -> M | None:
        """The last marker of a class; the markers of a member follow those of its type."""
        found = [mark for mark in self.marks if isinstance(mark, of)]
        return found[-1] if found else None


@cached
def members_of(declared: Any) -> Sequence[Member]:
    """All members of a frozen dataclass, in the order of declaration."""
    hints = get_type_hints(declared, include_extras=True)
    found: list[Member] = []
    for field in fields(declared):
        bare, marks = _split_optional(hints[field.name])
        default = field.default if field.default_factory is MISSING else field.default_factory()
        found.append(Member(name=field.name, hint=bare, marks=marks, default=default))
    return found


@cached
def settable(declared: Any) -> Sequence[Member]:
    """The members that admins set."""
    return [each for each in members_of(declared) if each.about and each.setter is not Setter.GATEWAY]


@cached
def stored(declared: Any) -> Sequence[Member]:
    """The members that admins set, without those that only act at creation."""
    return [each for each in settable(declared) if each.is_stored]


@cached
def visible(declared: Any) -> Sequence[Member]:
    """The members that admins set and responses have: neither secrets nor members that only act at creation."""
    return [each for each in stored(declared) if not each.is_secret]


@cached
def secret_members(declared: Any) -> Sequence[Member]:
    """The secret parts of the objects of a class."""
    return [each for each in stored(declared) if each.is_secret]


@cached
def status_of(declared: Any) -> type | None:
    """The class of the member `status`; None if the class has no such member."""
    return next((cast("type", each.hint) for each in members_of(declared) if each.name == STATUS), None)


@cached
def shown(declared: Any) -> Sequence[Member]:
    """The members and properties of a status, or of another class, that responses have: no secrets."""
    return [each for each in (*members_of(declared), *_properties_of(declared)) if each.about and not each.is_secret]


def _properties_of(declared: Any) -> Iterator[Member]:
    """The properties, as members without a default."""
    for name, found in getmembers(declared, lambda each: isinstance(each, property)):
        bare, marks = _split_optional(get_type_hints(found.fget, include_extras=True)["return"])
        yield Member(name=name, hint=bare, marks=marks, default=REQUIRED)


def stem_of(declared: Any) -> str:
    """The first part of the names of the models of a class: its own name, unless its `stem` is another."""
    stem: str = getattr(declared, "stem", declared.__name__)
    return stem


def keeps(declared: Any) -> bool:
    """True if a PUT without `If-Match` or `?replace=true` keeps some stored members."""
    return any(Shape.KEPT in each.marks for each in settable(declared))


def split(hint: Any) -> tuple[Any, tuple[object, ...]]:
    """A type without its outer markers, and these markers."""
    if get_origin(hint) is not Annotated:
        return hint, ()
    bare, *marks = get_args(hint)
    return bare, tuple(marks)


def _split_optional(hint: Any) -> tuple[Any, tuple[object, ...]]:
    """As `split`; the markers of the type of a value that may be None are among those of the member."""
    bare, marks = split(hint)
    if NoneType not in alternatives(bare):
        return bare, marks
    inner, of_value = split(without_none(bare))
    return inner | None, (*of_value, *marks)


def alternatives(hint: Any) -> Sequence[Any]:
    """The parts of a union; another type is its only part."""
    return get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)


def without_none(hint: Any) -> Any:
    """The type of a value that is not None."""
    union: Any = Union
    return union[*(each for each in alternatives(hint) if each is not NoneType)]


def element_of(hint: Any) -> Any:
    """The type of the elements of `tuple[X, ...]`, `Sequence[X]` or `frozenset[X]`; None for another type."""
    is_list = get_origin(hint) in {Sequence, frozenset} or (get_origin(hint) is tuple and get_args(hint)[-1] is ...)
    return get_args(hint)[0] if is_list else None


def entries_of(hint: Any) -> tuple[Any, Any] | None:
    """The types of the names and values of `Mapping[X, Y]`; None for another type."""
    return get_args(hint) if get_origin(hint) is Mapping else None


def is_declared(hint: Any) -> bool:
    """True for a class whose members are declared."""
    return isinstance(hint, type) and is_dataclass(hint)


def moved_receivers(before: object, after: object) -> Iterator[str]:
    """Yield the paths of the members, and of their members, that name a receiver of a secret and differ.

    The order of a list is no difference. A set names receivers that were found, so a subset of it is none either.
    """
    for each in members_of(type(after)):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if Shape.RECEIVER in each.marks and not _has_receivers(old, new):
            yield each.name
        elif is_declared(type(new)) and type(old) is type(new):
            yield from (f"{each.name}/{name}" for name in moved_receivers(old, new))


def _has_receivers(old: object, new: object) -> bool:
    """True if the old value names each receiver that the new value names."""
    if isinstance(old, frozenset) and isinstance(new, frozenset):
        return cast("frozenset[object]", new) <= cast("frozenset[object]", old)
    if isinstance(old, tuple) and isinstance(new, tuple):
        return frozenset(cast("tuple[object, ...]", old)) == frozenset(cast("tuple[object, ...]", new))
    return old == new


def values_of(one: object, members: Sequence[Member]) -> Mapping[str, Any]:
    """The values of these members."""
    return {each.name: getattr(one, each.name) for each in members}
