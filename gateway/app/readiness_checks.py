"""Parts that calls need, for `/readyz`, the metrics and the doctor: their checks, and what a replica can do without."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from gateway.app.infrastructure import Infrastructure
from gateway.catalog.snapshots.limits import STALE_S
from gateway.domain.fairness.task_supervisor import Supervised
from gateway.errors import Unavailable
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.telemetry.metrics import Metrics
from gateway.web.health import ReadinessProbe

_AUDIT: Final = "audit"
_AUDIT_ENTRIES: Final = "audit_entries"
_DATABASE: Final = "database"
_DATABASE_WRITES: Final = "database_writes"
_REDIS: Final = "redis"
_REDIS_WRITES: Final = "redis_writes"


def build_readiness_probe(
    infrastructure: Infrastructure, heartbeat: ReplicaHeartbeat, further: Sequence[object], metrics: Metrics
) -> ReadinessProbe:
    """Build the probe of every part that calls need; no check writes anything. `further` has parts with loops."""
    store, bus, audit = infrastructure.store, infrastructure.bus, infrastructure.audit
    checks = (
        (_DATABASE, store.check),
        (_DATABASE_WRITES, store.check_writes),
        (_AUDIT_ENTRIES, audit.check_stored),
        (_AUDIT, audit.check),
        (_REDIS, bus.check),
        (_REDIS_WRITES, heartbeat.check),
        ("events", bus.check_events),
        ("background", _loop_check([*infrastructure.parts, *further])),
    )
    probe = ReadinessProbe(checks, serves=still_serves)
    metrics.parts_failing.follow(lambda: {(part,): int(part in probe.state.parts) for part in probe.parts})
    return probe


def _loop_check(parts: Sequence[object]) -> Callable[[], Awaitable[None]]:
    supervised = [part for part in parts if isinstance(part, Supervised)]

    async def check() -> None:
        failing = [name for part in supervised for name in part.failing]
        if failing:
            raise Unavailable(f"loops fail again and again: {', '.join(failing)}; see the log")

    return check


def still_serves(failing: Mapping[str, float]) -> bool:
    """True if safe calls outside sessions succeed while these parts have failed for so many seconds.

    Cached keys and catalogs are used for a minute, and each call needs one of two places for its audit entry.
    """
    if _AUDIT in failing or failing.get(_DATABASE, 0.0) > STALE_S:
        return False
    is_unrecorded = not failing.keys().isdisjoint({_DATABASE, _DATABASE_WRITES, _AUDIT_ENTRIES})
    is_unspooled = not failing.keys().isdisjoint({_REDIS, _REDIS_WRITES})
    return not (is_unrecorded and is_unspooled)


async def examine_parts(probe: ReadinessProbe) -> tuple[str, Mapping[str, str]]:
    """Return the status of this replica, and the reason for each part that fails."""
    state = await probe.examine()
    return state.status, {one["part"]: one["reason"] for one in state.failing}
