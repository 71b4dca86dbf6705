"""The truncation of large query tool results: the largest parts are replaced by pointers to them.

Sizes are bytes of the indented text. A removed part becomes `{"$cut": {"pointer"?, "bytes", "offset"?}}`; `offset` is
the index of the first removed member of an array or object. A truncated text ends in a note with pointer and offset.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from gateway.domain.json_access import as_list, as_object, point, unescape_token
from gateway.openapi.document.references import find_step
from gateway.openapi.query.limits import MAX_ANSWER_BYTES, MAX_CUT_NAME_LENGTH, MAX_POINTER_LENGTH, WHOLE_BYTES
from gateway.openapi.query.sizes import INDENT, Sizes, measure

_STUB = 160
"""Bytes reserved for a `$cut` object, without its pointer."""
_SPLIT = 1_500
"""A larger member is shown in part if at least this many bytes are available for it."""


def render(value: object) -> str:
    """Encode the value as indented JSON text."""
    return msgspec.json.format(msgspec.json.encode(value), indent=INDENT).decode()


def fit(value: object, *, limit: int = MAX_ANSWER_BYTES, pointer: str = "", offset: int = 0, level: int = 0) -> object:
    """Truncate the value to `limit` bytes.

    `pointer` is the position of the value in the whole result; its first `offset` members are already removed. `level`
    is the indentation of its lines.
    """
    if measure(value, level) <= limit:
        return value
    return _Cutter(Sizes()).fit(value, limit, _PartPosition(pointer, offset, level))


def find_part(value: object, pointer: str) -> tuple[object, bool]:
    """Follow a JSON pointer (RFC 6901); return the value and True if it exists."""
    node, is_there = value, not pointer or pointer.startswith("/")
    for token in pointer.split("/")[1:]:
        if is_there:
            node, is_there = find_step(node, unescape_token(token))
    return node, is_there


def skip(value: object, offset: int) -> object:
    """Return an array, object or text without its first `offset` members or characters; other values unchanged."""
    items, members = as_list(value), as_object(value)
    if items is not None:
        return items[offset:]
    if members is not None:
        return dict(list(members.items())[offset:])
    return value[offset:] if isinstance(value, str) else value


class _PartPosition(msgspec.Struct, frozen=True):
    """The pointer to a part in the whole result, the number of its first member, and the indentation of its lines."""

    pointer: str
    offset: int
    level: int

    def inside(self, name: str) -> "_PartPosition":
        return _PartPosition(f"{self.pointer}{point(name)}", 0, self.level + 1)


class _Cutter:
    """Truncates one result."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def fit(self, value: object, limit: int, position: _PartPosition) -> object:
        """The value cut to the limit; slightly larger if the limit is too small for one member and a pointer."""
        if self._sizes.of(value, position.level) <= limit:
            return value
        if isinstance(value, str):
            return _cut_text(value, limit, position)
        members = [
            (name, member, self._sizes.of(member, position.level + 1) + _member_overhead(name, position))
            for name, member in _named_members(value, position.offset)
        ]
        end = _stub_room(position)
        share = max(_share([size for _, _, size in members], limit - end), WHOLE_BYTES)
        left = limit - end - 2 * INDENT * (position.level + 1)
        shown: list[tuple[str, object]] = []
        for name, member, size in members:
            if size <= share:
                part = name, member
                left -= size
            else:
                part = _shorten(name), self._shrink(member, size, share, position.inside(name))
                left -= measure(part[1], position.level + 1) + _member_overhead(part[0], position)
            if left < 0 and shown:
                break
            shown.append(part)
        rest = sum(size for _, _, size in members[len(shown) :])
        return _join(value, shown, _stub(position.pointer, rest, offset=position.offset + len(shown)) if rest else None)

    def _shrink(self, value: object, size: int, share: int, position: _PartPosition) -> object:
        """The beginning of a member if the share is large enough for one, otherwise a `$cut` object."""
        stub = _stub(position.pointer, size)
        if share < _SPLIT + len(position.pointer) or not isinstance(value, str | list | dict):
            return stub
        # the last token of the pointer is at least as long as the name
        room = share - measure(position.pointer.rpartition("/")[2]) - 4 - INDENT * position.level
        fitted = self.fit(cast("object", value), room, position)
        return fitted if measure(fitted, position.level) <= room else stub


def _member_overhead(name: str, position: _PartPosition) -> int:
    """The bytes for the name of a member, with its indentation and its comma."""
    return len(msgspec.json.encode(name)) + 4 + INDENT * (position.level + 1)


def _cut_text(value: str, limit: int, position: _PartPosition) -> str:
    """The beginning of a long text, and a note with the pointer and offset of the remaining text."""
    kept = len(value)
    while True:
        kept //= 2
        where = f"pointer {position.pointer!r} and offset {position.offset + kept}"
        shown = f"{value[:kept]}… [truncated; continue with {where}]"
        if measure(shown) <= limit or not kept:
            return shown


def _named_members(value: object, offset: int) -> Iterator[tuple[str, object]]:
    items = as_list(value)
    if items is not None:
        yield from ((str(index), item) for index, item in enumerate(items, offset))
    yield from (as_object(value) or {}).items()


def _share(sizes: Sequence[int], room: int) -> int:
    """The maximum size to which members can be cut so that all of them fit into `room`."""
    sharing = len(sizes)
    for size in sorted(sizes):
        if size > room // sharing:
            return room // sharing
        room, sharing = room - size, sharing - 1
    return room


def _stub_room(position: _PartPosition) -> int:
    """Upper bound on the bytes of the `$cut` object for the removed members."""
    return _STUB + (measure(position.pointer) if len(position.pointer) <= MAX_POINTER_LENGTH else 0)


def _join(value: object, shown: Sequence[tuple[str, object]], rest: dict[str, object] | None) -> object:
    """The shown members, and the `$cut` object for the removed ones, if any."""
    if as_list(value) is not None:
        return [*(member for _, member in shown), *([] if rest is None else [rest])]
    return dict(shown) | (rest or {})


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_CUT_NAME_LENGTH else name[: MAX_CUT_NAME_LENGTH - 1] + "…"


def _stub(pointer: str, size: int, *, offset: int = 0) -> dict[str, object]:
    where: dict[str, object] = {"pointer": pointer} if len(pointer) <= MAX_POINTER_LENGTH else {}
    return {"$cut": where | {"bytes": size} | ({"offset": offset} if offset else {})}
