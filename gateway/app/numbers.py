"""Which part is asked for which number when Prometheus asks."""

from importlib.metadata import PackageNotFoundError, version

from gateway.app.doors import Doors
from gateway.app.readiness import Readiness
from gateway.bus.sessions import Sessions
from gateway.catalog.snapshots import Snapshots
from gateway.telemetry.metrics import Metrics


def make_metrics() -> Metrics:
    """The numbers of this replica, which the parts that count are given."""
    return Metrics(version=_version())


def follow(metrics: Metrics, *, doors: Doors, snapshots: Snapshots, sessions: Sessions, readiness: Readiness) -> None:
    """Read from the parts what they keep for themselves."""
    bus, audit = doors.bus, doors.audit
    metrics.draining.follow(lambda: readiness.is_draining)
    metrics.events_live.follow(lambda: bus.is_live)
    metrics.event_lag.follow(lambda: bus.lag_s)
    metrics.snapshots.follow(lambda: snapshots.loaded)
    metrics.sessions.follow(lambda: len(sessions))
    metrics.audit_waiting.follow(lambda: audit.waiting)
    metrics.audit_entries.follow(lambda: audit.written)
    metrics.audit_failures.follow(lambda: audit.failed)
    metrics.audit_overflow.follow(lambda: audit.kept_waiting)
    metrics.audit_heads_failures.follow(lambda: {(store,): count for store, count in doors.heads.failures.items()})


def _version() -> str:
    try:
        return version("gateway")
    except PackageNotFoundError:
        return "source"
