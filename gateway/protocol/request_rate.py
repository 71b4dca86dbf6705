"""Rate limiter for one tenant's requests of any kind at this replica; it delays requests and never refuses them.

Calls have separate limits. Lists, pings and refused calls have none, but each takes time on the event loop that all
tenants share. A request above its tenant's rate waits after authentication and before any work, so a flood delays only
its own tenant. A wait takes at most `MAX_DELAY_S`; the cap of open requests limits the number of waiting requests.

A request that costs more than the others is charged as several, so that a flood of handshakes waits as one of lists.

When the event loop is late because the machine is busy, requests above the rate start even less often. A tenant that
stays below its rate never waits.
"""

import asyncio
import time
from typing import Final

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.policy import Limits
from gateway.protocol.limits import (
    LAG_S,
    MAX_DELAY_S,
    MAX_SCHEDULES,
    MAX_SLOWDOWN,
    MIN_PER_S,
    RATE_BURST_S,
    USUAL_LAG_S,
)

_RATE_FACTOR: Final = 1.25
"""The rate as a multiple of the tenant's calls per second; the surplus is for requests that are not calls."""

INITIALIZE_PRICE: Final = 5
"""Requests that an `initialize` counts as: it takes about 2 ms of the event loop, a ping or a list about 0.4 ms."""

_LAG_WEIGHT: Final = 0.1


class _Schedule:
    """The state of one tenant: the time at which its next request can start."""

    __slots__ = ("next_at",)

    def __init__(self) -> None:
        self.next_at = 0.0


class RequestRateLimiter:
    """One virtual-scheduling leaky bucket (GCRA) per tenant of this replica, stored as one number."""

    def __init__(self) -> None:
        self._schedules = BoundedCache[TenantId, _Schedule](MAX_SCHEDULES)
        self._find = self._schedules.get  # bound once, so that a lookup costs as much as a dictionary lookup
        self._lag = 0.0
        self.waited = 0
        """Number of requests that had to wait."""

    def __len__(self) -> int:
        """Number of tenants with a stored schedule."""
        return len(self._schedules)

    def delay(self, tenant: TenantId, limits: Limits, now: float) -> float:
        """Schedule one request and return the seconds that it has to wait; 0 if it can start now."""
        rate = _rate_of(limits)
        schedule = self._find(tenant)
        if schedule is None:
            schedule = self._schedules[tenant] = _Schedule()
        begins = max(schedule.next_at, now)
        wait = begins - now - RATE_BURST_S
        if wait <= 0:
            schedule.next_at = begins + 1 / rate
            return 0.0
        schedule.next_at = min(begins + self._slowed / rate, now + RATE_BURST_S + MAX_DELAY_S)
        return wait

    def charge(self, tenant: TenantId, limits: Limits, now: float, price: int) -> None:
        """Count a request that has begun as `price` requests, so that the next ones of its tenant wait longer."""
        schedule = self._find(tenant)
        if schedule is None:  # evicted since the request began
            return
        limit = now + RATE_BURST_S + MAX_DELAY_S
        slowed = self._slowed if schedule.next_at - now > RATE_BURST_S else 1.0
        schedule.next_at = min(schedule.next_at + (price - 1) * slowed / _rate_of(limits), limit)

    async def sleep(self, seconds: float) -> None:
        """Wait, and record how late the wait ended."""
        self.waited += 1
        due = time.monotonic() + seconds
        await asyncio.sleep(seconds)
        self.note_lag(time.monotonic() - due)

    def note_lag(self, seconds: float) -> None:
        """Add the lateness of one timer to the moving average."""
        self._lag += _LAG_WEIGHT * (seconds - self._lag)

    @property
    def _slowed(self) -> float:
        return min(MAX_SLOWDOWN, 1 + max(0.0, self._lag - USUAL_LAG_S) / LAG_S)


def _rate_of(limits: Limits) -> float:
    rate = limits.calls_per_second * _RATE_FACTOR
    return max(MIN_PER_S, rate)
