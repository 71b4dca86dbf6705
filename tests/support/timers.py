"""Timers that end on request of a test, for code that counts seconds on the given event loop."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio


@dataclass(eq=False, slots=True)
class Timer:
    """A call that waits for its moment."""

    at: float
    seconds: float
    call: Callable[[], object]
    is_over: bool = False

    def cancel(self) -> None:
        """Never make the call."""
        self.is_over = True


@dataclass(slots=True)
class Timers:
    """All timers that were set, and a clock that does not advance between two steps."""

    now: float = 0.0
    _set: list[Timer] = field(default_factory=list[Timer])
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: Any) -> Timer:
        """Set a timer, as an event loop does."""
        timer = Timer(at=self.now + seconds, seconds=seconds, call=lambda: call(*arguments))
        self._set.append(timer)
        self._changed.set()
        return timer

    async def running(self, seconds: float) -> None:
        """Wait until a timer of that length runs."""
        with anyio.fail_after(10):
            while not any(timer.seconds == seconds and not timer.is_over for timer in self._set):
                self._changed.clear()
                await self._changed.wait()

    def advance(self, seconds: float) -> None:
        """Let time pass; what is due by then is called, in its order."""
        until = self.now + seconds
        while due := sorted((timer for timer in self._set if not timer.is_over and timer.at <= until), key=_moment):
            self.now = due[0].at
            due[0].is_over = True
            due[0].call()
        self.now = until


class TimedLoop:
    """An event loop whose timers are these."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: Timers) -> None:
        self._loop = loop
        self.call_later = timers.call_later

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


def _moment(timer: Timer) -> float:
    return timer.at
