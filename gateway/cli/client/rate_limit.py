"""Requests that wait for the rate limit of the gateway and are sent again."""

import time
from collections.abc import Callable
from typing import TypeVar

from gateway.cli.failures import Failure
from gateway.cli.limits import MIN_RETRY_S

_T = TypeVar("_T")


def send_within(seconds: float, send: Callable[[], _T], notify: Callable[[str], None]) -> _T:
    """Send a request; after a refusal by a rate limit, wait as long as the response demands and send it again.

    `notify` receives a text before each wait.

    Raises:
        Failure: another refusal, or a wait that would end after these seconds.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return send()
        except Failure as failure:
            if failure.retry_s is None or time.monotonic() + failure.retry_s > until:
                raise
            wait_s = max(failure.retry_s, MIN_RETRY_S)
            notify(f"Waiting {wait_s} s for the rate limit")
            time.sleep(wait_s)  # a command has nothing else to do, and ends with Ctrl-C
