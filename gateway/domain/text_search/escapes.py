"""Decoding of escapes in text, for comparison only: `redaction` searches the decoded text for secrets.

Covers backslash escapes (JSON, JavaScript, Python), percent encoding and HTML references. Every pattern is bounded and
begins with a literal byte. So decoding is linear, and text without that byte costs one `memchr`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.entities import html5
from itertools import compress

DECODING_ROUNDS = 6
"""Number of nested encodings that are decoded."""

DROPPED = b" \t\r\n\v\f\0+=\\"
"""Bytes that comparisons ignore.

Forms encode blanks as `+`. Base64 may contain line breaks and ends in `=`. UTF-16 has NULs beside ASCII characters.
Backslashes may remain from escapes.
"""

_NUL = b"\0"
_COMPARED = bytes(byte not in DROPPED for byte in range(256))
_WRITTEN = bytes(byte > 0 for byte in range(256))
_HIGHEST = 0x10FFFF
_BYTES = {
    digits.encode(): bytes((byte,))
    for byte in range(0x80)
    for digits in (f"{byte:x}", f"{byte:X}", f"{byte:02x}", f"{byte:02X}")
}
_ENTITY = re.compile(
    rb"&(?:#0{0,32}([1-9][0-9]{0,6});?|#[xX]0{0,32}([1-9a-fA-F][0-9a-fA-F]{0,5});?"
    rb"|([A-Za-z][A-Za-z0-9]{1,31};)|(amp|lt|gt|quot|AMP|LT|GT|QUOT))"
)
_PERCENT_ASCII = re.compile(rb"%(?:u00)?([0-7][0-9a-fA-F])")
_PERCENT = re.compile(rb"%(?:([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
_BACKSLASH_ASCII = re.compile(  # with the backslashes that a surrounding encoding has doubled
    rb"\\\\{0,15}+(?:u00([0-7][0-9a-fA-F])|x([0-7][0-9a-fA-F])|u\{0{0,8}([1-7]?[0-9a-fA-F])\}|U000000([0-7][0-9a-fA-F])|[nrt])"
)
_BACKSLASH = re.compile(
    rb"\\\\{0,15}+(?:x([0-9a-fA-F]{2})|u([dD][89abAB][0-9a-fA-F]{2})\\{1,8}u([dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|u([0-9a-fA-F]{4})|u\{0{0,8}([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|[nrt])"
)


@dataclass(frozen=True, slots=True)
class Escape:
    """One kind of escape: its first byte, its pattern, and its decoder."""

    mark: bytes
    pattern: re.Pattern[bytes]
    decode: Callable[[re.Match[bytes]], bytes]


def _ascii_byte(found: re.Match[bytes]) -> bytes:
    return _BYTES[found[1]]


def _ascii(found: re.Match[bytes]) -> bytes:
    group = found.lastindex
    return _BYTES[found[group]] if group else b""  # an escaped line break divides base64


def _byte_or_character(found: re.Match[bytes]) -> bytes:
    """Return one byte for the two digits of group 1, and a UTF-8 character for the digits of any other group."""
    if found.lastindex is None:
        return b""
    if found.lastindex == 1:
        return bytes((int(found[1], 16),))
    if found.lastindex == 3 and found[2]:
        high, low = int(found[2], 16), int(found[3], 16)
        return _utf8(found, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    return _utf8(found, int(found[found.lastindex], 16))


def _reference(found: re.Match[bytes]) -> bytes:
    decimal, hexadecimal, name, legacy = found.groups()
    if decimal is not None:
        return _utf8(found, int(decimal))
    if hexadecimal is not None:
        return _utf8(found, int(hexadecimal, 16))
    text = html5.get((name or legacy).decode())
    return found[0] if text is None else text.encode()


def _utf8(found: re.Match[bytes], code: int) -> bytes:
    return found[0] if code > _HIGHEST else chr(code).encode("utf-8", "surrogatepass")


_REFERENCES = Escape(b"&", _ENTITY, _reference)
ASCII_ESCAPES = (
    Escape(b"\\", _BACKSLASH_ASCII, _ascii),
    Escape(b"%", _PERCENT_ASCII, _ascii_byte),
    _REFERENCES,
)
"""Sufficient if all secrets are ASCII; these patterns skip backslash and percent escapes of other characters."""

ALL_ESCAPES = (
    Escape(b"\\", _BACKSLASH, _byte_or_character),
    Escape(b"%", _PERCENT, _byte_or_character),
    _REFERENCES,
)

Escapes = Sequence[Escape]


def decode(text: bytes, escapes: Escapes) -> bytes:
    """Return the text with one layer of escapes decoded, and without NULs; the same object if nothing changes."""
    if _NUL in text:
        text = text.translate(None, _NUL)
    for escape in escapes:
        if escape.mark in text:
            text = escape.pattern.sub(escape.decode, text)
    return text


def squeeze(text: bytes) -> bytes:
    """Return the text without the bytes that comparisons ignore."""
    return text.translate(None, DROPPED)


class TracedText:
    """A decoded text with the position of each byte in its source."""

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, text: bytes, starts: Sequence[int], ends: Sequence[int]) -> None:
        self.text = text
        self._starts = starts
        self._ends = ends

    @classmethod
    def of(cls, source: bytes) -> "TracedText":
        """Return the source itself as traced text."""
        return cls(source, range(len(source)), range(1, len(source) + 1))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of these bytes in the source, extended to whole escapes."""
        return self._starts[start], self._ends[end - 1]

    def decoded(self, escapes: Escapes) -> "TracedText":
        """Decode one layer of escapes, like the function `decode`."""
        traced = self._only(_WRITTEN) if _NUL in self.text else self
        for escape in escapes:
            if escape.mark in traced.text:
                traced = traced.without(escape)
        return traced

    def squeezed(self) -> "TracedText":
        """Remove ignored bytes, like the function `squeeze`."""
        return self._only(_COMPARED)

    def _only(self, kept: bytes) -> "TracedText":
        """Keep the bytes whose entry in this table of 256 is not zero."""
        mask = self.text.translate(kept)
        return TracedText(
            bytes(compress(self.text, mask)), list(compress(self._starts, mask)), list(compress(self._ends, mask))
        )

    def without(self, escape: Escape) -> "TracedText":
        """Return the text with this kind of escape decoded."""
        pieces: list[bytes] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for found in escape.pattern.finditer(self.text):
            start, end = found.span()
            plain = escape.decode(found)
            pieces += (self.text[position:start], plain)
            starts += self._starts[position:start]
            starts += [self._starts[start]] * len(plain)
            ends += self._ends[position:start]
            ends += [self._ends[end - 1]] * len(plain)
            position = end
        pieces.append(self.text[position:])
        starts += self._starts[position:]
        ends += self._ends[position:]
        return TracedText(b"".join(pieces), starts, ends)
