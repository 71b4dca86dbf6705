"""All metrics of a replica, by name; `docs/metrics.md` is generated from them.

`app` creates one `Metrics` object and passes it to the modules that count. The first hundred tenants with calls on a
replica have their own labels; later tenants count as `_other`, so that the page stays bounded.
"""

import os
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from gateway.telemetry.prometheus import Callback, Counter, Gauge, Histogram, MetricFamily

TENANTS = 100
SOURCES = 10
OUTCOMES = 60

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one replica."""

    def __init__(self, *, version: str = "") -> None:
        self.calls = Counter(
            "gateway_calls_total",
            "Calls that came to an end, by tenant, source (its name; `custom`, `code` or `builtin` for other tools; "
            "`read`, `get` or `complete` for what is no tool) and outcome (`ok`, `limited`, an error's code).",
            ("tenant", "source", "outcome"),
            most=(TENANTS, SOURCES, OUTCOMES),
        )
        self.call_seconds = Histogram(
            "gateway_call_seconds",
            "Seconds a call took: `upstream` until the handler had its answer, `gateway` everything else.",
            "part",
            parts=("gateway", "upstream"),
            bounds=_SECONDS,
        )
        self.answers = Counter("gateway_http_answers_total", "HTTP answers that were begun, by status.", ("status",))
        self.requests = Gauge("gateway_http_requests_open", "HTTP requests being served now, streams included.")
        self.streams = Gauge("gateway_streams_open", "Event streams that are open now.")
        self.sessions = Callback("gateway_sessions_served", "Sessions of the handshake era this replica served lately.")
        self.events_live = Callback("gateway_events_live", "1 while events of other replicas arrive, else 0.")
        self.event_lag = Callback("gateway_event_lag_seconds", "How long the last event to ourselves was under way.")
        loaded = "Catalogs of tenants that were loaded from PostgreSQL."
        self.snapshots = Callback("gateway_snapshots_loaded_total", loaded, kind="counter")
        self.audit_waiting = Callback("gateway_audit_waiting", "Audit entries that wait to be committed.")
        self.audit_entries = Callback("gateway_audit_entries_total", "Audit entries committed.", kind="counter")
        failed = "Audit entries that could not be committed."
        self.audit_failures = Callback("gateway_audit_failures_total", failed, kind="counter")
        self.audit_overflow = Callback(
            "gateway_audit_overflow", "Audit entries of all replicas that wait in Redis until PostgreSQL takes them."
        )
        lost = "Deliveries of audit heads to a store outside the database that failed."
        self.audit_heads_failures = Callback("gateway_audit_heads_failures_total", lost, ("store",), kind="counter")
        self.pool_busy = Callback("gateway_pool_busy", "Places of a replica-wide pool that are held now.", ("pool",))
        self.pool_refusals = Callback(
            "gateway_pool_refusals_total",
            "Requests for a place of a replica-wide pool that were refused, mostly above a tenant's share.",
            ("pool",),
            kind="counter",
        )
        paced = "Requests that waited because of their tenant's pace."
        self.paced = Callback("gateway_requests_paced_total", paced, kind="counter")
        self.draining = Callback("gateway_draining", "1 from the first sign of the end, else 0.")
        self._version = Callback("gateway_build", "1, with the version that runs.", ("version",))
        self._version.follow(lambda: {(version,): 1})
        self._own = _own_readings()
        self._gateway_seconds, self._upstream_seconds = self.call_seconds.parts.values()
        self._registry = _registry_of(self.families)

    @property
    def families(self) -> tuple[MetricFamily, ...]:
        """All metric families, in the order of the page."""
        named = [value for value in vars(self).values() if isinstance(value, MetricFamily)]
        return (*named, *self._own)

    def note_call(self, tenant: str, source: str, outcome: str, *, total_s: float, upstream_s: float) -> None:
        """Count a finished call and record its seconds."""
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


def _own_readings() -> tuple[Callback, ...]:
    """Return the metrics of the process, under the names that Prometheus' client libraries use."""
    memory = Callback("process_resident_memory_bytes", "Resident memory.")
    memory.follow(_resident_bytes)
    cpu = Callback("process_cpu_seconds_total", "CPU time used.", kind="counter")
    cpu.follow(time.process_time)
    files = Callback("process_open_fds", "Open file descriptors.")
    files.follow(_open_files)
    most_files = Callback("process_max_fds", "The most file descriptors there may be.")
    most_files.follow(lambda: max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    started = Callback("process_start_time_seconds", "When this part of the process was made, in seconds since 1970.")
    now = time.time()
    started.follow(lambda: now)
    return memory, cpu, files, most_files, started


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
