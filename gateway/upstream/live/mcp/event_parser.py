"""Incremental parser of server-sent events (HTML Living Standard, section 9.2.6), with a limit on each event."""

import re
from typing import NamedTuple

from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.mcp.limits import (
    MAX_EVENT_ID_LENGTH,
    MAX_MESSAGE_BYTES,
    MAX_OVERHEAD_BYTES,
    MAX_RETRY_DIGITS,
)

_BOUNDARY = re.compile(rb"(?>\r\n|\n|\r){2}")
_MAX_BOUNDARY_LENGTH = 4
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event; `retry_s` is the reconnection time of its `retry` field."""

    kind: str
    data: bytes
    id: str | None = None
    retry_s: float | None = None


class EventParser:
    """Parser of one stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._scanned = 0

    @property
    def size(self) -> int:
        """Number of bytes of the incomplete event."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> list[Event]:
        """Add a chunk, and return the completed events, without comments and empty blocks.

        Raises:
            LiveSourceFailed: an event exceeds the limit.
        """
        buffer, start = self._buffer, 0
        buffer += piece
        events: list[Event] = []
        for found in _BOUNDARY.finditer(buffer, self._scanned):
            if found.end() == len(buffer) and buffer.endswith(b"\r"):
                break  # the CR may be the first half of a CRLF
            event = _read_event(bytes(buffer[start : found.start()]))
            start = found.end()
            if event is not None:
                events.append(event)
        del buffer[:start]
        self._scanned = max(0, len(buffer) - _MAX_BOUNDARY_LENGTH + 1)
        if len(buffer) > MAX_MESSAGE_BYTES + MAX_OVERHEAD_BYTES:  # guard: live-event-size
            raise LiveSourceFailed(f"the server sent an event of more than {MAX_MESSAGE_BYTES:,} bytes")
        return events


def _read_event(block: bytes) -> Event | None:
    kind, identifier, retry_s, data = "message", None, None, list[bytes]()
    for line in block.removeprefix(_BOM).splitlines():
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                data.append(value)
            case b"event":
                kind = value.decode("ascii", "replace")
            case b"id" if value.isascii() and len(value) <= MAX_EVENT_ID_LENGTH and value.decode().isprintable():
                identifier = value.decode()
            case b"retry" if value.isdigit() and len(value) <= MAX_RETRY_DIGITS:
                retry_s = int(value) / 1000
            case _:
                pass
    if not data and identifier is None and retry_s is None:
        return None
    return Event(kind, b"\n".join(data), identifier, retry_s)
