"""Types of metrics, and their output in Prometheus' text format (version 0.0.4).

Counting is an addition in a dictionary, because every call counts; the text is made on request. Metrics are not
thread-safe: only the event loop's thread uses them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

OTHER = "_other"
"""The label value that replaces values beyond the bound of a label."""

Labels = tuple[str, ...]
Read = Callable[[], float | Mapping[Labels, float] | None]

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class MetricFamily(Protocol):
    """One metric with all its series."""

    @property
    def name(self) -> str:
        """Name, without the suffixes of its series."""
        ...

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """Prometheus' type of the metric."""
        ...

    @property
    def meaning(self) -> str:
        """One sentence that describes the metric."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """Names of the labels."""
        ...

    def samples(self) -> Iterator[str]:
        """Yield the metric's lines with the current values."""
        ...


class Counter:
    """A number that only rises, for each combination of labels.

    `most` bounds the number of values of each label, per combination of the labels before it. A value beyond the bound
    counts as `_other`, and so do the labels after it, except the last label. A value that was counted under its own
    name keeps its series until the process ends.
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
        """Add one, or `by`."""
        try:
            self._values[labels] += by
        except KeyError:
            bounded = self._bound(labels)
            self._values[bounded] = self._values.get(bounded, 0) + by

    def value(self, *labels: str) -> float:
        """Return the count of these labels."""
        return self._values.get(labels, 0)

    def samples(self) -> Iterator[str]:
        """Yield one line for each combination that was counted."""
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
    """A histogram for each value of one label; `parts` are the values."""

    kind: Literal["histogram"] = "histogram"

    def __init__(self, name: str, meaning: str, label: str, *, parts: Sequence[str], bounds: Sequence[float]) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = (label,)
        self.parts = {part: HistogramBuckets(bounds) for part in parts}

    def samples(self) -> Iterator[str]:
        """Yield the cumulative buckets, the sum and the count for each value of the label."""
        for part, buckets in self.parts.items():
            reached = 0
            for bound, count in zip((*map(_number, buckets.bounds), "+Inf"), buckets.counts, strict=True):
                reached += count
                yield _line(f"{self.name}_bucket", (*self.labels, "le"), (part, bound), reached)
            yield _line(f"{self.name}_sum", self.labels, (part,), buckets.total)
            yield _line(f"{self.name}_count", self.labels, (part,), reached)


class HistogramBuckets:
    """The observations for one value of the label."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Record one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Callback:
    """A metric whose values a reader function returns on request; without a reader it has no series."""

    def __init__(
        self, name: str, meaning: str, labels: Sequence[str] = (), *, kind: Literal["gauge", "counter"] = "gauge"
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self.kind: Literal["gauge", "counter"] = kind
        self._read: Read = lambda: None

    def follow(self, read: Read) -> None:
        """Set the reader function, which returns None while the value is unknown."""
        self._read = read

    def samples(self) -> Iterator[str]:
        """Read the values and yield one line for each."""
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
        """Yield the current value."""
        yield _line(self.name, (), (), self.now)


def _line(name: str, names: Sequence[str], values: Labels, value: float) -> str:
    if not names:
        return f"{name} {_number(value)}"
    pairs = ",".join(f'{key}="{message.translate(_ESCAPES)}"' for key, message in zip(names, values, strict=True))
    return f"{name}{{{pairs}}} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
