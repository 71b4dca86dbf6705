"""Bulkhead for the open requests of each key and tenant on this replica, so that no tenant uses all connections.

Calls and streams have separate caps across all replicas. This count contains every authenticated request, including one
whose body arrives slowly or whose response the client does not read. The cap of a key is the tenant's limit of
concurrent calls plus the key's limit of streams plus `SPARE`. All keys of a tenant together may use a quarter of the
replica's capacity.
"""

from typing import Final

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.policy import Limits
from gateway.domain.tenancy.principals import Principal
from gateway.errors import LimitExceeded
from gateway.protocol.limits import IN_FLIGHT_RETRY_S
from gateway.redis.limits.stream_limiter import streams_of_key

SPARE: Final = 50
"""Requests that a key may have open in addition to its calls and streams."""

OPEN: Final = 8192
"""Maximum number of open requests of a replica."""


class InFlightLimiter:
    """The open requests of this replica, by key and by tenant."""

    def __init__(self, limit: int = OPEN) -> None:
        self._open: dict[KeyId, int] = {}
        self.slot_pool = FairSlotPool("open requests", slots=limit)

    def __len__(self) -> int:
        """Number of open requests."""
        return sum(self._open.values())

    def acquire(self, principal: Principal, limits: Limits) -> None:
        """Count one more open request.

        Raises:
            LimitExceeded: the key, its tenant or the replica has reached its cap of open requests.
        """
        key = principal.key
        count = self._open.get(key, 0)
        if count >= SPARE:
            limit = limits.concurrency + streams_of_key(limits.streams) + SPARE
            if count >= limit:  # guard: requests-of-one-key
                message = f"too many concurrent requests of this key (limit {limit} per replica); retry later"
                raise LimitExceeded(message, limit="requests", retry_after_s=IN_FLIGHT_RETRY_S)
        if not self.slot_pool.try_take(principal.tenant):  # guard: share-of-open-requests
            raise self.slot_pool.refuse(principal.tenant)
        self._open[key] = count + 1

    def release(self, principal: Principal) -> None:
        """Release one open request."""
        self.slot_pool.free(principal.tenant)
        key = principal.key
        left = self._open[key] - 1
        if left:
            self._open[key] = left
        else:
            del self._open[key]
