"""Whether the client at the other end of a quiet stream still answers.

A connection may look alive long after whoever read it has gone. So a session's own stream that said nothing for a while
says a ping, written nowhere and without an id; its answer is a POST to any replica, which finds the ping open in Redis
as it would a question. Who leaves two of them unanswered is gone.
"""

import secrets
import time
from typing import Final

import anyio
import structlog

from gateway.errors import RedisUnavailable
from gateway.protocol.http import jsonrpc
from gateway.protocol.methods.client_requests import ANSWER_S
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.pending_requests import PendingRequests

log = structlog.get_logger(__name__)

PING_S: Final = 60.0
"""After this long without a message a stream says a ping."""

_CHANCES = 2
_PARTING_S = 2.0


class PingMonitor:
    """That of one stream; it is felt whenever the stream was kept alive, so it needs no clock of its own."""

    __slots__ = ("_asked", "_every_s", "_keys", "_next", "_questions", "_said_at", "_unanswered")

    def __init__(self, questions: PendingRequests, keys: SessionKeys, *, every_s: float) -> None:
        self._questions = questions
        self._keys = keys
        self._every_s = every_s
        self._said_at = time.monotonic()
        self._asked = ""
        self._next = ""
        self._unanswered = 0

    @property
    def is_unresponsive(self) -> bool:
        """Whether the client has left too many pings in a row unanswered."""
        return self._unanswered >= _CHANCES

    def note(self) -> None:
        """The stream has said something."""
        self._said_at = time.monotonic()

    async def next_ping(self) -> bytes | None:
        """The ping to be sent now, if one is due; while a question waits for its answer none is."""
        silent_s = time.monotonic() - self._said_at
        if silent_s < self._every_s:
            return None
        self._next = self._next or secrets.token_urlsafe(12)
        try:
            became = await self._questions.ping(
                self._keys, self._asked, self._next, is_patient=silent_s < ANSWER_S + self._every_s
            )
        except RedisUnavailable:
            self._asked = ""  # what became of it is not known
            return None
        if became in {"asking", "ended"}:
            return None
        is_missing = self._asked != "" and became == "unanswered"
        self._unanswered = self._unanswered + 1 if is_missing else 0
        self._asked, self._next = self._next, ""
        self.note()
        return jsonrpc.request(self._asked, "ping", None)

    async def stop(self) -> None:
        """Wait for no answer any more."""
        for name in filter(None, (self._asked, self._next)):
            with anyio.move_on_after(_PARTING_S, shield=True):
                await self._close(name)

    async def _close(self, name: str) -> None:
        try:
            await self._questions.close(self._keys, name)
        except RedisUnavailable:
            log.debug("ping_not_closed")
