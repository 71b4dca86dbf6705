"""Typed access to untrusted JSON of a document, and cleaning of its texts for messages and tools."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

Object: TypeAlias = Mapping[str, object]

NOTHING: Object = {}

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SHOWN = 120


class Unusable(Exception):
    """A part of a document, or a base URL, from which no request can be made; the message is the reported reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def as_object(value: object) -> Object | None:
    """Return the value if it is a JSON object, else None."""
    return cast("Object", value) if isinstance(value, dict) else None


def as_list(value: object) -> Sequence[object] | None:
    """Return the value if it is a JSON array, else None."""
    return cast("Sequence[object]", value) if isinstance(value, list) else None


def object_at(node: Object, key: str) -> Object:
    """Return the object under the key; an empty one if there is none."""
    return as_object(node.get(key)) or NOTHING


def list_at(node: Object, key: str) -> Sequence[object]:
    """Return the array under the key; an empty one if there is none."""
    return as_list(node.get(key)) or ()


def text_at(node: Object, key: str) -> str | None:
    """Return the text under the key; None if it is empty or no text."""
    value = node.get(key)
    return value if isinstance(value, str) and value else None


def is_true_at(node: Object, key: str) -> bool:
    """True if the key has exactly the value `true`."""
    return node.get(key) is True


def point(*tokens: str) -> str:
    """Build a JSON pointer (RFC 6901) from these tokens."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def clean_text(text: str) -> str:
    """Remove control, zero-width and bidirectional characters and outer white space. Line ends become line feeds."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()  # guard: hidden-text


def quote_text(text: str) -> str:
    """Quote the text for a message: cleaned, and cut to 120 characters."""
    cleaned = clean_text(text)
    return f"'{cleaned if len(cleaned) <= _SHOWN else cleaned[: _SHOWN - 1] + '…'}'"
