"""Log of refused bus messages: ten per minute, and the number of further ones when a later minute begins.

Redis channels ignore database numbers. Installations that share a Redis and a namespace, but not the secret, receive
each other's events and refuse them.
"""

import time

import structlog

log = structlog.get_logger(__name__)

MOST = 10
_MINUTE_S = 60.0


class RejectedEvents:
    """The refused messages of one replica in the current minute."""

    def __init__(self) -> None:
        self._began_at = 0.0
        self._seen = 0

    def note(self, channel: bytes, reason: str) -> None:
        """Log or count one refused message."""
        now = time.monotonic()
        if not self._seen or now - self._began_at >= _MINUTE_S:
            if self._seen > MOST:
                log.error("events_refused", more=self._seen - MOST)
            self._began_at, self._seen = now, 0
        self._seen += 1
        if self._seen <= MOST:
            log.error("event_refused", channel=ascii(channel), reason=reason)
