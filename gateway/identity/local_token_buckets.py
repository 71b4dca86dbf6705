"""Token buckets in this process, one per name, in bounded memory.

The buckets enforce limits that apply before any lookup, so they count per replica and do not use Redis.
"""

import time
from collections.abc import Callable

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.identity.limits import MAX_BUCKETS


class TokenBuckets:
    """Buckets of up to `burst` tokens, refilled with `rate` tokens a second.

    Beyond `limit` names, the least recently used bucket is dropped; its name starts with a full bucket again.
    """

    def __init__(
        self, *, rate: float, burst: float, limit: int = MAX_BUCKETS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._filled = BoundedCache[str, tuple[float, float]](limit)  # guard: buckets-bounded
        """Tokens and the time at which they were counted, oldest withdrawal first."""

    def __len__(self) -> int:
        return len(self._filled)

    def wait_for(self, name: str, cost: float = 1.0) -> float:
        """Return the seconds until the bucket contains `cost` tokens, at most a full bucket; 0 if it does now."""
        missing = min(cost, self.burst) - self._tokens(name)
        return max(0.0, missing / self.rate)

    def take(self, name: str, cost: float = 1.0) -> float:
        """Take `cost` tokens, at most a full bucket, and return 0; or take none and return the seconds to wait."""
        cost = min(cost, self.burst)
        tokens = self._tokens(name)
        if tokens < cost:
            return (cost - tokens) / self.rate
        self._filled[name] = (tokens - cost, self._clock())
        self._filled.move_to_end(name)
        return 0.0

    def _tokens(self, name: str) -> float:
        tokens, counted_at = self._filled.get(name, (self.burst, 0.0))
        return min(self.burst, tokens + (self._clock() - counted_at) * self.rate)
