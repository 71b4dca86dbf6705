"""The streams that a session's client opens with GET: the standalone stream, and request streams that it resumes."""

from dataclasses import dataclass

import anyio

from gateway.domain.sessions import SessionRecord
from gateway.errors import LimitExceeded, NotFound
from gateway.protocol.http import sse_encoding
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import Headers
from gateway.protocol.http.sse_encoding import FIRST_PRIMED, StreamPosition
from gateway.protocol.http.sse_streams import EventStream, OpenStreams
from gateway.protocol.methods.list_change_debouncer import CatalogSubscriptions
from gateway.protocol.request_context import RequestContext
from gateway.protocol.sessions.limits import SLOT_PAUSE_S
from gateway.protocol.sessions.replay import RequestReplay, StandaloneReplay
from gateway.redis.sessions.keys import STANDALONE
from gateway.redis.sessions.stores import SessionStores

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """A client's request for a stream, and the start of the response."""

    request: McpRequest
    record: SessionRecord
    context: RequestContext
    headers: Headers = ()
    greeting: bytes = b""
    """Bytes that are sent before any event."""


class GetStreams:
    """Serves streams until they end or their client disconnects."""

    def __init__(
        self, stores: SessionStores, streams: OpenStreams, catalogs: CatalogSubscriptions, *, ping_s: float
    ) -> None:
        self._ping_s = ping_s
        self._stores = stores
        self._streams = streams
        self._catalogs = catalogs

    async def serve_standalone(self, stream_request: StreamRequest, position: StreamPosition | None = None) -> None:
        """Serve the standalone stream, which belongs to no request; the newest connection is its only reader.

        Raises:
            LimitExceeded: too many streams are open.
            NotFound: the session has ended.
            Unavailable: Redis is unavailable, or this replica is shutting down.
        """
        record = stream_request.record
        keys = self._stores.sessions.keys(record.tenant, record.id)
        greeted = await self._stores.logs.take_over(keys)
        if greeted is None:
            raise NotFound("session not found")
        reader, read = greeted
        after = read if position is None else position.after
        revision = record.revision if position is None or position.revision is None else position.revision
        stream = await self._open(stream_request)
        try:
            async with self._stores.bus.listening(keys.wake, stream.wake):
                await self._send_alone(stream, stream_request, StreamPosition(STANDALONE, after, revision), reader)
        finally:
            await self._streams.close(stream)

    async def _send_alone(
        self, stream: EventStream, stream_request: StreamRequest, position: StreamPosition, reader: str
    ) -> None:
        record, registry = stream_request.record, stream_request.context.registry
        tail = StandaloneReplay(
            stream, self._stores, record, registry, is_current=self._catalogs.is_current, ping_s=self._ping_s
        )
        leave = self._catalogs.subscribe(registry, tail.on_catalog_change)
        try:
            await stream.begin(stream_request.headers)
            is_primed = record.protocol_version >= FIRST_PRIMED and record.transport == "http"
            await stream.write(
                stream_request.greeting + (sse_encoding.priming_event(f"{position}~{reader}") if is_primed else b"")
            )
            revision = (
                0 if self._catalogs.has_new_code else position.revision or 0
            )  # code may have changed before the stream
            await tail.follow(position.after, revision, reader=reader)
        finally:
            leave()
        await stream.finish()

    async def resume(self, stream_request: StreamRequest, position: StreamPosition) -> None:
        """Serve the remaining events of a request's stream; respond 204 if none can follow, so that the client stops.

        Raises:
            LimitExceeded: too many streams are open.
            Unavailable: Redis is unavailable, or this replica is shutting down.
        """
        record, logs = stream_request.record, self._stores.logs
        keys = self._stores.sessions.keys(record.tenant, record.id)
        run = await logs.find_owner(keys, position.stream)
        tail = RequestReplay(logs=logs, keys=keys, stream=position.stream, run=run)
        if run is None or await tail.is_spent(position.after):
            await stream_request.request.respond(204, headers=stream_request.headers)
            return
        stream = await self._open(stream_request)
        try:
            async with self._stores.bus.listening(keys.wake, stream.wake):
                await stream.begin(stream_request.headers)
                await tail.follow(stream, position.after)
                await stream.finish()
        finally:
            await self._streams.close(stream)

    async def _open(self, stream_request: StreamRequest) -> EventStream:
        """Open a stream, with retries for 1 s: the stream that it replaces may be slow to release its slot."""
        request, principal = stream_request.request, stream_request.context.principal
        cap = stream_request.context.registry.view.snapshot.policy.limits.streams
        for _ in range(_ATTEMPTS):
            try:
                return await self._streams.open(request.send, request.receive, principal, cap=cap)
            except LimitExceeded:
                await anyio.sleep(SLOT_PAUSE_S)
        return await self._streams.open(request.send, request.receive, principal, cap=cap)
