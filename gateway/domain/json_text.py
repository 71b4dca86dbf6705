"""JSON of request bodies that every parser interprets in the same way, and decoders of JSON whose values have any type.

Bodies may not have what parsers interpret differently: duplicate keys, NaN, infinities, any encoding but UTF-8, a byte
order mark, lone surrogates. Integers stay exact. Nesting depth and the digits of an integer are bounded.
"""

import contextlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import msgspec

from gateway.domain.http.limits import MAX_JSON_DEPTH
from gateway.errors import DocumentTooLarge, Fault, InvalidBody

MAX_DIGITS = sys.int_info.str_digits_check_threshold
"""Maximum digits of an integer: 640. Parsing and printing take quadratic time, and happen several times per request."""

_SEARCHED_CHARACTERS = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_ZEROES = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))
"""Translation table: maps every digit to `0` and every other byte to a space."""
_TOO_LONG = b"0" * (MAX_DIGITS + 1)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|-?Infinity|NaN')
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("number out of range")
    return value


decode_json = msgspec.json.Decoder(float_hook=_read_float).decode
"""Decodes a JSON text. Raises msgspec.MsgspecError or UnicodeDecodeError.

`msgspec` alone takes up to 20 µs for a float such as 1.5e300, and a text of 1 MB would hold the interpreter lock for a
second; the hook takes at most 1 µs."""
decode_object = msgspec.json.Decoder(dict[str, Any], float_hook=_read_float).decode
"""Decodes a JSON text that is an object; see `decode_json`."""


def refuse_many_values(raw: bytes, *, values: int, containers: int) -> None:
    """Refuse a JSON text with too many values, or too many objects and lists, before it is parsed.

    Each empty object or list counts as two values. A value takes at least two bytes, so short texts are not counted.
    Counting runs at the speed of C. Only a text that seems to exceed a limit is counted again, without its strings.

    Raises:
        DocumentTooLarge: the text exceeds a limit.
    """
    if len(raw) < 2 * min(values, containers) or not _has_more(raw, values, containers):
        return
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    has_many_strings = plain.count(b'"') > 4 * values  # every value a string, with a key before it
    if has_many_strings or _has_more(b"".join(plain.split(b'"')[::2]), values, containers):
        raise DocumentTooLarge(
            f"the body has more than {values} JSON values, or more than {containers} objects and lists; send less in"
            " one message"
        )


def _has_more(raw: bytes, values: int, containers: int) -> bool:
    opened = raw.count(b"{") + raw.count(b"[")
    return opened > containers or opened + raw.count(b",") >= values


def load_json(raw: bytes) -> object:
    """Return the value of a JSON text.

    Raises:
        InvalidBody: the text is not JSON, violates a rule of this module, or is nested too deep. The fault has line and
            column where they are known.
    """
    try:
        value = _parse_fast(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _NotStrict):
        value = _parse_slowly(raw)
    if raw.count(b"[") + raw.count(b"{") > MAX_JSON_DEPTH and _is_deeper(value, MAX_JSON_DEPTH):  # guard: json-depth
        raise _broken(f"nested deeper than {MAX_JSON_DEPTH} levels")
    return value


class _NotStrict(ValueError):
    """JSON that parsers accept, but this module refuses."""


def _parse_fast(raw: bytes) -> object:
    """Parse a text without escapes and long numbers, in half the time of `_parse_slowly`.

    In such a text, every quotation mark begins or ends a string. `msgspec` drops all but one member of the same name.
    So if the encoded value has fewer quotation marks than the text, the text has a duplicate key.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError, _NotStrict: `_parse_slowly` must parse the text.
    """
    if b"\\" in raw or (len(raw) > MAX_DIGITS and _TOO_LONG in raw.translate(_ZEROES)):  # guard: json-digits-read-fast
        raise _NotStrict
    value: object = decode_json(raw)
    if msgspec.json.encode(value).count(b'"') != raw.count(b'"'):  # guard: json-duplicates-without-escapes
        raise _NotStrict
    return value


def _parse_slowly(raw: bytes) -> object:
    """Parse any text, or raise InvalidBody, with the position of the fault if it is known."""
    if raw.startswith(_BOM):
        refuse_at("a byte order mark is not allowed", raw, 0)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        refuse_at("not UTF-8", raw, error.start)
    if not text.strip(" \t\r\n"):
        refuse_at("the body is empty", raw, 0)
    value = _parse(text)
    if _ESCAPED_SURROGATE.search(raw) is not None:
        _refuse_surrogates(value)
    return value


def _parse(text: str) -> object:
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _broken(error.msg, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise _broken(f"nested deeper than {MAX_JSON_DEPTH} levels") from None
    except _NotStrict as error:
        raise _find_fault(text) or _broken(str(error)) from None
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):  # guard: json-duplicates
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise _NotStrict(f"the key {twice[:64]!a} occurs twice")
    return members


def _duplicate_key_reason(key: str) -> str:
    return f"the key {key[:64]!a} occurs twice"


def _integer(text: str) -> int:
    if len(text.removeprefix("-")) > MAX_DIGITS:  # guard: json-digits
        raise _NotStrict(f"an integer has more than {MAX_DIGITS} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if value in _INFINITIES:
        raise _NotStrict("a number is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise _NotStrict(f"{name} is not JSON")  # guard: json-numbers


_INFINITIES = frozenset({math.inf, -math.inf})
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer, parse_float=_number, parse_constant=_constant)


def _is_deeper(value: object, depth: int) -> bool:
    """True if containers are nested deeper than this; checked level by level, without recursion."""
    level: list[Any] = [value]
    for _ in range(depth):
        inside: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inside.extend(cast(dict[str, Any], item).values())
            elif isinstance(item, list):
                inside.extend(cast(Sequence[Any], item))
        level = [item for item in inside if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def _refuse_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _broken("a string has an unpaired surrogate") from None


def _find_fault(text: str) -> InvalidBody | None:
    """Return the fault of the first constant that is not JSON, or of the first duplicate key, with its position.

    A text above 65,536 characters is not searched, because this search runs at the speed of Python.
    """
    if len(text) > _SEARCHED_CHARACTERS:
        return None
    with contextlib.suppress(ValueError, IndexError):  # the text after the refused token is not read
        return _search(text)
    return None


def _search(text: str) -> InvalidBody | None:
    open_objects: list[set[str] | None] = []
    last: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{":
                open_objects.append(set())
            case "[":
                open_objects.append(None)
            case "}" | "]":
                open_objects.pop()
            case ":" if last is not None and open_objects and (keys := open_objects[-1]) is not None:
                key: str = json.loads(last[0])
                if key in keys:
                    return _broken_at(_duplicate_key_reason(key), text, last.start())
                keys.add(key)
            case "NaN" | "Infinity" | "-Infinity":
                return _broken_at(f"{token[0]} is not JSON", text, token.start())
            case _:
                pass
        last = token
    return None


def refuse_at(reason: str, raw: bytes, index: int) -> NoReturn:
    """Raise InvalidBody with the line and column of the byte at `index`."""
    before = raw[:index].decode("utf-8", "replace")
    raise _broken_at(reason, before, len(before))


def _broken_at(reason: str, text: str, index: int) -> InvalidBody:
    line, column = text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
    return _broken(reason, line=line, column=column)


def _broken(reason: str, *, line: int | None = None, column: int | None = None) -> InvalidBody:
    where = "" if line is None else f" (line {line}, column {column})"
    fault = Fault(pointer="", reason=reason, line=line, column=column)
    return InvalidBody(f"the body is not acceptable JSON: {reason}{where}", faults=(fault,))
