"""Messages on the bus that were not believed: the first few of a minute are written down, the rest are counted.

Where installations share a Redis, each hears the other's events, of whatever database number, and believes none.
"""

import time

import structlog

log = structlog.get_logger(__name__)

MOST = 10
_MINUTE_S = 60.0


class RejectedEvents:
    """Those of one replica."""

    def __init__(self) -> None:
        self._began_at = 0.0
        self._seen = 0

    def note(self, channel: bytes, reason: str) -> None:
        """One more."""
        now = time.monotonic()
        if not self._seen or now - self._began_at >= _MINUTE_S:
            if self._seen > MOST:
                log.error("events_refused", more=self._seen - MOST)
            self._began_at, self._seen = now, 0
        self._seen += 1
        if self._seen <= MOST:
            log.error("event_refused", channel=ascii(channel), reason=reason)
