"""Type checks of untrusted JSON values, JSON Pointers to their parts, and JSON in exact buffers."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import orjson

Object: TypeAlias = Mapping[str, object]

_STRING_TYPE = frozenset((str,))
_DICT: type[Any] = dict
_LISTS: tuple[type[Any], ...] = (list, tuple)


def as_object(value: Any) -> Object | None:
    """Return the value if it is a JSON object (a dictionary whose keys are all strings); otherwise None."""
    if not isinstance(value, _DICT):
        return None
    mapping: Object = value  # no `cast` here: imports call this hundreds of thousands of times
    return mapping if _STRING_TYPE.issuperset(map(type, mapping)) else None  # runs in C, because objects can be large


def as_list(value: Any) -> Sequence[object] | None:
    """Return the value if it is a JSON array (a list or a tuple); otherwise None."""
    if not isinstance(value, _LISTS):
        return None
    items: Sequence[object] = value
    return items


def encode_exact(value: object) -> bytes:
    """Return compact JSON in a buffer of its own size. The buffers of `orjson` can be
    several times as large as its bytes, and stay so."""
    return bytes(memoryview(orjson.dumps(value)))


def point(*tokens: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) of these tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def tokens_of(pointer: str) -> list[str]:
    """Return the tokens of a JSON Pointer."""
    return [unescape_token(token) for token in pointer.split("/")[1:]]


def unescape_token(token: str) -> str:
    """Return the name that a token of a JSON Pointer escapes."""
    return token.replace("~1", "/").replace("~0", "~")


def is_number(value: object) -> bool:
    """True if the value is a JSON number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
