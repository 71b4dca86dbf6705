"""The rate at which one tenant's requests of any kind are begun at this replica.

Calls have limits; lists, pings and refused calls have none, and each takes time of the one event loop that serves every
tenant. Above its rate a tenant's request waits, after authentication and before any work, so a flood waits behind
itself. A wait is bounded by the open requests of a tenant and by `MOST_S`; no request is refused here.

On a loop that is late, because the machine is busy, requests above the rate are begun more seldom still. Requests
within the rate never wait.
"""

import asyncio
import time
from typing import Final

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.policy import Limits

LEAST_PER_S: Final = 250.0
"""The rate of a tenant with small limits: about a seventh of what one replica serves."""

MOST_S: Final = 5.0
_SPARE: Final = 1.25
"""Requests that are no calls, by share of the tenant's calls per second."""

_BURST_S: Final = 0.25
_USUAL_LAG_S: Final = 0.002
_LAG_S: Final = 0.004
"""The lateness of a timer, above the usual one, that halves the pace of a tenant above its rate."""

_MOST_SLOWED: Final = 2.5
_WEIGHT: Final = 0.1
_TENANTS: Final = 4096


class RequestRateLimiter:
    """The schedules of this replica's tenants: a virtual-scheduling leaky bucket (GCRA) each, of one number."""

    def __init__(self) -> None:
        self._next: dict[TenantId, float] = {}
        self._lag = 0.0
        self.waited = 0
        """Number of requests that had to wait."""

    def __len__(self) -> int:
        """The number of tenants whose schedule is kept."""
        return len(self._next)

    def delay(self, tenant: TenantId, limits: Limits, now: float) -> float:
        """Schedule one request; the seconds that it waits."""
        rate = limits.calls_per_second * _SPARE
        if rate < LEAST_PER_S:
            rate = LEAST_PER_S
        begins = self._next.get(tenant, 0.0)
        if begins <= now:
            if len(self._next) >= _TENANTS:
                self._next.clear()  # costs nothing but a burst each
            begins = now
        wait = begins - now - _BURST_S
        if wait <= 0:
            self._next[tenant] = begins + 1 / rate
            return 0.0
        self._next[tenant] = min(begins + self._slowed / rate, now + _BURST_S + MOST_S)
        return wait

    async def sleep(self, seconds: float) -> None:
        """Wait for so long, and note how late the wait ended."""
        self.waited += 1
        due = time.monotonic() + seconds
        await asyncio.sleep(seconds)
        self.note_lag(time.monotonic() - due)

    def note_lag(self, seconds: float) -> None:
        """Take into account how late a timer was."""
        self._lag += _WEIGHT * (seconds - self._lag)

    @property
    def _slowed(self) -> float:
        return min(_MOST_SLOWED, 1 + max(0.0, self._lag - _USUAL_LAG_S) / _LAG_S)
