"""Escalates slow requests: after 100 ms the id is reserved across replicas, after 2 s JSON becomes an SSE stream.

Nearly every request is complete within 100 ms, so it pays for one timer only. HTTP+SSE (2024-11-05) has no second step.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.protocol.request_context import Spawn

CLAIM_AFTER_S: Final = 0.1
"""Seconds after which a request's id is reserved across replicas."""

STREAM_AFTER_S: Final = 2.0
"""Seconds after which the response becomes a stream, if the client accepts one."""


class SlowRequestTimer:
    """The timer of one request, from its start until `cancel`."""

    __slots__ = ("_claim", "_defer", "_loop", "_spawn", "_timer")

    def __init__(
        self, spawn: Spawn, claim: Callable[[], Awaitable[None]], defer: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._spawn = spawn
        self._claim = claim
        self._defer = defer
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(CLAIM_AFTER_S, self._go_on)

    def cancel(self) -> None:
        """Cancel the timer, because the request is complete."""
        self._timer.cancel()

    def _go_on(self) -> None:
        if self._defer is not None:
            self._timer = self._loop.call_later(STREAM_AFTER_S - CLAIM_AFTER_S, self._spawn, self._defer)
        self._spawn(self._claim)
