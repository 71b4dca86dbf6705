"""Pings on idle streams, which detect a client that has disappeared without closing its connection.

A session's standalone stream that was idle for `PING_S` sends a ping, without an event id and not stored in the log.
The response is a POST to any replica, which finds the open ping in Redis, as for other requests to the client. After
two consecutive pings without a response, the client is considered disconnected.
"""

import secrets
import time

import anyio
import structlog

from gateway.errors import RedisUnavailable
from gateway.protocol.http import jsonrpc
from gateway.protocol.methods.limits import ANSWER_TIMEOUT_S
from gateway.protocol.sessions.limits import CLOSE_TIMEOUT_S, MAX_UNANSWERED
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.pending_requests import PendingRequests

log = structlog.get_logger(__name__)


class PingMonitor:
    """The pings of one stream; it is polled after each keep-alive, so it needs no separate timer."""

    __slots__ = ("_active_at", "_every_s", "_keys", "_next_id", "_open_ping", "_pending_requests", "_unanswered")

    def __init__(self, pending_requests: PendingRequests, keys: SessionKeys, *, every_s: float) -> None:
        self._pending_requests = pending_requests
        self._keys = keys
        self._every_s = every_s
        self._active_at = time.monotonic()
        self._open_ping = ""
        self._next_id = ""
        self._unanswered = 0

    @property
    def is_unresponsive(self) -> bool:
        """True if the client has not responded to two consecutive pings."""
        return self._unanswered >= MAX_UNANSWERED  # guard: ping-unanswered

    def note(self) -> None:
        """Record that the stream has sent something."""
        self._active_at = time.monotonic()

    async def next_ping(self) -> bytes | None:
        """Return the ping to send now, and record whether the client responded to the previous one; None if no
        ping is to be sent.

        No ping is sent if the session has ended or Redis is unavailable. An open request to the client delays the ping
        for at most `ANSWER_TIMEOUT_S`, because a client that waits for its user may not respond to pings.
        """
        silent_s = time.monotonic() - self._active_at
        if silent_s < self._every_s:
            return None
        self._next_id = self._next_id or secrets.token_urlsafe(12)
        try:
            ping_state = await self._pending_requests.ping(
                self._keys, self._open_ping, self._next_id, is_patient=silent_s < ANSWER_TIMEOUT_S + self._every_s
            )
        except RedisUnavailable:
            self._open_ping = ""  # the outcome of the previous ping is unknown
            return None
        if ping_state in {"asking", "ended"}:
            return None
        is_missing = self._open_ping != "" and ping_state == "unanswered"
        self._unanswered = self._unanswered + 1 if is_missing else 0
        self._open_ping, self._next_id = self._next_id, ""
        self.note()
        return jsonrpc.request(self._open_ping, "ping", None)

    async def stop(self) -> None:
        """Close the open pings; responses to them are ignored from then on."""
        for name in filter(None, (self._open_ping, self._next_id)):
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                await self._close(name)

    async def _close(self, name: str) -> None:
        try:
            await self._pending_requests.close(self._keys, name)
        except RedisUnavailable:
            log.debug("ping_not_closed")
