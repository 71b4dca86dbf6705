"""Reader of event-stream responses, which may never end. It keeps the events within the limits, and describes the cut.

A cut stream is truncated after its last complete event, if it has one.
"""

import re

from gateway.upstream.limits import MAX_EVENTS

MEDIA_TYPE = "text/event-stream"


_BOUNDARY = re.compile(rb"(?>\r\n|\n|\r){2}")
_MAX_BOUNDARY_LENGTH = 4
_AFTER_TYPE = frozenset(("", ";", " ", "\t"))


def is_event_stream(content_type: str) -> bool:
    """True if a response of this content type is an event stream."""
    length = len(MEDIA_TYPE)
    return content_type[:length].lower() == MEDIA_TYPE and content_type[length : length + 1] in _AFTER_TYPE


class EventStreamReader:
    """Buffer of the received part of one event stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()
        self._scanned = 0
        self._whole = 0
        self._count = 0

    def feed(self, piece: bytes) -> None:
        """Append the next chunk."""
        self._body += piece
        for found in _BOUNDARY.finditer(self._body, self._scanned, self._limit):
            if self._count == MAX_EVENTS or (found.end() == len(self._body) and piece.endswith(b"\r")):
                return  # the CR may be the first half of a CRLF
            self._count += 1
            self._whole = self._scanned = found.end()
        self._scanned = max(self._scanned, len(self._body) - _MAX_BOUNDARY_LENGTH + 1)

    @property
    def size(self) -> int:
        """Number of received bytes."""
        return len(self._body)

    @property
    def has_begun(self) -> bool:
        """True if any bytes arrived."""
        return bool(self._body)

    @property
    def is_full(self) -> bool:
        """True if a limit is reached, so that reading stops."""
        return self._count >= MAX_EVENTS or len(self._body) > self._limit  # guard: events-bounded

    def whole(self) -> bytes:
        """Return all received bytes."""
        return bytes(self._body)

    def begun(self) -> bytes:
        """Return the complete events; without any, the received part of the first event."""
        return bytes(self._body[: self._whole or self._limit])

    def describe(self, waited_s: float) -> str:
        """Return the reason for the cut, and the size of the received part."""
        if self._count >= MAX_EVENTS:
            return f"the stream of events is cut after {self._count:,} events"
        if len(self._body) > self._limit:
            return f"the stream of events is cut after {self._limit:,} bytes"
        return f"the stream of events did not end within {waited_s:g} seconds; {self._count:,} complete events arrived"
