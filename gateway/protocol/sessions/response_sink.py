"""Response sinks: JSON for a fast request that sends no message before its response, otherwise a stream.

The messages of a stream are stored before they are sent, so the client can resume the stream at any replica. The
connection is only one reader of the stream: it may break or be ended early while the call continues.

The task that serves the request ends every wait. It also passes the response in memory, so the stream ends even if the
response could not be stored. If there was no response, `abandon` ends the stream, and its log with an error.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Protocol

import anyio
import msgspec
import structlog

from gateway.errors import RedisUnavailable
from gateway.protocol.http import sse_encoding
from gateway.protocol.http.jsonrpc import expired_error, replica_lost_error
from gateway.protocol.http.responses import Headers
from gateway.protocol.http.sse_encoding import StreamPosition
from gateway.protocol.http.sse_streams import EventStream
from gateway.protocol.sessions.replay import RequestReplay
from gateway.redis.sessions.keys import STANDALONE, SessionKeys
from gateway.redis.sessions.request_claims import RequestClaim
from gateway.redis.sessions.stores import SessionStores

log = structlog.get_logger(__name__)

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_RETRIES = 60
_RETRY_S = 1.0


class ResponseSink(Protocol):
    """The messages and the response of one call."""

    async def send(self, text: bytes, *, question: str = "") -> bool:
        """Send a message before the response; False if the client accepts no stream or the session has ended."""
        ...

    async def detach(self) -> None:
        """End the connection early if the client can resume the stream; otherwise do nothing."""
        ...

    async def respond(self, text: bytes) -> None:
        """Send the response, or end without one if it is empty."""
        ...


class PostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a session's request that its response depends on."""

    keys: SessionKeys
    request: bytes
    """The request's id as JSON."""
    headers: Headers
    is_resumable: bool
    """True if the revision has priming events, which give a client its position from the start."""
    may_stream: Callable[[], bool]
    """Returns True if the client accepts a stream; otherwise the client receives no messages and no questions."""


