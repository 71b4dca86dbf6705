"""Delay until the next poll of a URL, with exponential back-off after failures."""

from datetime import timedelta
from random import uniform

from gateway.domain.updates.limits import MAX_DOUBLINGS

_JITTER = 0.1


def poll_delay(interval: timedelta, *, failures: int, max_delay: timedelta) -> timedelta:
    """Return the interval, doubled with each consecutive failure up to `max_delay`, then randomized by a tenth.

    An interval above `max_delay` is not reduced.
    """
    slowed: timedelta = interval * 2.0 ** min(failures, MAX_DOUBLINGS)
    return min(slowed, max(max_delay, interval)) * uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  # only spreads the load
