"""How a JSON value is cut: the part at a JSON Pointer (RFC 6901), only some paths of it, or all but some.

A path is a pointer in which `*` stands for every element of a list and every member of an object. All of it is linear
in the value and the number of paths, and makes new values where it cuts: nothing given is changed.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from gateway.definitions.json_access import as_list, as_object, quote
from gateway.errors import HandlerFailed

LONGEST = 512
MOST_PATHS = 100

_POINTER = re.compile(r"(?:/(?:[^~/]|~0|~1)*)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_EVERY = "*"

Marks: TypeAlias = "dict[str, Marks]"
"""Paths as a tree by their tokens; where a path ends there is nothing below."""

Places: TypeAlias = tuple[Marks, ...]
"""Where in that tree a part of the value is: at several places, where `*` and a name both fit."""


def is_path(text: str) -> bool:
    """Whether the text is a path to some part of a value, and not to the whole."""
    return bool(text) and is_pointer(text)


def is_pointer(text: str) -> bool:
    """Whether the text is a JSON Pointer of a length that we take."""
    return len(text) <= LONGEST and _POINTER.fullmatch(text) is not None


def point(value: object, pointer: str) -> object:
    """The part of the value that the pointer leads to.

    Raises:
        HandlerFailed: it leads nowhere in this value.
    """
    for token in _tokens(pointer):
        members, elements = as_object(value), as_list(value)
        if members is not None and token in members:
            value = members[token]
        elif elements is not None and _INDEX.fullmatch(token) and int(token) < len(elements):
            value = elements[int(token)]
        else:
            raise HandlerFailed(f"the answer has nothing at {quote(pointer)}")
    return value


def keep(value: object, paths: Sequence[str]) -> object:
    """The value with only what the paths lead to and what lies on the way there; a whole that has no parts is null."""
    return _kept(value, (_mark(paths),))


def drop(value: object, paths: Sequence[str]) -> object:
    """The value without what the paths lead to."""
    return _without(value, (_mark(paths),))


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _mark(paths: Sequence[str]) -> Marks:
    """The paths as a tree; a path makes those below it superfluous."""
    root: Marks = {}
    for path in sorted(paths, key=lambda path: path.count("/"), reverse=True):
        below = root
        *way, last = _tokens(path)
        for token in way:
            below = below.setdefault(token, {})
        below[last] = {}
    return root


def _parts(value: object) -> Iterator[tuple[str, object]]:
    members = as_object(value)
    if members is not None:
        yield from members.items()
    else:
        yield from ((str(index), element) for index, element in enumerate(as_list(value) or ()))


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list | tuple)


def _step(places: Places, name: str) -> Places:
    return tuple(place[token] for place in places for token in (name, _EVERY) if token in place)


def _ends(places: Places) -> bool:
    return not all(places)


def _kept(value: object, places: Places) -> object:
    if _ends(places):
        return value
    if not _has_parts(value):
        return None
    found = [
        (name, _kept(part, below))
        for name, part in _parts(value)
        if (below := _step(places, name)) and (_ends(below) or _has_parts(part))
    ]
    return dict(found) if isinstance(value, dict) else [part for _, part in found]


def _without(value: object, places: Places) -> object:
    if not _has_parts(value):
        return value
    left = [
        (name, _without(part, below) if below else part)
        for name, part in _parts(value)
        if not (below := _step(places, name)) or not _ends(below)
    ]
    return dict(left) if isinstance(value, dict) else [part for _, part in left]
