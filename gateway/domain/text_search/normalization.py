"""Normalised views of a text for pattern search, with cheap disguises removed.

These are compatibility forms and look-alikes of Latin letters, accents, invisible characters, text in Unicode tags,
escapes (JSON, percent, HTML; three layers), and one layer of base64. Every step is linear: characters are replaced one
by one, because `unicodedata.normalize` of a whole text takes quadratic time for many combining marks. The result is
ASCII, with `?` for every other character, because the regex engine is many times slower for other text.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from unicodedata import category, decimal, normalize

from gateway.domain.text_search.escapes import ALL_ESCAPES, decode

_ROUNDS = 3
_OTHER = "?"
_DROPPED = frozenset({"Cf", "Mn", "Me"})
_COMPOSED = 0x20000
"""From this code point on, only tags and selectors have a replacement."""
_SPECIAL = range(0xE0000, 0xE0200)
_MAX_EXPANDED = 4
_TAGS = range(0xE0020, 0xE007F)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}+={0,2}")
_EDGE = 32
_PART = 16 * 1024
_INVISIBLE = re.compile("[\u00ad\u034f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_NOT_ASCII = re.compile("[^\0-\x7f]+")
_GAP = re.compile(rf"[^A-Za-z0-9]{{{2 * _EDGE},}}+")
_LONG_GAP = b" " * 2 * _EDGE
_GAPS = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
"""Maps what a gap consists of to blanks; a search in bytes is many times faster than the pattern."""
_MIN_ENCODED = b"A" * 24
_BASE64_MASK = bytes(65 if _BASE64.match(24 * chr(byte)) else 32 for byte in range(256))
_STANDARD = str.maketrans("-_", "+/")
_LOOKALIKES = dict(
    zip(
        map(ord, "аекмортсухіјѕһԁԛԝӏьАВЕКМНОРСТУХІЈЅԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχϲıɡɑ∕⁄"),
        "aekmoptcyxijshdqwlbABEKMHOPCTYXIJSQWABEZHIKMNOPTYXaeikvoptuxciga//",
        strict=True,
    )
)


class _Folding(dict[int, str]):
    """Replacement of each character by its code point, made on first use; two planes at most."""

    def __missing__(self, code: int) -> str:
        if code >= _COMPOSED and code not in _SPECIAL:
            return _OTHER
        folded = self[code] = _fold(code)
        return folded


_FOLDING = _Folding()
_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}


def views(text: str) -> Iterator[str]:
    """The text, and the texts decoded from its escapes and base64, each without disguised characters."""
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
    """The text in ASCII: look-alikes as Latin letters and digits, without accents and invisible characters."""
    return text if text.isascii() else _NOT_ASCII.sub(lambda found: found[0].translate(_FOLDING), text)


def has_invisible(text: str) -> bool:
    """True if the text has invisible characters, which can separate words for a model."""
    return _INVISIBLE.search(text) is not None


def fold_spaced(text: str) -> str:
    """The text as `fold` returns it, but with blanks for invisible characters."""
    return fold(_INVISIBLE.sub(" ", text))


def shorten_gaps(text: str, undo: Callable[[str], str]) -> str:
    """The folded text with long runs of blanks or punctuation shortened, so that a phrase fits into the overlap of two
    windows.

    The text is processed in parts, because one call over a whole text would hold the GIL for too long.
    """
    parts: list[str] = []
    rest = ""
    for start in range(0, len(text), _PART):
        part = rest + undo(text[start : start + _PART])
        if _LONG_GAP in part.encode("ascii", "replace").translate(_GAPS):
            part = _GAP.sub(lambda gap: gap[0][:_EDGE] + gap[0][-_EDGE:], part)
        parts.append(part[: -2 * _EDGE])
        rest = part[-2 * _EDGE :]
    return "".join((*parts, rest))


def phrase_views(text: str) -> Iterator[str]:
    """Two lower-case forms of a folded text: with single blanks, and without punctuation."""
    plain = " ".join(text.lower().split())
    yield plain
    yield " ".join(plain.translate(_WORDS).split())


def _fold(code: int) -> str:
    if code in _TAGS:
        return chr(code - 0xE0000)
    digit = decimal(chr(code), None)
    if digit is not None:
        return str(digit)
    plain = (one for one in normalize("NFKD", chr(code))[:_MAX_EXPANDED] if category(one) not in _DROPPED)
    return "".join(one if one.isascii() else _LOOKALIKES.get(ord(one), _OTHER) for one in plain)


def _unescape(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    for _ in range(_ROUNDS):
        decoded = decode(raw, ALL_ESCAPES)
        if decoded == raw:
            break
        raw = decoded
    return raw.decode("utf-8", "replace")


def _find_encoded(text: str) -> Iterator[re.Match[str]]:
    """The matches of `_BASE64` in a folded text, found in bytes first, which is faster than the pattern."""
    mask = text.encode("ascii", "replace").translate(_BASE64_MASK)
    start = mask.find(_MIN_ENCODED)
    while start >= 0 and (found := _BASE64.match(text, start)) is not None:
        yield found
        start = mask.find(_MIN_ENCODED, found.end())


def _unpack(text: str) -> Iterator[str]:
    """The texts that are encoded in base64, in either alphabet; a run at the start may lack its first characters."""
    for found in _find_encoded(text):
        encoded = found[0].rstrip("=").translate(_STANDARD)
        for skipped in range(4) if found.start() == 0 else (0,):
            part = encoded[skipped:]
            part = part[:-1] if len(part) % 4 == 1 else part
            yield b64decode(part + "=" * (-len(part) % 4)).decode("utf-8", "ignore")
