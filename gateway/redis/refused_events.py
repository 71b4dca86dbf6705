"""Rate-limited log of refused events: ten per minute.

The first refused event of a later minute also logs the number of suppressed log lines. Installations that share a Redis
and a namespace, but not the secret, refuse each other's events, even with different database numbers.
"""

import time

import structlog

from gateway.redis.limits.limits import LOG_WINDOW_S, MAX_LOGGED_PER_MINUTE

log = structlog.get_logger(__name__)


class RefusedEvents:
    """The refused events of one replica in the current minute."""

    def __init__(self) -> None:
        self._began_at = 0.0
        self._count = 0

    def note(self, channel: bytes, reason: str) -> None:
        """Log one refused event, or count it."""
        now = time.monotonic()
        if not self._count or now - self._began_at >= LOG_WINDOW_S:
            if self._count > MAX_LOGGED_PER_MINUTE:
                log.error("event_refusals_suppressed", suppressed=self._count - MAX_LOGGED_PER_MINUTE)
            self._began_at, self._count = now, 0
        self._count += 1
        if self._count <= MAX_LOGGED_PER_MINUTE:
            log.error("event_refused", channel=ascii(channel), reason=reason)
