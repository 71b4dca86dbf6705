"""Response sinks: JSON for a fast request that sends no message before its response, otherwise a stream.

The messages of a stream are stored before they are sent, so the client can resume the stream at any replica. The
connection is only one reader of the stream: it may be lost or ended early while the call continues.

The task that serves the request ends every wait. It also passes the response in memory, so the stream ends even if the
response could not be stored. If there is no response, `abandon` ends the stream, and its log with an error.
"""

import asyncio
import secrets
from enum import Enum, auto
from typing import Final, Protocol

import anyio
import structlog

from gateway.domain.fairness.cancel_scope import CancelScope
from gateway.domain.sessions import SessionRecord
from gateway.errors import RedisUnavailable
from gateway.protocol.http import sse_encoding
from gateway.protocol.http.jsonrpc import expired_error, replica_lost_error
from gateway.protocol.http.responses import Body, Headers, joined
from gateway.protocol.http.sse_encoding import FIRST_PRIMED, StreamPosition
from gateway.protocol.http.sse_streams import EventStream
from gateway.protocol.sessions.limits import MAX_MESSAGE_BYTES, REDIS_RETRY_S
from gateway.protocol.sessions.replay import RequestReplay
from gateway.redis.sessions.keys import STANDALONE
from gateway.redis.sessions.request_claims import RequestClaim
from gateway.redis.sessions.stores import SessionStores

log = structlog.get_logger(__name__)

SESSION_HEADER: Final = b"mcp-session-id"
_RETRIES = 60


class SinkState(Enum):
    """The states of a response."""

    PLAIN = auto()
    """The response will be JSON; the request id is known to this replica only."""
    CLAIMED = auto()
    """The request id is reserved across replicas."""
    STREAMING = auto()
    """The response is a stored stream, which reserves the request id."""
    REFUSED = auto()
    """Another running request has the request id."""
    OVER = auto()
    """The response was sent, or there will be none."""


class MessageSink(Protocol):
    """Receives the messages that a call sends before its response."""

    async def send(self, text: bytes, *, request_id: str = "") -> bool:
        """Send a message before the response; False if the client accepts no stream or the session has ended."""
        ...

    async def detach(self) -> None:
        """End the connection early if the client can resume the stream; otherwise do nothing."""
        ...


class ResponseSink(MessageSink, Protocol):
    """Receives the messages and the response of one request."""

    scope: CancelScope
    """The cancel scope of the work; the sink cancels it if another running request has the id."""
    state: SinkState

    async def claim(self) -> None:
        """Reserve the request id across replicas, so that no other request of the session uses it."""
        ...

    async def defer(self) -> None:
        """Switch the response to a stream if the client accepts one, so that the client can resume it."""
        ...

    async def respond(self, text: Body) -> None:
        """Send the response, or end without one if it is empty."""
        ...

    def abandon(self) -> None:
        """End the sink, with or without a response."""
        ...


