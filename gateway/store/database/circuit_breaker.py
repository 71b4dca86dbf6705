"""Circuit breaker for a PostgreSQL server that hangs: it is reachable, but does not respond.

A refusal is detected at once, but a hanging server costs each caller its whole deadline. So a timeout opens the breaker
of the replica, and callers with a fallback send no requests for 3 s. Then one of these callers probes the server.

A server that refuses writes, such as a primary that became a standby, responds over connections that work. So the
breaker also counts generations of connections: after a refused write, those of older generations are replaced, and the
name in the URL is resolved again.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import structlog

from gateway.store.database.limits import LOOP_LAG_S, OPEN_S, REPLACE_S

log = structlog.get_logger(__name__)


class DatabaseBreaker:
    """The breaker of one replica."""

    def __init__(self, *, open_s: float = OPEN_S) -> None:
        self._open_s = open_s
        self._until: float | None = None
        self.generation = 0
        self._replaced_at = -math.inf

    def may_ask(self) -> bool:
        """True if a request may be sent.

        After the open period, one caller receives True and probes the server. The others receive False until the probe
        receives a response, or for another open period.
        """
        now = time.monotonic()
        if self._until is None:
            return True
        if now < self._until:
            return False
        # Reopened before the probe is sent, so that no second caller passes while it is under way.
        self._until = now + self._open_s
        return True

    def note(self) -> None:
        """Open the breaker: a request timed out."""
        self._until = time.monotonic() + self._open_s

    def end(self) -> None:
        """Close the breaker: PostgreSQL has responded."""
        self._until = None

    def replace_connections(self) -> None:
        """Begin a new generation of connections, unless one began less than a second ago."""
        now = time.monotonic()
        if now - self._replaced_at > REPLACE_S:
            self._replaced_at = now
            self.generation += 1
            log.warning("database_connections_replaced")


@asynccontextmanager
async def bounded_wait(seconds: float) -> AsyncGenerator[None]:
    """Raise TimeoutError if the block takes longer than `seconds`.

    If the timer fires 0.5 s late or more, this process itself was stalled, and PostgreSQL may not be at fault. The
    block then gets the same time once more.
    """
    async with asyncio.timeout(None) as limit:
        # A timer of our own beside the timeout: only a callback learns how late it was called.
        timer = _BlockTimer(limit, seconds)
        try:
            yield
        finally:
            timer.cancel()


class _BlockTimer:
    """The timer of one `bounded_wait`; after a stall of this process, it runs once more."""

    def __init__(self, limit: asyncio.Timeout, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._seconds = seconds
        self._has_stalled = False
        self._start(self._loop.time())

    def cancel(self) -> None:
        """Stop the timer: the block has ended."""
        self._handle.cancel()

    def _start(self, now: float) -> None:
        self._due = now + self._seconds
        self._handle = self._loop.call_at(self._due, self._end)

    def _end(self) -> None:
        now = self._loop.time()
        if self._has_stalled or now - self._due < LOOP_LAG_S:
            self._limit.reschedule(now)
        else:
            self._has_stalled = True
            self._start(now)
