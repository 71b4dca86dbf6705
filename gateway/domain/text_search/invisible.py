"""Invisible characters, which models read: control, zero-width and bidirectional characters, tags, selectors."""

import re

INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Content of a character class for patterns; imports remove these characters from the definitions of tools."""

_FURTHER_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0080-\U000e0fff"
ESCAPED = re.compile(rf"[{INVISIBLE}{_FURTHER_INVISIBLE}\n\t\r\ud800-\udfff]")
"""Characters that are escaped in single lines shown to people."""

_ALWAYS_CONCEALING = (
    "[\x00-\x08\x0e-\x1f\x7f\u115f\u1160\u180e\u202a-\u202e\u2061-\u206f\u2800\u3164\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e00ff]"
)
_SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
_ZERO_WIDTH = "[\u00ad\u034f\u200b-\u200f\u2060\ufeff]"
_CONCEALING = re.compile(
    rf"{_ALWAYS_CONCEALING}|{_SELECTORS}{{2}}|{_ZERO_WIDTH}{{2}}|(?<=[A-Za-z0-9]){_ZERO_WIDTH}|{_ZERO_WIDTH}(?=[A-Za-z0-9])"
)
"""Concealing sequences. Emoji and some scripts need single joiners and selectors, but not beside Latin letters."""
_PRINTABLE_ASCII = bytes(byte for byte in range(128) if chr(byte).isprintable() or chr(byte) in "\t\r\n")
_ANY_INVISIBLE = re.compile(rf"[{INVISIBLE}{_FURTHER_INVISIBLE}]")
_COMMENT = b"<!--"
_JOINT = r"(?:\\\r?\n[ \t]*)?"
"""An escaped line end of YAML, which joins two lines."""
_ESCAPED_COMMENT = re.compile(
    _JOINT.join(rf"(?:{character}|\\(?i:x|u00|U000000)(?i:{ord(character):02x}))" for character in "<!--").encode()
)
_PARTLY_ESCAPED = (b"<\\", b"<!\\", b"<!-\\")
_ESCAPED_START = re.compile(rb"\\(?i:x|u00|U000000)3[cC]")
"""One of these is in each text that `_ESCAPED_COMMENT` finds: its pattern takes 7 ms for a megabyte."""
_BACKSLASH = ord("\\")
_CODE_POINT = (
    "(?:00[01][0-9a-f]|00(?:7f|ad)|034f|115f|1160|180[b-f]|20(?:0[b-f]|2[89a-e]|6[0-9a-f])|2800|3164|db40"
    "|fe(?:0[0-9a-f]|ff)|ff(?:a0|f[9ab]))"
)
"""Escaped code points (hexadecimal) of the characters that `is_concealing` finds."""
_JSON_ESCAPE = re.compile(rf"\\(?:b|u(?i:{_CODE_POINT}))".encode())
_YAML_ESCAPE = re.compile(
    rf"\\(?:[eab0]|x(?i:[01][0-9a-f]|7f|ad)|u(?i:{_CODE_POINT})|U000(?i:0{_CODE_POINT}|e[0-9a-f]))".encode()
)
_JSON_STARTS, _YAML_STARTS = (b"\\u", b"\\b", b"\\x", b"\\U"), (b"\\",)
"""The starts of the escapes; bytes are found many times faster than a pattern."""


def may_conceal(source: bytes) -> bool:
    """True if a JSON or YAML text may contain invisible characters or HTML comments; a fast filter for documents."""
    others = source.translate(None, _PRINTABLE_ASCII).decode("utf-8", "ignore")
    if _COMMENT in source or _ANY_INVISIBLE.search(others) is not None:
        return True
    is_json = source.lstrip()[:1] in {b"{", b"["}
    if not any(start in source for start in (_JSON_STARTS if is_json else _YAML_STARTS)):
        return False
    may_have_comment = any(start in source for start in _PARTLY_ESCAPED) or _ESCAPED_START.search(source) is not None
    patterns = (_ESCAPED_COMMENT,) * may_have_comment + (_JSON_ESCAPE if is_json else _YAML_ESCAPE,)
    return any(_is_escape(source, found.start()) for pattern in patterns for found in pattern.finditer(source))


def _is_escape(source: bytes, start: int) -> bool:
    """True if the character at `start` is not escaped: an even number of backslashes is before it."""
    first = start
    while first and source[first - 1] == _BACKSLASH:
        first -= 1
    return (start - first) % 2 == 0


def is_concealing(text: str) -> bool:
    """True if the text has invisible characters that no writing system needs."""
    return _CONCEALING.search(text) is not None
