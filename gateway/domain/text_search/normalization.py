"""Normalised views of a text for pattern search, which undo common disguises.

The views replace compatibility forms and look-alikes of Latin letters, and remove accents and invisible characters.
They decode Unicode tags, three layers of escapes (JSON, percent, HTML) and one layer of base64. Every step is linear:
characters are replaced one by one, because `unicodedata.normalize` takes quadratic time for many combining marks. The
result is ASCII, with `?` for every other character, because the regex engine is many times slower for other text.
"""

import re
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from unicodedata import category, decimal, normalize

from gateway.domain.text_search.escapes import ALL_ESCAPES, decode
from gateway.domain.text_search.limits import MAX_EXPANDED, MAX_LAYERS

_REPLACEMENT = "?"
_DROPPED_CATEGORIES = frozenset({"Cf", "Mn", "Me"})
_FIRST_UNFOLDED = 0x20000
"""From this code point on, only tags and selectors have a replacement."""
_TAGS_AND_SELECTORS = range(0xE0000, 0xE0200)
_TAGS = range(0xE0020, 0xE007F)
_GAP_EDGE = 32
_PART_LENGTH = 16 * 1024
_FOLDED_LENGTH = 256
_INVISIBLE = re.compile("[\u00ad\u034f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_NOT_ASCII = re.compile("[^\0-\x7f]+")
_GAP = re.compile(rf"[^A-Za-z0-9]{{{2 * _GAP_EDGE},}}+")
_LONG_GAP = b" " * 2 * _GAP_EDGE
_GAP_TABLE = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
"""Translation table: maps each byte of a gap to a blank. A search in bytes is many times faster than `_GAP`."""
_ASCII = bytes(range(128))
_MIN_ENCODED = b"A" * 24
_BASE64_MASK = bytes(65 if chr(byte) in "+/-_" or (byte < 128 and chr(byte).isalnum()) else 32 for byte in range(256))
_STANDARD_ALPHABET = bytes.maketrans(b"-_", b"+/")
_WORD_TABLE = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))
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


def views(text: str) -> Iterator[str]:
    """Yield the folded text, and the folded texts that are decoded from its escapes and base64."""
    folded = fold(text)
    yield folded
    decoded = _unescape(folded)
    if decoded != folded:
        folded = fold(decoded)
        yield folded
    concealed = _unpack(folded)
    if concealed:
        yield fold(concealed)


def fold(text: str) -> str:
    """Return the text in ASCII: look-alikes as Latin letters and digits, without accents and invisible characters."""
    if text.isascii():
        return text
    parts = (text[start : start + _FOLDED_LENGTH] for start in range(0, len(text), _FOLDED_LENGTH))
    return "".join(part if part.isascii() else _NOT_ASCII.sub(_fold_run, part) for part in parts)


def without_ascii(text: str) -> str:
    """Return the other characters of a text; one search of them is faster than of a text that is mostly ASCII."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


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


def words_of(text: str) -> str:
    """Return a folded text in lower case, with a blank in place of each character that is no letter or digit."""
    return text.encode("ascii", "replace").translate(_WORD_TABLE).decode("ascii")


def _fold_run(found: re.Match[str]) -> str:
    return found[0].translate(_FOLDING)


def _fold(code: int) -> str:
    if code in _TAGS:
        return chr(code - 0xE0000)
    digit = decimal(chr(code), None)
    if digit is not None:
        return str(digit)
    plain = (one for one in normalize("NFKD", chr(code))[:MAX_EXPANDED] if category(one) not in _DROPPED_CATEGORIES)
    return "".join(one if one.isascii() else _LOOKALIKES.get(ord(one), _REPLACEMENT) for one in plain)


def _unescape(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    for _ in range(MAX_LAYERS):
        decoded = decode(raw, ALL_ESCAPES)
        if decoded == raw:
            break
        raw = decoded
    return raw.decode("utf-8", "replace")


def _find_encoded(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each run of at least 24 characters of base64 with its position."""
    mask = raw.translate(_BASE64_MASK)
    start = mask.find(_MIN_ENCODED)
    while start >= 0:
        end = mask.find(b" ", start)
        end = len(raw) if end < 0 else end
        yield start, raw[start:end]
        start = mask.find(_MIN_ENCODED, end)


def _unpack(text: str) -> str:
    """Decode the base64 of a folded text, in either alphabet; a run at the start may lack its first characters."""
    decoded: list[bytes] = []
    for start, run in _find_encoded(text.encode("ascii", "replace")):
        encoded = run.translate(_STANDARD_ALPHABET)
        for skipped in range(4) if start == 0 else (0,):
            part = encoded[skipped:]
            decoded.append(a2b_base64((part[:-1] if len(part) % 4 == 1 else part) + b"=="))
    return b"\n".join(decoded).decode("utf-8", "ignore")
