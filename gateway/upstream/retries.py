"""Whether a request may be sent once more, and after which pause.

Only what changes nothing when it arrives twice, or what certainly did not arrive: a request that is not idempotent is
repeated only when there was no connection to send it on. Pauses are random in full, so that many callers do not come
back together.
"""

import random

from gateway.domain.http.requests import UpstreamRequest
from gateway.upstream.http.errors import ConnectedLate, Disconnected, NotConnected

AT_MOST = 2
"""How often one request is sent again."""

WORTH_A_LOOK = 429
"""Answers below this status are never asked for again."""

_LONGEST_S = 2.0
_FIRST_S = 0.1
_AWAY = frozenset({502, 503, 504})
_FAILED = _AWAY | frozenset(range(520, 528)) | {530}
"""Statuses with which an upstream, or whoever stands before it, says that it cannot answer anything now."""


def is_failure(status: int) -> bool:
    """Whether an answer says that the upstream is away, rather than that this request went wrong."""
    return status in _FAILED


def after_fault(error: Exception, request: UpstreamRequest, attempt: int) -> float | None:
    """The pause before the request is sent again after it got no answer; None: it is not."""
    if attempt >= AT_MOST:
        return None
    if isinstance(error, ConnectedLate):  # seconds have passed already: once more and no more
        return _jitter(attempt) if attempt == 0 else None
    if isinstance(error, NotConnected):
        return _jitter(attempt)
    if request.idempotent and isinstance(error, Disconnected):
        return 0.0 if attempt == 0 else _jitter(attempt)  # most likely a kept connection that was closed meanwhile
    return None


def after_answer(status: int, retry_after: str | None, request: UpstreamRequest, attempt: int) -> float | None:
    """The pause before the request is sent again after this answer; None: the answer stands."""
    if attempt >= AT_MOST or not request.idempotent:
        return None
    if retry_after is not None and status in {429, 503}:
        seconds = _seconds(retry_after)
        return None if seconds is None or seconds > _LONGEST_S else seconds + _jitter(attempt)
    return _jitter(attempt) if status in _AWAY else None


def _seconds(retry_after: str) -> float | None:
    """A pause that was asked for in seconds; a date is for people who wait longer than we do."""
    text = retry_after.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _jitter(attempt: int) -> float:
    return random.uniform(0, _FIRST_S * 2 ** (attempt + 1))  # noqa: S311  # spreads callers, protects nothing
