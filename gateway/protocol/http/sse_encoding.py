"""Server-sent events, and the event ids by which a client names its position in a stream.

An id names the stream and the position in it: `r…/PLACE` for the stream of one request, `g/PLACE/REVISION` for the
standalone stream. REVISION is the last revision of the catalog whose changes the client was notified of. The suffix
(`~`, the token of the stream's reader, a letter) only keeps ids distinct.
"""

import re
from dataclasses import dataclass
from typing import Final

from gateway.errors import BadInput
from gateway.protocol.http.responses import Headers
from gateway.redis.sessions.keys import STANDALONE

MEDIA_TYPE: Final = "text/event-stream"
HEADERS: Final[Headers] = (
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
FIRST_PRIMED: Final = "2025-11-25"
"""The first revision with priming events, which give a client its position before the first message."""

PING: Final = b": ping\n\n"
RETRY_MS: Final = 500

_ID = re.compile(r"(g|r[A-Za-z0-9_-]{8,32})/(\d{1,18}-\d{1,18})(?:/(\d{1,18})(?:[a-z]|~[a-z0-9]+)?)?")
_LINE_ENDS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""Characters that some clients mistake for line ends, with their escapes; in JSON they occur only in strings."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A client's position in one stream."""

    stream: str
    after: str
    revision: int | None = None

    @property
    def is_standalone(self) -> bool:
        """True if the stream is the standalone one, which belongs to no request."""
        return self.stream == STANDALONE

    def __str__(self) -> str:
        return f"{self.stream}/{self.after}" + ("" if self.revision is None else f"/{self.revision}")


def parse_last_event_id(last_event_id: str) -> StreamPosition:
    """Parse the position from a `Last-Event-ID`.

    Raises:
        BadInput: the id does not have the form of a gateway's event id.
    """
    match = _ID.fullmatch(last_event_id)
    if match is None or (match[3] is None) != (match[1] != STANDALONE):
        raise BadInput("Last-Event-ID does not belong to this session")
    return StreamPosition(match[1], match[2], None if match[3] is None else int(match[3]))


def event(text: bytes, event_id: str | None = None) -> bytes:
    """Encode one message, which is one line of JSON, as an event."""
    for raw, escaped in _LINE_ENDS:
        if raw in text:
            text = text.replace(raw, escaped)
    name = b"" if event_id is None else b"id: " + event_id.encode() + b"\n"
    return name + b"event: message\ndata: " + text + b"\n\n"


def priming_event(event_id: str) -> bytes:
    """Encode an event without content, which gives the client its position."""
    return b"id: " + event_id.encode() + b"\nretry: " + str(RETRY_MS).encode() + b"\ndata: \n\n"


def endpoint_event(path: str) -> bytes:
    """Encode the event with the URL for the client's messages (2024-11-05)."""
    return b"event: endpoint\ndata: " + path.encode() + b"\n\n"
