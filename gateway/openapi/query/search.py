"""The search for operations of one or several documents by the words of a question."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, islice

import msgspec

from gateway.openapi.query.limits import (
    MAX_COMPARED,
    MAX_COMPARED_LENGTH,
    MAX_KNOWN,
    MAX_UNKNOWN,
    MAX_WORDS,
    MIN_NEAR_LENGTH,
    MIN_TWO_EDITS,
)
from gateway.openapi.query.outline import OutlinedOperation
from gateway.openapi.query.word_index import ALL_FIELDS, BITS, WordIndex
from gateway.openapi.query.words import asked_words, is_near

_NEAR = 0.25
"""The similarity of words within the edit distance, which is 2 from `_MIN_TWO_EDITS` letters on, else 1."""


_METHOD_FACTOR = 1.2
"""Ranking factor of an operation whose method is a word of the query."""

_TITLE_WEIGHT = 1.3
"""The weight of a word in the title of a document, in each of its operations; about that of a tag."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One matching operation, its relevance, and the fields that match."""

    endpoint: OutlinedOperation
    relevance: float
    fields: tuple[str, ...]


class Ranking:
    """The operations of several indexes, ranked by the words of one question.

    Positions number the operations of all indexes in order. A word is rarer the fewer operations of all indexes
    contain it, so that the relevance of operations of different documents can be compared.
    """

    def __init__(self, indexes: Sequence[WordIndex], query: str, field: str | None) -> None:
        self._indexes = indexes
        self._starts = list(accumulate((len(index) for index in indexes), initial=0))
        self._fields = ALL_FIELDS if field is None else BITS[field]
        self._scores = [0.0] * self._starts[-1]
        self._found_fields = bytearray(self._starts[-1])
        self._comparisons_left = MAX_COMPARED
        asked = asked_words(query)
        counts = {word: sum(index.count(word) for index in indexes) for word in asked}
        known = sorted(filter(counts.__getitem__, asked), key=counts.__getitem__)
        unknown = [word for word in asked if not counts[word]] if len(known) <= MAX_KNOWN else []
        for word in known[:MAX_WORDS]:  # guard: search-words
            self._add({word: 1.0})
        for word in unknown[:MAX_UNKNOWN]:
            self._add(self._similar(word))
        self._prefer_titles(asked)
        self._prefer_methods(asked)

    def best(self, shown: Sequence[bytes]) -> Sequence[int]:
        """Return the positions of the matching operations, the best first; `shown` has a flag for each operation of
        each index.
        """
        flags = chain.from_iterable(shown)
        matching = [position for position, flag in enumerate(flags) if flag and self._scores[position]]
        matching.sort(key=self._scores.__getitem__, reverse=True)
        return matching

    def hit(self, position: int) -> tuple[int, Hit]:
        """Return the number of the index, and the operation, at a position."""
        place = bisect_right(self._starts, position) - 1
        index, number = self._indexes[place], position - self._starts[place]
        relevance = float(f"{self._scores[position]:.3g}")
        found = self._found_fields[position]
        fields = tuple(field for field, bit in BITS.items() if found & bit)
        return place, Hit(endpoint=index.endpoints[number], relevance=relevance, fields=fields)

    def _add(self, similar: Mapping[str, float]) -> None:
        """Add the weight of one word of the question; `similar` maps indexed words to their similarity to it."""
        count = sum(index.count(word) for index in self._indexes for word in similar)
        if not count:
            return
        rarity = self._rarity(count)
        for index, start in zip(self._indexes, self._starts, strict=False):
            for word, similarity in similar.items():
                factor = rarity * similarity
                for number, weight, fields in index.postings(word):
                    if fields & self._fields:
                        self._scores[start + number] += factor * weight
                        self._found_fields[start + number] |= fields & self._fields

    def _similar(self, word: str) -> Mapping[str, float]:
        """Return the indexed words that contain a word; if there are none, those within a small edit distance."""
        found: dict[str, float] = {}
        for index in self._indexes:
            found |= index.containing(word)
        return found or self._near(word)

    def _near(self, word: str) -> Mapping[str, float]:
        """Return the indexed words within an edit distance of one or two that share the first or last two letters."""
        if not MIN_NEAR_LENGTH <= len(word) <= MAX_COMPARED_LENGTH:
            return {}
        edits = 2 if len(word) >= MIN_TWO_EDITS else 1
        candidates = dict.fromkeys(chain.from_iterable(index.similar_in_shape(word, edits) for index in self._indexes))
        compared = list(islice(candidates, self._comparisons_left))  # guard: near-words-few
        self._comparisons_left -= len(compared)
        return {known: _NEAR for known in compared if is_near(word, known, edits)}

    def _prefer_titles(self, asked: Sequence[str]) -> None:
        """Add the weight of a word in the title of a document to each of its matching operations."""
        for word in asked:
            titled = [place for place, index in enumerate(self._indexes) if word in index.title_words]
            rarity = self._rarity(sum(len(self._indexes[place]) for place in titled))
            for place in titled:
                for position in range(self._starts[place], self._starts[place + 1]):
                    self._scores[position] += _TITLE_WEIGHT * rarity if self._scores[position] else 0.0

    def _rarity(self, count: int) -> float:
        """Return the weight of a word that this number of operations contain: the inverse document frequency."""
        return math.log(1 + (len(self._scores) - min(count, len(self._scores)) + 0.5) / (count + 0.5))

    def _prefer_methods(self, asked: Sequence[str]) -> None:
        for index, start in zip(self._indexes, self._starts, strict=False):
            for method in index.methods.keys() & set(asked):
                for number in index.methods[method]:
                    self._scores[start + number] *= _METHOD_FACTOR


def search(index: WordIndex, query: str, field: str | None = None) -> Sequence[Hit]:
    """Return the operations of one document that match a question, in one field or in any, the best first."""
    ranking = Ranking([index], query, field)
    return [ranking.hit(position)[1] for position in ranking.best([b"\1" * len(index)])]
