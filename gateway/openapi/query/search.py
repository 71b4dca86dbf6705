"""The search for operations by words, ranked by the number, similarity, fields and rarity of the matching words.

A query word of at least four letters without a match is compared by edit distance, up to five words per query.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from gateway.openapi.query.limits import FIELDS
from gateway.openapi.query.outline import OutlinedOperation

MAX_POSTINGS = 300_000
"""Limit on the (word, operation) pairs indexed per document. Descriptions are indexed last, up to this limit."""

_POSTING_BYTES = 60
_EXACT, _BEGINS, _WITHIN, _NEAR = 1.0, 0.6, 0.3, 0.25
_MIN_SUBSTRING_LENGTH = 3
_MIN_FUZZY_LENGTH = 4
_MAX_WORDS = 20
_MAX_EDITS = 5
_MAX_COMPARED = 2_000
_LENGTHY = 0.02
_METHOD_FACTOR = 1.2
"""Ranking factor of an operation whose method is a word of the query."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_WHOLE = re.compile(r"[^\W_]+")
_MAX_TEXT_LENGTH = 2_000
_MAX_NAME_LENGTH = 200
_LIKE, _HELD = 0.2, 0.15
_BITS: Final = {field: 1 << number for number, field in enumerate(FIELDS)}


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One matching operation, its relevance, and the fields that match."""

    endpoint: OutlinedOperation
    relevance: float
    fields: tuple[str, ...]


class WordIndex:
    """The word index of the operations of one document."""

    def __init__(self, endpoints: Sequence[OutlinedOperation]) -> None:
        self._endpoints = endpoints
        self._postings: dict[str, dict[int, int]] = defaultdict(dict)
        self._room = MAX_POSTINGS
        for field in FIELDS:
            for number, endpoint in enumerate(endpoints):
                self._index_text(number, field, _text(endpoint, field))
        self._lengths = [len(split_words(f"{each.path} {each.operation_id or ''}")) for each in endpoints]

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return _POSTING_BYTES * (MAX_POSTINGS - self._room + len(self._postings))

    def search(self, query: str, field: str | None) -> Sequence[Hit]:
        """Return the operations that match one of the first 20 words, in one field or in any, the best first."""
        wanted = list(dict.fromkeys(split_words(query)))[:_MAX_WORDS]
        field_bits = sum(_BITS.values()) if field is None else _BITS[field]
        scores: dict[int, float] = defaultdict(float)
        covered: dict[int, float] = defaultdict(float)
        fields: dict[int, int] = defaultdict(int)
        weight, edits = 0.0, _MAX_EDITS
        for word in wanted:
            found = self._score(self._containing(word), field_bits)
            if not found and edits and len(word) >= _MIN_FUZZY_LENGTH:
                edits -= 1
                found = self._score(self._within_edit_distance(word), field_bits)
            rarity = 1.0 + math.log(1 + len(self._endpoints) / max(len(found), 1))
            weight += rarity
            for number, (score, matched) in found.items():
                scores[number] += score * rarity
                covered[number] += rarity
                fields[number] |= matched
        fit = {
            number: score * covered[number] / weight * self._preference(number, wanted)
            for number, score in scores.items()
        }
        return [
            Hit(
                endpoint=self._endpoints[number],
                relevance=round(fit[number], 2),
                fields=tuple(name for name, bit in _BITS.items() if fields[number] & bit),
            )
            for number in sorted(fit, key=lambda number: (-fit[number], number))
        ]

    def _index_text(self, number: int, field: str, text: str) -> None:
        """Adds the words of a string to the index."""
        if self._room <= 0:
            return
        for word in {*split_words(text), *map(_stem, _WHOLE.findall(text.lower()))}:
            if self._room <= 0:
                return
            fields = self._postings[word]
            self._room -= number not in fields
            fields[number] = fields.get(number, 0) | _BITS[field]

    def _preference(self, number: int, wanted: Sequence[str]) -> float:
        """Return the ranking factor of an operation: higher for a queried method, lower for a long path or id."""
        method = self._endpoints[number].method.lower()
        return (_METHOD_FACTOR if method in wanted else 1.0) / (1 + _LENGTHY * self._lengths[number])

    def _score(self, known: Mapping[str, float], field_bits: int) -> Mapping[int, tuple[float, int]]:
        """The score and the matching fields of each operation; `known` maps indexed words to their similarity."""
        best: dict[int, tuple[float, int]] = {}
        for word, likeness in known.items():
            for number, fields in self._postings[word].items():
                matched = fields & field_bits
                if matched:
                    score, before = best.get(number, (0.0, 0))
                    best[number] = (max(score, likeness * _WEIGHTS[matched]), before | matched)
        return best

    def _containing(self, word: str) -> Mapping[str, float]:
        """The indexed words that contain `word`, with their similarity; below three letters, only some of them."""
        if len(word) >= _MIN_SUBSTRING_LENGTH:
            found = {known: _BEGINS if known.startswith(word) else _WITHIN for known in self._postings if word in known}
        elif len(word) == _MIN_SUBSTRING_LENGTH - 1:
            found = {known: _BEGINS for known in self._postings if known.startswith(word)}
        else:
            found = {}
        return found | ({word: _EXACT} if word in self._postings else {})

    def _within_edit_distance(self, word: str) -> Mapping[str, float]:
        """The indexed words within an edit distance of one or two that share the first or last two letters."""
        edits = 1 if len(word) < 2 * _MIN_FUZZY_LENGTH else 2
        begins, ends = word[:2], word[-2:]
        close = [
            known
            for known in self._postings
            if abs(len(known) - len(word)) <= edits and (known[:2] == begins or known[-2:] == ends)
        ]
        return {known: _NEAR for known in close[:_MAX_COMPARED] if edit_distance(word, known) <= edits}


def split_words(text: str) -> list[str]:
    """Split a string or a name such as `listPets` into lower-case words without a plural `s`."""
    return [_stem(word.lower()) for word in _WORDS.findall(text)]


def suggest(wanted: str, names: Iterable[str], *, limit: int = 5) -> Sequence[str]:
    """Return the names most similar to the given one, the nearest first, without dissimilar names."""
    text = wanted[:_MAX_NAME_LENGTH].lower()
    grams = _trigrams(text)
    likeness: dict[str, float] = {}
    for name in names:
        other = name[:_MAX_NAME_LENGTH].lower()
        alike = _overlap(grams, _trigrams(other)) + (_HELD if text in other else 0.0)
        if alike < _LIKE and abs(len(text) - len(other)) <= 1 and edit_distance(text, other) <= 1:
            alike = _LIKE
        if alike >= _LIKE:
            likeness[name] = alike
    return sorted(likeness, key=lambda name: (-likeness[name], name))[:limit]


def edit_distance(one: str, other: str) -> int:
    """Return the edit distance: letters to insert, delete, replace or swap with their neighbour."""
    older: list[int] = []
    old = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        new = [row]
        for column, beside in enumerate(other, 1):
            cost = min(old[column] + 1, new[-1] + 1, old[column - 1] + (letter != beside))
            if row > 1 < column and letter == other[column - 2] and one[row - 2] == beside:
                cost = min(cost, older[column - 2] + 1)
            new.append(cost)
        older, old = old, new
    return old[-1]


def _text(endpoint: OutlinedOperation, field: str) -> str:
    match field:
        case "path":
            return endpoint.path
        case "operationId":
            return endpoint.operation_id or ""
        case "summary":
            return endpoint.summary
        case "tags":
            return " ".join(endpoint.tags)
        case "parameters":
            return " ".join(endpoint.parameters)
        case _:
            return endpoint.description[:_MAX_TEXT_LENGTH]


def _weigh(fields: int) -> float:
    """Return the weight of a word that occurs in these fields."""
    weights = [weight for field, weight in FIELDS.items() if fields & _BITS[field]]
    return max(weights, default=0.0) + 0.1 * len(weights)


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _trigrams(text: str) -> frozenset[str]:
    padded = f"  {text} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


_WEIGHTS: Final = tuple(_weigh(fields) for fields in range(1 << len(FIELDS)))
