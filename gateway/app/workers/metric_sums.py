"""Sums of the metrics pages of all workers, in the text format of Prometheus. No label is added.

Counters and histograms of workers that have ended stay in the sums, so no sum falls when a worker is replaced. A
worker that is killed loses what it counted since its last report, which no page has shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.prometheus import Across, MetricFamily

_Key = tuple[str, tuple[tuple[str, str], ...]]
_CUMULATIVE = frozenset({"counter", "histogram"})


class MetricSums:
    """The last page of each worker, and the totals of those that have ended."""

    def __init__(self, families: Sequence[MetricFamily]) -> None:
        self._across: Mapping[str, Across] = {_family_name(family.name): family.across for family in families}
        self._pages: dict[object, str] = {}
        self._ended: dict[str, dict[_Key, float]] = {}
        """Values by the name of their family."""

    def report(self, worker: object, page: str) -> None:
        """Replace the page of a worker."""
        self._pages[worker] = page

    def end(self, worker: object) -> None:
        """Keep the totals of a worker that has ended, and drop its gauges."""
        for family in text_string_to_metric_families(self._pages.pop(worker, "")):
            if family.type in _CUMULATIVE:
                totals = self._ended.setdefault(family.name, {})
                for sample in family.samples:
                    key = (sample.name, tuple(sample.labels.items()))
                    totals[key] = totals.get(key, 0.0) + sample.value

    def render(self) -> str:
        """Return one page for all workers."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()

    def collect(self) -> Iterator[Metric]:
        """Yield each family with its samples over all workers."""
        families: dict[str, Metric] = {}
        values: dict[str, dict[_Key, list[float]]] = {}
        for page in self._pages.values():
            for family in text_string_to_metric_families(page):
                families.setdefault(family.name, family)
                samples = values.setdefault(family.name, {})
                for sample in family.samples:
                    samples.setdefault((sample.name, tuple(sample.labels.items())), []).append(sample.value)
        for name, family in families.items():
            yield self._combined(family, values[name])

    def _combined(self, family: Metric, values: Mapping[_Key, Sequence[float]]) -> Metric:
        combined = Metric(family.name, family.documentation, family.type)
        combine = _COMBINED[self._across.get(family.name, "sum")]
        ended = self._ended.get(family.name, {})
        for key in dict.fromkeys((*values, *ended)):
            name, labels = key
            value = combine(values[key]) if key in values else 0.0
            combined.add_sample(name, dict(labels), value + ended.get(key, 0.0))
        return combined


_COMBINED: Mapping[Across, Callable[[Sequence[float]], float]] = {"sum": sum, "max": max, "min": min}


def _family_name(name: str) -> str:
    """The name of a family as the parser returns it: without the suffix of counters."""
    return name.removesuffix("_total")
