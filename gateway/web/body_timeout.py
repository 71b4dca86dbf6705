"""Timeout of request bodies, so that a client that sends its body byte by byte cannot occupy a slot forever."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from starlette.types import Message, Receive

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


class PacedBody:
    """An ASGI `receive` with a timeout. If the body is too slow, calls `give_up` and returns `http.disconnect`."""

    __slots__ = ("_began", "_give_up", "_is_over", "_is_slow", "_pace", "_receive", "_received")

    def __init__(self, receive: Receive, pace: BodyPace, give_up: Callable[[], Awaitable[None]]) -> None:
        self._receive = receive
        self._pace = pace
        self._give_up = give_up
        self._began = time.monotonic()
        self._received = 0
        self._is_over = False
        self._is_slow = False

    async def __call__(self) -> Message:
        """Return the next part of the body, or the message after it."""
        if self._is_slow:
            return {"type": "http.disconnect"}
        if self._is_over:
            return await self._receive()
        try:
            async with asyncio.timeout(self._left()):  # guard: body-pace
                message = await self._receive()
        except TimeoutError:
            self._is_slow = True
            await self._give_up()
            log.warning("body_too_slow", received=self._received)
            return {"type": "http.disconnect"}
        self._received += len(message.get("body", b""))
        self._is_over = not message.get("more_body", False)
        return message

    def _left(self) -> float:
        pace = self._pace
        allowed = min(pace.body_s, pace.body_grace_s + self._received / pace.body_bytes_per_s)
        return max(0.0, self._began + allowed - time.monotonic())
