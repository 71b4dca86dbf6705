"""The standard streams of a process that exchanges JSON-RPC on them: lines of limited length in, complete lines out.

Threads read and write, because asyncio cannot watch regular files. A reader waits until its line is consumed, and a
writer until its line is written, so a slow client does not fill the memory.
"""

import asyncio
import os
import queue
import select
import sys
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Self

from gateway.protocol.limits import MAX_BYTES

_CHUNK: Final = 64 * 1024
_STANDARD: Final = 3
"""The first descriptor that is not a standard stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedStreams:
    """Private duplicates of standard input and output. `source` is None if the process has no standard input."""

    source: int | None
    sink: int


class ClientGone(Exception):
    """Standard output is closed, so no further message reaches the client."""


def claim_streams() -> ClaimedStreams:
    """Take standard input and output; from then on, standard input is empty and standard output is standard error.

    So neither `print`, nor a library that writes to descriptor 1, nor a child process can write between the messages.

    Raises:
        ClientGone: the process has no standard output.
    """
    source = None if sys.__stdin__ is None else _duplicate(0)  # the descriptor number may belong to another file now
    sink = None if sys.__stdout__ is None else _duplicate(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2 if _duplicate(2, keep=False) else null, 1)
    if null >= _STANDARD:
        os.close(null)
    if sink is None:
        raise ClientGone
    if sys.stderr is not None:
        sys.stdout = sys.stderr
    return ClaimedStreams(source=source, sink=sink)


def _duplicate(descriptor: int, *, keep: bool = True) -> int | None:
    """Return a duplicate above the standard streams, or the descriptor itself without `keep`; None if it is closed."""
    try:
        copy = os.dup(descriptor)
    except OSError:
        return None
    if not keep:
        os.close(copy)
        return descriptor
    if copy >= _STANDARD:
        return copy
    above = _duplicate(descriptor)  # a standard stream was closed, and its number is free
    os.close(copy)
    return above


class StdioStreams:
    """The lines of one client while the `async with` block runs; `lines` may be read once."""

    def __init__(self, claimed: ClaimedStreams, *, limit: int = MAX_BYTES) -> None:
        self._claimed = claimed
        self._limit = limit
        self._received: asyncio.Queue[bytes | Oversized | None] = asyncio.Queue()
        self._taken = threading.Semaphore(1)
        self._outgoing: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._is_gone = False

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        # daemon threads, so that a blocked read or write does not delay the exit
        for work in (self._read, self._write):
            threading.Thread(target=work, args=(loop,), name=f"stdio{work.__name__}", daemon=True).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._outgoing.put(None)

    @property
    def is_gone(self) -> bool:
        """True after a write failed because standard output is closed."""
        return self._is_gone

    async def lines(self) -> AsyncGenerator["bytes | Oversized"]:
        """Yield the lines of standard input until its end, or until a write finds standard output closed."""
        while (line := await self._received.get()) is not None and not self._is_gone:
            self._taken.release()
            if isinstance(line, Oversized) or line.strip():
                yield line

    async def write(self, message: bytes) -> None:
        """Write one message, and return when it is written.

        Raises:
            ClientGone: standard output is closed.
        """
        written = asyncio.get_running_loop().create_future()
        self._outgoing.put((message, written))
        await written

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        source = self._claimed.source
        chunks: Iterable[bytes] = () if source is None else iter(partial(_read_chunk, source), b"")
        with suppress(RuntimeError):  # the loop is closed
            for line in split_lines(chunks, self._limit):
                self._taken.acquire()
                loop.call_soon_threadsafe(self._received.put_nowait, line)
            loop.call_soon_threadsafe(self._received.put_nowait, None)

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        while (item := self._outgoing.get()) is not None:
            message, written = item
            try:
                if not self._is_gone:
                    _write_all(self._claimed.sink, message + b"\n")
            except OSError:  # the client closed its end, or the disk is full
                self._is_gone = True
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._settle, written)

    def _settle(self, written: "asyncio.Future[None]") -> None:
        if self._is_gone:
            self._received.put_nowait(None)
        if written.done():
            return
        if self._is_gone:
            written.set_exception(ClientGone())
        else:
            written.set_result(None)


class Oversized:
    """A line that is longer than the limit; its content is dropped."""


def split_lines(chunks: Iterable[bytes], limit: int) -> Iterator[bytes | Oversized]:
    """Yield the lines without their ends. Of a line longer than the limit, at most the limit is kept in memory."""
    kept, is_long = bytearray(), False
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            is_long = is_long or len(kept) + len(piece) > limit
            yield Oversized() if is_long else bytes(kept) + piece
            kept.clear()
            is_long = False
        is_long = is_long or len(kept) + len(rest) > limit  # guard: stdio-line-bound
        kept = bytearray() if is_long else kept + rest
    if kept or is_long:
        yield Oversized() if is_long else bytes(kept)


def _read_chunk(source: int) -> bytes:
    while True:
        try:
            return os.read(source, _CHUNK)
        except BlockingIOError:  # the process inherited a description with O_NONBLOCK
            select.select([source], [], [])
        except OSError:  # a terminal that hung up, a directory
            return b""


def _write_all(sink: int, message: bytes) -> None:
    left = memoryview(message)
    while left:
        try:
            left = left[os.write(sink, left) :]
        except BlockingIOError:
            select.select([], [sink], [])
