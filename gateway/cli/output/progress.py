"""Progress of a long command on standard error: the current stage and its elapsed time."""

import os
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

from gateway.cli.output.limits import FRAME_S
from gateway.cli.output.printing import visible

_FRAMES = "|/-\\"


class Progress:
    """Shows one stage after another: a spinner with the elapsed time on a terminal, one line per stage elsewhere.

    There is no percentage, because the amount of work is unknown. With `is_silent`, nothing is written.
    """

    def __init__(self, stream: TextIO | None = None, *, is_silent: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._is_silent = is_silent
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stage = ""
        self._since = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def __enter__(self) -> Self:
        if self._is_terminal and not self._is_silent:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if kind is None:
            self._finish_stage()
        elif self._stage and self._is_terminal:
            self._write("\r\x1b[K")

    def stage(self, text: str) -> None:
        """End the current stage and begin the next."""
        self._finish_stage()
        text = visible(text)
        self._stage, self._since = text, time.monotonic()
        if not self._is_terminal:
            self._write(f"{text} …\n")

    def finish(self) -> None:
        """End the current stage before other output is written."""
        self._finish_stage()

    def _finish_stage(self) -> None:
        if self._stage and self._is_terminal:
            self._write(f"\r\x1b[K{self._stage} ({self._elapsed()})\n")
        self._stage = ""

    def _spin(self) -> None:
        frame = 0
        while not self._ended.wait(FRAME_S):
            frame += 1
            if self._stage:
                self._write(f"\r\x1b[K{_FRAMES[frame % len(_FRAMES)]} {self._stage} ({self._elapsed()})")

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._since:.1f} s"

    def _write(self, text: str) -> None:
        if not self._is_silent:
            self._stream.write(text)
            self._stream.flush()
