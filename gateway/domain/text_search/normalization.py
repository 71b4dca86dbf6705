"""Normalised views of a text for pattern search, which undo common disguises.

The views replace compatibility forms and look-alikes of Latin letters, and remove accents and invisible characters.
They decode Unicode tags, three layers of escapes (JSON, percent, HTML) and one layer of base64. Every step is linear:
characters are replaced one by one, because `unicodedata.normalize` takes quadratic time for many combining marks. The
result is ASCII, with `?` for every other character, because the regex engine is many times slower for other text.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from unicodedata import category, decimal, normalize

from gateway.domain.text_search.escapes import ALL_ESCAPES, decode

_MAX_LAYERS = 3
_REPLACEMENT = "?"
_DROPPED_CATEGORIES = frozenset({"Cf", "Mn", "Me"})
_FIRST_UNFOLDED = 0x20000
"""From this code point on, only tags and selectors have a replacement."""
_TAGS_AND_SELECTORS = range(0xE0000, 0xE0200)
_MAX_EXPANDED = 4
_TAGS = range(0xE0020, 0xE007F)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}+={0,2}")
_GAP_EDGE = 32
_PART_LENGTH = 16 * 1024
_INVISIBLE = re.compile("[\u00ad\u034f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_NOT_ASCII = re.compile("[^\0-\x7f]+")
_GAP = re.compile(rf"[^A-Za-z0-9]{{{2 * _GAP_EDGE},}}+")
_LONG_GAP = b" " * 2 * _GAP_EDGE
_GAP_TABLE = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
"""Translation table: maps each byte of a gap to a blank. A search in bytes is many times faster than `_GAP`."""
_MIN_ENCODED = b"A" * 24
_BASE64_MASK = bytes(65 if _BASE64.match(24 * chr(byte)) else 32 for byte in range(256))
_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_LOOKALIKES = dict(
    zip(
        map(ord, "аекмортсухіјѕһԁԛԝӏьАВЕКМНОРСТУХІЈЅԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχϲıɡɑ∕⁄"),
        "aekmoptcyxijshdqwlbABEKMHOPCTYXIJSQWABEZHIKMNOPTYXaeikvoptuxciga//",
        strict=True,
    )
)


class _Folding(dict[int, str]):
    """Translation table, filled on first use: the replacement of each character, by code point; at most two planes."""

    def __missing__(self, code: int) -> str:
        if code >= _FIRST_UNFOLDED and code not in _TAGS_AND_SELECTORS:
            return _REPLACEMENT
        folded = self[code] = _fold(code)
        return folded


_FOLDING = _Folding()
_PUNCTUATION_TABLE = {code: " " for code in range(128) if not chr(code).isalnum()}


def views(text: str) -> Iterator[str]:
    """Yield the folded text, and the folded texts that are decoded from its escapes and base64."""
    folded = fold(text)
    yield folded
    decoded = _unescape(folded)
    if decoded != folded:
        folded = fold(decoded)
        yield folded
    concealed = "\n".join(_unpack(folded))
    if concealed:
        yield fold(concealed)


def fold(text: str) -> str:
    """Return the text in ASCII: look-alikes as Latin letters and digits, without accents and invisible characters."""
    return text if text.isascii() else _NOT_ASCII.sub(lambda found: found[0].translate(_FOLDING), text)


def has_invisible(text: str) -> bool:
    """True if the text has invisible characters, which can separate words for a model."""
    return _INVISIBLE.search(text) is not None


def fold_spaced(text: str) -> str:
    """Fold the text, with blanks in place of invisible characters."""
    return fold(_INVISIBLE.sub(" ", text))


def shorten_gaps(text: str, undo: Callable[[str], str]) -> str:
    """Apply `undo`, and shorten gaps (blanks or punctuation), so that a phrase fits into the overlap of two windows.

    The text is processed in parts, because one call over a whole text would hold the GIL for too long.
    """
    parts: list[str] = []
    rest = ""
    for start in range(0, len(text), _PART_LENGTH):
        part = rest + undo(text[start : start + _PART_LENGTH])
        if _LONG_GAP in part.encode("ascii", "replace").translate(_GAP_TABLE):
            part = _GAP.sub(lambda gap: gap[0][:_GAP_EDGE] + gap[0][-_GAP_EDGE:], part)
        parts.append(part[: -2 * _GAP_EDGE])
        rest = part[-2 * _GAP_EDGE :]
    return "".join((*parts, rest))


def phrase_views(text: str) -> Iterator[str]:
    """Yield two lower-case forms of a folded text: with single blanks, and without punctuation."""
    plain = " ".join(text.lower().split())
    yield plain
    yield " ".join(plain.translate(_PUNCTUATION_TABLE).split())


def _fold(code: int) -> str:
    if code in _TAGS:
        return chr(code - 0xE0000)
    digit = decimal(chr(code), None)
    if digit is not None:
        return str(digit)
    plain = (one for one in normalize("NFKD", chr(code))[:_MAX_EXPANDED] if category(one) not in _DROPPED_CATEGORIES)
    return "".join(one if one.isascii() else _LOOKALIKES.get(ord(one), _REPLACEMENT) for one in plain)


def _unescape(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    for _ in range(_MAX_LAYERS):
        decoded = decode(raw, ALL_ESCAPES)
        if decoded == raw:
            break
        raw = decoded
    return raw.decode("utf-8", "replace")


def _find_encoded(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `_BASE64` in a folded text; a search in bytes finds them faster than the pattern."""
    mask = text.encode("ascii", "replace").translate(_BASE64_MASK)
    start = mask.find(_MIN_ENCODED)
    while start >= 0 and (found := _BASE64.match(text, start)) is not None:
        yield found
        start = mask.find(_MIN_ENCODED, found.end())


def _unpack(text: str) -> Iterator[str]:
    """Yield the texts decoded from base64, in either alphabet; a run at the start may lack its first characters."""
    for found in _find_encoded(text):
        encoded = found[0].rstrip("=").translate(_STANDARD_ALPHABET)
        for skipped in range(4) if found.start() == 0 else (0,):
            part = encoded[skipped:]
            part = part[:-1] if len(part) % 4 == 1 else part
            yield b64decode(part + "=" * (-len(part) % 4)).decode("utf-8", "ignore")
