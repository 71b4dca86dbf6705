"""Which operations fit some words best: ranked by how many of the words, where, and how rare they are."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.openapi.query_outline import Endpoint

FIELDS: Final[Mapping[str, float]] = {
    "path": 4.0,
    "operationId": 4.0,
    "summary": 3.0,
    "tags": 2.5,
    "parameters": 1.5,
    "description": 1.0,
}
"""The fields that are searched, and how much a word counts there."""

_EXACT, _BEGINS, _WITHIN = 1.0, 0.6, 0.3
_SHORTEST_WITHIN = 3
_MOST_WORDS = 20
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_WHOLE = re.compile(r"[^\W_]+")
_LONGEST_TEXT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One operation that fits, how well, and which of its fields."""

    endpoint: Endpoint
    relevance: float
    fields: tuple[str, ...]


class Words:
    """Where each word occurs in the operations of one document."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        self._places: dict[str, dict[int, set[str]]] = defaultdict(dict)
        for number, endpoint in enumerate(endpoints):
            for field, text in _texts(endpoint):
                for word in {*split_words(text), *map(_stem, _WHOLE.findall(text.lower()))}:
                    self._places[word].setdefault(number, set()).add(field)

    def search(self, query: str, field: str | None) -> Sequence[Hit]:
        """The operations that have at least one of the words, in one field or in any, the best first."""
        wanted = list(dict.fromkeys(split_words(query)))[:_MOST_WORDS]
        scores: dict[int, list[float]] = defaultdict(list)
        fields: dict[int, set[str]] = defaultdict(set)
        for word in wanted:
            found = self._score(word, field)
            rarity = 1.0 + math.log(1 + len(self._endpoints) / max(len(found), 1))
            for number, (score, matched) in found.items():
                scores[number].append(score * rarity)
                fields[number] |= matched
        ranked = sorted(scores, key=lambda number: (-len(scores[number]), -sum(scores[number]), number))
        return [
            Hit(
                endpoint=self._endpoints[number],
                relevance=round(sum(scores[number]), 2),
                fields=tuple(name for name in FIELDS if name in fields[number]),
            )
            for number in ranked
        ]

    def _score(self, word: str, field: str | None) -> Mapping[int, tuple[float, set[str]]]:
        """How well each operation fits one word, and where."""
        best: dict[int, tuple[float, set[str]]] = {}
        for known, places in self._places.items():
            likeness = _likeness(word, known)
            if not likeness:
                continue
            for number, found in places.items():
                matched = found if field is None else found & {field}
                if not matched:
                    continue
                score, before = best.get(number, (0.0, set[str]()))
                here = likeness * (max(FIELDS[name] for name in matched) + 0.1 * len(matched))
                best[number] = (max(score, here), before | matched)
        return best


def split_words(text: str) -> list[str]:
    """The words of a text or name in lower case, also those written together (`listPets`), without a plural's `s`."""
    return [_stem(word.lower()) for word in _WORDS.findall(text)]


def suggest(wanted: str, names: Iterable[str], *, most: int = 5) -> Sequence[str]:
    """The names most like the wanted one, the nearest first; none that is not like it at all."""
    asked = _trigrams(wanted)
    likeness = {name: _overlap(asked, _trigrams(name)) for name in names}
    near = [name for name in sorted(likeness, key=lambda name: (-likeness[name], name)) if likeness[name] >= 0.2]
    return near[:most]


def _texts(endpoint: Endpoint) -> Iterable[tuple[str, str]]:
    yield "path", endpoint.path
    yield "operationId", endpoint.operation_id or ""
    yield "summary", endpoint.summary
    yield "tags", " ".join(endpoint.tags)
    yield "parameters", " ".join(endpoint.parameters)
    yield "description", endpoint.description[:_LONGEST_TEXT]


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _likeness(word: str, known: str) -> float:
    if word == known:
        return _EXACT
    if len(word) >= _SHORTEST_WITHIN - 1 and known.startswith(word):
        return _BEGINS
    return _WITHIN if len(word) >= _SHORTEST_WITHIN and word in known else 0.0


def _trigrams(text: str) -> frozenset[str]:
    padded = f"  {text[:200].lower()} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)
