"""Type checks of untrusted JSON values, JSON Pointers to their parts, and short forms of values for messages."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

Object: TypeAlias = Mapping[str, object]

_SHOWN = 80


def as_object(value: object) -> Object | None:
    """Return the value if it is a JSON object (a dictionary with only text keys); otherwise None."""
    if not isinstance(value, dict):
        return None
    mapping = cast("dict[object, object]", value)
    return cast("Object", mapping) if all(isinstance(key, str) for key in mapping) else None


def as_list(value: object) -> Sequence[object] | None:
    """Return the value if it is a JSON array (a list or a tuple); otherwise None."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def is_number(value: object) -> bool:
    """True if the value is a JSON number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def point(*tokens: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) of these tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def quote(value: object) -> str:
    """Return the value in quotes, printable and shortened for a message."""
    return f"'{shorten(str(value))}'"


def shorten(text: str, most: int = _SHOWN) -> str:
    """Return the text, printable and shortened for a message."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"
