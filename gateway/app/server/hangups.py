"""SIGHUP during the whole life of a serving process: it ends nothing, and reads secrets again while the gateway serves.

A terminal that closes sends the same signal. If the process had a terminal and has none any more, it drains as after
SIGTERM.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from gateway.domain.fairness.task_supervisor import TaskSupervisor

_STANDARD_INPUT = 0


class Hangups:
    """The receiver of the signal, until the block of `received` ends."""

    def __init__(self) -> None:
        self._had_terminal = _has_terminal()
        self._tasks: TaskSupervisor | None = None
        self._reread: Callable[[], Awaitable[None]] | None = None

    @contextmanager
    def received(self) -> Generator[None]:
        """Receive the signal while the block runs; before `answer`, it is ignored."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._receive)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)

    def answer(self, reread: Callable[[], Awaitable[None]], tasks: TaskSupervisor) -> None:
        """Run `reread` as a background task at each signal from now on."""
        self._reread, self._tasks = reread, tasks

    def _receive(self) -> None:
        if self._had_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        elif self._reread is not None and self._tasks is not None and self._tasks.is_open:
            self._tasks.spawn(self._reread)


def _has_terminal() -> bool:
    try:
        return os.isatty(_STANDARD_INPUT)
    except OSError:
        return False
