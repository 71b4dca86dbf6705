"""Parts of compact JSON texts, as bytes: numbers keep their spelling, and objects all members of a repeated name.

The parser in C splits a container with few commas. An object with many is scanned member by member, so that no call
of C code is long: the work may run in a thread beside the event loop. Texts with more commas than `MAX_PARTS` are for
readers of characters: a list of a million numbers would become a million objects.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import orjson

Part = tuple[str | None, bytes]
"""The name of a member, or None for an element of a list, and the JSON text of its value."""

MAX_PARTS: Final = 500_000
"""Commas of a text that is read in parts; splitting a list of so many elements takes about 25 ms."""
_MAX_SPLIT_MEMBERS: Final = 50_000
"""Commas of an object up to which the parser splits it: hashing so many names takes about 15 ms."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}]++")
_AFTER_VALUE = re.compile(r"JSON is malformed: trailing characters \(byte ([0-9]+)\)")
"""The parser's words for the end of a value before the end of the text; a test pins them."""
_skip = msgspec.json.Decoder(msgspec.Raw).decode


def compact(body: bytes) -> bytes | None:
    """Return a JSON text without whitespace between its tokens; None if it is no JSON, or nests too deep."""
    try:
        found = msgspec.json.format(body, indent=-1)
        found.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found


def is_container(raw: bytes) -> bool:
    """True if the JSON text is a list or an object."""
    return raw[:1] in {b"[", b"{"}


def has_many_parts(raw: bytes) -> bool:
    """True if the text has too many parts to be read by pointers."""
    return raw.count(b",") > MAX_PARTS


def parts_of(raw: bytes) -> Iterator[Part]:
    """Yield the members of an object, or the elements of a list, in their order."""
    if raw.startswith(b"["):
        return ((None, bytes(part)) for part in split_list(raw))
    found = _split(raw) if raw.count(b",") <= _MAX_SPLIT_MEMBERS else None
    return _scan(raw) if found is None else iter(found)


def split_list(raw: bytes) -> Sequence[msgspec.Raw]:
    """Return the elements of a list, without copies."""
    return msgspec.json.decode(raw, type=list[msgspec.Raw])


def is_index(token: str) -> bool:
    """True if the token of a JSON Pointer may be a position in a list."""
    return _INDEX.fullmatch(token) is not None


def part_at(raw: bytes, token: str) -> bytes | None:
    """Return the part that a token of a JSON Pointer names, the last of several; None if there is none."""
    if raw.startswith(b"["):
        if not is_index(token):
            return None
        elements = split_list(raw)
        return bytes(elements[int(token)]) if int(token) < len(elements) else None
    if not raw.startswith(b"{"):
        return None
    if raw.count(b",") <= _MAX_SPLIT_MEMBERS:
        found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get(token)
        return None if found is None else bytes(found)
    last = None
    for name, part in _scan(raw):
        last = part if name == token else last
    return last


def text_of(raw: bytes) -> str:
    """Return the text of a JSON string; a lone surrogate becomes a question mark."""
    if b"\\" not in raw:
        return raw[1:-1].decode()
    found: str = json.loads(raw)
    return found.encode("utf-8", "replace").decode()


def _split(raw: bytes) -> list[Part] | None:
    """Split an object with the parser; None if two members have one name, or names have unusual escapes."""
    try:
        members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:  # a lone surrogate in a name
        return None
    found: list[Part] = [(name, bytes(part)) for name, part in members.items()]
    size = sum(len(part or b"") + len(":,") for _, part in found) + (1 if found else 2)
    names = len(raw) - size
    is_whole = any(names == sum(map(len, map(spelling, members))) for spelling in (orjson.dumps, json.dumps))
    return found if is_whole else None


def _scan(raw: bytes) -> Iterator[Part]:
    at, end, whole = 1, len(raw) - 1, memoryview(raw)
    while at < end:
        colon = _end_of(raw, whole, at)
        name, at = text_of(raw[at:colon]), colon + 1
        stop = _end_of(raw, whole, at)
        yield name, raw[at:stop]
        at = stop + 1


def _end_of(raw: bytes, whole: memoryview, start: int) -> int:
    """Return the position after the value that starts here, before the end of its object."""
    first = raw[start : start + 1]
    if first in {b"{", b"["}:
        try:
            _skip(whole[start:])
        except msgspec.DecodeError as stopped:
            if (after := _AFTER_VALUE.match(str(stopped))) is not None:
                return start + int(after[1]) - 1
        raise ValueError("the text is no compact JSON")
    found = (_STRING if first == b'"' else _SCALAR).match(raw, start)
    if found is None:
        raise ValueError("the text is no compact JSON")
    return found.end()
