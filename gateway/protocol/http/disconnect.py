"""What is done for a client that may go away meanwhile: it is called off then.

Nearly every block ends before anybody looks, so all that it pays for is one timer.
"""

from types import TracebackType
from typing import Final, Self

import structlog
from starlette.types import Receive

from gateway.protocol.http.cancellation import CancelScope
from gateway.protocol.request_context import Spawn

log = structlog.get_logger(__name__)

WATCH_AFTER_S: Final = 0.25
"""After this long it is looked whether the client is still there."""


class CancelOnDisconnect(CancelScope):
    """A block of the running task; whoever is called off in it goes on behind it, and finds `is_called_off`."""

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
        """Wait until the client goes away; it also "goes" when it has its answer, which is then too late to matter."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cancel()
