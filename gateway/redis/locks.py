"""Locks in Redis that spare replicas equal work; losing one only repeats the work."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import structlog

from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import LOCK_WAIT_S

log = structlog.get_logger(__name__)

_LOCK_MS = 15_000
"""Lifetime of a lock; longer than nearly all work under one. Slower work only happens twice."""
_POLL_S = (0.02, 0.25)

_ACQUIRE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


class WorkLocks:
    """Locks by Redis key."""

    def __init__(self, bus: EventBus) -> None:
        self._acquire_script = bus.script(_ACQUIRE)
        self._release_script = bus.script(_RELEASE)

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncGenerator[None]:
        """Acquire the lock; after five seconds of waiting, continue without it.

        Raises:
            RedisUnavailable: it is unknown whether another replica holds the lock.
        """
        owner = secrets.token_hex(16)
        is_ours = await self._wait(key, owner)
        try:
            yield
        finally:
            if is_ours:
                with anyio.CancelScope(shield=True):
                    await self._release(key, owner)

    async def _wait(self, key: str, owner: str) -> bool:
        pause = _POLL_S[0]
        with anyio.move_on_after(LOCK_WAIT_S):
            while not await self._acquire_script((key,), owner, _LOCK_MS):
                await anyio.sleep(pause)
                pause = min(pause * 2, _POLL_S[1])
            return True
        return False

    async def _release(self, key: str, owner: str) -> None:
        try:
            await self._release_script((key,), owner)
        except RedisUnavailable:
            log.warning("lock_not_released")  # the lock expires
