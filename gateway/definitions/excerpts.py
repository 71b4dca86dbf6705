"""Excerpts of untrusted values for messages: printable, and limited in length."""

_SHOWN_CHARACTERS = 80


def quote(value: object) -> str:
    """Return the value in quotes, printable and shortened for a message."""
    return f"'{shorten(str(value))}'"


def shorten(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """Return the text, printable and shortened for a message."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
