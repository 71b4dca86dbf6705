"""Timeout of request bodies, so that a client that sends its body byte by byte cannot occupy a slot forever."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from starlette.types import Message, Receive

from gateway.domain.fairness.cancel_scope import CancelScope

log = structlog.get_logger(__name__)


class BodyPace(Protocol):
    """The minimum speed and maximum duration of a request body."""

    @property
    def body_s(self) -> float:
        """Maximum seconds for the whole body."""
        ...

    @property
    def body_grace_s(self) -> float:
        """Seconds added to the time that a body takes at the minimum speed."""
        ...

    @property
    def body_bytes_per_s(self) -> int:
        """Minimum speed, in bytes per second."""
        ...


async def receive_within(receive: Receive, seconds: float) -> Message:
    """Return the next ASGI message within `seconds`. For a `PacedBody`, the pace of the edge applies instead.

    Raises:
        TimeoutError: the message did not arrive in time.
    """
    if isinstance(receive, PacedBody):  # has its own timeout
        return await receive()
    async with asyncio.timeout(seconds):
        return await receive()


class BodySweep:
    """The deadlines of the bodies that are awaited now. One timer serves all, because one of each would cost 3 µs."""

    def __init__(self) -> None:
        self._due: dict[CancelScope, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0

    def add(self, scope: CancelScope, at: float) -> None:
        """Cancel the scope at this time of the event loop, unless it is discarded before."""
        self._due[scope] = at
        if self._timer is None or at < self._fires_at:
            self._arm(at)

    def discard(self, scope: CancelScope) -> None:
        """Do not cancel the scope any more: its message has arrived."""
        self._due.pop(scope, None)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = at
        self._timer = asyncio.get_running_loop().call_at(at, self._sweep)

    def _sweep(self) -> None:
        now, self._timer = asyncio.get_running_loop().time(), None
        for scope in [scope for scope, at in self._due.items() if at <= now]:
            del self._due[scope]
            scope.cancel()
        if self._due:
            self._arm(min(self._due.values()))


class PacedBody:
    """An ASGI `receive` with a timeout. If the body is too slow, calls `give_up` and returns `http.disconnect`."""

    __slots__ = ("_began", "_give_up", "_is_over", "_is_slow", "_loop", "_pace", "_receive", "_received", "_sweep")

    def __init__(
        self, receive: Receive, pace: BodyPace, give_up: Callable[[], Awaitable[None]], sweep: BodySweep
    ) -> None:
        self._receive = receive
        self._pace = pace
        self._give_up = give_up
        self._sweep = sweep
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._received = 0
        self._is_over = False
        self._is_slow = False

    async def __call__(self) -> Message:
        """Return the next part of the body, or the message after it."""
        if self._is_slow:
            return {"type": "http.disconnect"}
        if self._is_over:
            return await self._receive()
        message: Message = {"type": "http.disconnect"}
        scope = CancelScope()
        self._sweep.add(scope, self._due())  # guard: body-pace
        try:
            with scope:
                message = await self._receive()
        finally:
            self._sweep.discard(scope)
        if scope.cancelled_caught:
            self._is_slow = True
            await self._give_up()
            log.warning("body_too_slow", received=self._received)
            return message
        self._received += len(message.get("body", b""))
        self._is_over = not message.get("more_body", False)
        return message

    def _due(self) -> float:
        pace = self._pace
        return self._began + min(pace.body_s, pace.body_grace_s + self._received / pace.body_bytes_per_s)
