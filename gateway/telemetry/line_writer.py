"""Output of lines that never raises and never waits: a queue bounded in bytes, and a thread that writes it.

The event loop must not depend on what becomes of its log: a full disk, a pipe whose reader has ended, or a pipe that
is not read. Lines that find the queue full, and lines that cannot be written, are lost and counted. Before the next
line that can be written, a notice states their number.
"""

import os
import select
import sys
import threading
from collections.abc import Callable
from io import UnsupportedOperation
from queue import SimpleQueue
from typing import Final, TextIO

from gateway.telemetry.limits import DRAIN_S

CAPACITY: Final = 1024 * 1024
"""Bytes that wait at most: thousands of lines, so that a slow disk or collector loses none."""

_BATCH: Final = 64 * 1024
"""Bytes that are written at once; a pipe holds as many."""


class LineWriter:
    """The lines of one destination. Every method may be called in any thread, and inside a garbage collection."""

    def __init__(self, stream: TextIO | None, *, capacity: int = CAPACITY) -> None:
        """Write to a duplicate of the stream's descriptor, so that a later file of its number gets no line.

        Without a stream, every line is dropped; a stream without a descriptor is written as it is.
        """
        self._send = _sink_of(stream)
        self._capacity = capacity
        self.notice: Callable[[int], str] = _plain_notice
        """Renders the line for a number of lost lines."""
        self.lost: int = 0
        self._announced: int = 0
        self._is_torn = False
        self._unreached: threading.Event | None = None
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Empty the queue: a forked process has the lines of its parent, but not the thread that writes them."""
        # Reentrant, and the queue's `put` is too: a finalizer may log while this thread is in either of them.
        self._lock = threading.RLock()
        self._queue = SimpleQueue[bytes | threading.Event]()
        self._queued = 0
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> None:
        """Queue whole lines, with their ends."""
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if self._queued + len(data) > self._capacity:
                self.lost += _count(data)
                return
            self._queued += len(data)
            self._queue.put(data)
            if self._thread is None:
                self._start()

    def flush(self) -> None:
        """Do nothing: no line is waited for."""

    def drain(self, seconds: float = DRAIN_S) -> bool:
        """Wait until the lines queued so far are written or lost; False after so many seconds.

        It returns at once if an earlier call has timed out and nothing was written since.
        """
        with self._lock:
            if self._thread is None:
                return not self._queued
        if self._unreached is not None and not self._unreached.is_set():
            return False
        self._unreached = threading.Event()
        self._queue.put(self._unreached)
        return self._unreached.wait(seconds)

    def _start(self) -> None:
        if sys.is_finalizing():  # guard: no-log-thread-at-exit
            return  # a thread would not run any more, and `start` would wait for it
        thread = threading.Thread(target=self._run, args=(self._queue,), name="log", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread can be started: the next line tries again
            return
        self._thread = thread

    def _run(self, queue: SimpleQueue[bytes | threading.Event]) -> None:
        """Write batch after batch; the thread ends with the process."""
        while True:
            item = queue.get()
            batch = bytearray()
            while isinstance(item, bytes):
                batch += item
                if len(batch) >= _BATCH or queue.empty():
                    break
                item = queue.get()
            if batch:
                self._write_batch(bytes(batch))
            if isinstance(item, threading.Event):
                item.set()

    def _write_batch(self, batch: bytes) -> None:
        lost = self.lost - self._announced
        notice = self.notice(lost).encode("utf-8", "backslashreplace") if lost else b""
        head = (b"\n" if self._is_torn else b"") + notice
        data = head + batch
        done = self._write_all(data)
        if done >= len(head):
            self._announced += lost
        is_complete = done == len(data)
        if done:
            self._is_torn = not is_complete and not data[:done].endswith(b"\n")
        with self._lock:
            self._queued -= len(batch)
            self.lost += 0 if is_complete else _count(batch) - batch[: max(0, done - len(head))].count(b"\n")

    def _write_all(self, data: bytes) -> int:
        """Return the number of written bytes, which is less after an error."""
        done = 0
        while done < len(data):
            try:
                done += self._send(data[done:])
            except Exception:  # of a full disk, a closed pipe, or any stream; the lines are counted
                break
        return done


def _sink_of(stream: TextIO | None) -> Callable[[bytes], int]:
    if stream is None:
        return len
    try:
        descriptor = os.dup(stream.fileno())
    except (OSError, ValueError, AttributeError, UnsupportedOperation):
        return lambda data: _write_text(stream, data)
    return lambda data: _write_descriptor(descriptor, data)


def _write_descriptor(descriptor: int, data: bytes) -> int:
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:  # another process has made the shared file description non-blocking
            waiting = select.poll()
            waiting.register(descriptor, select.POLLOUT)
            waiting.poll()


def _write_text(stream: TextIO, data: bytes) -> int:
    stream.write(data.decode())
    stream.flush()
    return len(data)


def _count(data: bytes) -> int:
    return data.count(b"\n") or 1


def _plain_notice(lost: int) -> str:
    return f"{lost} log lines were lost\n"