class PostSink:
    """The sink of one POST in a session; without `may_stream`, the client receives only the response."""

    def __init__(
        self, record: SessionRecord, request_id: bytes, to: EventStream, stores: SessionStores, *, may_stream: bool
    ) -> None:
        self.scope = CancelScope()
        self._keys = stores.sessions.keys(record.tenant, record.id)
        self._request_id = request_id
        self._headers = session_headers(record)
        self._is_resumable = record.protocol_version >= FIRST_PRIMED
        self._may_stream = may_stream
        self._to = to
        self._name = ""
        self._logs = stores.logs
        self._claims = stores.claims
        self._spawn = stores.spawn
        self._retry_for_s = stores.idle_s
        self._order = asyncio.Lock()
        self.state = SinkState.PLAIN
        self._claim: RequestClaim | None = None
        self._sent_bytes = 0
        self._response: bytes | None = None
        """The response, once it was stored or storing it failed; None before."""
        self._sent = asyncio.Event()

    @property
    def _is_over(self) -> bool:
        return self.state is SinkState.OVER

    @property
    def _stream(self) -> str:
        """The name of the stream, chosen on first use because few requests have one."""
        if not self._name:
            self._name = f"r{secrets.token_urlsafe(12)}"
        return self._name

    async def claim(self) -> None:
        """Reserve the request id across replicas, so that no other request of the session uses it."""
        async with self._order:
            if self.state is not SinkState.PLAIN:
                return
            self._claim = self._claims.of(self._keys, self._stream, self._request_id)
            if not await self._claim.acquire():
                self._refuse()
            elif self._is_over:  # the call was cancelled during the wait
                self._claim.unregister()
            else:
                self.state = SinkState.CLAIMED

    async def defer(self) -> None:
        """Switch the response to a stream if the client accepts one, so that the client can resume it."""
        try:
            await self._open()
        except RedisUnavailable:
            log.warning("stream_not_opened")  # the response stays JSON

    async def send(self, text: bytes, *, request_id: str = "") -> bool:
        """Store a message and send it on the stream, which the first message opens.

        Messages beyond `MAX_MESSAGE_BYTES` of one call are dropped, except requests to the client.

        Raises:
            RedisUnavailable: the message may not have been stored.
        """
        if not await self._open():
            return False
        self._sent_bytes += len(text)
        if self._sent_bytes > MAX_MESSAGE_BYTES and not request_id:
            log.warning("message_dropped", message=self._sent_bytes)
            return True
        added = await self._logs.append(self._keys, self._stream, text, request_id=request_id)
        self._to.wake()
        return added is not None

    async def detach(self) -> None:
        """End the connection, but not the stream, if the client can resume it."""
        if self._is_resumable and await self._open():
            self._to.end()

    async def respond(self, text: Body) -> None:
        """Send the response; returns once it was sent or the client has disconnected. An empty text sends no
        response.
        """
        async with self._order:
            if self.state is not SinkState.STREAMING:
                self.state = SinkState.OVER
                if self._claim is not None:
                    # released before the response, because the client may reuse the id as soon as
                    # it has the response
                    await self._claim.release()
                await self._respond_json(text)
                return
        await self._store(joined(text))
        self._to.wake()
        await self._sent.wait()

    def abandon(self) -> None:
        """End the sink; an open stream without a response gets an error as its final message."""
        was_streaming, self.state = self.state is SinkState.STREAMING, SinkState.OVER
        if self._claim is not None:
            self._claim.unregister()
        if was_streaming:
            if self._response is None:
                self._end_stream()
            self._to.end()

    def _end_stream(self) -> None:
        """Store an error as the final message, for a client that resumes after a call without a response."""
        self._response = replica_lost_error(self._request_id)
        self._spawn(self._retry_store, self._response)

    async def _respond_json(self, text: Body) -> None:
        """Send the response as JSON; for an empty one, a stream without events or 202. HTTP requires a response."""
        if text:
            await self._to.answer(text, self._headers)
        elif self._may_stream:
            await self._to.begin(self._headers)
            await self._to.finish()
        else:
            await self._to.acknowledge(self._headers)

    def _refuse(self) -> None:
        self.state = SinkState.REFUSED
        self.scope.cancel()

    async def _open(self) -> bool:
        async with self._order:
            if self.state not in {SinkState.PLAIN, SinkState.CLAIMED} or not self._may_stream:
                return self.state is SinkState.STREAMING
            opened = await self._logs.open(self._keys, self._stream, self._request_id)
            if not opened:
                if opened is not None:
                    self._refuse()
                return False
            self._claim = None  # the stream reserves the id from now on
            if self._is_over:  # the call was cancelled during the wait
                self._end_stream()
            else:
                self.state = SinkState.STREAMING
                self._spawn(self._start_stream, opened)
            return True

    async def _start_stream(self, first: str) -> None:
        tail = RequestReplay(logs=self._logs, keys=self._keys, stream=self._stream, answer=lambda: self._response)
        try:
            await self._to.begin(self._headers)
            if self._is_resumable:
                await self._to.write(sse_encoding.priming_event(str(StreamPosition(self._stream, first))))
            await tail.follow(self._to, first)
            await self._to.finish()
        finally:
            self._sent.set()

    async def _store(self, text: bytes) -> None:
        """Store the response; if that fails it is sent anyway, and stored later."""
        try:
            await self._logs.append(self._keys, self._stream, text, is_final=True)
        except RedisUnavailable:
            self._spawn(self._retry_store, text)
        finally:
            self._response = text

    async def _retry_store(self, text: bytes) -> None:
        """Store the response once Redis is available, with retries for the idle time of a session.

        After a minute only an error that ends the stream is stored: responses are large, and the client may never
        resume.
        """
        for attempt in range(self._retry_for_s):
            if attempt == _RETRIES:
                log.error("answer_not_kept", stream=self._stream)
                text = self._response = expired_error(self._request_id)
            try:
                await self._logs.append(self._keys, self._stream, text, is_final=True)
            except RedisUnavailable:
                await anyio.sleep(REDIS_RETRY_S)
                continue
            return


class SseSink:
    """The sink of HTTP+SSE (2024-11-05): messages and the response go to the standalone stream of the session."""

    def __init__(self, record: SessionRecord, request_id: bytes, stores: SessionStores) -> None:
        self.scope = CancelScope()
        self._logs = stores.logs
        self._keys = stores.sessions.keys(record.tenant, record.id)
        self._claim = stores.claims.of(self._keys, f"o{secrets.token_urlsafe(12)}", request_id)
        self._order = asyncio.Lock()
        self.state = SinkState.PLAIN

    @property
    def _is_over(self) -> bool:
        return self.state is SinkState.OVER

    async def claim(self) -> None:
        """Reserve the request id across replicas, so that no other request of the session uses it."""
        async with self._order:
            if self._is_over:
                return
            if not await self._claim.acquire():
                self.state = SinkState.REFUSED
                self.scope.cancel()
            elif self._is_over:  # the call was cancelled during the wait
                self._claim.unregister()

    async def defer(self) -> None:
        """Do nothing, because the response goes to a stream anyway."""

    async def send(self, text: bytes, *, request_id: str = "") -> bool:
        """Store a message, which the session's stream then sends; False if the session has ended.

        Raises:
            RedisUnavailable: the message may not have been stored.
        """
        return await self._logs.append(self._keys, STANDALONE, text, request_id=request_id) is not None

    async def detach(self) -> None:
        """Do nothing, because the stream cannot be resumed."""

    async def respond(self, text: Body) -> None:
        """Store the response unless it is empty, with retries for a minute while Redis is unavailable."""
        async with self._order:
            self.state = SinkState.OVER
            await self._claim.release()
        if not text:
            return
        for _ in range(_RETRIES):
            try:
                await self.send(joined(text))
            except RedisUnavailable:
                await anyio.sleep(REDIS_RETRY_S)
                continue
            return
        log.error("answer_not_kept", stream=STANDALONE)

    def abandon(self) -> None:
        """End the sink and release its claim."""
        self.state = SinkState.OVER
        self._claim.unregister()


def session_headers(record: SessionRecord) -> Headers:
    """The headers of a response in the session."""
    return ((SESSION_HEADER, record.id.encode()),)
