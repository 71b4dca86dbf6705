"""What is done for a client that may go away meanwhile: it is called off then.

Nearly every block ends before anybody looks, so all that it pays for is one timer.
"""

import asyncio
from types import TracebackType
from typing import Any, Final, Self

import structlog
from starlette.types import Receive

from gateway.protocol.outlets import Spawn

log = structlog.get_logger(__name__)

WATCH_S: Final = 0.25
"""After this long it is looked whether the client is still there."""


class Leash:
    """A block of the running task; whoever is called off in it goes on behind it, and finds `is_called_off`."""

    __slots__ = ("_cancelling", "_receive", "_spawn", "_task", "_timer", "is_called_off")

    def __init__(self, receive: Receive, spawn: Spawn) -> None:
        self._receive = receive
        self._spawn = spawn
        self._task: asyncio.Task[Any] | None = None
        self.is_called_off = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can be called off")
        self._task, self._cancelling = task, task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(WATCH_S, self._spawn, self._watch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        task, self._task = self._task, None
        if not self.is_called_off or task is None:
            return False
        is_ours = task.uncancel() <= self._cancelling and kind is asyncio.CancelledError
        self.is_called_off = is_ours
        return is_ours

    async def _watch(self) -> None:
        """Wait until the client goes away; it also "goes" when it has its answer, which is then too late to matter."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._task is not None:
            self.is_called_off = True
            self._task.cancel()
