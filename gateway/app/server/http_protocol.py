"""Hardened HTTP protocol: time limits of a TCP connection for a slow header, a slow reader and a dead peer.

uvicorn has none of these limits. A connection is aborted if its header does not arrive in time, or if the client does
not read the response. The kernel detects dead peers. `gateway.web.body_timeout` limits the time for a body, because a
response is still possible at that point.
"""

import asyncio
import re
import secrets
import socket
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

import structlog

from gateway.app.server.ignored_upgrades import IgnoredUpgrades
from gateway.app.server.limits import (
    CONNECTION_RETRY_S,
    HEADER_S,
    LINGER_IDLE_S,
    LINGER_S,
    MAX_CONNECTIONS,
    PROBE_S,
    STALL_S,
)
from gateway.app.server.lingering_close import LingeringClose
from gateway.app.server.stalled_reader import StalledReader
from gateway.app.server.websocket_protocol import HardenedWebSocketProtocol
from gateway.web.problems import MEDIA_TYPE, problem_bytes

log = structlog.get_logger(__name__)

_PROVIDE: Final = re.compile(rb"/t/[^/?#]+/provide(?:\?[^#]*)?")
"""Request targets that may become a WebSocket."""
_GONE_MS = 30_000


class HardenedHttpProtocol(IgnoredUpgrades):
    """uvicorn's HTTP protocol with these time limits and a limit on the number of connections."""

    header_s: float = HEADER_S
    stall_s: float = STALL_S
    linger_s: float = LINGER_S

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.ws_protocol_class = HardenedWebSocketProtocol
        self._is_in_header = False
        self._has_asked = False
        self._is_upgraded = False
        self._header_timer: asyncio.TimerHandle | None = None
        self._stalled: StalledReader | None = None
        self._lingering: LingeringClose | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own signature
        """Start the header timer; above `MAX_CONNECTIONS`, respond with 503 and close the connection instead."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            correlation_id = self._refuse(503, "http.too_many_connections", "too many connections; retry later")
            log.warning("connection_refused", open=len(self.connections), correlation_id=correlation_id)
            return
        _detect_dead_peer(transport)
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._drop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes. The header timer runs while a header is incomplete; between requests, uvicorn's timer runs."""
        if self._lingering is not None:
            self._lingering.discard()
            return
        super().data_received(data)
        if self._is_upgraded:
            return
        if self._is_in_header or self._is_idle:
            self._expect_header()
        elif self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def send_400_response(self, msg: str) -> None:
        """Respond to bytes that are no HTTP request, and close the connection; uvicorn's response is plain text."""
        correlation_id = self._refuse(400, "http.malformed", "the bytes are not a valid HTTP/1.1 request")
        log.info("request_malformed", client=self.client and self.client[0], correlation_id=correlation_id)

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the WebSocket protocol."""
        self._is_upgraded = True
        self._drop_timers()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """Note the start of a header."""
        self._is_in_header = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add one header without the trailing whitespace that the parser leaves in the value (RFC 9110 §5.5).

        uvicorn's method does the rest of this; a call of it for each header would cost a tenth of the parsing.
        """
        name, value = name.lower(), value.rstrip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note the end of a header."""
        self._is_in_header = False
        self._has_asked = True
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.transport = JoinedWrites(self.transport, self.loop, self._close)  # type: ignore[assignment]  # uvicorn uses no other member

    def on_response_complete(self) -> None:
        """Start the next request, unless the connection only waits for its end."""
        if self._lingering is None:
            super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the stall timer, because the client reads more slowly than the gateway writes."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = StalledReader(self.transport, self.loop, seconds=self.stall_s)
        self._stalled.start()

    def resume_writing(self) -> None:
        """Cancel the stall timer, because the client has read enough."""
        if self._stalled is not None:
            self._stalled.stop()
        super().resume_writing()

    def _should_upgrade(self) -> bool:
        """True for a GET without a body at a tenant's `provide` URL, after all earlier responses."""
        is_idle = self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]
        is_provider = self.scope.get("method") == "GET" and _PROVIDE.fullmatch(self.url) and not self._framing
        return bool(is_idle and is_provider) and super()._should_upgrade()  # guard: upgrade-of-one-url

    @property
    def _is_idle(self) -> bool:
        """True if no response is pending and uvicorn's keep-alive timer does not run."""
        return self.timeout_keep_alive_task is None and not (self._has_asked and not self.cycle.response_complete)

    def _expect_header(self) -> None:
        if self._header_timer is None and not self.transport.is_closing():
            self._header_timer = self.loop.call_later(self.header_s, self._abort_slow_header)  # guard: header-deadline

    def _close(self) -> None:
        """Close after a response; if its request is still arriving, discard the rest first."""
        if not self.cycle.more_body or self.transport.is_closing():
            self.transport.close()
            return
        self._drop_timers()
        self._lingering = LingeringClose(self.transport, self.loop, idle_s=LINGER_IDLE_S, total_s=self.linger_s)
        self.flow.resume_reading()

    def _refuse(self, status: int, code: str, detail: str) -> str:
        """Send a problem document in place of the application, close, and return its correlation id."""
        correlation_id = secrets.token_hex(12)
        self.transport.write(_refusal(status, problem_bytes(status, code, detail, correlation_id), correlation_id))
        self.transport.close()
        return correlation_id

    def _abort_slow_header(self) -> None:
        self._header_timer = None
        log.debug("header_too_slow", client=self.client and self.client[0])
        self.transport.abort()

    def _drop_timers(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
        if self._stalled is not None:
            self._stalled.stop()
        if self._lingering is not None:
            self._lingering.stop()


class JoinedWrites:
    """Transport of one response: sends the head and the first part of the body with one system call.

    They are joined if both are written in one turn of the event loop. A proxy written in Go can cut a response whose
    head arrives alone (caddyserver/caddy#5431). The proxy then closes the request body, and drops the connection if it
    still waits for the end of that body.
    """

    __slots__ = ("_close", "_head", "_loop", "_transport")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, close: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._close = close
        self._loop = loop
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        """Delay the first write until the second write or the next turn of the event loop."""
        if self._head is None:
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            head, self._head = self._head, b""
            self._transport.write(head + data if head else data)

    def is_closing(self) -> bool:
        """True if the connection is closing."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Write a delayed head, then close."""
        self._flush()
        self._close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)


def _refusal(status: int, body: bytes, correlation_id: str) -> bytes:
    """Return a response with the headers that the edge adds to every other one."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"date: {formatdate(usegmt=True)}",
        f"content-type: {MEDIA_TYPE}",
        f"content-length: {len(body)}",
        f"x-request-id: {correlation_id}",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "connection: close",
        *([f"retry-after: {CONNECTION_RETRY_S}"] if status == HTTPStatus.SERVICE_UNAVAILABLE else []),
    ]
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def _detect_dead_peer(transport: asyncio.Transport) -> None:
    """Configure the kernel to detect a dead peer, by keep-alive probes and by a time limit for unacknowledged data."""
    raw: socket.socket | None = transport.get_extra_info("socket")
    if raw is None or raw.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", PROBE_S), ("TCP_USER_TIMEOUT", _GONE_MS)):
        option = getattr(socket, name, None)
        if option is not None:  # not every system has the option
            raw.setsockopt(socket.IPPROTO_TCP, option, value)
