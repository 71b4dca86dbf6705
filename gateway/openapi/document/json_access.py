"""Typed access to untrusted JSON of a document, and cleaning of its strings for messages and tools."""

import re
from collections.abc import Sequence

from gateway.domain.json_access import Object, as_list, as_object

NOTHING: Object = {}

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SHOWN_CHARACTERS = 120


class Unusable(Exception):
    """An unusable part of a document, or base URL; the message is the reported reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def object_at(node: Object, key: str) -> Object:
    """Return the object under the key; an empty one if there is none."""
    return as_object(node.get(key)) or NOTHING


def list_at(node: Object, key: str) -> Sequence[object]:
    """Return the array under the key; an empty one if there is none."""
    return as_list(node.get(key)) or ()


def text_at(node: Object, key: str) -> str | None:
    """Return the string under the key; None if it is empty or not a string."""
    value = node.get(key)
    return value if isinstance(value, str) and value else None


def is_true_at(node: Object, key: str) -> bool:
    """True if the key has exactly the value `true`."""
    return node.get(key) is True


def clean_text(text: str) -> str:
    """Remove control, zero-width and bidirectional characters and outer white space. Line ends become line feeds."""
    if text.isascii() and text.isprintable():  # most names: nothing to remove
        return text.strip()
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()  # guard: hidden-text


def quote_text(text: str) -> str:
    """Quote the text for a message: cleaned, and cut to 120 characters."""
    cleaned = clean_text(text)
    return f"'{cleaned if len(cleaned) <= _SHOWN_CHARACTERS else cleaned[: _SHOWN_CHARACTERS - 1] + '…'}'"
