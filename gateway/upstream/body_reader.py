"""Reader of response bodies: within limits of size and time, and for large bodies within the room of the replica."""

import asyncio

from gateway.errors import UpstreamAnswerBroken, UpstreamAnswerTooLarge
from gateway.upstream.body_room import BodyRoom
from gateway.upstream.decompression import Inflater, open_inflater
from gateway.upstream.event_stream import EventStreamReader, is_event_stream
from gateway.upstream.http.response import Response
from gateway.upstream.limits import BODY_IDLE_S, SMALL_BODY_BYTES
from gateway.upstream.ongoing_call import OngoingCall


class BodyReader:
    """Reads the bodies of responses. Between two pieces of a body at most min(10 s, `first_byte_s`) may pass.

    `stream_s` bounds the reading of an event stream, which ends two ticks before the deadline of its call.
    """

    def __init__(self, rooms: BodyRoom, *, first_byte_s: float, stream_s: float, tick_s: float) -> None:
        self._rooms = rooms
        self._idle_s = min(BODY_IDLE_S, first_byte_s)
        self._stream_s = stream_s
        self._tick_s = tick_s

    async def read(self, response: Response, call: OngoingCall) -> tuple[bytes, str | None]:
        """Return the body and, if an event stream was cut, a description of the missing part.

        Raises:
            UpstreamAnswerTooLarge, UpstreamAnswerBroken, ResultBusy: the body cannot be read.
        """
        if not 200 <= response.status <= 599:
            raise UpstreamAnswerBroken("The upstream's response has an invalid status.")
        if response.has_no_body:
            return b"", None
        declared = response.content_length
        if declared is not None and declared > call.limit:  # guard: answer-limit-declared
            raise _too_large()
        if response.at_eof():
            return b"", None
        encodings = response.field(b"content-encoding")
        inflater = None if encodings is None else open_inflater((encodings,), limit=call.limit)
        if declared is None and is_event_stream(response.field(b"content-type") or ""):
            return await self._read_events(response, call, inflater)
        if inflater is None:
            if response.has_ended and response.size <= call.limit:
                return response.take(), None
            if declared is not None and declared > SMALL_BODY_BYTES:  # guard: large-bodies-wait
                await call.admit_body(self._rooms, declared)
            return await self._read_plain(response, call), None
        return await self._read_encoded(response, call, inflater), None

    async def _read_events(
        self, response: Response, call: OngoingCall, inflater: Inflater | None
    ) -> tuple[bytes, str | None]:
        """Read the events that arrive within the bounds; the connection of a cut stream is closed."""
        events, now = EventStreamReader(call.limit), asyncio.get_running_loop().time()
        until = min(now + self._stream_s, call.deadline.last - 2 * self._tick_s)
        call.deadline.allow(call.deadline.last)
        try:
            async with asyncio.timeout_at(until):
                while not response.at_eof() and not events.is_full:
                    piece = await response.readany()
                    events.feed(piece if inflater is None else _inflated(inflater, piece))
                    await self._admit_counted(call, events.size)
        except TimeoutError:
            if not events.has_begun:
                raise
        if not response.at_eof() or events.is_full:
            response.close()
            return events.begun(), events.describe(until - now)
        if inflater is not None:
            events.feed(inflater.finish())
        return events.whole(), None

    async def _read_plain(self, response: Response, call: OngoingCall) -> bytes:
        piece = await self._next_piece(response, call)
        if response.at_eof() and len(piece) <= call.limit:
            return piece
        whole = bytearray(piece)
        while len(whole) <= call.limit:  # guard: answer-limit-counted
            if response.at_eof():
                return bytes(whole)
            await self._admit_counted(call, len(whole))
            whole += await self._next_piece(response, call)
        raise _too_large()

    async def _read_encoded(self, response: Response, call: OngoingCall, inflater: Inflater) -> bytes:
        while not response.at_eof():
            inflater.feed(await self._next_piece(response, call))
            await self._admit_counted(call, inflater.size)
            await asyncio.sleep(0)  # decompression of a small chunk may be slow: yield to other tasks
        return inflater.finish()

    async def _admit_counted(self, call: OngoingCall, size: int) -> None:
        """Wait for room for the largest possible body once a body of unknown size is no longer small."""
        if size > SMALL_BODY_BYTES:  # guard: large-bodies-of-unknown-size-wait
            await call.admit_body(self._rooms, call.limit)

    async def _next_piece(self, response: Response, call: OngoingCall) -> bytes:
        call.deadline.allow(asyncio.get_running_loop().time() + self._idle_s)
        return await response.readany()


def _inflated(inflater: Inflater, piece: bytes) -> bytes:
    inflater.feed(piece)
    return inflater.take()


def _too_large() -> UpstreamAnswerTooLarge:
    return UpstreamAnswerTooLarge("The upstream's response is larger than a result may be.")
