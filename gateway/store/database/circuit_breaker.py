"""Whether PostgreSQL is silent: it can be reached and does not answer, as a server that hangs.

One that refuses is found out at once; one that hangs costs whoever asks all of the patience there is. So who finds it
out tells the others of this replica, and those that have something to go on with ask no more for a moment. Then one of
them tries.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

PROMPT_S: Final = 2.0
"""How long a call waits for PostgreSQL where it can go on without."""

_LEFT_ALONE_S = 3.0
_LATE_S = 0.5


class DatabaseBreaker:
    """What this replica knows of it."""

    def __init__(self, *, left_alone_s: float = _LEFT_ALONE_S) -> None:
        self._left_alone_s = left_alone_s
        self._until: float | None = None

    def may_ask(self) -> bool:
        """Whether it is worth asking now; after a silence one is told so, and the others wait for what he finds."""
        now = time.monotonic()
        if self._until is None:
            return True
        if now < self._until:
            return False
        self._until = now + self._left_alone_s
        return True

    def note(self) -> None:
        """There was no answer."""
        self._until = time.monotonic() + self._left_alone_s

    def end(self) -> None:
        """There was an answer."""
        self._until = None


@asynccontextmanager
async def bounded_wait(seconds: float) -> AsyncGenerator[None]:
    """End the block after this long with TimeoutError.

    Where this process was itself asleep when the time was over, nobody knows who kept whom waiting: it waits once more.
    """
    loop = asyncio.get_running_loop()
    alarm: asyncio.TimerHandle
    async with asyncio.timeout(None) as limit:

        def end(due: float, *, is_last: bool) -> None:
            nonlocal alarm
            now = loop.time()
            if is_last or now - due < _LATE_S:
                limit.reschedule(now)
            else:
                alarm = loop.call_later(seconds, lambda: end(now + seconds, is_last=True))

        due = loop.time() + seconds
        alarm = loop.call_at(due, lambda: end(due, is_last=False))
        try:
            yield
        finally:
            alarm.cancel()
