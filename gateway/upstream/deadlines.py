"""When a call to an upstream has run too long: one timer for all calls, because a timeout per call costs more CPU
than everything else the guard does.

A deadline is noticed up to one tick late.
"""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long a call may take.

    `connect_s` covers resolving, dialling and TLS; `first_byte_s` the wait for the status line after that; `total_s`
    everything, waiting for a place and sending again included; between two pieces of a body at most ten seconds pass.
    `stream_s` is how long a stream of events is listened to.
    """

    connect_s: float = 3.0
    first_byte_s: float = 15.0
    total_s: float = 30.0
    stream_s: float = 20.0


class Deadline:
    """One running call: it is cancelled once the loop's clock passes `until`, which the call moves as it proceeds."""

    __slots__ = ("_cancelling", "_task", "expired", "last", "until")

    def __init__(self, task: "asyncio.Task[object]", *, until: float, last: float) -> None:
        self._task = task
        self._cancelling = task.cancelling()
        self.until = min(until, last)
        self.last = last
        self.expired = False

    def allow(self, until: float) -> None:
        """Move the deadline, never past the one for the whole call."""
        self.until = min(until, self.last)

    def expire(self) -> None:
        """Interrupt the call, once."""
        if not self.expired:
            self.expired = True
            self._task.cancel()

    def settle(self) -> bool:
        """Take back our own cancellation; whether it was the only one."""
        return self.expired and self._task.uncancel() <= self._cancelling


class Deadlines:
    """The calls under way and the timer that looks at them while there are any."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def open(self, loop: asyncio.AbstractEventLoop, *, first_s: float, total_s: float) -> Deadline:
        """Watch the calling task from now on."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call to an upstream needs a running task")
        now = loop.time()
        watch = Deadline(task, until=now + first_s, last=now + total_s)
        self._running.add(watch)
        if self._timer is None:
            self._timer = loop.call_later(self._tick_s, self._sweep, loop)
        return watch

    def close(self, watch: Deadline) -> None:
        """The call is over, however it ended."""
        self._running.discard(watch)

    def stop(self) -> None:
        """No more calls will be watched."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._running:
            self._timer = None
            return
        now = loop.time()
        for watch in self._running:
            if watch.until <= now:
                watch.expire()
        self._timer = loop.call_later(self._tick_s, self._sweep, loop)
