"""Incremental parser of the server-sent events of a response (WHATWG HTML, section 9.2.6)."""

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

from gateway.cli.stdio.limits import MAX_MESSAGE_BYTES

_EVENT_ID = re.compile(rb"[!-~]([ -~]*[!-~])?")
"""Event ids that a `Last-Event-ID` header can contain; other ids are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One event. `data` is empty for an event that only sets the id; lines are joined by a space, as JSON allows."""

    data: bytes = b""
    id: str | None = None
    retry_s: float | None = None


class RemoteFailed(Exception):
    """The remote server sent an unusable response, or closed the connection too early."""


def too_large() -> RemoteFailed:
    """Return the exception for a message that exceeds `MAX_MESSAGE_BYTES`."""
    return RemoteFailed(f"a message of the server is larger than {MAX_MESSAGE_BYTES} bytes")


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerEvent]:
    """Yield the events; an incomplete event at the end of the stream is dropped.

    Raises:
        RemoteFailed: an event exceeds the limit.
    """
    fields: list[tuple[bytes, bytes]] = []
    size = 0
    async for line in _lines(chunks):
        size += len(line)
        if size > MAX_MESSAGE_BYTES:  # guard: stdio-event-bound
            raise too_large()
        if line:
            name, _, value = line.partition(b":")
            fields.append((name, value.removeprefix(b" ")))
        elif fields:
            yield _event(fields)
            fields, size = [], 0


def _event(fields: list[tuple[bytes, bytes]]) -> ServerEvent:
    found = dict(fields)
    retry = found.get(b"retry", b"")
    event_id = found.get(b"id", b"")
    return ServerEvent(
        data=b" ".join(value for name, value in fields if name == b"data"),
        id=event_id.decode() if _EVENT_ID.fullmatch(event_id) else None,
        retry_s=int(retry) / 1000 if retry.isdigit() and len(retry) < 10 else None,
    )


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines. Only LF, CR LF and CR separate lines."""
    buffer = bytearray()
    ended_with_cr = False
    async for chunk in chunks:
        piece = chunk.removeprefix(b"\n") if ended_with_cr else chunk
        ended_with_cr = chunk.endswith(b"\r")
        *ended, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in ended:
            yield bytes(buffer) + line
            buffer.clear()
        buffer += rest
        if len(buffer) > MAX_MESSAGE_BYTES:
            raise too_large()
