"""Retry policy: decides if and after which pause a request is retried.

A request that is not idempotent is retried only if no connection was established, because it may otherwise have
arrived. Pauses are random, so that many callers do not retry at the same time. Only the first retry after a closed
connection has no pause.
"""

import random

from gateway.domain.http.requests import UpstreamRequest
from gateway.upstream.http.errors import ConnectedLate, Disconnected, NotConnected
from gateway.upstream.limits import FIRST_RETRY_S, MAX_RETRIES, MAX_RETRY_DELAY_S

FIRST_RETRIABLE = 429
"""Responses with a status below this one are never retried."""

_UNAVAILABLE_STATUSES = frozenset({502, 503, 504})
_FAILURE_STATUSES = _UNAVAILABLE_STATUSES | frozenset(range(520, 528)) | {530}
"""Statuses by which an upstream, or a proxy in front of it, reports that it cannot serve any request now."""


def is_failure(status: int) -> bool:
    """True if the status reports that the upstream is unavailable, rather than that this request failed."""
    return status in _FAILURE_STATUSES


def after_fault(error: Exception, request: UpstreamRequest, attempt: int) -> float | None:
    """Return the pause in seconds before a retry of a request without a response; None: no retry."""
    if attempt >= MAX_RETRIES:
        return None
    if isinstance(error, ConnectedLate):  # seconds have already passed, so at most one retry
        return _jitter(attempt) if attempt == 0 else None
    if isinstance(error, NotConnected):
        return _jitter(attempt)
    if request.idempotent and isinstance(error, Disconnected):  # guard: never-twice
        return 0.0 if attempt == 0 else _jitter(attempt)  # most likely the upstream closed an idle connection
    return None


def after_response(status: int, retry_after: str | None, request: UpstreamRequest, attempt: int) -> float | None:
    """Return the pause in seconds before a retry of a request with this response; None: no retry."""
    if attempt >= MAX_RETRIES or not request.idempotent:
        return None
    if retry_after is not None and status in {429, 503}:
        seconds = _seconds(retry_after)
        return None if seconds is None or seconds > MAX_RETRY_DELAY_S else seconds + _jitter(attempt)
    return _jitter(attempt) if status in _UNAVAILABLE_STATUSES else None


def _seconds(retry_after: str) -> float | None:
    """Return `Retry-After` in seconds; None for a date, which usually means a longer wait than `_MAX_DELAY_S`."""
    text = retry_after.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _jitter(attempt: int) -> float:
    return random.uniform(0, FIRST_RETRY_S * 2 ** (attempt + 1))  # noqa: S311  # only spreads the load
