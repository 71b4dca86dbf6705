"""The kinds of numbers there are, and how each is written in Prometheus' text format (version 0.0.4).

Counting is an addition in a dictionary, for it happens on the way of every call; the text is made when it is asked for.
All of it belongs to the event loop's thread.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

OTHER = "_other"
"""Stands for every value of a label beyond the most that are told apart."""

Labels = tuple[str, ...]
Read = Callable[[], float | Mapping[Labels, float] | None]

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class MetricFamily(Protocol):
    """One metric with all its series."""

    @property
    def name(self) -> str:
        """Its name, without the suffixes of its series."""
        ...

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """Prometheus' word for it."""
        ...

    @property
    def meaning(self) -> str:
        """One sentence."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """The names of its labels."""
        ...

    def samples(self) -> Iterator[str]:
        """Its lines as of now."""
        ...


class Counter:
    """A number that only rises, for each combination of labels.

    `most` says how many values each label may have below the values before it; what comes later counts as `_other`, and
    so do the labels between it and the last one. A series keeps its meaning for as long as the process lives.
    """

    kind: Literal["counter"] = "counter"

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = (), *, most: Sequence[int] = ()) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self._most = tuple(most) or (100,) * len(self.labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0}
        self._known: dict[Labels, set[str]] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count once, or `by` so much."""
        try:
            self._values[labels] += by
        except KeyError:
            bounded = self._bound(labels)
            self._values[bounded] = self._values.get(bounded, 0) + by

    def value(self, *labels: str) -> float:
        """What was counted under these labels."""
        return self._values.get(labels, 0)

    def samples(self) -> Iterator[str]:
        """One line for each combination that was counted."""
        for labels, value in self._values.items():
            yield _line(self.name, self.labels, labels, value)

    def _bound(self, labels: Labels) -> Labels:
        bounded: Labels = ()
        last = len(labels) - 1
        for position, value in enumerate(labels):
            known = self._known.setdefault(bounded, set())
            is_beyond = value not in known and len(known) >= self._most[position]
            if is_beyond or (OTHER in bounded and position < last):
                value = OTHER  # noqa: PLW2901  # what it counts as
            else:
                known.add(value)
            bounded = (*bounded, value)
        return bounded


class Histogram:
    """How many of what was measured was at most so much, for each value of one label that has few of them."""

    kind: Literal["histogram"] = "histogram"

    def __init__(self, name: str, meaning: str, label: str, *, parts: Sequence[str], bounds: Sequence[float]) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = (label,)
        self.parts = {part: HistogramBuckets(bounds) for part in parts}

    def samples(self) -> Iterator[str]:
        """The cumulative buckets, the sum and the count of each part."""
        for part, buckets in self.parts.items():
            reached = 0
            for bound, count in zip((*map(_number, buckets.bounds), "+Inf"), buckets.counts, strict=True):
                reached += count
                yield _line(f"{self.name}_bucket", (*self.labels, "le"), (part, bound), reached)
            yield _line(f"{self.name}_sum", self.labels, (part,), buckets.total)
            yield _line(f"{self.name}_count", self.labels, (part,), reached)


class HistogramBuckets:
    """What was measured of one part."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Measured once."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Callback:
    """A number that somebody else keeps and that is read when it is asked for; without a reader it has no series."""

    def __init__(
        self, name: str, meaning: str, labels: Sequence[str] = (), *, kind: Literal["gauge", "counter"] = "gauge"
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self.kind: Literal["gauge", "counter"] = kind
        self._read: Read = lambda: None

    def follow(self, read: Read) -> None:
        """Read it here from now on; None means that it is not known just now."""
        self._read = read

    def samples(self) -> Iterator[str]:
        """What is read now."""
        found = self._read()
        if found is None:
            return
        for labels, value in (found if isinstance(found, Mapping) else {(): found}).items():
            yield _line(self.name, self.labels, labels, value)


class Gauge:
    """A number that rises and falls."""

    kind: Literal["gauge"] = "gauge"
    labels: Sequence[str] = ()

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning
        self.now = 0

    def samples(self) -> Iterator[str]:
        """What it is now."""
        yield _line(self.name, (), (), self.now)


def _line(name: str, names: Sequence[str], values: Labels, value: float) -> str:
    if not names:
        return f"{name} {_number(value)}"
    pairs = ",".join(f'{key}="{said.translate(_ESCAPES)}"' for key, said in zip(names, values, strict=True))
    return f"{name}{{{pairs}}} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
