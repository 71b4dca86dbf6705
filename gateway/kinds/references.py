"""References between objects: the names that members hold, found by their marker `Names`."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from gateway.domain.members.markers import Names
from gateway.kinds.members import alternatives, cached, element_of, is_declared, members_of, split

Address = tuple[str, str]
"""The name of a kind, and the key of an object, such as its name."""


def references_of(one: Any) -> frozenset[Address]:
    """The objects that the members of an object name, at any depth."""
    return frozenset(_within(one))


@cached
def naming_members(declared: Any) -> Sequence[tuple[str, str]]:
    """The members of a class that can hold names, each with the kind that its own texts name; empty for none.

    Type hints are read once for each class: to read them for each value takes about 60 µs.
    """
    found: list[tuple[str, str]] = []
    for member in members_of(declared):
        mark = member.mark(Names)
        kinds = [*_kinds_in(member.hint, {declared})] if mark is None else [mark.kind]
        if kinds:
            found.append((member.name, next(filter(None, kinds), "")))
    return found


def _kinds_in(hint: Any, seen: set[Any]) -> Iterator[str]:
    """The kinds that texts of this type name; an empty one for a class whose members can hold names."""
    bare, marks = split(hint)
    yield from (mark.kind for mark in marks if isinstance(mark, Names))
    parts, element = alternatives(bare), element_of(bare)
    if len(parts) > 1 or element is not None:
        for each in parts if element is None else (element,):
            yield from _kinds_in(each, seen)
    elif is_declared(bare) and bare not in seen:
        seen.add(bare)
        if any(member.mark(Names) or [*_kinds_in(member.hint, seen)] for member in members_of(bare)):
            yield ""


def _within(one: Any) -> Iterator[Address]:
    for name, kind in naming_members(type(one)):
        yield from _of(getattr(one, name), kind)


def _of(value: Any, kind: str) -> Iterator[Address]:
    if isinstance(value, str):
        if kind:
            yield kind, value
    elif isinstance(value, tuple):
        for each in cast("tuple[object, ...]", value):
            yield from _of(each, kind)
    elif is_declared(type(value)):
        yield from _within(value)
