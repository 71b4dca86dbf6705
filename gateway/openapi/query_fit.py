"""How a large answer of the query tools is cut: the largest parts make way for pointers under which they can be read.

Sizes are those of the indented text. What is left out stands as `{"$cut": {"pointer", "bytes", "offset"?}}`; with an
`offset` it is the rest of an array or object whose first members are shown.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from gateway.openapi.references import find_step
from gateway.openapi.shapes import as_list, as_object, point

LARGEST = 32 * 1024
_INDENT = 2
_STUB = 160
"""Bytes that a pointer in place of a part takes at most, beside the pointer itself."""
_LEAST = 600
"""Members up to this size are shown whole, and where there are too many of them the last ones are left out."""
_SPLIT = 1_500
"""A member is shown in part where it has so much room."""


def render(value: object) -> str:
    """The value as indented JSON text."""
    return msgspec.json.format(msgspec.json.encode(value), indent=_INDENT).decode()


def fit(value: object, *, limit: int = LARGEST, pointer: str = "", offset: int = 0, level: int = 0) -> object:
    """The value within the limit; `pointer` is where it stands in the whole, of which it begins at member `offset`.

    `level` is how far in its lines stand.
    """
    if measure(value, level) <= limit:
        return value
    if isinstance(value, str):
        return _begin(value, limit, pointer, offset)
    members = _members(value, offset, level)
    share = max(_share([size for _, _, size in members], limit - _STUB - len(pointer)), _LEAST)
    shown: list[tuple[str, object]] = []
    left = limit - _STUB - len(pointer) - 2 * _INDENT * (level + 1)
    for name, member, size in members:
        fitted = member if size <= share else _shrink(member, size, share, f"{pointer}{point(name)}", level + 1)
        left -= size if fitted is member else _cost(name, fitted, level)
        if left < 0 and shown:
            break
        shown.append((name, fitted))
    rest = sum(size for _, _, size in members[len(shown) :])
    return _join(value, shown, _stub(pointer, rest, offset=offset + len(shown)) if rest else None)


def measure(value: object, level: int = 0) -> int:
    """Bytes of the text, each line so many levels further in."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=_INDENT)
    return len(text) + text.count(b"\n") * _INDENT * level


def find_part(value: object, pointer: str) -> tuple[object, bool]:
    """What a JSON pointer (RFC 6901) leads to, and whether anything is there."""
    node, is_there = value, not pointer or pointer.startswith("/")
    for token in pointer.split("/")[1:]:
        if is_there:
            node, is_there = find_step(node, token.replace("~1", "/").replace("~0", "~"))
    return node, is_there


def skip(value: object, offset: int) -> object:
    """The members of an array, object or text from the given one on."""
    items, members = as_list(value), as_object(value)
    if items is not None:
        return items[offset:]
    if members is not None:
        return dict(list(members.items())[offset:])
    return value[offset:] if isinstance(value, str) else value


def _begin(value: str, limit: int, pointer: str, offset: int) -> str:
    """The beginning of a long text, and where to read on."""
    kept = len(value)
    while True:
        kept //= 2
        shown = f"{value[:kept]}… [cut; read on with pointer {pointer!r} and offset {offset + kept}]"
        if measure(shown) <= limit or not kept:
            return shown


_Member = tuple[str, object, int]


def _members(value: object, offset: int, level: int) -> Sequence[_Member]:
    """Each member with its name, or its number in the whole, and the bytes it takes."""
    return [(name, member, _cost(name, member, level)) for name, member in _named(value, offset)]


def _named(value: object, offset: int) -> Iterator[tuple[str, object]]:
    items = as_list(value)
    if items is not None:
        yield from ((str(index), item) for index, item in enumerate(items, offset))
    yield from (as_object(value) or {}).items()


def _cost(name: str, member: object, level: int) -> int:
    """What a member takes with its name, its indentation and its comma."""
    return measure(member, level + 1) + len(name.encode()) + 6 + _INDENT * (level + 1)


def _share(sizes: Sequence[int], room: int) -> int:
    """How large a member may be so that all fit when the larger ones are cut down to that."""
    sharing = len(sizes)
    for size in sorted(sizes):
        if size > room // sharing:
            return room // sharing
        room, sharing = room - size, sharing - 1
    return room


def _shrink(value: object, size: int, share: int, pointer: str, level: int) -> object:
    """A part of a member where that says something, else its pointer."""
    if share < _SPLIT + len(pointer) or not isinstance(value, str | list | dict):
        return _stub(pointer, size)
    name = pointer.rpartition("/")[2]
    fitted = fit(
        cast("object", value), limit=share - len(name.encode()) - 6 - _INDENT * level, pointer=pointer, level=level
    )
    return fitted if measure(fitted, level) <= share else _stub(pointer, size)


def _join(value: object, shown: Sequence[tuple[str, object]], rest: dict[str, object] | None) -> object:
    """The members shown, and the pointer to the rest where there is one."""
    if as_list(value) is not None:
        return [*(member for _, member in shown), *([] if rest is None else [rest])]
    return dict(shown) | (rest or {})


def _stub(pointer: str, size: int, *, offset: int = 0) -> dict[str, object]:
    where: dict[str, object] = {"pointer": pointer, "bytes": size}
    return {"$cut": where | ({"offset": offset} if offset else {})}
