"""What shape an untrusted JSON value has, and where in it something lies."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

Object: TypeAlias = Mapping[str, object]

_SHOWN = 80


def as_object(value: object) -> Object | None:
    """The value if it is a JSON object: a dictionary whose keys are all text."""
    if not isinstance(value, dict):
        return None
    mapping = cast("dict[object, object]", value)
    return cast("Object", mapping) if all(isinstance(key, str) for key in mapping) else None


def as_list(value: object) -> Sequence[object] | None:
    """The value if it is a JSON array; a tuple counts as one."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def is_number(value: object) -> bool:
    """Whether the value is a JSON number: a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def point(*tokens: str | int) -> str:
    """A JSON pointer (RFC 6901) to these tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def quote(value: object) -> str:
    """The value in quotes, printable and short enough to stand in a message."""
    return f"'{shorten(str(value))}'"


def shorten(text: str, most: int = _SHOWN) -> str:
    """The text, printable and short enough to stand in a message."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"
