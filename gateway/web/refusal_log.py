"""Rate-limited log of refused credentials: 5 lines per second, burst of 50, with the number of suppressed lines."""

import time
from collections.abc import Callable

import structlog

from gateway.identity.local_token_buckets import TokenBuckets
from gateway.web.limits import REFUSAL_LINES_PER_S

log = structlog.get_logger(__name__)

BURST = 50.0


class RefusalLog:
    """The refusal log of all listeners of a process. `gateway_http_answers_total` counts every refusal by its
    status.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lines = TokenBuckets(rate=REFUSAL_LINES_PER_S, burst=BURST, limit=1, clock=clock)
        self._suppressed = 0

    def note(self, client: str | None, path: str) -> None:
        """Log a refusal; above the rate limit only count it, and the next line has the number."""
        if self._lines.take(""):  # guard: refusals-logged-few
            self._suppressed += 1
            return
        suppressed, self._suppressed = self._suppressed, 0
        log.info("credential_refused", client=client, path=path, **({"suppressed": suppressed} if suppressed else {}))
