"""All metrics of a replica, by name; `docs/metrics.md` is generated from them.

`app` creates one `Metrics` object and passes it to the modules that record metrics. The first hundred tenants with
calls on a replica have their own labels; later tenants are counted as `_other`, which bounds the number of series.
"""

import os
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from gateway.telemetry.limits import MAX_OUTCOMES, MAX_SOURCES, MAX_TENANTS
from gateway.telemetry.prometheus import Callback, Counter, Gauge, Histogram, MetricFamily

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REFUSALS_HELP = (
    "Refused requests, by caller (`tenant`: a known principal, whose refusals are in its tenant's audit trail; "
    "`stranger`: others, who are in no trail) and kind of the rule (docs/audit.md)."
)
_REFRESHES_HELP = "Refreshes of sources, scheduled or reported, by outcome; `failed` changes nothing."
_DRIFT_HELP = "Changes by hand of objects that a set of manifests owns, by kind of the object."
_GUARDRAIL_HELP = "Findings of guardrails; a hook without a valid response counts as `failed`."


class Metrics:
    """The metrics of one replica."""

    def __init__(self, *, version: str = "") -> None:
        self.calls = Counter(
            "gateway_calls_total",
            "Finished calls, by tenant, source (its name; `custom`, `code` or `builtin` for other tools; `read`, `get` "
            "or `complete` for other requests) and outcome (`ok`, `limited`, or the code of an error).",
            ("tenant", "source", "outcome"),
            limit=(MAX_TENANTS, MAX_SOURCES, MAX_OUTCOMES),
        )
        self.call_seconds = Histogram(
            "gateway_call_seconds",
            "Duration of calls in seconds: `upstream` is the time in the handler, `gateway` the rest.",
            "part",
            parts=("gateway", "upstream"),
            bounds=_SECONDS,
        )
        self.guardrails = Counter("gateway_guardrail_findings_total", _GUARDRAIL_HELP, ("tenant", "check", "done"))
        self.http_responses = Counter("gateway_http_answers_total", "Started HTTP responses, by status.", ("status",))
        self.requests = Gauge("gateway_http_requests_open", "Open HTTP requests, including streams.")
        self.streams = Gauge("gateway_streams_open", "Open event streams.")
        self.sessions = Callback("gateway_sessions_served", "Handshake sessions that this replica served recently.")
        live_help = "1 while events of other replicas arrive, otherwise 0."
        self.events_live = Callback("gateway_events_live", live_help, across="min")
        lag_help = "Delay of the last event that this replica published to itself, in seconds."
        self.event_lag = Callback("gateway_event_lag_seconds", lag_help, across="max")
        self.snapshots = Callback("gateway_snapshots_loaded_total", "Catalogs loaded from PostgreSQL.", kind="counter")
        self.audit_waiting = Callback("gateway_audit_waiting", "Audit entries that are not committed yet.")
        self.audit_entries = Callback("gateway_audit_entries_total", "Audit entries committed.", kind="counter")
        failures_help = "Audit entries that could not be committed."
        self.audit_failures = Callback("gateway_audit_failures_total", failures_help, kind="counter")
        self.refusals = Callback("gateway_refusals_total", _REFUSALS_HELP, ("caller", "rule"), kind="counter")
        self.audit_overflow = Callback(
            "gateway_audit_overflow",
            "Audit entries of all replicas that wait in Redis while PostgreSQL is unavailable.",
            across="max",
        )
        self._add_audit_deliveries()
        self._add_pools()
        self.live_attachments, self.live_failures, self.live_forwarded = _live_metrics()
        self.webhook_attempts, self.webhook_lag = _webhook_metrics()
        self.source_refreshes = Counter("gateway_source_refreshes_total", _REFRESHES_HELP, ("outcome",))
        self.drift = Counter("gateway_configuration_drift_total", _DRIFT_HELP, ("kind",))
        self.tasks_running = Callback("gateway_tasks_running", "Running tasks of clients on this replica.")
        ended_help = "Tasks of clients that ended on this replica, by state: `completed`, `failed` or `cancelled`."
        self.tasks_ended = Callback("gateway_tasks_ended_total", ended_help, ("state",), kind="counter")
        self._add_health()
        self._version = Callback("gateway_build", "1, labelled with the running version.", ("version",), across="max")
        self._version.follow(lambda: {(version,): 1})
        self._own = _own_metrics()
        self._gateway_seconds, self._upstream_seconds = self.call_seconds.parts.values()
        self._registry = _registry_of(self.families)

    def _add_health(self) -> None:
        """Add the metrics of what a replica lacks, and of the keys that its operator uses."""
        draining_help = "1 while the replica shuts down, otherwise 0."
        self.draining = Callback("gateway_draining", draining_help, across="min")
        failing_help = "1 for each part that calls need and that failed at the last request to `/readyz`, otherwise 0."
        self.parts_failing = Callback("gateway_parts_failing", failing_help, ("part",), across="max")
        lost_help = "Log lines that could not be written, or found 1 MiB of lines still waiting."
        self.log_lines_lost = Callback("gateway_log_lines_lost_total", lost_help, kind="counter")
        uses_help = "Requests with an operator key, by the name of the key, which the log has at the start."
        self.operator_key_uses = Callback("gateway_operator_key_uses_total", uses_help, ("key",), kind="counter")

    def _add_audit_deliveries(self) -> None:
        """Add the metrics of audit heads and of audit sinks."""
        failures_help = "Failed deliveries of audit heads to a store outside the database."
        self.audit_heads_failures = Callback(
            "gateway_audit_heads_failures_total", failures_help, ("store",), kind="counter"
        )
        self.audit_delivered = Callback(
            "gateway_audit_delivered_total", "Audit entries that sinks of tenants accepted.", kind="counter"
        )
        self.audit_delivery_failures = Callback(
            "gateway_audit_delivery_failures_total", "Failed deliveries of audit entries to sinks.", kind="counter"
        )
        self.audit_delivery_lag = Callback(
            "gateway_audit_delivery_lag_seconds",
            "Age of the oldest undelivered audit entry of this replica's sinks, in seconds.",
            across="max",
        )

    def _add_pools(self) -> None:
        """Add the metrics of the pools that tenants share, and of the request rate."""
        self.pool_busy = Callback("gateway_pool_busy", "Slots in use on this replica, by pool.", ("pool",))
        self.pool_refusals = Callback(
            "gateway_pool_refusals_total",
            "Refused slot requests on this replica, by pool; most exceed a tenant's share.",
            ("pool",),
            kind="counter",
        )
        delayed_help = "Requests that were delayed by the request rate of their tenant."
        self.delayed_requests = Callback("gateway_requests_paced_total", delayed_help, kind="counter")

    @property
    def families(self) -> tuple[MetricFamily, ...]:
        """All metric families, in the order in which `render` writes them."""
        named = [value for value in vars(self).values() if isinstance(value, MetricFamily)]
        return (*named, *self._own)

    def note_call(self, tenant: str, source: str, outcome: str, *, total_s: float, upstream_s: float) -> None:
        """Count a finished call and record its duration."""
        self.calls.add(tenant, source, outcome)
        self._upstream_seconds.observe(upstream_s)
        self._gateway_seconds.observe(total_s - upstream_s)

    def render(self) -> str:
        """Return the page in Prometheus' text format, version 0.0.4."""
        return generate_latest(self._registry).decode()


