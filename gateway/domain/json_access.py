"""Type checks of untrusted JSON values, and JSON Pointers to their parts."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

Object: TypeAlias = Mapping[str, object]

_TEXT = frozenset((str,))


def as_object(value: object) -> Object | None:
    """Return the value if it is a JSON object (a dictionary with only text keys); otherwise None."""
    if not isinstance(value, dict):
        return None
    mapping = cast("dict[object, object]", value)
    return cast("Object", mapping) if _TEXT.issuperset(map(type, mapping)) else None  # a loop in C: maps are large


def as_list(value: object) -> Sequence[object] | None:
    """Return the value if it is a JSON array (a list or a tuple); otherwise None."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def point(*tokens: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) of these tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)
