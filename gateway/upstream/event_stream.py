"""Reader of event-stream responses, which may never end: keeps the events within the limits, and describes the cut.

The kept part of a cut stream ends with a complete event if there is one.
"""

import re

MEDIA_TYPE = "text/event-stream"

MAX_EVENTS = 10_000
"""Limit on the events that are read of one response."""

_BOUNDARY = re.compile(rb"(?>\r\n|\n|\r){2}")
_MAX_BOUNDARY_LENGTH = 4
_AFTER_TYPE = frozenset(("", ";", " ", "\t"))


def is_event_stream(content_type: str) -> bool:
    """True if a response of this content type is an event stream."""
    length = len(MEDIA_TYPE)
    return content_type[:length].lower() == MEDIA_TYPE and content_type[length : length + 1] in _AFTER_TYPE


class EventStreamReader:
    """One event stream, as far as it was read within bounds."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()
        self._scanned = 0
        self._whole = 0
        self._count = 0

    def feed(self, piece: bytes) -> None:
        """Append the next bytes."""
        self._body += piece
        for found in _BOUNDARY.finditer(self._body, self._scanned, self._limit):
            if self._count == MAX_EVENTS or (found.end() == len(self._body) and piece.endswith(b"\r")):
                return  # a line feed may follow
            self._count += 1
            self._whole = self._scanned = found.end()
        self._scanned = max(self._scanned, len(self._body) - _MAX_BOUNDARY_LENGTH + 1)

    @property
    def has_begun(self) -> bool:
        """True if any bytes arrived."""
        return bool(self._body)

    @property
    def is_full(self) -> bool:
        """True if a limit is reached, so that reading stops."""
        return self._count >= MAX_EVENTS or len(self._body) > self._limit  # guard: events-bounded

    def whole(self) -> bytes:
        """All bytes that were read."""
        return bytes(self._body)

    def begun(self) -> bytes:
        """The complete events; without any, the received part of the first event."""
        return bytes(self._body[: self._whole or self._limit])

    def describe(self, waited_s: float) -> str:
        """Describe what is missing, and why."""
        if self._count >= MAX_EVENTS:
            return f"the stream of events is cut after {self._count:,} events"
        if len(self._body) > self._limit:
            return f"the stream of events is cut after {self._limit:,} bytes"
        return f"the stream of events did not end within {waited_s:g} seconds; {self._count:,} complete events arrived"
