"""The disconnect watcher: cancels the current request when its client disconnects.

The watcher task starts only after `WATCH_AFTER_S`, so a fast request pays for one timer.
"""

from types import TracebackType
from typing import Final, Self

import structlog
from starlette.types import Receive

from gateway.domain.task_supervisor import Spawn
from gateway.protocol.http.cancellation import CancelScope

log = structlog.get_logger(__name__)

WATCH_AFTER_S: Final = 0.25
"""Seconds until the watcher task starts."""


class CancelOnDisconnect(CancelScope):
    """A cancel scope that is cancelled when the client disconnects."""

    __slots__ = ("_receive", "_spawn", "_timer")

    def __init__(self, receive: Receive, spawn: Spawn) -> None:
        super().__init__()
        self._receive = receive
        self._spawn = spawn

    def __enter__(self) -> Self:
        self._timer = self._loop.call_later(WATCH_AFTER_S, self._spawn, self._watch)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        return super().__exit__(kind, error, trace)

    async def _watch(self) -> None:
        """Cancel on a disconnect. After the response the server reports one too, without effect."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cancel()
