"""Metric types that store plain numbers; a scrape converts them to metric families of `prometheus_client`.

Every call updates counters, so an update is one dictionary addition; the library's counters cost four times as much
([decision 28](../../docs/decisions/0028-counters-are-plain-numbers.md)). Metrics are not thread-safe: only the event
loop's thread uses them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

OTHER = "_other"
"""The label value under which values beyond the limit of a label are counted."""

Labels = tuple[str, ...]
Across = Literal["sum", "max", "min"]
"""Combination of the values of several worker processes on one page."""
Read = Callable[[], float | Mapping[Labels, float] | None]


class Counter:
    """A counter for each combination of label values.

    `limit` bounds the number of values of each label, per combination of the labels before it. A value beyond the limit
    is counted as `_other`, and so are the labels after it, except the last one. A value that has its own series keeps
    it until the process ends.
    """

    kind: Literal["counter"] = "counter"
    across: Across = "sum"

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = (), *, limit: Sequence[int] = ()) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self._max_labels = tuple(limit) or (100,) * len(self.labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0}
        self._known: dict[Labels, set[str]] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Add one, or `by`."""
        try:
            self._values[labels] += by
        except KeyError:
            limited = self._limit_labels(labels)
            self._values[limited] = self._values.get(limited, 0) + by

    def value(self, *labels: str) -> float:
        """Return the count of these labels."""
        return self._values.get(labels, 0)

    def collect(self) -> Iterator[Metric]:
        """Yield the family, with a sample for each counted combination."""
        family = CounterMetricFamily(self.name, self.meaning, labels=self.labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family

    def _limit_labels(self, labels: Labels) -> Labels:
        limited: Labels = ()
        last = len(labels) - 1
        for position, value in enumerate(labels):
            known = self._known.setdefault(limited, set())
            is_beyond = value not in known and len(known) >= self._max_labels[position]
            if is_beyond or (OTHER in limited and position < last):
                value = OTHER  # noqa: PLW2901  # the label that is counted
            else:
                known.add(value)
            limited = (*limited, value)
        return limited


class Histogram:
    """A histogram for each value of one label; `parts` contains the values of the label."""

    kind: Literal["histogram"] = "histogram"
    across: Across = "sum"

    def __init__(self, name: str, meaning: str, label: str, *, parts: Sequence[str], bounds: Sequence[float]) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = (label,)
        self.parts = {part: HistogramBuckets(bounds) for part in parts}

    def collect(self) -> Iterator[Metric]:
        """Yield the family, with cumulative buckets, sum and count for each value of the label."""
        family = HistogramMetricFamily(self.name, self.meaning, labels=self.labels)
        for part, buckets in self.parts.items():
            bounds = (*(f"{bound:g}" for bound in buckets.bounds), "+Inf")
            family.add_metric((part,), list(zip(bounds, accumulate(buckets.counts), strict=True)), buckets.total)
        yield family


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
    """A metric whose values a reader function returns at each scrape; without a reader, it has no series."""

    def __init__(
        self,
        name: str,
        meaning: str,
        labels: Sequence[str] = (),
        *,
        kind: Literal["gauge", "counter"] = "gauge",
        across: Across = "sum",
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self.kind: Literal["gauge", "counter"] = kind
        self.across: Across = across
        self._read: Read = lambda: None

    def follow(self, read: Read) -> None:
        """Set the reader function, which returns None while the value is unknown."""
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Read the values and yield the family, with a sample for each of them."""
        family_type = GaugeMetricFamily if self.kind == "gauge" else CounterMetricFamily
        family = family_type(self.name, self.meaning, labels=self.labels)
        found = self._read()
        values = found if isinstance(found, Mapping) else {} if found is None else {(): found}
        for labels, value in values.items():
            family.add_metric(labels, value)
        yield family


class Gauge:
    """A number that rises and falls."""

    kind: Literal["gauge"] = "gauge"
    across: Across = "sum"
    labels: Sequence[str] = ()

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning
        self.now = 0

    def collect(self) -> Iterator[Metric]:
        """Yield the family with the current value."""
        yield GaugeMetricFamily(self.name, self.meaning, self.now)


MetricFamily = Counter | Histogram | Callback | Gauge
