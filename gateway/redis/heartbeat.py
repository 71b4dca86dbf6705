"""Heartbeats of the replicas: each replica renews a key every second.

The replica deletes the key when it closes; after a crash, the key expires within 3.5 s.
"""

from typing import Self

import anyio
import structlog

from gateway.domain.task_supervisor import TaskSupervisor
from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus

log = structlog.get_logger(__name__)

_BEAT_S = 1.0
_TTL_MS = 3500
_BEAT = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])"
_EXISTS = "return redis.call('EXISTS', KEYS[1])"
_END = "return redis.call('DEL', KEYS[1])"


def heartbeat_key(namespace: str, replica: str) -> str:
    """Return the name of the key that a living replica renews."""
    return f"{namespace}:replica:{replica}:alive"


class LiveReplicas:
    """The liveness of all replicas, as this one sees it."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._exists = bus.script(_EXISTS)

    async def is_alive(self, replica: str) -> bool:
        """True until the replica's key expires, at most 3.5 s after a crash; also True while Redis is unavailable."""
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
        self._beat = bus.script(_BEAT)
        self._end = bus.script(_END)
        self._tasks = TaskSupervisor()

    async def __aenter__(self) -> Self:
        await self._write()
        self._tasks.open(self._go_on)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()
        try:
            await self._end((self._key,))
        except RedisUnavailable:
            log.debug("life_not_ended")

    async def _go_on(self) -> None:
        while True:
            await anyio.sleep(_BEAT_S)
            await self._write()

    async def _write(self) -> None:
        try:
            await self._beat((self._key,), _TTL_MS)
        except RedisUnavailable:
            log.debug("life_not_said")
