"""Removal of the text block that repeats structured content: a sentence about its shape replaces it.

MCP recommends the JSON as text as well, for clients that ignore structured content. So the removal is an opt-in setting
of the profile.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.calls.limits import (
    MAX_DESCRIBED_BYTES,
    MAX_DESCRIBED_PARTS,
    MAX_NAME_LENGTH,
    MAX_NAMED,
    MIN_REPLACED_BYTES,
)
from gateway.calls.upstream_errors import quote

_TEXT: Final = b'"content":[{"type":"text","text":'
_STRUCTURED: Final = b'],"structuredContent":'
_ERROR: Final = b',"isError":'
_SUCCESS: Final = b',"isError":false'
_KINDS: Final[Mapping[bytes, str]] = {
    b"{": "object",
    b"[": "array",
    b'"': "string",
    b"t": "true",
    b"f": "false",
    b"n": "null",
}


def replace_duplicate_text(members: bytes, *, is_modern: bool) -> bytes:
    """Return the members of a successful result with a summary in place of a text block that repeats it.

    All other results are returned unchanged. Before 2026-07-28, structured content must be an object, so the text block
    of an array or scalar is kept.
    """
    at = members.find(_STRUCTURED)  # quotes inside JSON strings are escaped, so the first match is the member
    end = members.rfind(_ERROR)
    if at < 0 or not members.startswith(_SUCCESS, end):
        return members
    structured = members[at + len(_STRUCTURED) : end]
    if len(structured) < MIN_REPLACED_BYTES or not (is_modern or structured.startswith(b"{")):  # guard: once-structured
        return members
    repeated = b"".join((_TEXT, quote(structured.decode()), b"}"))
    if not members.startswith(repeated):  # guard: once-repeated
        return members
    return b"".join((_TEXT, quote(summarise(structured)), b"}", members[len(repeated) :]))


def summarise(structured: bytes) -> str:
    """Return a sentence about the shape of a JSON value: its kind, its size, and the first members with their kinds."""
    size = f"{len(structured):,} bytes of JSON, in structured content"
    if len(structured) > MAX_DESCRIBED_BYTES or structured.count(b",") > MAX_DESCRIBED_PARTS:
        return f"The result is {size}."
    try:
        return f"The result is {size}: {_shape(structured)}."
    except (msgspec.MsgspecError, RecursionError):
        return f"The result is {size}."


def _shape(raw: bytes) -> str:
    if not raw.startswith(b"{"):
        kind = _kind(raw)
        return f"an {kind}" if kind.startswith("array") else f"a {kind}"
    parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    members = [f"{_name(name)} ({_kind(bytes(value))})" for name, value in list(parts.items())[:MAX_NAMED]]
    further = f" and {len(parts) - len(members)} more" if len(parts) > len(members) else ""
    return f"an object with {', '.join(members)}{further}"


def _kind(raw: bytes) -> str:
    kind = _KINDS.get(raw[:1], "number")
    return f"array of {len(msgspec.json.decode(raw, type=list[msgspec.Raw])):,}" if kind == "array" else kind


def _name(name: str) -> str:
    return "".join(character for character in name[:MAX_NAME_LENGTH] if character.isprintable())
