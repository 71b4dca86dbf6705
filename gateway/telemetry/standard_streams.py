"""Standard streams of a serving process: `print`, warnings and tracebacks wait for no reader and never raise.

Commands that serve replace `sys.stdout` and `sys.stderr` for the rest of the process. The log shares the queue of
standard error (`gateway.telemetry.logs`).
"""

import atexit
import io
import os
import sys
import threading
from typing import Final, TextIO

from gateway.telemetry.limits import MAX_PIECE_LENGTH
from gateway.telemetry.line_writer import LineWriter

_FIRST_OTHER: Final = 3


class QueuedStream(io.TextIOBase):
    """A text stream over a `LineWriter`. It passes on whole lines; `flush` passes on the beginning of one."""

    def __init__(self, stream: TextIO | None) -> None:
        self.writer = LineWriter(stream)
        self._is_terminal = stream is not None and stream.isatty()
        self._descriptor = None if stream is None else _descriptor_of(stream)
        self._lock = threading.RLock()
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a writable attribute in the stubs
        """UTF-8, whatever the locale."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]  # a writable attribute in the stubs
        """Escapes in place of characters that cannot be encoded."""
        return "backslashreplace"

    def writable(self) -> bool:
        """True."""
        return True

    def isatty(self) -> bool:
        """True if the stream behind it is a terminal."""
        return self._is_terminal

    def fileno(self) -> int:
        """The descriptor of the stream behind it, for child processes that inherit it."""
        if self._descriptor is None:
            raise io.UnsupportedOperation("fileno")
        return self._descriptor

    def write(self, text: str, /) -> int:
        """Queue the lines that are complete; bytes are an error, by which libraries recognise a text stream."""
        with self._lock:
            lines, end, self._begun = (self._begun + text).rpartition("\n")
            if end:
                self.writer.write(lines + end)
        if len(self._begun) > MAX_PIECE_LENGTH:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Queue the beginning of a line; this does not wait until it is written."""
        with self._lock:
            begun, self._begun = self._begun, ""
        if begun:
            self.writer.write(begun)


def open_closed_descriptors() -> None:
    """Open the null device in place of each standard stream that the process was started without.

    Otherwise the first socket or file would get the number of standard error, and receive what is written there.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) < _FIRST_OTHER:
        os.set_inheritable(opened, True)  # as standard streams are
    os.close(opened)


def replace_standard_streams() -> None:
    """Queue what this process writes to its standard streams from now on; at its exit, wait for the queues."""
    is_one = sys.stdout is sys.stderr
    sys.stderr = _queued(sys.stderr)
    sys.stdout = sys.stderr if is_one else _queued(sys.stdout)


def _queued(stream: TextIO | None) -> QueuedStream:
    if isinstance(stream, QueuedStream):
        return stream
    _flush(stream)
    queued = QueuedStream(stream)
    atexit.register(queued.writer.drain)
    return queued


def writer_of_errors() -> LineWriter:
    """Return the writer of standard error: that of the replaced stream, or else a new one."""
    if isinstance(sys.stderr, QueuedStream):
        return sys.stderr.writer
    writer = LineWriter(sys.stderr)
    atexit.register(writer.drain)
    return writer


def lost_lines(writer: LineWriter) -> int:
    """Return the number of lines that the log and a replaced standard output have lost."""
    return sum(each.lost for each in {writer, *([sys.stdout.writer] if isinstance(sys.stdout, QueuedStream) else [])})


def _flush(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except OSError:  # what was written before could not be written
        return


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
