"""What may be used once only: the first who names it has used it, on whatever replica."""

from gateway.domain.identifiers import TenantId
from gateway.redis.event_bus import EventBus

_USE = "return redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[1]) and 1 or 0"
_FREE = "return redis.call('DEL', KEYS[1])"


class SingleUseIds:
    """The used ones of all tenants, one tenant at a time."""

    def __init__(self, bus: EventBus) -> None:
        self._namespace = bus.namespace
        self._use = bus.script(_USE)
        self._free = bus.script(_FREE)

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        """Use it; False when it was used before. It is remembered for as long as it would be good.

        Raises:
            RedisUnavailable: nobody knows whether it was.
        """
        return bool(await self._use((self._key(tenant, nonce),), for_s))

    async def free(self, tenant: TenantId, nonce: str) -> None:
        """It was not used after all."""
        await self._free((self._key(tenant, nonce),))

    def _key(self, tenant: TenantId, nonce: str) -> str:
        return f"{self._namespace}:t:{tenant}:nonce:{nonce}"
