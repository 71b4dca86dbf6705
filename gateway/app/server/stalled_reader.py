"""Detection of stalled readers: peers that do not read what the gateway writes."""

import asyncio

import structlog

from gateway.app.server.limits import STALL_BYTES

log = structlog.get_logger(__name__)


class StalledReader:
    """Timer of one paused connection: aborts it when its peer reads less than `STALL_BYTES` in `seconds`."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._unread = 0

    def start(self) -> None:
        """Start the timer unless it runs."""
        if self._timer is None:
            self._measure()

    def stop(self) -> None:
        """Stop the timer, because the peer has read enough or has disconnected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _measure(self) -> None:
        self._unread = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(self._seconds, self._check_progress)

    def _check_progress(self) -> None:
        if self._unread - self._transport.get_write_buffer_size() >= STALL_BYTES:
            self._measure()
            return
        self._timer = None
        log.debug("reader_too_slow")
        self._transport.abort()
