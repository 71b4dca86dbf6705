"""Server-sent events as this gateway writes them, and the ids by which a client names its place in a stream.

An id names the stream and the place in it: `r…/PLACE` for the stream of one request, `g/PLACE/REVISION` for the one
that belongs to none, where it also says up to which revision of the catalog the client was told. What follows the
revision (`~`, the token of the stream's reader, a letter) only keeps ids apart.
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
PING: Final = b": ping\n\n"
RETRY_MS: Final = 500

_ID = re.compile(r"(g|r[A-Za-z0-9_-]{8,32})/(\d{1,18}-\d{1,18})(?:/(\d{1,18})(?:[a-z]|~[a-z0-9]+)?)?")
_LINE_ENDS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""What is no end of a line in this format but is taken for one by some clients; in JSON they stand only in strings."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Where in which stream a client is."""

    stream: str
    after: str
    revision: int | None = None

    @property
    def is_standalone(self) -> bool:
        """Whether it is in the stream that belongs to no request."""
        return self.stream == STANDALONE

    def __str__(self) -> str:
        return f"{self.stream}/{self.after}" + ("" if self.revision is None else f"/{self.revision}")


def parse_last_event_id(last_event_id: str) -> StreamPosition:
    """The place that a `Last-Event-ID` names.

    Raises:
        BadInput: it is none of ours.
    """
    match = _ID.fullmatch(last_event_id)
    if match is None or (match[3] is None) != (match[1] != STANDALONE):
        raise BadInput("Last-Event-ID is none of this session")
    return StreamPosition(match[1], match[2], None if match[3] is None else int(match[3]))


def event(text: bytes, event_id: str | None = None) -> bytes:
    """One message; it is one line of JSON."""
    for raw, escaped in _LINE_ENDS:
        if raw in text:
            text = text.replace(raw, escaped)
    name = b"" if event_id is None else b"id: " + event_id.encode() + b"\n"
    return name + b"event: message\ndata: " + text + b"\n\n"


def priming_event(event_id: str) -> bytes:
    """An event without content, which tells a client its place before anything happens (2025-11-25)."""
    return b"id: " + event_id.encode() + b"\nretry: " + str(RETRY_MS).encode() + b"\ndata: \n\n"


def endpoint_event(path: str) -> bytes:
    """Where to send messages to (2024-11-05)."""
    return b"event: endpoint\ndata: " + path.encode() + b"\n\n"
