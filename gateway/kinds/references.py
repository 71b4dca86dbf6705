"""References between objects: the names that members hold, found by their marker `Names`."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from gateway.domain.members.markers import Names
from gateway.kinds.members import alternatives, element_of, is_declared, members_of, split, without_none

Address = tuple[str, str]
"""The name of a kind, and the key of an object, such as its name."""


def references_of(one: Any) -> frozenset[Address]:
    """The objects that the members of an object name, at any depth."""
    return frozenset(_within(one))


def _within(one: Any) -> Iterator[Address]:
    for member in members_of(type(one)):
        yield from _of(getattr(one, member.name), member.hint, member.marks)


def _of(value: Any, hint: Any, marks: Sequence[object]) -> Iterator[Address]:
    bare, inner = split(without_none(hint))
    named = next((mark for mark in (*marks, *inner) if isinstance(mark, Names)), None)
    if isinstance(value, tuple):
        element = next((found for each in alternatives(bare) if (found := element_of(split(each)[0]))), object)
        for each in cast("tuple[object, ...]", value):
            yield from _of(each, element, marks)
    elif isinstance(value, str) and named is not None:
        yield named.kind, value
    elif is_declared(type(value)):
        yield from _within(value)
