"""What is done about a request that is not answered at once: first its id is claimed, then its answer is a stream.

Nearly every request is answered before either, so all that it pays for is one timer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.protocol.request_context import Spawn

CLAIM_AFTER_S: Final = 0.1
"""After this long a request's id is kept from requests at other replicas."""

STREAM_AFTER_S: Final = 2.0
"""For how long a silent call may still be answered with JSON."""


class SlowRequestTimer:
    """The timer of one request, from its beginning until it is cancelled."""

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
        """It is answered."""
        self._timer.cancel()

    def _go_on(self) -> None:
        if self._defer is not None:
            self._timer = self._loop.call_later(STREAM_AFTER_S - CLAIM_AFTER_S, self._spawn, self._defer)
        self._spawn(self._claim)
