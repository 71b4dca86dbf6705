"""Replays a persisted stream from the client's position, then follows the stream; sends each event once."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from gateway.domain.sessions import SessionRecord
from gateway.errors import RedisUnavailable
from gateway.protocol.http import sse_encoding
from gateway.protocol.http.jsonrpc import expired_error, list_changed, replica_lost_error, resource_updated
from gateway.protocol.http.sse_encoding import StreamPosition
from gateway.protocol.http.sse_streams import EventStream
from gateway.protocol.methods.list_change_debouncer import ListChangeDebouncer
from gateway.protocol.sessions.client_ping import PingMonitor
from gateway.protocol.sessions.limits import CATCHING_UP_S, REDIS_RETRY_S, REPLAY_POLL_S
from gateway.redis.sessions.keys import STANDALONE, SessionKeys
from gateway.redis.sessions.stores import SessionStores
from gateway.redis.sessions.stream_log import LoggedMessage, LogRead, RequestOwner, StreamLog
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)


def _no_response() -> bytes | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReplay:
    """The stream of one request. The task that serves the request sets `answer`, a resumed stream sets `run`."""

    logs: StreamLog
    keys: SessionKeys
    stream: str
    run: RequestOwner | None = None
    answer: Callable[[], bytes | None] = _no_response
    """Returns the response once there is one, stored or not."""

    async def follow(self, to: EventStream, after: str) -> None:
        """Send events until the response was sent, the client has disconnected, or nothing more can follow.

        Every wait is bounded: the task that sets `response` wakes the stream once there is a response. A response
        that is not in the log, for example because the session has ended, is sent from memory. A resumed stream checks
        the session, the log and the replica that runs the request every `REPLAY_POLL_S`.
        """
        while not to.is_over:
            response = self.answer()  # read before the log, which then contains all earlier messages
            try:
                found = await self.logs.read(self.keys, self.stream, after, run=self.run)
            except RedisUnavailable:
                if response is not None:
                    await self._write_response(to, response)
                    return
                await to.wait(REDIS_RETRY_S)
                continue
            if found.messages:
                after = found.messages[-1].id
                await to.write(b"".join(self._frames(found)))
                if found.messages[-1].is_final:
                    return
            elif response is not None:  # guard: response-ends
                await self._write_response(to, response)
                return
            elif await self._is_lost(found, to):
                return
            if not found.has_more and response is None:
                await to.wait(None if self.run is None else REPLAY_POLL_S)

    async def is_spent(self, after: str) -> bool:
        """True if the stream has ended and has no content after that position.

        Raises:
            RedisUnavailable: the log cannot be read.
        """
        found = await self.logs.read(self.keys, self.stream, after, run=self.run)
        if found.messages:
            return found.messages[-1].is_final and not any(message.text for message in found.messages)
        return found.is_ended

    async def _write_response(self, to: EventStream, response: bytes) -> None:
        """Send a response that could not be read from the log; an empty response sends nothing."""
        if response:
            await to.write(sse_encoding.event(response))

    async def _is_lost(self, found: LogRead, to: EventStream) -> bool:
        """True if nothing can follow; if the log has expired, the client has received an error.

        If the replica has crashed, an error is stored as the final message, and the next read sends it.
        """
        if self.run is None:
            return False
        if not found.is_alive or found.is_ended:
            return True
        if not found.is_kept:
            await to.write(sse_encoding.event(expired_error(self.run.request)))
            return True
        if not found.is_run:
            with contextlib.suppress(RedisUnavailable):  # the next check retries
                await self.logs.append(self.keys, self.stream, replica_lost_error(self.run.request), is_final=True)
                to.wake()
        return False

    def _frames(self, found: LogRead) -> list[bytes]:
        with_text = (message for message in found.messages if message.text)
        return [sse_encoding.event(message.text, str(StreamPosition(self.stream, message.id))) for message in with_text]


class StandaloneReplay:
    """The standalone stream of a session: resource updates, and notifications of changed lists.

    Over HTTP+SSE it also sends all responses and other messages. The notifications of changed lists are not stored:
    each event's id contains the revision up to which the client was notified.
    """

    def __init__(
        self,
        to: EventStream,
        stores: SessionStores,
        record: SessionRecord,
        registry: Registry,
        *,
        is_current: Callable[[Registry], bool],
        ping_s: float,
    ) -> None:
        self._to = to
        self._logs = stores.logs
        self._sessions = stores.sessions
        self._record = record
        self._keys = stores.sessions.keys(record.tenant, record.id)
        self._registry = registry
        self._is_current = is_current
        self._changes = ListChangeDebouncer(to.wake)
        self._pings = PingMonitor(stores.pending_requests, self._keys, every_s=ping_s)
        self._reader = ""

    def on_catalog_change(self, before: Registry, after: Registry | None) -> None:
        """Adopt a newer registry and record its changed lists; None ends the stream."""
        if after is None:
            self._to.end()
            return
        self._registry = after
        self._changes.note(before, after)
        self._to.wake()

    async def follow(self, after: str, revision: int, *, reader: str) -> None:
        """Send until the stream or the session ends, the client is unresponsive, or a newer reader takes over."""
        self._reader = reader
        if revision < self._registry.revision:
            self._changes.note_lists(*self._record.lists)
        try:
            while not self._to.is_over:
                after, revision = await self._step(after, revision)
        finally:
            self._changes.close()
            await self._pings.stop()

    async def _step(self, after: str, revision: int) -> tuple[str, int]:
        try:
            found = await self._logs.read(self._keys, STANDALONE, after, reader=self._reader)
            await self._adopt_handshake()
        except RedisUnavailable:
            await self._to.wait(REDIS_RETRY_S)
            return after, revision
        if not found.is_alive or found.reader != self._reader:
            self._to.end()
            return after, revision
        if any(message.uri is not None for message in found.messages):
            await self._await_newer_catalog()
        frames = self._messages(found, revision)
        after = found.messages[-1].id if found.messages else after
        notices, revision = self._notices(after, revision)
        if frames or notices:
            self._pings.note()
            await self._to.write(b"".join((*frames, *notices)))
        if frames and self._is_http_sse:
            with contextlib.suppress(RedisUnavailable):  # the log expires with the session
                await self._logs.trim(self._keys, STANDALONE, after)
        if not found.has_more and not self._to.is_over and not await self._to.wait():
            await self._check_client()
        return after, revision

    async def _adopt_handshake(self) -> None:
        """Load the session's record again until it contains the handshake, which any replica may have served.

        Over HTTP+SSE the stream exists before the handshake. The record is stored before the response, which wakes the
        stream. So the record is loaded before any notification is due.

        Raises:
            RedisUnavailable: the record cannot be read.
        """
        if not self._record.is_open:
            found = await self._sessions.find(self._record.tenant, self._record.id)
            self._record = found or self._record

    async def _check_client(self) -> None:
        """End the stream if the session has ended or the client has disconnected; send a ping if one is due. Runs after
        a keep-alive.
        """
        if not await self._session_exists():
            self._to.end()
            return
        ping = await self._pings.next_ping()
        if self._pings.is_unresponsive:
            log.info("client_silent", session=self._record.id[:8])
            self._to.end()
        elif ping is not None:
            await self._to.write(sse_encoding.event(ping))  # without an id: it is never replayed

    async def _await_newer_catalog(self) -> None:
        """Wait up to 5 s for a newer catalog that is known to exist, because it decides which resources may be read."""
        until = time.monotonic() + CATCHING_UP_S
        while not self._is_current(self._registry) and not self._to.is_over and time.monotonic() < until:
            await self._to.wait(until - time.monotonic())
        self._to.wake()  # the wake-ups may have had other causes, which are still pending

    @property
    def _is_http_sse(self) -> bool:
        """True for the stream of HTTP+SSE, which cannot be resumed."""
        return self._record.transport == "sse"

    def _messages(self, found: LogRead, revision: int) -> list[bytes]:
        frames: list[bytes] = []
        newest = {message.uri: message.id for message in found.messages}  # one notification per resource is enough
        for message in found.messages:
            is_newest = message.uri is None or newest[message.uri] == message.id
            text = self._text(message) if is_newest else b""
            if text:
                frames.append(self._frame(text, str(StreamPosition(STANDALONE, message.id, revision))))
        return frames

    def _text(self, message: LoggedMessage) -> bytes:
        if message.uri is None:
            return message.text
        # guard: subscribed-still-readable
        return resource_updated(message.uri) if self._registry.can_read(message.uri) else b""

    def _notices(self, after: str, revision: int) -> tuple[list[bytes], int]:
        """Notifications of changed lists; only the id of the last one contains the newest revision.

        So a client that resumes after an earlier notification receives all of them again. The reader's token keeps the
        ids distinct from the ids of another stream that notifies from the same position.
        """
        changed = [family for family in self._changes.take() if family in self._record.lists]
        if not changed:
            return [], revision
        newest = self._registry.revision
        frames: list[bytes] = []
        for family in changed:
            notified_revision = newest if family is changed[-1] else revision
            event_id = f"{StreamPosition(STANDALONE, after, notified_revision)}~{self._reader}{family[0]}"
            frames.append(self._frame(list_changed(family), event_id))
        return frames, newest

    def _frame(self, text: bytes, event_id: str) -> bytes:
        return sse_encoding.event(text, None if self._is_http_sse else event_id)

    async def _session_exists(self) -> bool:
        """True if the session exists or Redis is unavailable; the lookup keeps the session alive."""
        try:
            return await self._sessions.find(self._record.tenant, self._record.id) is not None
        except RedisUnavailable:
            return True
