"""Open requests of each key and tenant at this replica, bounded so that none takes all connections.

Calls and streams have caps of their own, over all replicas. What is counted here is everything, also a body that
trickles in and an answer that nobody reads: what the key's calls and streams may come to, and some more. All keys of a
tenant together have a quarter of what the replica serves.
"""

from typing import Final

from gateway.domain.fairness.share import FairShare
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.policy import Limits
from gateway.domain.tenancy.principals import Principal
from gateway.errors import LimitExceeded
from gateway.redis.limits.stream_limiter import streams_of_key

SPARE: Final = 50
"""How many requests a key may have open beside its calls and streams."""

OPEN: Final = 8192
"""Open requests of a replica."""

_RETRY_S = 1.0


class InFlightLimiter:
    """The open requests of this replica, by key and by tenant."""

    def __init__(self, most: int = OPEN) -> None:
        self._open: dict[KeyId, int] = {}
        self.places = FairShare("open requests", places=most)

    def __len__(self) -> int:
        """How many requests are open."""
        return sum(self._open.values())

    def acquire(self, principal: Principal, limits: Limits) -> None:
        """Count one more.

        Raises:
            LimitExceeded: the key or its tenant has as many open as it may have here.
        """
        key = principal.key
        count = self._open.get(key, 0)
        if count >= SPARE:
            most = limits.concurrency + streams_of_key(limits.streams) + SPARE
            if count >= most:
                said = f"{most} requests of the key are open at this replica, the most that may"
                raise LimitExceeded(said, retry_after_s=_RETRY_S)
        if not self.places.try_take(principal.tenant):
            raise self.places.refuse(principal.tenant)
        self._open[key] = count + 1

    def release(self, principal: Principal) -> None:
        """Count one less."""
        self.places.free(principal.tenant)
        key = principal.key
        left = self._open[key] - 1
        if left:
            self._open[key] = left
        else:
            del self._open[key]
