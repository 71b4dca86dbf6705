"""Wiring of metrics: connects gauges and counters to the components from which each scrape reads them."""

from collections.abc import Callable, Sequence

from gateway.app.infrastructure import Infrastructure
from gateway.app.live_sources import LiveParts
from gateway.app.pools import Pool
from gateway.app.readiness import Readiness
from gateway.app.runtime import Runtime
from gateway.jobs.audit_delivery import AuditDelivery
from gateway.protocol.tasks.runs import TaskRunner
from gateway.telemetry.distribution import VERSION
from gateway.telemetry.metrics import Metrics


def make_metrics(lost_lines: Callable[[], int] = int) -> Metrics:
    """Build the metrics of this replica."""
    metrics = Metrics(version=VERSION)
    metrics.log_lines_lost.follow(lost_lines)
    return metrics


def connect_metrics(
    metrics: Metrics, infrastructure: Infrastructure, runtime: Runtime, tasks: TaskRunner, *, readiness: Readiness
) -> None:
    """Connect each metric that a scrape reads from a component, as opposed to metrics that the component increments."""
    bus, audit = infrastructure.bus, infrastructure.audit
    snapshots, sessions, uses = runtime.snapshots, runtime.stores.sessions, runtime.credentials.operator_keys.uses
    _connect_live_metrics(metrics, runtime.live)
    _connect_task_metrics(metrics, tasks)
    metrics.operator_key_uses.follow(lambda: {(name,): count for name, count in uses.items()})
    metrics.draining.follow(lambda: readiness.is_draining)
    metrics.events_live.follow(lambda: bus.is_live)
    metrics.event_lag.follow(lambda: bus.lag_s)
    metrics.snapshots.follow(lambda: snapshots.loaded)
    metrics.sessions.follow(lambda: len(sessions))
    metrics.audit_waiting.follow(lambda: audit.waiting)
    metrics.audit_entries.follow(lambda: audit.written)
    metrics.audit_failures.follow(lambda: audit.failed)
    metrics.refusals.follow(lambda: dict[tuple[str, ...], float](infrastructure.refusals.noted))
    metrics.audit_overflow.follow(lambda: audit.kept_waiting)
    metrics.audit_heads_failures.follow(
        lambda: {(store,): count for store, count in infrastructure.heads.failures.items()}
    )


def _connect_live_metrics(metrics: Metrics, live: LiveParts) -> None:
    """Connect the metrics of live sources."""
    held = live.held
    metrics.live_attachments.follow(lambda: {(kind,): count for kind, count in held.count_kinds().items()})
    metrics.live_failures.follow(lambda: {(kind,): count for kind, count in held.failures.items()})
    metrics.live_forwarded.follow(lambda: live.forwarding.sent)


def _connect_task_metrics(metrics: Metrics, tasks: TaskRunner) -> None:
    """Connect the metrics of clients' tasks."""
    ended = tasks.records.ended
    metrics.tasks_running.follow(lambda: len(tasks))
    metrics.tasks_ended.follow(lambda: {(state,): count for state, count in ended.items()})


def connect_delivery_metrics(metrics: Metrics, delivery: AuditDelivery) -> None:
    """Connect the metrics of audit sinks."""
    metrics.audit_delivered.follow(lambda: delivery.delivered)
    metrics.audit_delivery_failures.follow(lambda: delivery.failures)
    metrics.audit_delivery_lag.follow(lambda: delivery.lag_s)


def connect_pools(metrics: Metrics, pools: Sequence[Pool], *, paced: Callable[[], int]) -> None:
    """Connect usage and refusals of each pool, and the number of delayed requests. The number of series is fixed."""
    pools_by_labels = {(pool.name.replace(" ", "_"),): pool for pool in pools}
    metrics.pool_busy.follow(lambda: {labels: pool.busy for labels, pool in pools_by_labels.items()})
    metrics.pool_refusals.follow(lambda: {labels: pool.refused for labels, pool in pools_by_labels.items()})
    metrics.delayed_requests.follow(paced)
