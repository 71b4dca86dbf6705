"""Deadlines of upstream calls, enforced by one timer for all calls.

One timer per call would cost more CPU than all other checks of the call. An expired deadline is detected at most one
tick late.
"""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits of a call, in seconds.

    `connect_s` covers the wait for a connection, name resolution, dialling and TLS. A response head must arrive within
    `connect_s` + `first_byte_s`. `total_s` covers everything, including the wait for a slot and retries. Between two
    chunks of a body at most min(10 s, `first_byte_s`) may pass. `stream_s` bounds the reading of an event stream.
    A request with a time limit of its own has that limit, at most `max_s`, for the head and for everything.
    """

    connect_s: float = 3.0
    first_byte_s: float = 15.0
    total_s: float = 30.0
    stream_s: float = 20.0
    max_s: float = 300.0


class Deadline:
    """The deadline of one running call: its task is cancelled once the loop's clock passes `until`.

    The call moves `until` as it proceeds, never past `last`.
    """

    __slots__ = ("_cancelling", "_is_whole", "_task", "expired", "last", "until")

    def __init__(self, task: "asyncio.Task[object]", *, until: float, last: float, is_whole: bool = False) -> None:
        """Given `is_whole`, the deadline applies to the call as a whole: no step of it has an earlier one."""
        self._is_whole = is_whole
        self._task = task
        self._cancelling = task.cancelling()
        self.until = min(until, last)
        self.last = last
        self.expired = False

    def allow(self, until: float) -> None:
        """Move the deadline, never past the deadline of the whole call."""
        self.until = self.last if self._is_whole else min(until, self.last)

    def expire(self) -> None:
        """Cancel the task of the call, once."""
        if not self.expired:
            self.expired = True
            self._task.cancel()

    def withdraw(self) -> bool:
        """Undo the cancellation by `expire`; True if the task has no other cancellation."""
        return self.expired and self._task.uncancel() <= self._cancelling


class Deadlines:
    """The deadlines of calls in flight, and one timer that checks them."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def open(
        self, loop: asyncio.AbstractEventLoop, *, first_s: float, total_s: float, is_whole: bool = False
    ) -> Deadline:
        """Return a deadline for the current task; the timer checks it until `close`."""
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a call to an upstream needs a running task")
        now = loop.time()
        deadline = Deadline(task, until=now + first_s, last=now + total_s, is_whole=is_whole)
        self._running.add(deadline)
        if self._timer is None:
            self._timer = loop.call_later(self._tick_s, self._sweep, loop)
        return deadline

    def close(self, deadline: Deadline) -> None:
        """Stop checking the deadline of a finished call."""
        self._running.discard(deadline)

    def stop(self) -> None:
        """Cancel the timer; the deadlines of open calls are no longer checked."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # Started first: a sweep that fails must not end the deadlines of all later calls.
        self._timer = loop.call_later(self._tick_s, self._sweep, loop) if self._running else None
        now = loop.time()
        for deadline in self._running:
            if deadline.until <= now:
                deadline.expire()
