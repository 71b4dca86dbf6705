"""Texts of arguments and results: every string, member name and long number, as one text.

Blocks of text are read a second time without separators, because a peer can split a word across blocks. Binary content
of results is read if it is text in UTF-8, and skipped otherwise. Arguments have no binary content, because a caller
could declare any text as binary.
"""

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec

from gateway.calls.guardrails.limits import MAX_TEXT_LENGTH, MIN_BINARY_LENGTH, MIN_NUMBER
from gateway.definitions.json_schema.limits import MAX_CONTAINERS_READ, MAX_VALUES_READ

_MEDIA_BLOCKS = frozenset({"image", "audio"})
BINARY = frozenset({"blob", "data"})
"""Members of the protocol's results with binary content, in base64."""


class TooMuchText(Exception):
    """The texts exceed `MAX_TEXT_LENGTH`, or the JSON is too deep or has too many parts to be read."""


def read_members(members: bytes) -> dict[str, Any]:
    """Decode the members of a result; numbers are decoded as strings.

    Raises:
        TooMuchText: the members have too many parts, or are nested too deep.
    """
    containers = members.count(b"{") + members.count(b"[")
    is_small = len(members) <= 4 * MAX_TEXT_LENGTH  # guard: guardrail-bounded-input
    if not is_small or containers > MAX_CONTAINERS_READ or members.count(b",") > MAX_VALUES_READ:
        raise TooMuchText
    try:
        found: dict[str, Any] = json.loads(b"{" + members + b"}", parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise TooMuchText from None
    return found


def text_of(value: object, binary: Collection[str] = BINARY) -> str:
    """All texts in a JSON value, current per line; `binary` names the members that may have binary content.

    Raises:
        TooMuchText: the texts together have too many characters.
    """
    pieces: list[str] = []
    length = 0
    pending: list[object] = [value]
    while pending:
        current = pending.pop()
        piece = ""
        if isinstance(current, str):
            piece = current
        elif isinstance(current, Mapping):
            _add_members(cast("Mapping[object, object]", current), pending, binary)
        elif isinstance(current, Sequence):
            items = cast("Sequence[object]", current)
            pending += reversed(items)
            piece = _join_blocks(items)
        elif isinstance(current, int | float) and MIN_NUMBER <= abs(current) < MIN_NUMBER**3:
            piece = str(int(current))
        elif isinstance(current, msgspec.Raw):
            piece = bytes(current).decode("utf-8", "replace")
        if piece:
            length += len(piece) + 1
            if length > MAX_TEXT_LENGTH:  # guard: guardrail-bounded-text
                raise TooMuchText
            pieces.append(piece)
    return "\n".join(pieces)


def _add_members(members: Mapping[object, object], pending: list[object], binary: Collection[str]) -> None:
    """Queue names and values. Binary content is replaced by the text that it encodes, or skipped."""
    encoded = {"data"} if members.get("type") in _MEDIA_BLOCKS else {"blob"} if "uri" in members else set[str]()
    for name, value in reversed(list(members.items())):
        is_binary = name in encoded and name in binary  # guard: guardrail-binary-arguments
        pending.append(_decode(value) if is_binary and isinstance(value, str) else value)
        pending.append(name)


def _decode(encoded: str) -> str:
    """The decoded text of base64; the given text if it is short or not base64, and nothing for other content."""
    try:
        found = b64decode("".join(encoded.split()), validate=True)
    except (Error, ValueError):
        return encoded
    try:
        return found.decode()
    except UnicodeDecodeError:
        return encoded if len(encoded) < MIN_BINARY_LENGTH else ""


def _join_blocks(items: Sequence[object]) -> str:
    """The texts of content blocks without separators; empty if there are fewer than two."""
    blocks = (cast("Mapping[str, object]", item) for item in items if isinstance(item, Mapping))
    texts = [text for block in blocks if (text := _block_text(block))]
    return "".join(texts) if len(texts) > 1 else ""


def _block_text(block: Mapping[str, object]) -> str:
    inner = block.get("resource") or block.get("content") or block
    text: object = cast("Mapping[str, object]", inner).get("text") if isinstance(inner, Mapping) else None
    return text if isinstance(text, str) else ""
