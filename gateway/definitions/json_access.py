"""Numbers among untrusted JSON values, and short forms of values for messages."""

_SHOWN_CHARACTERS = 80


def is_number(value: object) -> bool:
    """True if the value is a JSON number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def quote(value: object) -> str:
    """Return the value in quotes, printable and shortened for a message."""
    return f"'{shorten(str(value))}'"


def shorten(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """Return the text, printable and shortened for a message."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
