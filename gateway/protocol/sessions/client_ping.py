"""Pings on idle streams, which detect a client that has disappeared without closing its connection.

A session's standalone stream that was idle for `PING_S` sends a ping, without an event id and not stored in the log.
The response is a POST to any replica, which finds the open ping in Redis, like a question. After two consecutive pings
without a response, the client is considered disconnected.
"""

import secrets
import time
from typing import Final

import anyio
import structlog

from gateway.errors import RedisUnavailable
from gateway.protocol.http import jsonrpc
from gateway.protocol.methods.client_requests import ANSWER_TIMEOUT_S
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.pending_requests import PendingRequests

log = structlog.get_logger(__name__)

PING_S: Final = 60.0
"""Seconds of silence after which a stream sends a ping; less if a third of the session's idle time is shorter."""

_MAX_UNANSWERED = 2
_CLOSE_TIMEOUT_S = 2.0


class PingMonitor:
    """The pings of one stream; it is polled after each keep-alive, so it needs no timer of its own."""

    __slots__ = ("_answered_at", "_asked", "_every_s", "_keys", "_next", "_questions", "_unanswered")

    def __init__(self, questions: PendingRequests, keys: SessionKeys, *, every_s: float) -> None:
        self._questions = questions
        self._keys = keys
        self._every_s = every_s
        self._answered_at = time.monotonic()
        self._asked = ""
        self._next = ""
        self._unanswered = 0

    @property
    def is_unresponsive(self) -> bool:
        """True if the client has not responded to two consecutive pings."""
        return self._unanswered >= _MAX_UNANSWERED  # guard: ping-unanswered

    def note(self) -> None:
        """Record that the stream has sent something."""
        self._answered_at = time.monotonic()

    async def next_ping(self) -> bytes | None:
        """Return the ping to send now, and record whether the client responded to the previous one; None if no
        ping is to be sent.

        None is due if the session has ended or Redis is unavailable. An open question delays the ping for at most
        `ANSWER_TIMEOUT_S`, because a client that waits for its user may not respond to pings.
        """
        silent_s = time.monotonic() - self._answered_at
        if silent_s < self._every_s:
            return None
        self._next = self._next or secrets.token_urlsafe(12)
        try:
            became = await self._questions.ping(
                self._keys, self._asked, self._next, is_patient=silent_s < ANSWER_TIMEOUT_S + self._every_s
            )
        except RedisUnavailable:
            self._asked = ""  # the outcome of the previous ping is unknown
            return None
        if became in {"asking", "ended"}:
            return None
        is_missing = self._asked != "" and became == "unanswered"
        self._unanswered = self._unanswered + 1 if is_missing else 0
        self._asked, self._next = self._next, ""
        self.note()
        return jsonrpc.request(self._asked, "ping", None)

    async def stop(self) -> None:
        """Close the open pings; responses to them are ignored from then on."""
        for name in filter(None, (self._asked, self._next)):
            with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
                await self._close(name)

    async def _close(self, name: str) -> None:
        try:
            await self._questions.close(self._keys, name)
        except RedisUnavailable:
            log.debug("ping_not_closed")
