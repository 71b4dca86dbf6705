"""Truncation of results that are too large, with notes on the omitted parts.

Truncated JSON is valid JSON. Values that fit are copied as bytes, so numbers keep their spelling. Lists keep their
first elements; objects keep as many keys as fit, with shortened values; strings keep their beginning. JSON with more
than 300,000 commas or colons is cut after its last complete part, and only the kept part is read.

No step holds the interpreter lock for more than about 35 ms for 10 MiB, because a long call of C code would block the
event loop too: large containers become Python objects only up to a number of parts, and the rest is skipped in C.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from gateway.calls.limits import (
    COUNTED_BYTES,
    MAX_NOTES,
    MAX_PARTS,
    MAX_SCANNED_MEMBERS,
    MAX_SPLIT_BYTES,
    MAX_TRUNCATED_DEPTH,
    MIN_CUT_BYTES,
)
from gateway.definitions.large_results.json_parts import parts_of, split_list
from gateway.domain.json_access import point

_LAST_LINES = 4096
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CLOSING = bytes.maketrans(b"[{", b"]}")
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Truncated:
    """A truncated value: the kept bytes, and notes on the omitted parts. Without notes, the value is complete."""

    kept: bytes
    notes: tuple[str, ...] = ()


def cut_json(compact: bytes, limit: int, *, max_parts: int = MAX_PARTS) -> Truncated:
    """Truncate compact, valid JSON to about `limit` bytes of valid JSON; many shortened strings may exceed it.

    JSON with more parts, or too deep for the parser, is cut after its last complete part.
    """
    if len(compact) <= limit:
        return Truncated(compact)
    if has_many_parts(compact, max_parts):
        return _cut_after(compact, limit, len(compact))
    truncator = _Truncator()
    try:
        kept = truncator.value(compact, limit, "", 0)
    except RecursionError:
        return _cut_after(compact, limit, len(compact))
    notes = tuple(truncator.notes[:MAX_NOTES])
    further = len(truncator.notes) - len(notes)
    return Truncated(kept, (*notes, f"{further} further parts are cut") if further else notes)


def has_many_parts(raw: bytes, max_parts: int = MAX_PARTS) -> bool:
    """True if only the kept part of the JSON text is read."""
    commas = colons = 0
    for start in range(0, len(raw), COUNTED_BYTES):
        commas += raw.count(b",", start, start + COUNTED_BYTES)
        colons += raw.count(b":", start, start + COUNTED_BYTES)
        if max(commas, colons) > max_parts:
            return True
    return False


def cut_start(raw: bytes, limit: int) -> Truncated:
    """Truncate valid JSON, compact or not, to the start that fits into `limit` bytes of compact JSON; see `cut_json`.

    Only the start is read: of JSON with white space up to four times the limit.
    """
    cut = _cut_after(raw[:limit], limit, len(raw))
    kept = _compact(cut.kept)
    if len(kept) < limit // 2:  # much white space
        cut = _cut_after(raw[: 4 * limit], min(4 * limit, limit * limit // len(kept)), len(raw))
        kept = _compact(cut.kept)
    return Truncated(kept, cut.notes) if len(kept) <= limit else _cut_after(kept, limit, len(raw))


def cut_text(text: str, limit: int, *, whole: int = 0) -> Truncated:
    """Truncate text to at most `limit` bytes of UTF-8, at the end of a line if one is near.

    `whole` is the size of the complete text, of which `text` may be the start.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return Truncated(raw)
    kept = raw[:limit].decode("utf-8", "ignore")
    line_end = kept.rfind("\n", max(0, len(kept) - _LAST_LINES))
    kept = kept[: line_end + 1] if line_end > 0 else kept
    shown = kept.encode()
    return Truncated(shown, (f"the first {len(shown):,} of {max(whole, len(raw)):,} bytes are shown",))


def describe(cut: Truncated, *, whole: int, uri: str | None) -> str:
    """The note of a truncated result: its size, the omitted parts, and the URI of the complete result, if any."""
    lines: Sequence[str] = [f"This result is cut: the whole has {whole:,} bytes.", *cut.notes]
    return "\n".join([*lines, f"All of it can be read as the resource {uri} for some minutes."] if uri else lines)


class _Truncator:
    """Truncates one value and collects the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._work = 0

    def value(self, raw: bytes, limit: int, where: str, depth: int) -> bytes:
        """Return the value, truncated to about the limit."""
        if len(raw) <= limit:
            return raw
        opening = raw[:1]
        if opening == b'"':
            return self._string(raw, limit, where)
        self._work += len(raw)
        if (
            opening in b"[{"
            and depth < MAX_TRUNCATED_DEPTH
            and limit >= MIN_CUT_BYTES
            and self._work <= MAX_SPLIT_BYTES
        ):
            return self._list(raw, limit, where, depth) if opening == b"[" else self._object(raw, limit, where, depth)
        self._note(where, f"{len(raw):,} bytes are omitted")
        return b"[]" if opening == b"[" else b"{}" if opening == b"{" else b"null"

    def _list(self, raw: bytes, limit: int, where: str, depth: int) -> bytes:
        items = split_list(raw)
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
        members = {name or "": part for name, part in islice(parts_of(raw), MAX_SCANNED_MEMBERS + 1)}
        is_part = len(members) > MAX_SCANNED_MEMBERS
        heads = {name: _quoted(name) + b":" for name in members}
        names = list(_names_that_fit(heads, limit - 2))
        if len(names) < len(members):
            total = f"more than {MAX_SCANNED_MEMBERS:,}" if is_part else f"{len(members):,}"
            self._note(where, f"the first {len(names):,} of {total} members are shown")
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


def _compact(raw: bytes) -> bytes:
    return msgspec.json.format(raw, indent=-1)


def _cut_after(compact: bytes, limit: int, whole: int) -> Truncated:
    """Return the start of the value up to the last complete part that fits, with all open containers closed.

    `whole` is the size of the complete value, of which `compact` may be the start.
    """
    masked, room = _mask_strings(compact[:limit]), limit
    end, closing = 0, b""
    while room > 0 and (end := max(masked.rfind(mark, 0, room) for mark in (b",", b"]", b"}"))) > 0:
        closing = _open_containers(masked[:end])[::-1].translate(_CLOSING)
        if end + len(closing) <= limit:
            break
        room = min(room - 1, limit - len(closing))
    else:
        end = 0
    note = f"the first {end:,} of {whole:,} bytes are shown; what comes after is omitted"
    return Truncated(compact[:end] + closing if end else b"null", (note,))


def _mask_strings(raw: bytes) -> bytes:
    """Return a JSON text of the same length with points in place of the characters of its strings."""
    if b'"' not in raw:
        return raw
    parts = raw.replace(b"\\\\", b"..").replace(b'\\"', b"..").split(b'"')
    parts[1::2] = [b"." * len(part) for part in parts[1::2]]
    return b'"'.join(parts)


def _open_containers(masked: bytes) -> bytes:
    """Return the opening brackets without a closing one, outermost first; a pass at the speed of C for each level."""
    brackets = masked.translate(None, _NO_BRACKETS)
    while True:
        reduced = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(reduced) == len(brackets):
            return brackets
        brackets = reduced


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
