"""Projection of JSON values: to the part at a JSON Pointer (RFC 6901), to some paths, or to all but some paths.

A path is a pointer in which `*` matches every element of a list and every member of an object. The work is linear in
the value and the number of paths. The given value is never changed; only containers on the paths are copied.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from gateway.definitions.excerpts import quote
from gateway.definitions.limits import MAX_POINTER_LENGTH
from gateway.domain.json_access import as_list, as_object, tokens_of
from gateway.errors import HandlerFailed

_POINTER = re.compile(r"(?:/(?:[^~/]|~0|~1)*)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_EVERY = "*"

Marks: TypeAlias = "dict[str, Marks]"
"""Paths as a tree of tokens; an empty node is the end of a path."""

MarkNodes: TypeAlias = tuple[Marks, ...]
"""The nodes of `Marks` that match one part of the value; several if both `*` and a name match."""


def is_path(text: str) -> bool:
    """True if the text is a path to a part of a value, not to the whole."""
    return bool(text) and is_pointer(text)


def is_pointer(text: str, *, max_length: int = MAX_POINTER_LENGTH) -> bool:
    """True if the text is a JSON Pointer within the length limit."""
    return len(text) <= max_length and _POINTER.fullmatch(text) is not None


def point(value: object, pointer: str) -> object:
    """Return the part of the value at the pointer.

    Raises:
        HandlerFailed: the value has no such part.
    """
    for token in tokens_of(pointer):
        members, elements = as_object(value), as_list(value)
        if members is not None and token in members:
            value = members[token]
        elif elements is not None and _INDEX.fullmatch(token) and int(token) < len(elements):
            value = elements[int(token)]
        else:
            raise HandlerFailed(f"the response has no value at {quote(pointer)}")
    return value


def find_missing(value: object, paths: Sequence[str], *, max_visits: int) -> list[str]:
    """Return the paths at which the value has no part, as far as the number of visited parts allows."""
    missing: list[str] = []
    for path in paths:
        waiting: list[tuple[object, list[str]]] = [(value, tokens_of(path))]
        while waiting and waiting[-1][1]:
            part, (token, *rest) = waiting.pop()
            found = [below for _, below in _parts_at(part, token)]
            max_visits -= len(found) + 1
            if max_visits < 0:
                return missing
            waiting += [(below, rest) for below in found]
        if not waiting:
            missing.append(path)
    return missing


def keep(value: object, paths: Sequence[str]) -> object:
    """Return only the parts at the paths, in their containers. A value that is not a container becomes null."""
    return _kept(value, (_mark(paths),))


def drop(value: object, paths: Sequence[str]) -> object:
    """Return the value without the parts at the paths."""
    return _without(value, (_mark(paths),))


def _mark(paths: Sequence[str]) -> Marks:
    """Return the paths as a tree; a path replaces the longer paths that begin with it."""
    root: Marks = {}
    for path in sorted(paths, key=lambda path: path.count("/"), reverse=True):
        below = root
        *way, last = tokens_of(path)
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


def _parts_at(value: object, token: str) -> Iterator[tuple[str, object]]:
    """The parts that a token may match."""
    if token == _EVERY:
        return _parts(value)
    members, elements = as_object(value), as_list(value) or ()
    if members is not None:
        return iter([(token, members[token])] if token in members else [])
    is_index = _INDEX.fullmatch(token) is not None and int(token) < len(elements)
    return iter([(token, elements[int(token)])] if is_index else [])


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list | tuple)


def _step(nodes: MarkNodes, name: str) -> MarkNodes:
    return tuple(node[token] for node in nodes for token in (name, _EVERY) if token in node)


def _ends(nodes: MarkNodes) -> bool:
    return not all(nodes)


def _kept(value: object, nodes: MarkNodes) -> object:
    if _ends(nodes):
        return value
    if not _has_parts(value):
        return None
    found = [
        (name, _kept(part, below))
        for name, part in _parts(value)
        if (below := _step(nodes, name)) and (_ends(below) or _has_parts(part))
    ]
    return dict(found) if isinstance(value, dict) else [part for _, part in found]


def _without(value: object, nodes: MarkNodes) -> object:
    if not _has_parts(value):
        return value
    left = [
        (name, _without(part, below) if below else part)
        for name, part in _parts(value)
        if not (below := _step(nodes, name)) or not _ends(below)
    ]
    return dict(left) if isinstance(value, dict) else [part for _, part in left]
