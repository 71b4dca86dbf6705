"""Counting and writing of numbers."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.limits import MAX_SOURCES, MAX_TENANTS
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.prometheus import OTHER, Callback, Counter, Histogram, MetricFamily


def _page(family: MetricFamily) -> str:
    registry = CollectorRegistry()
    registry.register(family)
    return generate_latest(registry).decode()


def _lines(family: MetricFamily) -> list[str]:
    return [line for line in _page(family).splitlines() if not line.startswith("#")]


def test_a_counter_has_a_series_for_each_combination() -> None:
    """Ours: separate counts stay separate."""
    counter = Counter("x_total", "X.", ("a", "b"))

    counter.add("1", "2")
    counter.add("1", "2", by=2)
    counter.add("1", "3")

    assert _lines(counter) == ['x_total{a="1",b="2"} 3.0', 'x_total{a="1",b="3"} 1.0']


def test_series_beyond_the_limit_count_as_other() -> None:
    """Ours: the page stays small however many tenants there are; the sum stays right."""
    counter = Counter("x_total", "X.", ("tenant", "source", "outcome"), limit=(2, 2, 2))

    for tenant in ("a", "b", "c", "d", "a", "c"):
        counter.add(tenant, "s", "ok")

    assert counter.value("a", "s", "ok") == 2
    assert counter.value(OTHER, OTHER, "ok") == 3
    assert len(_lines(counter)) == 3


def test_each_tenant_has_sources_of_its_own_up_to_a_number() -> None:
    """Ours: one tenant with many sources takes no room from another."""
    counter = Counter("x_total", "X.", ("tenant", "source", "outcome"), limit=(2, 2, 2))

    for source in ("p", "q", "r", "s"):
        counter.add("a", source, "ok")
    counter.add("b", "z", "ok")

    assert counter.value("a", OTHER, "ok") == 2
    assert counter.value("b", "z", "ok") == 1


def test_the_page_is_bounded_for_all_calls() -> None:
    """Ours: ten thousand tenants with ten thousand sources and words make a page that can be read (TEN-5)."""
    metrics = Metrics()

    for number in range(10_000):
        metrics.note_call(f"t{number}", f"s{number}", f"o{number}", total_s=0.1, upstream_s=0.05)

    series = [line for line in metrics.render().splitlines() if line.startswith("gateway_calls_total{")]
    assert len(series) <= MAX_TENANTS * 2 + 200
    assert sum(float(line.rpartition(" ")[2]) for line in series) == 10_000
    assert MAX_SOURCES < MAX_TENANTS


def test_a_label_may_hold_anything() -> None:
    """Prometheus: backslash, quote and line end are escaped; what is written is what is read."""
    counter = Counter("x_total", "X.", ("a",))
    wild = 'a"b\\c\nd{}=,é'
    counter.add(wild)

    samples = [sample for family in text_string_to_metric_families(_page(counter)) for sample in family.samples]

    assert [sample.labels["a"] for sample in samples] == [wild]


def test_a_histogram_counts_values_up_to_each_bound() -> None:
    """Prometheus: buckets are cumulative and include their bound; the last one is everything."""
    histogram = Histogram("x_seconds", "X.", "part", parts=("p",), bounds=(0.1, 1.0))

    for seconds in (0.05, 0.1, 0.5, 7.0):
        histogram.parts["p"].observe(seconds)

    assert _lines(histogram) == [
        'x_seconds_bucket{le="0.1",part="p"} 2.0',
        'x_seconds_bucket{le="1",part="p"} 3.0',
        'x_seconds_bucket{le="+Inf",part="p"} 4.0',
        'x_seconds_count{part="p"} 4.0',
        'x_seconds_sum{part="p"} 7.65',
    ]


def test_a_reading_without_a_reader_or_without_a_value_has_no_series() -> None:
    """Ours: an unknown value is not reported as zero."""
    reading = Callback("x", "X.")
    assert _lines(reading) == []
    reading.follow(lambda: None)
    assert _lines(reading) == []
    reading.follow(lambda: 0)
    assert _lines(reading) == ["x 0.0"]


def test_prometheus_own_library_reads_the_whole_page() -> None:
    """Prometheus: the text format, version 0.0.4."""
    metrics = Metrics(version="1")
    metrics.note_call("acme", "pets", "ok", total_s=0.2, upstream_s=0.1)
    metrics.streams.now += 1

    families = {family.name: family for family in text_string_to_metric_families(metrics.render())}

    assert families["gateway_calls"].samples[0].value == 1
    assert families["gateway_call_seconds"].type == "histogram"
    assert families["gateway_streams_open"].samples[0].value == 1
    assert all(family.documentation for family in families.values())


def test_the_page_heads_every_family_and_has_no_series_of_creation_times() -> None:
    """Ours: help and type precede the samples of each metric; the library's `_created` series do not appear."""
    metrics = Metrics(version="1")
    metrics.note_call("acme", "pets", "ok", total_s=0.2, upstream_s=0.1)

    lines = metrics.render().splitlines()

    for family in metrics.families:
        at = lines.index(f"# HELP {family.name} {family.meaning}")
        assert lines[at + 1] == f"# TYPE {family.name} {family.kind}"
    assert "_created" not in metrics.render()


def test_two_gateways_of_one_process_count_apart() -> None:
    """Ours: each gateway has a registry of its own."""
    first, second = Metrics(), Metrics()

    first.http_responses.add("200")

    assert "gateway_http_answers_total{" in first.render()
    assert "gateway_http_answers_total{" not in second.render()
