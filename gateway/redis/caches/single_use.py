"""Single-use ids: the first use of an id is accepted, later uses are refused on all replicas.

Callers pass a `for_s` that is as long as the id would be valid.
"""

from gateway.domain.identifiers import TenantId
from gateway.redis.event_bus import EventBus

_USE = "return redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[1]) and 1 or 0"
_IS_USED = "return redis.call('EXISTS', KEYS[1])"
_FREE = "return redis.call('DEL', KEYS[1])"


class SingleUseIds:
    """The used ids of all tenants, stored per tenant."""

    def __init__(self, bus: EventBus) -> None:
        self._namespace = bus.namespace
        self._use = bus.script(_USE)
        self._is_used = bus.script(_IS_USED)
        self._free = bus.script(_FREE)

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        """Mark the id as used for `for_s` seconds; False if it is already marked.

        Raises:
            RedisUnavailable: a previous use cannot be excluded.
        """
        return bool(await self._use((self._key(tenant, nonce),), for_s))

    async def is_used(self, tenant: TenantId, nonce: str) -> bool:
        """True if the id is marked as used.

        Raises:
            RedisUnavailable: a previous use cannot be excluded.
        """
        return bool(await self._is_used((self._key(tenant, nonce),)))

    async def free(self, tenant: TenantId, nonce: str) -> None:
        """Release an id that was not used after all."""
        await self._free((self._key(tenant, nonce),))

    def _key(self, tenant: TenantId, nonce: str) -> str:
        return f"{self._namespace}:t:{tenant}:nonce:{nonce}"
