"""Timeout of request bodies: a client that sends its body byte by byte does not hold a slot for ever."""

import asyncio
import time
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol

import structlog
from starlette.types import Message, Receive

log = structlog.get_logger(__name__)

_Waiting = Generator[Any, Any, Message]


class BodyPace(Protocol):
    """The speed at which a body has to arrive."""

    @property
    def body_s(self) -> float:
        """The most seconds for the whole body."""
        ...

    @property
    def body_grace_s(self) -> float:
        """Seconds in addition to the time that the least speed allows."""
        ...

    @property
    def body_bytes_per_s(self) -> int:
        """The least speed, in bytes per second."""
        ...


async def receive_within(receive: Receive, seconds: float) -> Message:
    """Return the next ASGI message if it arrives in time; behind the edge, the pace of the edge applies instead.

    Raises:
        TimeoutError: the message did not arrive in time.
    """
    if isinstance(receive, PacedBody):  # the edge measures the time already
        return await receive()
    async with asyncio.timeout(seconds):
        return await receive()


class PacedBody:
    """An ASGI `receive` with a timeout: responds to a body that is too slow, and sends the application a disconnect."""

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
        waiting = self._receive().__await__()
        try:
            pending = waiting.send(None)
        except StopIteration as ended:  # it had arrived already, as in nearly all cases
            message: Message = ended.value
        else:
            try:
                async with asyncio.timeout(self._left()):
                    message = await _go_on(waiting, pending)
            except TimeoutError:
                self._is_slow = True
                log.warning("body_too_slow", received=self._received)
                await self._give_up()
                return {"type": "http.disconnect"}
        self._received += len(message.get("body", b""))
        self._is_over = not message.get("more_body", False)
        return message

    def _left(self) -> float:
        pace = self._pace
        allowed = min(pace.body_s, pace.body_grace_s + self._received / pace.body_bytes_per_s)
        return max(0.0, self._began + allowed - time.monotonic())


@types.coroutine
def _go_on(waiting: _Waiting, pending: object) -> _Waiting:
    """Continue an awaitable that has yielded once: wait for what it yielded, and return its result (PEP 380)."""
    try:
        while True:
            try:
                sent = yield pending
            except (Exception, asyncio.CancelledError) as error:
                pending = waiting.throw(error)
            else:
                pending = waiting.send(sent)
    except StopIteration as ended:
        message: Message = ended.value
        return message
    finally:
        waiting.close()
