"""The words of the operations of one document, each with the operations in which it occurs and its weight there.

The weight of a word in an operation is that of BM25F (Robertson, Zaragoza and Taylor, 2004): its occurrences are
added over the fields, each with the weight of its field, then saturated, and normalised by the length of the texts.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gateway.openapi.query.limits import (
    FIELDS,
    MAX_INDEXED_LENGTH,
    MAX_POSTINGS,
    MIN_SUBSTRING_LENGTH,
    POSTING_BYTES,
    WORD_BYTES,
)
from gateway.openapi.query.outline import OutlinedOperation
from gateway.openapi.query.remote_tools import REMOTE_METHOD
from gateway.openapi.query.words import asked_words, indexed_words

BITS: Final = {field: 1 << number for number, field in enumerate(FIELDS)}
"""The bit of each field in a set of fields."""

ALL_FIELDS: Final = sum(BITS.values())

_SATURATION = 2.0
_LENGTH_SHARE = 0.75
"""The parameters k1 and b of BM25; measured with `benchmarks.search`, where k1 = 1.2 finds 1 to 3 points less."""

_TENTHS = 10
_DESCRIPTION_TENTHS = 7
"""The weight of a word in the descriptions of arguments, in tenths; names of arguments have the weight of FIELDS."""

_BEGINS, _WITHIN = 0.6, 0.3


class WordIndex:
    """The word index of the operations of one document; operations are numbered in its order."""

    def __init__(self, endpoints: Sequence[OutlinedOperation], title: str = "") -> None:
        self.endpoints = endpoints
        self.title_words = frozenset(asked_words(title))
        counts = _WordCounts()
        for field in (*_names_of(FIELDS), "description", _DESCRIPTIONS):
            for number, endpoint in enumerate(endpoints):
                counts.add(number, field, endpoint)
        self._words: dict[str, int] = {}
        self._starts = array("I", [0])
        self._numbers = array("I")
        self._weights = array("f")
        self._fields = array("B")
        self._fill(counts)
        self.methods: Mapping[str, Sequence[int]] = _by_method(endpoints)
        """The numbers of the operations by lower-case method."""

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return POSTING_BYTES * len(self._numbers) + WORD_BYTES * len(self._words)

    def __len__(self) -> int:
        return len(self.endpoints)

    def __contains__(self, word: str) -> bool:
        return word in self._words

    def postings(self, word: str) -> Iterator[tuple[int, float, int]]:
        """Return the operations that contain a word, in order, with its weight in each and the bits of its fields."""
        start, end = self._span(word)
        return zip(self._numbers[start:end], self._weights[start:end], self._fields[start:end], strict=True)

    def count(self, word: str) -> int:
        """Return the number of operations that contain a word."""
        start, end = self._span(word)
        return end - start

    def containing(self, word: str) -> Mapping[str, float]:
        """Return the indexed words that contain or begin with a word, with their similarity to it."""
        if len(word) >= MIN_SUBSTRING_LENGTH:
            return {known: _BEGINS if known.startswith(word) else _WITHIN for known in self._words if word in known}
        if len(word) == MIN_SUBSTRING_LENGTH - 1:
            return {known: _BEGINS for known in self._words if known.startswith(word)}
        return {}

    def similar_in_shape(self, word: str, edits: int) -> Iterator[str]:
        """Return the indexed words of about the length of a word that share its first or last two letters."""
        begins, ends, shortest, longest = word[:2], word[-2:], len(word) - edits, len(word) + edits
        return (
            known
            for known in self._words
            if shortest <= len(known) <= longest and (known[:2] == begins or known[-2:] == ends)
        )

    def _span(self, word: str) -> tuple[int, int]:
        place = self._words.get(word)
        return (0, 0) if place is None else (self._starts[place], self._starts[place + 1])

    def _fill(self, counts: "_WordCounts") -> None:
        """Write the postings, sorted by word and operation, into arrays, which need an eighth of the memory."""
        lengths = counts.lengths(len(self.endpoints))
        mean = sum(lengths) / max(len(lengths), 1) or 1.0
        norms = [_SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / mean) for length in lengths]
        for word, found in counts.found.items():
            self._words[word] = len(self._words)
            for number, value in sorted(found.items()):
                frequency = (value >> len(FIELDS)) / _TENTHS
                self._numbers.append(number)
                self._weights.append(frequency * (_SATURATION + 1) / (frequency + norms[number]))
                self._fields.append(value & ALL_FIELDS)
            self._starts.append(len(self._numbers))


class _WordCounts:
    """The weighted occurrences of each word in each operation, in tenths, shifted above the bits of its fields."""

    def __init__(self) -> None:
        self.found: dict[str, dict[int, int]] = defaultdict(dict)
        self._room = MAX_POSTINGS

    def add(self, number: int, field: str, endpoint: OutlinedOperation) -> None:
        """Count the words of one field of an operation, while there is room."""
        if self._room <= 0:
            return
        named = "parameters" if field == _DESCRIPTIONS else field
        tenths = _DESCRIPTION_TENTHS if field == _DESCRIPTIONS else round(FIELDS[field] * _TENTHS)
        if endpoint.method == REMOTE_METHOD and field == "path":
            tenths *= 2  # the name of a tool is in place of the path and the operationId of an operation
        for word in indexed_words(_text(endpoint, field)):
            found = self.found[word]
            if number not in found:
                if self._room <= 0:
                    return
                self._room -= 1
            found[number] = (found.get(number, 0) + (tenths << len(FIELDS))) | BITS[named]

    def lengths(self, operations: int) -> Sequence[float]:
        """Return the weighted number of words of each operation."""
        lengths = [0.0] * operations
        for found in self.found.values():
            for number, value in found.items():
                lengths[number] += (value >> len(FIELDS)) / _TENTHS
        return lengths


_DESCRIPTIONS = "descriptions of arguments"


def _names_of(fields: Iterable[str]) -> Iterator[str]:
    return (field for field in fields if field != "description")


def _by_method(endpoints: Sequence[OutlinedOperation]) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, endpoint in enumerate(endpoints):
        found[endpoint.method.lower()].append(number)
    return found


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
        case "description":
            return endpoint.description[:MAX_INDEXED_LENGTH]
        case _:
            return endpoint.argument_text
