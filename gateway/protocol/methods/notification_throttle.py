"""Token bucket for the notifications of one call: a burst, then at most `MAX_PER_S` per second.

Progress messages above the rate are delayed, and only the newest is sent once a token is free. Log messages above the
rate are dropped; one log message reports their number once the rate has fallen, or at the end.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.handlers.interfaces import LogLevel
from gateway.protocol.methods.input_requests import LEVELS
from gateway.protocol.methods.limits import CATCH_UP_S, MAX_PER_S

SendMessage = Callable[[], Awaitable[None]]
"""Sends one message."""


class NotificationThrottle:
    """The notifications of one call, until `close`."""

    __slots__ = ("_at", "_dropped", "_left", "_log", "_order", "_progress", "_spawn", "_timer", "_worst")

    def __init__(self, spawn: Spawn, log: Callable[[LogLevel, object], Awaitable[None]]) -> None:
        self._spawn = spawn
        self._log = log
        self._order = asyncio.Lock()  # an anyio.Lock costs 10 µs
        self._left = float(MAX_PER_S)
        self._at = time.monotonic()
        self._progress: SendMessage | None = None
        self._dropped = 0
        self._worst: LogLevel = "debug"
        self._timer: asyncio.TimerHandle | None = None

    async def progress(self, send: SendMessage) -> None:
        """Send a progress message, or delay it until a token is free; a newer message replaces it."""
        self._progress = send
        if self._has_token():
            await self._send_progress()
        else:
            self._wait()

    async def log(self, level: LogLevel, send: SendMessage) -> None:
        """Send a log message, or drop it if no token is free."""
        if self._has_token():
            async with self._order:
                await send()
            return
        self._dropped += 1
        if LEVELS.index(level) > LEVELS.index(self._worst):
            self._worst = level
        self._wait()

    async def close(self) -> None:
        """Send the delayed progress and the number of dropped log messages at once, at the end of the call."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._send_progress()
        await self._send_dropped()

    def _has_token(self) -> bool:
        self._refill()
        if self._left < 1:  # guard: notification-rate
            return False
        self._left -= 1
        return True

    def _refill(self) -> None:
        now = time.monotonic()
        self._left = min(MAX_PER_S, self._left + (now - self._at) * MAX_PER_S)
        self._at = now

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CATCH_UP_S, self._spawn, self._send_delayed)

    async def _send_delayed(self) -> None:
        self._timer = None
        self._refill()
        if self._progress is not None and self._has_token():
            await self._send_progress()
        if self._left >= MAX_PER_S / 2:  # the rate has fallen
            await self._send_dropped()
        if self._progress is not None or self._dropped:
            self._wait()

    async def _send_progress(self) -> None:
        async with self._order:  # an older message may be in flight
            send, self._progress = self._progress, None
            if send is not None:
                await send()

    async def _send_dropped(self) -> None:
        async with self._order:
            count, worst, self._dropped, self._worst = self._dropped, self._worst, 0, "debug"
            if count:
                message = f"{count} log messages of this call were dropped: it may send {MAX_PER_S} messages a second"
                await self._log(worst, message)
