"""Time limit of one request, paused while the client handles a server request."""

import asyncio
from types import TracebackType
from typing import Self

from gateway.domain.refusals import LiveSourceFailed


class TimeLimit:
    """Timeout that cancels its block and raises LiveSourceFailed.

    The time between `pause` and `resume` does not count.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._left: float | None = None

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise LiveSourceFailed(
                f"the server did not respond within {self._seconds:g} seconds (`timeout_s` of the live source)"
            ) from None

    def pause(self) -> None:
        """Stop the clock; no effect if it is already stopped."""
        until = self._timeout.when()
        if until is not None and not self._timeout.expired():
            self._left = until - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Restart a stopped clock."""
        if self._left is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
            self._left = None
