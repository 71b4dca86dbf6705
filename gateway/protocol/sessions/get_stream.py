"""The streams that a client of a session opens by itself: the one of no request, and any that it comes back to."""

from dataclasses import dataclass
from typing import Final

import anyio
from starlette.types import Receive, Send

from gateway.domain.sessions import SessionRecord
from gateway.errors import LimitExceeded, NotFound
from gateway.protocol.http import sse
from gateway.protocol.http.event_streams import Stream, Streams
from gateway.protocol.http.responses import Headers, answer
from gateway.protocol.http.sse import Place
from gateway.protocol.methods.list_change_debouncer import Catalogs
from gateway.protocol.request_context import Exchange
from gateway.protocol.sessions.replay import RequestTail, StandaloneTail
from gateway.redis.sessions.keys import STANDALONE
from gateway.redis.sessions.stores import Backing

FIRST_PRIMED: Final = "2025-11-25"
"""The first revision with events that have no content."""

_ATTEMPTS = 10
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A client that wants a stream, and the response that becomes one."""

    record: SessionRecord
    exchange: Exchange
    receive: Receive
    send: Send
    headers: Headers = ()
    greeting: bytes = b""
    """What is sent before anything else."""


class Listening:
    """Serves streams until they end or their client is gone."""

    def __init__(self, backing: Backing, streams: Streams, catalogs: Catalogs, *, ping_s: float) -> None:
        self._ping_s = ping_s
        self._backing = backing
        self._streams = streams
        self._catalogs = catalogs

    async def stand_alone(self, visit: Visit, place: Place | None = None) -> None:
        """The stream that belongs to no request; whoever opens it last reads it.

        Raises:
            LimitExceeded: too many streams are open.
            NotFound: the session has ended.
        """
        record = visit.record
        keys = self._backing.sessions.keys(record.tenant, record.id)
        greeted = await self._backing.logs.greet(keys)
        if greeted is None:
            raise NotFound("session not found")
        reader, read = greeted
        after = read if place is None else place.after
        told = record.revision if place is None or place.revision is None else place.revision
        stream = await self._open(visit)
        try:
            async with self._backing.bus.hearing(keys.wake, stream.wake):
                await self._send_alone(stream, visit, Place(STANDALONE, after, told), reader)
        finally:
            await self._streams.close(stream)

    async def _send_alone(self, stream: Stream, visit: Visit, place: Place, reader: str) -> None:
        record, registry = visit.record, visit.exchange.registry
        tail = StandaloneTail(stream, self._backing, record, registry, self._catalogs.is_current, ping_s=self._ping_s)
        leave = self._catalogs.subscribe(registry, tail.hear)
        try:
            await stream.begin(visit.headers)
            is_primed = record.protocol_version >= FIRST_PRIMED and record.transport == "http"
            await stream.write(visit.greeting + (sse.priming(f"{place}~{reader}") if is_primed else b""))
            told = 0 if self._catalogs.has_new_code else place.revision or 0  # perhaps while there was no stream
            await tail.follow(place.after, told, reader=reader)
        finally:
            leave()
        await stream.finish()

    async def come_back(self, visit: Visit, place: Place) -> None:
        """The rest of a request's stream; 204 when there is none, which ends a client's attempts to come back.

        Raises:
            LimitExceeded: too many streams are open.
            RedisUnavailable: what is left is not known.
        """
        record, logs = visit.record, self._backing.logs
        keys = self._backing.sessions.keys(record.tenant, record.id)
        run = await logs.find_run(keys, place.stream)
        tail = RequestTail(logs=logs, keys=keys, stream=place.stream, run=run)
        if run is None or await tail.is_spent(place.after):
            await answer(visit.send, 204, headers=visit.headers)
            return
        stream = await self._open(visit)
        try:
            async with self._backing.bus.hearing(keys.wake, stream.wake):
                await stream.begin(visit.headers)
                await tail.follow(stream, place.after)
                await stream.finish()
        finally:
            await self._streams.close(stream)

    async def _open(self, visit: Visit) -> Stream:
        """A stream; the one that it replaces may take a moment to give up its place."""
        principal = visit.exchange.principal
        cap = visit.exchange.registry.view.snapshot.policy.limits.streams
        for _ in range(_ATTEMPTS):
            try:
                return await self._streams.open(visit.send, visit.receive, principal, cap=cap)
            except LimitExceeded:
                await anyio.sleep(_PAUSE_S)
        return await self._streams.open(visit.send, visit.receive, principal, cap=cap)
