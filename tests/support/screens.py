"""Pseudo-terminals as the standard output of this process or of another."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


class Screen:
    """A terminal that keeps everything that is written to it."""

    def __init__(self) -> None:
        self._ours, theirs = os.openpty()
        self.path = Path(os.ttyname(theirs))
        self.stream: TextIO = os.fdopen(theirs, "w", encoding="utf-8", errors="backslashreplace")
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def close(self) -> str:
        """Close the terminal and return its text."""
        self.stream.close()
        self._reader.join()
        os.close(self._ours)
        return b"".join(self._parts).decode().replace("\r\n", "\n")

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._ours, 2**16)
            except OSError:  # the other end is closed
                return
            if not part:
                return
            self._parts.append(part)


@contextmanager
def screen() -> Generator[tuple[TextIO, list[str]]]:
    """A stream that is a terminal, and a list that has its text after the block."""
    opened, shown = Screen(), list[str]()
    try:
        yield opened.stream, shown
    finally:
        shown.append(opened.close())