class PostSink:
    """The sink of one POST in a session."""

    def __init__(
        self, posted: PostRequest, to: EventStream, stores: SessionStores, *, give_up: Callable[[], None]
    ) -> None:
        self._posted = posted
        self._to = to
        self._name = ""
        self._logs = stores.logs
        self._claims = stores.claims
        self._spawn = stores.bus.spawn
        self._insist_s = stores.idle_s
        self._give_up = give_up
        self._order = asyncio.Lock()
        self._is_open = self._is_over = False
        self._claim: RequestClaim | None = None
        self.is_refused = False
        """True if another running request was found to have this id."""
        self._sent_bytes = 0
        self._answer: bytes | None = None
        """The response, once it was stored or storing it failed; None before."""
        self._sent = asyncio.Event()

    @property
    def _stream(self) -> str:
        """The name of the stream, chosen on first use because few requests have one."""
        if not self._name:
            self._name = f"r{secrets.token_urlsafe(12)}"
        return self._name

    async def claim(self) -> None:
        """Reserve the request id across replicas, so that no other request of the session uses it."""
        async with self._order:
            if self._is_open or self._is_over:
                return
            self._claim = self._claims.of(self._posted.keys, self._stream, self._posted.request)
            if not await self._claim.acquire():
                self._refuse()
            elif self._is_over:  # abandoned meanwhile
                self._claim.leave()

    async def defer(self) -> None:
        """Switch the response to a stream if the client accepts one, so that the client can resume it."""
        try:
            await self._open()
        except RedisUnavailable:
            log.warning("stream_not_opened")  # the response stays JSON

    async def send(self, text: bytes, *, question: str = "") -> bool:
        """Store a message and send it on the stream, which the first message opens.

        Messages beyond `MAX_SAID_BYTES` of one call are dropped, except questions.

        Raises:
            RedisUnavailable: the message may not have been stored.
        """
        if not await self._open():
            return False
        self._sent_bytes += len(text)
        if self._sent_bytes > MAX_MESSAGE_BYTES and not question:
            log.warning("message_dropped", message=self._sent_bytes)
            return True
        added = await self._logs.append(self._posted.keys, self._stream, text, question=question)
        self._to.wake()
        return added is not None

    async def detach(self) -> None:
        """End the connection, but not the stream, if the client can resume it."""
        if self._posted.is_resumable and await self._open():
            self._to.end()

    async def respond(self, text: bytes) -> None:
        """Send the response; returns once it was sent or the client is gone. An empty text sends no response."""
        async with self._order:
            if not self._is_open:
                self._is_over = True
                if self._claim is not None:
                    await self._claim.release()  # released first: after the response the client may reuse the id
                await self._answer_whole(text)
                return
        await self._store(text)
        self._to.wake()
        await self._sent.wait()

    def abandon(self) -> None:
        """End the sink; an open stream without a response gets an error as its final message."""
        self._is_over = True
        if self._claim is not None:
            self._claim.leave()
        if self._is_open:
            if self._answer is None:
                self._end_stream()
            self._to.end()

    def _end_stream(self) -> None:
        """Store an error as the final message, for a client that resumes after a call without a response."""
        self._answer = replica_lost_error(self._posted.request)
        self._spawn(self._insist, self._answer)

    async def _answer_whole(self, text: bytes) -> None:
        """Send the response as JSON; for an empty one, a stream without events or 202. HTTP requires a response."""
        if text:
            await self._to.answer(text, self._posted.headers)
        elif self._posted.may_stream():
            await self._to.begin(self._posted.headers)
            await self._to.finish()
        else:
            await self._to.acknowledge(self._posted.headers)

    def _refuse(self) -> None:
        self.is_refused = True
        self._give_up()

    async def _open(self) -> bool:
        async with self._order:
            if self._is_open or self._is_over or self.is_refused or not self._posted.may_stream():
                return self._is_open
            posted = self._posted
            opened = await self._logs.open(posted.keys, self._stream, posted.request)
            if not opened:
                if opened is not None:
                    self._refuse()
                return False
            self._is_open, self._claim = True, None  # the stream reserves the id from now on
            if self._is_over:  # abandoned meanwhile
                self._end_stream()
            else:
                self._spawn(self._start_stream, opened)
            return True

    async def _start_stream(self, first: str) -> None:
        posted = self._posted
        tail = RequestReplay(logs=self._logs, keys=posted.keys, stream=self._stream, answer=lambda: self._answer)
        try:
            await self._to.begin(posted.headers)
            if posted.is_resumable:
                await self._to.write(sse_encoding.priming_event(str(StreamPosition(self._stream, first))))
            await tail.follow(self._to, first)
            await self._to.finish()
        finally:
            self._sent.set()

    async def _store(self, text: bytes) -> None:
        """Store the response; if that fails it is sent anyway, and stored later."""
        try:
            await self._logs.append(self._posted.keys, self._stream, text, is_final=True)
        except RedisUnavailable:
            self._spawn(self._insist, text)
        finally:
            self._answer = text

    async def _insist(self, text: bytes) -> None:
        """Store the response once Redis is available, with retries for the idle time of a session.

        After a minute only an error that ends the stream is stored: responses are large, and the client may never
        resume.
        """
        for attempt in range(self._insist_s):
            if attempt == _RETRIES:
                log.error("answer_not_kept", stream=self._stream)
                text = self._answer = expired_error(self._posted.request)
            try:
                await self._logs.append(self._posted.keys, self._stream, text, is_final=True)
            except RedisUnavailable:
                await anyio.sleep(_RETRY_S)
                continue
            return


class SseSink:
    """The sink of HTTP+SSE (2024-11-05): messages and the response go to the standalone stream of the session."""

    def __init__(
        self, stores: SessionStores, keys: SessionKeys, request: bytes, *, give_up: Callable[[], None]
    ) -> None:
        self._logs = stores.logs
        self._keys = keys
        self._give_up = give_up
        self._claim = stores.claims.of(keys, f"o{secrets.token_urlsafe(12)}", request)
        self._order = asyncio.Lock()
        self._is_over = False
        self.is_refused = False
        """True if another running request was found to have this id."""

    async def claim(self) -> None:
        """Reserve the request id across replicas, so that no other request of the session uses it."""
        async with self._order:
            if self._is_over:
                return
            if not await self._claim.acquire():
                self.is_refused = True
                self._give_up()
            elif self._is_over:  # abandoned meanwhile
                self._claim.leave()

    async def send(self, text: bytes, *, question: str = "") -> bool:
        """Store a message, which the session's stream then sends; False if the session has ended.

        Raises:
            RedisUnavailable: the message may not have been stored.
        """
        return await self._logs.append(self._keys, STANDALONE, text, question=question) is not None

    async def detach(self) -> None:
        """Do nothing, because the stream cannot be resumed."""

    async def respond(self, text: bytes) -> None:
        """Store the response unless it is empty, with retries for a minute while Redis is unavailable."""
        async with self._order:
            self._is_over = True
            await self._claim.release()
        if not text:
            return
        for _ in range(_RETRIES):
            try:
                await self.send(text)
            except RedisUnavailable:
                await anyio.sleep(_RETRY_S)
                continue
            return
        log.error("answer_not_kept", stream=STANDALONE)

    def abandon(self) -> None:
        """End the sink and release its claim."""
        self._is_over = True
        self._claim.leave()
