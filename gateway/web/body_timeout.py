"""How long a request's body may take: a client that trickles bytes does not hold a place for ever."""

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
    """How fast a body has to come."""

    @property
    def body_s(self) -> float:
        """The most it may take in all."""
        ...

    @property
    def body_grace_s(self) -> float:
        """For how long it may be slower."""
        ...

    @property
    def body_bytes_per_s(self) -> int:
        """The least speed."""
        ...


async def receive_within(receive: Receive, seconds: float) -> Message:
    """The next ASGI message, if it comes in time; behind the edge its pace is what counts.

    Raises:
        TimeoutError: it did not come in time.
    """
    if isinstance(receive, PacedBody):  # the edge holds the clock already
        return await receive()
    async with asyncio.timeout(seconds):
        return await receive()


class PacedBody:
    """An ASGI `receive` that answers when the body comes too slowly, and tells the application nobody is there."""

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
        """The next part of the body, or what follows it."""
        if self._is_slow:
            return {"type": "http.disconnect"}
        if self._is_over:
            return await self._receive()
        waiting = self._receive().__await__()
        try:
            pending = waiting.send(None)
        except StopIteration as ended:  # it was there already, as nearly always
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
    """What an awaitable answers that has begun to be awaited, and waits for what it has yielded (PEP 380)."""
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
