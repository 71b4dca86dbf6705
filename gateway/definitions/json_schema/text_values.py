"""Readings of single values: numbers, booleans, objects and lists in JSON text, files in base64 or a data URI.

A text is read only if exactly one value is written like that: no white space around a number, no digits that a float
would lose, no object with two members of one name.
"""

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import cast

from gateway.definitions.json_schema.limits import MAX_NUMBER_LENGTH, MAX_TEXT_CONTAINERS, MAX_TEXT_VALUES
from gateway.domain.json_access import Object
from gateway.domain.json_text import MAX_DIGITS, load_json, refuse_many_values
from gateway.errors import BadInput

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_DATA_URI = re.compile(r"data:([^,;]*(?:;[^,;=]+=[^,;]*)*);base64,", re.IGNORECASE)
_FILE = frozenset(("base64", "filename", "content_type"))


def parse_number(text: str, *, is_whole: bool) -> Iterator[int | float]:
    """Yield the number that the text is in JSON, unless a digit would be lost; `is_whole` allows integers alone."""
    if _WHOLE.fullmatch(text) is not None:
        if len(text) <= MAX_DIGITS and text != "-0":
            yield int(text)
    elif not is_whole and len(text) <= MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text) is not None:
        value = float(text)
        if math.isfinite(value) and Decimal(repr(value)) == Decimal(text):
            yield value


def parse_boolean(text: str) -> Iterator[bool]:
    """Yield the boolean that the text is in JSON."""
    if text in {"true", "false"}:
        yield text == "true"


def parse_container(text: str, *, max_bytes: int) -> object:
    """Return the object or list that the text is in JSON; the text if it is not written like one.

    None is returned for a text that is written like one and cannot be read: beyond the limits, broken, or JSON in which
    parsers differ.
    """
    written = text.strip(" \t\r\n")
    if written[:1] + written[-1:] not in {"{}", "[]"}:
        return text
    try:
        raw = written.encode()
        if len(raw) > max_bytes:
            return None
        refuse_many_values(raw, values=MAX_TEXT_VALUES, containers=MAX_TEXT_CONTAINERS)
        return load_json(raw)  # guard: coercion-strict-json
    except (BadInput, UnicodeEncodeError):
        return None


def file_of(value: object) -> object:
    """Return the file argument that the value is: a text of base64 or a data URI, or an object; None if it is none.

    An object without a fault is returned as it is, and so is one with a fault that no reading removes.
    """
    if isinstance(value, str):
        return _file_of_text(value, {})
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, object]", value)
    encoded = members.get("base64")
    if not isinstance(encoded, str):
        return None
    if not is_odd_file(members):
        return cast("object", value)
    return _file_of_text(encoded, members)


def is_odd_file(members: Object) -> bool:
    """True for the members of a file whose `base64` is a data URI or lacks its padding."""
    encoded = members.get("base64")
    if not isinstance(encoded, str) or not members.keys() <= _FILE:
        return False
    return len(encoded) % 4 != 0 or encoded[:5].lower() == "data:"


def _file_of_text(text: str, members: Object) -> object:
    found = _DATA_URI.match(text)
    encoded = text if found is None else text[found.end() :]
    media_type = "" if found is None else found[1]
    padded = _padded(encoded)
    stated = members.get("content_type")
    if padded is None or (media_type and stated not in {None, media_type}):  # guard: coercion-one-media-type
        return None
    kind = {"content_type": media_type} if media_type else {}
    return {**members, "base64": padded, **kind}


def _padded(encoded: str) -> str | None:
    """Return base64 with its padding; None if it is none."""
    digits = encoded.rstrip("=")
    padding = "=" * (-len(digits) % 4)
    is_base64 = _BASE64.fullmatch(encoded) is not None and len(padding) < 3  # one digit is no byte
    return digits + padding if is_base64 and encoded in {digits, digits + padding} else None
