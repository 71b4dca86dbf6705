"""Log lines of refused credentials: a bounded number per second, with the count of the omitted ones."""

import time
from collections.abc import Callable

import structlog

from gateway.identity.local_token_buckets import TokenBuckets

log = structlog.get_logger(__name__)

LINES_PER_S = 5.0
BURST = 50.0


class RefusalLog:
    """The log of all listeners of a process; `gateway_http_answers_total` counts every refusal."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lines = TokenBuckets(rate=LINES_PER_S, burst=BURST, most=1, clock=clock)
        self._left_out = 0

    def note(self, client: str | None, path: str) -> None:
        """Log a refusal, or count it for the next line."""
        if self._lines.take(""):
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        log.info("credential_refused", client=client, path=path, **({"left_out": left_out} if left_out else {}))