def _registry_of(families: Iterable[MetricFamily]) -> CollectorRegistry:
    registry = CollectorRegistry()
    for family in families:
        registry.register(family)
    return registry


def _live_metrics() -> tuple[Callback, Callback, Callback]:
    """Return the metrics of live sources: attachments, their failures, and forwarded requests."""
    failures_help = "Attachments of live sources that failed or were lost."
    forwarded_help = "Requests to live sources that were forwarded to another replica."
    return (
        Callback("gateway_live_attachments", "Live sources attached to this replica.", ("kind",)),
        Callback("gateway_live_failures_total", failures_help, ("kind",), kind="counter"),
        Callback("gateway_live_forwarded_total", forwarded_help, kind="counter"),
    )


def _webhook_metrics() -> tuple[Counter, Histogram]:
    """Return the metrics of outbound webhooks: attempts by outcome, and their lag."""
    attempts_help = "Attempts of outbound webhooks, by result: `delivered`, `retried` or `failed`."
    lag_help = (
        "Delay of attempts of outbound webhooks in seconds, by attempt of a delivery: the `first`, or a `later` one."
    )
    bounds = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
    return (
        Counter("gateway_webhook_attempts_total", attempts_help, ("outcome",)),
        Histogram("gateway_webhook_lag_seconds", lag_help, "attempt", parts=("first", "later"), bounds=bounds),
    )


def _own_metrics() -> tuple[Callback, ...]:
    """Return the metrics of the process, under the names that Prometheus' client libraries use."""
    memory = Callback("process_resident_memory_bytes", "Resident memory.")
    memory.follow(_resident_bytes)
    cpu = Callback("process_cpu_seconds_total", "CPU time used.", kind="counter")
    cpu.follow(time.process_time)
    files = Callback("process_open_fds", "Open file descriptors.")
    files.follow(_open_files)
    max_files = Callback("process_max_fds", "Maximum number of open file descriptors.", across="min")
    max_files.follow(lambda: max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    started = Callback("process_start_time_seconds", "Start of the process, in seconds since 1970.", across="min")
    now = time.time()
    started.follow(lambda: now)
    return memory, cpu, files, max_files, started


def _resident_bytes() -> float | None:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # not Linux: only the peak is available
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return pages * resource.getpagesize()


def _open_files() -> float | None:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names are enough
    except OSError:
        return None
