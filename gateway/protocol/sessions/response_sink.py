"""Where a request's answer goes, and what its call says before: JSON if nothing was said, else a stream.

What goes on a stream is written down first, so that the client can go on with it at any replica. The connection itself
is only one way to read it: it may break or be ended early, while the call goes on.

One owner ends every wait: the task that serves the request. It hands the answer over in memory as well, so the stream
ends whatever became of the stored one, and with `leave` it ends the stream and its log where there was no answer.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Protocol

import anyio
import msgspec
import structlog

from gateway.errors import RedisUnavailable
from gateway.protocol.http import sse
from gateway.protocol.http.event_streams import EventStream
from gateway.protocol.http.jsonrpc import expired_error, replica_lost_error
from gateway.protocol.http.responses import Headers
from gateway.protocol.http.sse import StreamPosition
from gateway.protocol.sessions.replay import RequestReplay
from gateway.redis.sessions.keys import STANDALONE, SessionKeys
from gateway.redis.sessions.request_claims import RequestClaim
from gateway.redis.sessions.stores import SessionStores

log = structlog.get_logger(__name__)

MAX_SAID_BYTES = 16 * 1024 * 1024
_RETRIES = 60
_RETRY_S = 1.0


class ResponseSink(Protocol):
    """What a call can say to its client."""

    async def send(self, text: bytes, *, question: str = "") -> bool:
        """Send a message before the answer; False when there is nobody to be told any more."""
        ...

    async def detach(self) -> None:
        """Let the client go and come back for the rest, where it can."""
        ...

    async def respond(self, text: bytes) -> None:
        """Send the answer, or end without one if it is empty."""
        ...


class PostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a session, as far as its answer is concerned."""

    keys: SessionKeys
    request: bytes
    """Its id as JSON."""
    headers: Headers
    is_resumable: bool
    """Whether its revision has events without content, so that a client knows its place from the start."""
    may_stream: Callable[[], bool]
    """Whether the client takes a stream; one that does not is neither told nor asked anything."""


class PostSink:
    """The response to one POST."""

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
        """Whether a request of this id was found to be running already."""
        self._said = 0
        self._answer: bytes | None = None
        """The answer, from the moment at which it was stored or could not be."""
        self._sent = asyncio.Event()

    @property
    def _stream(self) -> str:
        """What its stream is called; few have one."""
        if not self._name:
            self._name = f"r{secrets.token_urlsafe(12)}"
        return self._name

    async def claim(self) -> None:
        """The request takes a while: keep its id from other requests of the session."""
        async with self._order:
            if self._is_open or self._is_over:
                return
            self._claim = self._claims.of(self._posted.keys, self._stream, self._posted.request)
            if not await self._claim.acquire():
                self._refuse()
            elif self._is_over:  # left meanwhile
                self._claim.leave()

    async def defer(self) -> None:
        """The answer takes long: make it a stream, so that the client can come back for it."""
        try:
            await self._open()
        except RedisUnavailable:
            log.warning("stream_not_opened")  # the answer stays JSON

    async def send(self, text: bytes, *, question: str = "") -> bool:
        """Send a message on the stream, which begins with the first one.

        Raises:
            RedisUnavailable: it may not have been written down.
        """
        if not await self._open():
            return False
        self._said += len(text)
        if self._said > MAX_SAID_BYTES and not question:
            log.warning("message_dropped", said=self._said)
            return True
        added = await self._logs.append(self._posted.keys, self._stream, text, question=question)
        self._to.wake()
        return added is not None

    async def detach(self) -> None:
        """End the connection, not the stream."""
        if self._posted.is_resumable and await self._open():
            self._to.end()

    async def respond(self, text: bytes) -> None:
        """Answer; returns when the answer was sent, or the client is gone. An empty text is no answer: it only ends."""
        async with self._order:
            if not self._is_open:
                self._is_over = True
                if self._claim is not None:
                    await self._claim.release()  # with its answer the client may use the id again
                await self._answer_whole(text)
                return
        await self._store(text)
        self._to.wake()
        await self._sent.wait()

    def abandon(self) -> None:
        """Nothing more will come; an answer neither, if there was none."""
        self._is_over = True
        if self._claim is not None:
            self._claim.leave()
        if self._is_open:
            if self._answer is None:
                self._end_stream()
            self._to.end()

    def _end_stream(self) -> None:
        """The call failed without an answer: a client that resumes gets an empty stream."""
        self._answer = replica_lost_error(self._posted.request)
        self._spawn(self._insist, self._answer)

    async def _answer_whole(self, text: bytes) -> None:
        """Answer with JSON; what is not answered is an event stream without events, as HTTP wants some response."""
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
            self._is_open, self._claim = True, None  # the stream has the id now
            if self._is_over:  # left meanwhile
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
                await self._to.write(sse.priming_event(str(StreamPosition(self._stream, first))))
            await tail.follow(self._to, first)
            await self._to.finish()
        finally:
            self._sent.set()

    async def _store(self, text: bytes) -> None:
        """Write the answer down; where that fails it is sent all the same, and written when it can be."""
        try:
            await self._logs.append(self._posted.keys, self._stream, text, is_final=True)
        except RedisUnavailable:
            self._spawn(self._insist, text)
        finally:
            self._answer = text

    async def _insist(self, text: bytes) -> None:
        """Write it down once Redis answers, for as long as its session may last without that.

        After a minute only the end of the stream is: answers are large, and the client may never resume.
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
    """HTTP+SSE of 2024-11-05: everything goes on the one stream of the session."""

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
        """Whether a request of this id was found to be running already."""

    async def claim(self) -> None:
        """The request takes a while: keep its id from other requests of the session."""
        async with self._order:
            if self._is_over:
                return
            if not await self._claim.acquire():
                self.is_refused = True
                self._give_up()
            elif self._is_over:  # left meanwhile
                self._claim.leave()

    async def send(self, text: bytes, *, question: str = "") -> bool:
        """Send a message.

        Raises:
            RedisUnavailable: it may not have been written down.
        """
        return await self._logs.append(self._keys, STANDALONE, text, question=question) is not None

    async def detach(self) -> None:
        """Nothing: nobody could come back."""

    async def respond(self, text: bytes) -> None:
        """Send the answer; an empty text is none."""
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
        """Nothing more will come."""
        self._is_over = True
        self._claim.leave()
