"""How long one TCP connection may keep us waiting: for a header, for whoever does not read, for a peer that is gone.

uvicorn knows none of these limits. A connection that shows no header in time is closed, one whose peer does not take
what was written is cut, and the kernel is asked to find out by itself about peers that are no longer there. How long a
body may take is counted further in (`gateway.web.body_timeout`), where there still is an answer to it.
"""

import asyncio
import socket
from typing import Any, Final

import structlog

from gateway.app.server.ignored_upgrades import IgnoredUpgrades

log = structlog.get_logger(__name__)

HEADER_S: Final = 10.0
STALL_S: Final = 20.0
STALL_BYTES: Final = 16 * 1024
"""What a reader takes at least in that time."""

MAX_CONNECTIONS: Final = 12_000
_GONE_MS = 30_000
_PROBE_S = 30
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-type: text/plain\r\ncontent-length: 21\r\n\r\ntoo many connections\n"
)


class HardenedHttpProtocol(IgnoredUpgrades):
    """uvicorn's connection, with an end to its patience."""

    header_s: float = HEADER_S
    stall_s: float = STALL_S

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_in_header = False
        self._has_asked = False
        self._header_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client is there; it has some time to say what it wants."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            log.warning("connection_refused", open=len(self.connections))
            transport.write(_FULL)
            transport.close()
            return
        _keep_watch(transport)
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._drop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request; what neither is a header nor belongs to a request being answered cannot last."""
        super().data_received(data)
        if self._is_in_header or self._is_between:
            self._expect_header()
        elif self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_header = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field; the parser leaves whitespace at the end of a value, which is no part of it (RFC 9110 §5.5)."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Its header is there."""
        self._is_in_header = False
        self._has_asked = True
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        super().pause_writing()
        if self._stall_timer is None:
            self._await_reader()

    def resume_writing(self) -> None:
        """The client has read."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    @property
    def _is_between(self) -> bool:
        """Whether no request is being answered and nobody counts how long the next one takes to begin."""
        return self.timeout_keep_alive_task is None and not (self._has_asked and not self.cycle.response_complete)

    def _expect_header(self) -> None:
        if self._header_timer is None and not self.transport.is_closing():
            self._header_timer = self.loop.call_later(self.header_s, self._give_up_header)

    def _give_up_header(self) -> None:
        self._header_timer = None
        log.debug("header_too_slow", client=self.client and self.client[0])
        self.transport.abort()

    def _await_reader(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(self.stall_s, self._judge_reader)

    def _judge_reader(self) -> None:
        if self._unread - self.transport.get_write_buffer_size() >= STALL_BYTES:
            self._await_reader()
            return
        self._stall_timer = None
        log.debug("reader_too_slow", client=self.client and self.client[0])
        self.transport.abort()

    def _drop_timers(self) -> None:
        for timer in (self._header_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._header_timer = self._stall_timer = None


def _keep_watch(transport: asyncio.Transport) -> None:
    """Have the kernel find out about a peer that is no longer there: by probing, or by what it does not acknowledge."""
    raw: socket.socket | None = transport.get_extra_info("socket")
    if raw is None or raw.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _PROBE_S), ("TCP_USER_TIMEOUT", _GONE_MS)):
        option = getattr(socket, name, None)
        if option is not None:  # not everywhere
            raw.setsockopt(socket.IPPROTO_TCP, option, value)
