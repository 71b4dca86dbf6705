"""Detection of JSON objects with two members of one name (RFC 8259 section 4: readers handle them unpredictably).

Compact JSON contains `":` once for each member, and otherwise only after an escaped quote. A fast parser keeps only
one member of each name, so fewer `":` after a round trip mean that the JSON had repeated names. JSON that the fast
parser cannot read, or may write with other escapes, is compared name by name.
"""

import json
from typing import Any

import orjson

_MEMBER = b'":'
_OTHER_SPELLING = b"\\u00"
"""The start of the Unicode escapes of a quotation mark and a colon, which `orjson` writes differently."""


def has_repeated_names(compact: bytes) -> bool:
    """True if an object of this valid, compact JSON has two members of one name, or the JSON is too deep to check."""
    count = compact.count(_MEMBER)
    if count <= 1:
        return False
    if _OTHER_SPELLING not in compact:
        try:
            return orjson.dumps(orjson.loads(compact)).count(_MEMBER) != count
        except (orjson.JSONDecodeError, TypeError):
            pass  # too deep for the parser, or a lone surrogate
    try:
        json.loads(compact, object_pairs_hook=_require_unique, parse_int=_ignore_number, parse_float=_ignore_number)
    except (_Repeated, RecursionError):  # JSON that is too deep to check counts as ambiguous
        return True
    return False


class _Repeated(Exception):
    """An object has two members of one name."""


def _require_unique(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Repeated


def _ignore_number(number: str) -> None:
    del number
