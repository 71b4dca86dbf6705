"""Heartbeats of the replicas: each replica renews a key every second.

The replica deletes the key when it closes; after a crash, the key expires within 3.5 s.
"""

from typing import Self

import anyio
import structlog

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import ALIVE_S

log = structlog.get_logger(__name__)

_TTL_MS = 3500
_RENEW = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])"
_EXISTS = "return redis.call('EXISTS', KEYS[1])"
_DELETE = "return redis.call('DEL', KEYS[1])"


def heartbeat_key(namespace: str, replica: str) -> str:
    """Return the name of the key that a running replica renews."""
    return f"{namespace}:replica:{replica}:alive"


class LiveReplicas:
    """Liveness checks of other replicas: a replica is alive while its heartbeat key exists in Redis."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._exists = bus.script(_EXISTS)

    async def is_alive(self, replica: str) -> bool:
        """Return True while the replica's heartbeat key exists; it expires within 3.5 s of a crash.

        Also True for this replica, and while Redis is unavailable.
        """
        if replica == self._bus.replica:
            return True
        try:
            return bool(await self._exists((heartbeat_key(self._bus.namespace, replica),)))
        except RedisUnavailable:
            return True


class ReplicaHeartbeat:
    """The heartbeat of this replica; open it with `async with` while the bus is open."""

    def __init__(self, bus: EventBus) -> None:
        self._key = heartbeat_key(bus.namespace, bus.replica)
        self._renew_script = bus.script(_RENEW)
        self._delete_script = bus.script(_DELETE)
        self._tasks = TaskSupervisor()
        self._failure: RedisUnavailable | None = None

    async def __aenter__(self) -> Self:
        # The first renewal is awaited: other replicas may look as soon as this one serves.
        await self._renew()
        self._tasks.open(self._renew_periodically)
        return self

    async def __aexit__(self, *_: object) -> None:
        # The loop ends first; a renewal after the deletion would revive the key.
        await self._tasks.close()
        try:
            await self._delete_script((self._key,))
        except RedisUnavailable:
            log.debug("heartbeat_not_deleted")

    async def _renew_periodically(self) -> None:
        while True:
            await anyio.sleep(ALIVE_S)
            await self._renew()

    async def check(self) -> None:
        """Check that Redis accepted the last write of this replica, which is a second old; sends nothing.

        Raises:
            RedisUnavailable: it did not, or the heartbeat does not run.
        """
        if self._tasks.failing:
            raise RedisUnavailable("the heartbeat does not run; see the log")
        if self._failure is not None:
            raise RedisUnavailable(self._failure.message, retry_after_s=self._failure.retry_after_s)

    async def _renew(self) -> None:
        try:
            await self._renew_script((self._key,), _TTL_MS)
        except RedisUnavailable as error:
            self._failure = error
            log.debug("heartbeat_not_renewed")
        else:
            self._failure = None
