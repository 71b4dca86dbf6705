"""Truncation of results that are too large, with notes on the omitted parts.

Truncated JSON is valid JSON. Values that fit are copied as bytes, so numbers keep their spelling. Lists keep their
first elements; objects keep as many keys as fit, with shortened values; strings keep their beginning. JSON with more
than 300,000 commas or colons is cut after its last complete part, and only the kept part is read.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from gateway.domain.json_access import point

_MAX_PARTS = 300_000
_MAX_NOTES = 10
_MAX_DEPTH = 48
_MIN_CUT_BYTES = 16
_LAST_LINES = 4096
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.?)*(?:"|\Z)|[][{},]', re.DOTALL)
_ELLIPSIS = "…"
_Container = TypeVar("_Container")


@dataclass(frozen=True, slots=True)
class Truncated:
    """A truncated value: the kept bytes, and notes on the omitted parts. Without notes, the value is complete."""

    kept: bytes
    notes: tuple[str, ...] = ()


def cut_json(compact: bytes, limit: int, *, max_parts: int = _MAX_PARTS) -> Truncated:
    """Truncate compact, valid JSON to about `limit` bytes of valid JSON; many shortened strings may exceed it.

    JSON with more parts, or too deep for the parser, is cut after its last complete part.
    """
    if len(compact) <= limit:
        return Truncated(compact)
    if compact.count(b",") > max_parts or compact.count(b":") > max_parts:
        return _cut_after(compact, limit)
    truncator = _Truncator()
    try:
        kept = truncator.value(compact, limit, "", 0)
    except RecursionError:
        return _cut_after(compact, limit)
    notes = tuple(truncator.notes[:_MAX_NOTES])
    further = len(truncator.notes) - len(notes)
    return Truncated(kept, (*notes, f"{further} further parts are cut") if further else notes)


def cut_text(text: str, limit: int) -> Truncated:
    """Truncate text to at most `limit` bytes of UTF-8, at the end of a line if one is near."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return Truncated(raw)
    kept = raw[:limit].decode("utf-8", "ignore")
    line_end = kept.rfind("\n", max(0, len(kept) - _LAST_LINES))
    kept = kept[: line_end + 1] if line_end > 0 else kept
    shown = kept.encode()
    return Truncated(shown, (f"the first {len(shown):,} of {len(raw):,} bytes are shown",))


def describe(cut: Truncated, *, whole: int, uri: str | None) -> str:
    """The note of a truncated result: its size, the omitted parts, and the URI of the complete result, if any."""
    lines: Sequence[str] = [f"This result is cut: the whole has {whole:,} bytes.", *cut.notes]
    return "\n".join([*lines, f"All of it can be read as the resource {uri} for some minutes."] if uri else lines)


class _Truncator:
    """Truncates one value and collects the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def value(self, raw: bytes, limit: int, where: str, depth: int) -> bytes:
        """Return the value, truncated to about the limit."""
        if len(raw) <= limit:
            return raw
        opening = raw[:1]
        if opening == b'"':
            return self._string(raw, limit, where)
        if opening in b"[{" and depth < _MAX_DEPTH and limit >= _MIN_CUT_BYTES:
            return self._list(raw, limit, where, depth) if opening == b"[" else self._object(raw, limit, where, depth)
        self._note(where, f"{len(raw):,} bytes are omitted")
        return b"[]" if opening == b"[" else b"{}" if opening == b"{" else b"null"

    def _list(self, raw: bytes, limit: int, where: str, depth: int) -> bytes:
        items = _split(raw, list[msgspec.Raw])
        kept: list[bytes] = []
        room = limit - 2
        for item in items:
            element = bytes(item)
            if len(element) + 1 > room:
                break
            kept.append(element)
            room -= len(element) + 1
        if not kept:
            kept.append(self.value(bytes(items[0]), room, f"{where}/0", depth + 1))
        self._note(where, f"the first {len(kept):,} of {len(items):,} elements are shown")
        return b"[" + b",".join(kept) + b"]"

    def _object(self, raw: bytes, limit: int, where: str, depth: int) -> bytes:
        members = {name: bytes(value) for name, value in _split(raw, dict[str, msgspec.Raw]).items()}
        heads = {name: _quoted(name) + b":" for name in members}
        names = list(_names_that_fit(heads, limit - 2))
        if len(names) < len(members):
            self._note(where, f"the first {len(names):,} of {len(members):,} members are shown")
        room = limit - 2 - sum(len(heads[name]) + 1 for name in names)
        shares = _share_bytes({name: len(members[name]) for name in names}, room)
        parts = [
            heads[name] + self.value(members[name], shares[name], where + point(name[:64]), depth + 1) for name in names
        ]
        return b"{" + b",".join(parts) + b"}"

    def _string(self, raw: bytes, limit: int, where: str) -> bytes:
        text = msgspec.json.decode(raw, type=str)
        self._note(where, f"the string has {len(text):,} characters and is cut")
        kept = text[: max(0, limit // 2)]
        while kept and len(quoted := _quoted(kept + _ELLIPSIS)) > limit:
            kept = kept[: len(kept) - max(1, (len(quoted) - limit) // 6)]
        return _quoted(kept + _ELLIPSIS)

    def _note(self, where: str, what: str) -> None:
        self.notes.append(f"{where}: {what}" if where else what)


def _split(raw: bytes, kind: type[_Container]) -> _Container:
    return msgspec.json.decode(raw, type=kind)


def _names_that_fit(heads: dict[str, bytes], room: int) -> Iterable[str]:
    """Yield the first names that fit, each with four bytes for its value."""
    for name, head in heads.items():
        room -= len(head) + 1 + len(b"null")
        if room < 0:
            return
        yield name


def _share_bytes(sizes: dict[str, int], room: int) -> dict[str, int]:
    """Return the bytes for each value: small values receive their size, large values equal shares of what remains."""
    shares: dict[str, int] = {}
    for left, (name, size) in zip(
        range(len(sizes), 0, -1), sorted(sizes.items(), key=lambda pair: pair[1]), strict=True
    ):
        shares[name] = min(size, max(room // left, len(b"null")))
        room -= shares[name]
    return shares


def _cut_after(compact: bytes, limit: int) -> Truncated:
    """Return the start of the value up to the last complete part that fits, with all open containers closed."""
    closers: list[bytes] = []
    end, closing = 0, b""
    for token in _TOKEN.finditer(compact, 0, limit):
        mark = token[0]
        if mark == b"," or mark in b"]}":
            if token.start() + len(closers) > limit:
                break
            end, closing = token.start(), b"".join(reversed(closers))
        if mark in b"]}":
            closers.pop()
        elif mark in b"[{":
            closers.append(b"]" if mark == b"[" else b"}")
    note = f"the first {end:,} of {len(compact):,} bytes are shown; what comes after is omitted"
    return Truncated(compact[:end] + closing, (note,)) if end else Truncated(b"null", (note,))


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
