"""Splitter of compact JSON texts into parts, as bytes. Numbers keep their spelling; repeated members are kept.

The C parser splits lists, and objects with few commas. Objects with many commas are scanned member by member: a long
call of C code would hold the GIL and block the event loop. Texts with more than `MAX_PARTS` commas are read as text,
because each part becomes a Python object.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import orjson

from gateway.definitions.large_results.limits import MAX_PARTS, MAX_SPLIT_MEMBERS

Part = tuple[str | None, bytes]
"""The name of a member (None for an element of a list), and the JSON text of its value."""
Container: TypeAlias = Sequence[msgspec.Raw] | Mapping[str, msgspec.Raw | bytes]
"""The elements of a list, or the members of an object, the last of several of one name."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}]++")
_AFTER_VALUE = re.compile(r"JSON is malformed: trailing characters \(byte ([0-9]+)\)")
"""The parser's message if text follows a value; it contains the position. A test pins the message."""
_parse_value = msgspec.json.Decoder(msgspec.Raw).decode


def compact(body: bytes) -> bytes | None:
    """Return a JSON text without whitespace between its tokens; None if the text is not JSON, or is nested too deep."""
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
    """True if the text has more than `MAX_PARTS` commas, so that it is not split."""
    return raw.count(b",") > MAX_PARTS


def parts_of(raw: bytes) -> Iterator[Part]:
    """Yield the members of an object, or the elements of a list, in order."""
    if raw.startswith(b"["):
        return ((None, bytes(part)) for part in split_list(raw))
    found = _split(raw) if raw.count(b",") <= MAX_SPLIT_MEMBERS else None
    return _scan(raw) if found is None else iter(found)


def split_list(raw: bytes) -> Sequence[msgspec.Raw]:
    """Return the elements of a list, without copies."""
    return msgspec.json.decode(raw, type=list[msgspec.Raw])


def is_index(token: str) -> bool:
    """True if the token of a JSON Pointer has the form of a list index."""
    return _INDEX.fullmatch(token) is not None


def part_at(raw: bytes, token: str) -> bytes | None:
    """Return the part that a token of a JSON Pointer names; None if there is none. The last of repeated names wins."""
    return look_up(split(raw), token)


def split(raw: bytes) -> Container:
    """Return the parts of a container for `look_up`; a value without parts has none."""
    if raw.startswith(b"["):
        return split_list(raw)
    if not raw.startswith(b"{"):
        return ()
    if raw.count(b",") <= MAX_SPLIT_MEMBERS:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    return {name or "": part for name, part in _scan(raw)}


def look_up(parts: Container, token: str) -> bytes | None:
    """Return the part that a token of a JSON Pointer names, the last of several; None if there is none."""
    if isinstance(parts, Mapping):
        found = parts.get(token)
    else:
        found = parts[int(token)] if is_index(token) and int(token) < len(parts) else None
    return None if found is None else bytes(found)


def text_of(raw: bytes) -> str:
    """Decode a JSON string; a lone surrogate becomes a question mark."""
    if b"\\" not in raw:
        return raw[1:-1].decode()
    found: str = json.loads(raw)
    return found.encode("utf-8", "replace").decode()


def _split(raw: bytes) -> list[Part] | None:
    """Split an object with the C parser; None if names are repeated, or have unusual escapes."""
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
    """Return the end of the name or value that starts at `start`, inside an object."""
    first = raw[start : start + 1]
    if first in {b"{", b"["}:
        try:
            _parse_value(whole[start:])
        except msgspec.DecodeError as stopped:
            if (after := _AFTER_VALUE.match(str(stopped))) is not None:
                return start + int(after[1]) - 1
        raise ValueError("the text is no compact JSON")
    found = (_STRING if first == b'"' else _SCALAR).match(raw, start)
    if found is None:
        raise ValueError("the text is no compact JSON")
    return found.end()
