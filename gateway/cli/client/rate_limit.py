"""Requests that wait for the rate limit of the gateway and are sent again."""

import time
from collections.abc import Callable
from typing import TypeVar

from gateway.cli.failures import Failure

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
            notify(f"Waiting {failure.retry_s} s for the rate limit")
            time.sleep(failure.retry_s)
