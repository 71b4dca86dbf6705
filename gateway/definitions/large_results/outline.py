"""The outline of a large JSON text: a bounded number of lines, each with pointer, kind and length of a part.

For a list, the outline contains its length and its first element, as `*`. The work is linear in the text for each
level.
"""

import json
from typing import Final

from gateway.definitions.large_results.json_parts import Part, is_container, parts_of
from gateway.definitions.large_results.limits import (
    MAX_OUTLINE_LEVELS,
    MAX_OUTLINE_LINES,
    MAX_OUTLINE_MEMBERS,
    MAX_OUTLINE_POINTER_LENGTH,
)
from gateway.domain.json_access import point

_LARGE: Final = 1024
"""Size in bytes above which the line of a part contains its size."""
_KINDS: Final = {"t": "boolean", "f": "boolean", "n": "null", '"': "string"}


def outline(raw: bytes, *, room: int) -> str:
    """Return the outline of compact JSON, in at most about `room` bytes."""
    lines: list[str] = []
    waiting: list[tuple[str, bytes, int]] = [("", raw, 0)]
    while waiting and len(lines) < MAX_OUTLINE_LINES:
        pointer, part, level = waiting.pop()
        line, below = _line(pointer, part, level)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
        waiting += reversed(below)
    if waiting:
        lines.append("…")
    return "\n".join(lines)


def _line(pointer: str, raw: bytes, level: int) -> tuple[str, list[tuple[str, bytes, int]]]:
    """Return the line of a part, and the inner parts whose lines follow."""
    shown = pointer if pointer.isprintable() else json.dumps(pointer)
    size = f", {len(raw):,} bytes" if len(raw) > _LARGE else ""
    if not is_container(raw):
        return f"{shown or 'whole'}: {_KINDS.get(chr(raw[0]), 'number')}{size}", []
    count, first = _count(raw, 1 if raw.startswith(b"[") else MAX_OUTLINE_MEMBERS)
    kind = f"array of {count:,}" if raw.startswith(b"[") else f"object with {count:,} members"
    if level >= MAX_OUTLINE_LEVELS:
        first = []
    below = [(pointer + point("*" if name is None else name), part, level + 1) for name, part in first]
    more = f", of which the first {len(first)} follow" if raw.startswith(b"{") and 0 < len(first) < count else ""
    return f"{shown or 'whole'}: {kind}{size}{more}", [
        one for one in below if len(one[0]) <= MAX_OUTLINE_POINTER_LENGTH
    ]


def _count(raw: bytes, most: int) -> tuple[int, list[Part]]:
    """Return the number of parts, and at most `most` of them."""
    first: list[Part] = []
    count = 0
    for part in parts_of(raw):
        count += 1
        if len(first) < most:
            first.append(part)
    return count, first
