"""JSON objects that name a member twice (RFC 8259 section 4: what readers make of them is unpredictable).

Compact JSON has `":` once for each member, and else only behind an escaped quote. Read and written again by a fast
parser, an object keeps one member of each name: fewer `":` mean that some were lost. What the fast parser cannot read,
or may write with other escapes, is compared name by name.
"""

import json
from typing import Any

import orjson

_MEMBER = b'":'
_OTHER_SPELLING = b"\\u00"
"""Begins the escapes of a quotation mark and of a colon, and few others that writers of JSON make."""


def has_repeated_names(compact: bytes) -> bool:
    """True if some object of this valid, compact JSON has two members of one name."""
    count = compact.count(_MEMBER)
    if count <= 1:
        return False
    if _OTHER_SPELLING not in compact:
        try:
            return orjson.dumps(orjson.loads(compact)).count(_MEMBER) != count
        except (orjson.JSONDecodeError, TypeError):
            pass  # deeper than it reads, or a lone surrogate
    try:
        json.loads(compact, object_pairs_hook=_unique, parse_int=_skip, parse_float=_skip)
    except (_Repeated, RecursionError):  # too deep to know is not known to be unambiguous
        return True
    return False


class _Repeated(Exception):
    """A name stands twice."""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Repeated


def _skip(number: str) -> None:
    del number
