"""Words of texts, names and questions; the similarity of names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.openapi.query.limits import MAX_COMPARED_LENGTH, MAX_SUGGESTED_NAME_LENGTH

_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they"
    " this to was will with i me my we our us you your its them who whom whose which what when"
    " where why how do does did has have had can could would should may might shall am were been being from about"
    " than so too very just also please"
)
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Articles, prepositions, pronouns, auxiliary verbs and question words, which all operations have in common.

Verbs such as `get`, `list` and `find` are not in the list: they are parts of names.
"""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_WHOLE = re.compile(r"[^\W_]+")

_LIKE, _HELD = 0.2, 0.15


def split_words(text: str) -> list[str]:
    """Split a string or a name such as `listPets` into lower-case words without a plural `s`."""
    return [_stem(word.lower()) for word in _WORDS.findall(text)]


def indexed_words(text: str) -> Iterator[str]:
    """Return the words of a text, each as often as it occurs, and each name that consists of several words in whole."""
    for name in _WHOLE.findall(text):
        parts = split_words(name)
        yield from parts
        if len(parts) > 1:
            yield _stem(name.lower())


def asked_words(query: str) -> Sequence[str]:
    """Return the distinct words of a question without stop words; all its words if it has no others."""
    words = list(dict.fromkeys(split_words(query)))
    return [word for word in words if word not in STOP_WORDS] or words


def suggest(wanted: str, names: Iterable[str], *, limit: int = 5) -> Sequence[str]:
    """Return the names most similar to the given one, the nearest first, without dissimilar names."""
    text = wanted[:MAX_SUGGESTED_NAME_LENGTH].lower()
    grams = _trigrams(text)
    likeness: dict[str, float] = {}
    for name in names:
        other = name[:MAX_SUGGESTED_NAME_LENGTH].lower()
        alike = _overlap(grams, _trigrams(other)) + (_HELD if text in other else 0.0)
        if alike < _LIKE and is_near(text, other, 1):
            alike = _LIKE
        if alike >= _LIKE:
            likeness[name] = alike
    return sorted(likeness, key=lambda name: (-likeness[name], name))[:limit]


def is_near(one: str, other: str, edits: int) -> bool:
    """Check that at most this many edits separate two words: a letter inserted, deleted, replaced or swapped.

    A column of the edit matrix is one integer (Hyyrö 2003, "A bit-vector algorithm for computing Levenshtein and
    Damerau edit distances"), so that a comparison takes one step for each letter. It ends when too few letters are left
    for the distance to fall to `edits`. Words of more than MAX_COMPARED_LENGTH letters are never near.
    """
    if max(len(one), len(other)) > MAX_COMPARED_LENGTH:  # guard: near-words-short
        return False
    if not one or abs(len(one) - len(other)) > edits:
        return not one and len(other) <= edits
    masks: dict[str, int] = {}
    for place, letter in enumerate(one):
        masks[letter] = masks.get(letter, 0) | 1 << place
    whole, last = (1 << len(one)) - 1, 1 << len(one) - 1
    rises, falls, diagonal, previous, distance = whole, 0, 0, 0, len(one)
    for left, letter in zip(range(len(other) - 1, -1, -1), other, strict=True):
        found = masks.get(letter, 0)
        swapped = (found & ~diagonal) << 1 & previous
        diagonal = ((((found & rises) + rises) ^ rises) | found | falls | swapped) & whole
        higher, lower = falls | (whole & ~(diagonal | rises)), diagonal & rises
        distance += bool(higher & last) - bool(lower & last)
        if distance - left > edits:
            return False
        higher = higher << 1 | 1
        rises, falls, previous = (lower << 1 | ~(diagonal | higher)) & whole, higher & diagonal, found
    return distance <= edits


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _trigrams(text: str) -> frozenset[str]:
    padded = f"  {text} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)
