"""Sums of the metrics pages of workers (`gateway.app.workers.metric_sums`)."""

import pytest

from gateway.app.workers.metric_sums import MetricSums
from gateway.telemetry.metrics import Metrics


def _page(*, calls: int = 0, lag: float | None = None, is_live: bool = True) -> tuple[Metrics, str]:
    metrics = Metrics(version="1.2.3")
    for _ in range(calls):
        metrics.note_call("acme", "custom", "ok", total_s=0.002, upstream_s=0.0005)
    metrics.event_lag.follow(lambda: lag)
    metrics.events_live.follow(lambda: is_live)
    metrics.requests.now = 3
    return metrics, metrics.render()


def _read(page: str, sample: str) -> float:
    [value] = [line.rsplit(" ", 1)[1] for line in page.splitlines() if line.rsplit(" ", 1)[0] == sample]
    return float(value)


_CALLS = 'gateway_calls_total{outcome="ok",source="custom",tenant="acme"}'


@pytest.fixture
def sums() -> MetricSums:
    """Sums without a worker."""
    return MetricSums(Metrics().families)


def test_one_worker_has_its_own_page(sums: MetricSums) -> None:
    """Ours: each sample of a page is there with its value, and no other."""
    _, page = _page(calls=3, lag=0.5)
    sums.report("a", page)

    assert set(_samples(sums.render())) == set(_samples(page))


def _samples(page: str) -> list[str]:
    """Samples with sorted labels, without the names that the renderer orders otherwise."""
    return [line for line in page.splitlines() if not line.startswith("#")]


def test_counters_add_up_and_gauges_are_combined_as_declared(sums: MetricSums) -> None:
    """Ours: open requests add up, a lag is the longest, and one worker without events shows."""
    for worker, (calls, lag, live) in {"a": (3, 0.5, True), "b": (4, 0.25, False)}.items():
        sums.report(worker, _page(calls=calls, lag=lag, is_live=live)[1])
    page = sums.render()

    assert _read(page, _CALLS) == 7
    assert _read(page, 'gateway_call_seconds_bucket{le="0.0025",part="gateway"}') == 7
    assert _read(page, "gateway_http_requests_open") == 6
    assert _read(page, "gateway_event_lag_seconds") == 0.5
    assert _read(page, "gateway_events_live") == 0
    assert _read(page, 'gateway_build{version="1.2.3"}') == 1


def test_counters_of_an_ended_worker_stay(sums: MetricSums) -> None:
    """Ours: no counter falls when a worker is replaced, and its gauges end with it."""
    sums.report("a", _page(calls=3)[1])
    sums.report("b", _page(calls=4)[1])
    sums.end("a")
    sums.report("c", _page(calls=1)[1])
    sums.end("c")
    page = sums.render()

    assert _read(page, _CALLS) == 8
    assert _read(page, 'gateway_call_seconds_count{part="gateway"}') == 8
    assert _read(page, "gateway_http_requests_open") == 3


def test_a_family_that_no_running_worker_has_stays(sums: MetricSums) -> None:
    """Ours: a counter whose only series came from an ended worker is still on the page."""
    sums.report("a", _page(calls=3)[1])
    sums.report("b", _page()[1])
    sums.end("a")

    assert _read(sums.render(), _CALLS) == 3


def test_every_state_is_combined_as_a_state() -> None:
    """Ours: the sum of states, ages and limits of several workers would have no meaning."""
    named = {family.name: family.across for family in Metrics().families}
    states = {name for name, across in named.items() if across != "sum"}
    assert states == {
        "gateway_events_live",
        "gateway_event_lag_seconds",
        "gateway_audit_overflow",
        "gateway_audit_delivery_lag_seconds",
        "gateway_draining",
        "gateway_parts_failing",
        "gateway_build",
        "process_max_fds",
        "process_start_time_seconds",
    }
