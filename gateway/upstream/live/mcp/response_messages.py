"""Reader of the messages of one HTTP response: a JSON body, or an event stream that is resumed if it ends early."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import UpstreamUnreachable
from gateway.upstream.event_stream import is_event_stream
from gateway.upstream.limits import SMALL_BODY_BYTES
from gateway.upstream.live.mcp.endpoint import AuthorizedEndpoint
from gateway.upstream.live.mcp.event_parser import EventParser
from gateway.upstream.live.mcp.limits import (
    MAX_MESSAGE_BYTES,
    MAX_MESSAGES,
    MAX_RESUME_S,
    MAX_RESUMED,
    MIN_RESUME_S,
    RESUME_S,
)
from gateway.upstream.live.mcp.messages import InvalidMessage, Message, parse_message
from gateway.upstream.response_stream import ResponseStream

Resume = Callable[[str], Awaitable[ResponseStream]]
"""Resumes the event stream after the event with this id."""

_JSON = "application/json"


class ResponseMessages:
    """Reads the messages of a response in order; leaving the block closes the response."""

    def __init__(self, endpoint: AuthorizedEndpoint, stream: ResponseStream, resume: Resume | None = None) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self._open = ExitStack()
        self._resume = resume
        self._parser: EventParser | None = None
        self._room = endpoint.open_room()
        self._ready: deque[bytes] = deque()
        self._count = self._resumed = 0
        self._last_id: str | None = None
        self._retry_s = RESUME_S
        self._has_ended = False
        kind = stream.field(b"content-type") or ""
        if is_event_stream(kind):
            self._parser = EventParser()
        elif not kind.lower().startswith(_JSON):
            with stream:  # an unread response ends its connection
                raise LiveSourceFailed("the server's response is neither JSON nor a stream of events")
        self._open.enter_context(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)
        self._room.release()

    async def read(self) -> Message | None:
        """Return the next message, or None at the end.

        Raises:
            LiveSourceFailed: a message is invalid or too large, or there are too many.
            ResultBusy: there was no room for a large message in time.
            UpstreamError: the response was cut short, and could not be resumed.
        """
        while not self._ready:
            if self._has_ended:
                return None
            await self._fill()
        self._count += 1
        if self._count > MAX_MESSAGES:  # guard: live-message-count
            raise LiveSourceFailed(f"the server sent more than {MAX_MESSAGES:,} messages in one response")
        try:
            return await parse_message(self._endpoint.tenant, await self._endpoint.redact(self._ready.popleft()))
        # Room is for the response, not for a message: it stays taken while parsed messages wait.
        finally:
            if not self._ready:
                self._room.release()

    async def read_valid(self, skipped: Callable[[str], None]) -> Message | None:
        """Return the next message; invalid ones are passed to `skipped` as the reason."""
        while True:
            try:
                return await self.read()
            except InvalidMessage as fault:
                skipped(fault.message)

    async def _fill(self) -> None:
        if self._parser is None:
            self._has_ended = True
            if raw := await self._read_body():
                self._ready.append(raw)
            return
        try:
            piece = await self._stream.read()
        except UpstreamUnreachable:
            if self._last_id is None or self._resume is None:
                raise
            piece = b""
        if not piece:
            await self._open_next()
            return
        events = self._parser.feed(piece)
        # Before the events are kept: an unfinished event counts too, and it is the one that grows.
        await self._admit(self._parser.size)
        for event in events:
            self._last_id = event.id or self._last_id
            if event.retry_s is not None:
                self._retry_s = min(max(event.retry_s, MIN_RESUME_S), MAX_RESUME_S)
            if event.data and event.kind == "message":
                self._ready.append(event.data)

    async def _read_body(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while piece := await self._stream.read():
            pieces.append(piece)
            size += len(piece)
            await self._admit(size)
        return b"".join(pieces)

    async def _admit(self, size: int) -> None:
        """Wait for room once a message is no longer small; it is held until the message is parsed."""
        if size > SMALL_BODY_BYTES and not self._room.is_taken:  # guard: large-live-messages-wait
            await self._room.take(MAX_MESSAGE_BYTES)

    async def _open_next(self) -> None:
        """Resume a stream that ended before its response (MCP 2025-11-25, Streamable HTTP, resumability)."""
        if self._resume is None or self._last_id is None or self._resumed >= MAX_RESUMED:
            self._has_ended = True
            return
        self._resumed += 1
        # The connection goes back to the pool before the pause, so that a slow server holds none while it rests.
        self._open.close()
        await asyncio.sleep(self._retry_s)
        self._stream = self._open.enter_context(await self._resume(self._last_id))
        self._parser = EventParser()
