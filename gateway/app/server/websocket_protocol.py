"""Hardened WebSocket protocol: uvicorn's, with limits on what the event loop parses, buffers or writes for a peer.

uvicorn limits only the size of a message. This class also limits frames without content (each ping is answered, each
empty fragment is buffered) and the parsing time of one read. It disconnects a peer that sends frames before the
handshake has ended, and stops reading from a peer that does not read.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.server import ServerProtocol

from gateway.app.server.limits import DRAIN_S, FRAMES_PER_S, STALL_S
from gateway.app.server.stalled_reader import StalledReader
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.web.providers.limits import MAX_MESSAGE_BYTES

FRAMES_BURST: Final = 2000.0
_PARSE_CHUNK: Final = 4 * 1024
"""Limit on the bytes parsed at once: at most 700 frames, which take a few milliseconds."""
_FLOOD: Final = 1008


class HardenedWebSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection, without compression; the application sends its own heartbeats."""

    stall_s: float = STALL_S
    close_s: float = 2.0
    """Seconds for the peer's reply to a close frame."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = ServerProtocol(max_size=MAX_MESSAGE_BYTES, logger=self.logger)  # guard: websocket-plain
        self.ping_interval = None
        self.close_timeout = self.close_s
        self._unparsed = b""
        self._frames = TokenBuckets(rate=FRAMES_PER_S, burst=FRAMES_BURST, limit=1)
        self._stalled: StalledReader | None = None
        self._drain_timer: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        if self._stalled is not None:
            self._stalled.stop()
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the handshake at once and frames in parts; a peer that sends frames before the 101 is disconnected."""
        if self.transport.is_closing():
            return
        if not self.handshake_initiated:
            super().data_received(data)
            if not self.handshake_initiated:  # uvicorn leaves an invalid handshake unanswered
                self.transport.write(b"".join(self.conn.data_to_send()))
                self.transport.close()
        elif not self.handshake_complete:
            self.transport.abort()  # guard: websocket-early-frames
        else:
            self._unparsed += data
            self._parse()

    async def receive(self) -> Any:
        """Return the next event; parse further frames when the application has taken all messages."""
        event = await super().receive()
        if not self.read_paused:
            self._parse()
        return event

    async def send(self, message: Any) -> None:
        """Send one event; a refusal ends the handshake, which uvicorn would report as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def pause_writing(self) -> None:
        """Stop reading while the peer does not read, because each ping would add a pong to the buffer."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = StalledReader(self.transport, self.loop, seconds=self.stall_s)
        self._stalled.start()
        if not self.transport.is_closing():  # guard: websocket-unread-pongs
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.stop()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
            self._parse()

    def shutdown(self) -> None:
        """Give the application time to close the connection itself, after the calls in flight."""
        if self.handshake_complete and not self.close_sent:
            self._drain_timer = self.loop.call_later(DRAIN_S, super().shutdown)
        else:
            super().shutdown()

    def handle_ping(self) -> None:
        """Respond, within the rate of control frames."""
        super().handle_ping()
        self._spend()

    def handle_pong(self, event: Frame) -> None:
        """Ignore it, within the rate of control frames."""
        self._spend()

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment, within the rate of fragments."""
        super().handle_cont(event)
        self._spend()

    def _parse(self) -> None:
        """Parse until a message is complete; the rest waits until the application has taken it."""
        data, self._unparsed = self._unparsed, b""
        for start in range(0, len(data), _PARSE_CHUNK):
            if self.read_paused or self.transport.is_closing():
                self._unparsed = data[start:]
                return
            super().data_received(data[start : start + _PARSE_CHUNK])

    def _spend(self) -> None:
        if self._frames.take("") and not self.transport.is_closing():  # guard: websocket-frame-flood
            self.conn.fail(_FLOOD, "too many control frames or fragments")
            self.handle_parser_exception()
