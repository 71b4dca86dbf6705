"""A clock that a test moves ahead in a forked gateway: `time.monotonic`, and the timers that the gateway's code sets.

The clock is moved in steps of `STEP_S` with `PAUSE_S` of real time between them, about twenty seconds in one. The event
loop itself makes the steps, so a process that waits for its turn on a busy machine misses no deadline by them. Timers
of libraries, such as the timeout of a Redis command, keep real time; so do the wall clock, the databases and every
other process.
"""

import asyncio
import ctypes
import inspect
import signal
import time
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVarTuple, cast

import uvloop

STEP_S = 0.2
PAUSE_S = 0.01
MOVED = signal.SIGUSR1
"""The signal that the goal of a process's clock has changed."""

_TRANSPARENT = ("asyncio.", "anyio.", "contextlib", __name__)
_OURS = "gateway."

_Arguments = TypeVarTuple("_Arguments")

_real_monotonic = time.monotonic


class Lead(ctypes.Structure):
    """Lead of a process's clock over real time, in seconds: memory that a test shares with the process."""

    _fields_ = (("goal_s", ctypes.c_double), ("reached_s", ctypes.c_double))
    goal_s: float
    """Written by the test alone."""
    reached_s: float
    """Written by the process alone."""


class Clock:
    """The time of a process."""

    def __init__(self, lead: Lead) -> None:
        self.lead = lead
        self._loops: list[MovableLoop] = []

    def monotonic(self) -> float:
        """The time in this process, for `time.monotonic`."""
        return _real_monotonic() + self.lead.reached_s

    def new_loop(self) -> "MovableLoop":
        """An event loop that goes by this clock, for `uvloop.new_event_loop`."""
        self._loops.append(loop := MovableLoop(self.lead))
        return loop

    def begin(self, *_: object) -> None:
        """Go for the goal; a signal handler."""
        for loop in self._loops:
            loop.call_soon_threadsafe(loop.begin)


class MovableLoop(uvloop.Loop):
    """Production's event loop, whose time and timers go by a clock that may run ahead."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._timers: set[MovableTimer] = set()
        self.is_moving = False
        """True between the first step to a goal and the last."""

    def time(self) -> float:
        """Seconds on the clock."""
        return super().time() + self._lead.reached_s

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Arguments], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer to a time of the clock."""
        return self.call_later(when - self.time(), callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Arguments], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer; one that the gateway sets runs out with the clock, any other after real seconds."""
        if not _is_set_by_the_gateway():
            return super().call_later(delay, callback, *args, context=context)
        timer = MovableTimer(self._timers, self.time() + delay, callback, args)
        self._set(timer, context or copy_context())
        return cast("asyncio.TimerHandle", timer)  # it has all of one that is used

    def begin(self) -> None:
        """Make steps until the goal is reached."""
        if not self.is_moving:
            self.is_moving = True
            self._step()

    def _step(self) -> None:
        self.is_moving = self._lead.reached_s < self._lead.goal_s
        if self.is_moving:
            self._lead.reached_s += STEP_S
            super().call_later(PAUSE_S, self._step)
        now = self.time()
        for timer in sorted(self._timers, key=MovableTimer.when):
            if timer.when() <= now or not self.is_moving:
                self._set(timer, timer.context)

    def _set(self, timer: "MovableTimer", context: Context) -> None:
        timer.hold(super().call_later(max(0.0, timer.when() - self.time()), timer.run, context=context), context)


class MovableTimer:
    """The handle of a timer that goes by the clock."""

    def __init__(
        self, timers: set["MovableTimer"], when: float, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        self.context = Context()
        self._timers = timers
        self._when = when
        self._callback = callback
        self._args = args
        self._handle: Any = None
        timers.add(self)

    def hold(self, handle: Any, context: Context) -> None:
        """Run by this handle instead of any before."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.context = handle, context

    def run(self) -> None:
        """Make the call."""
        self._timers.discard(self)
        self._callback(*self._args)

    def when(self) -> float:
        """The time at which it runs out."""
        return self._when

    def cancelled(self) -> bool:
        """True once it was cancelled."""
        return bool(self._handle.cancelled())

    def cancel(self) -> None:
        """Never make the call."""
        self._timers.discard(self)
        self._handle.cancel()


def install(lead: Lead) -> None:
    """Give this process a movable clock; call it before any event loop is made."""
    clock = Clock(lead)
    time.monotonic = clock.monotonic
    uvloop.new_event_loop = clock.new_loop
    signal.signal(MOVED, clock.begin)


def _is_set_by_the_gateway() -> bool:
    """True if the gateway's code sets the timer, directly or by a primitive of asyncio or anyio."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].startswith(_TRANSPARENT):
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"].startswith(_OURS)
