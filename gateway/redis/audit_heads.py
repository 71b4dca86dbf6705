"""Heads of the audit hash chains in Redis: the newest signed head of each tenant.

The value contains its own MAC (`gateway.store.audit.outside_heads`); this module only stores and loads it.
"""

from collections.abc import Mapping, Sequence

from gateway.domain.identifiers import TenantId
from gateway.redis.event_bus import EventBus

_TTL_MS = 400 * 24 * 3600 * 1000
"""Heads of removed tenants expire 400 days after the last write."""

_PUT = """
for index, key in ipairs(KEYS) do redis.call('SET', key, ARGV[index + 1], 'PX', ARGV[1]) end
return 1
"""
_GET = "return redis.call('GET', KEYS[1])"


class RedisHeadStore:
    """The heads of all tenants in this Redis."""

    name = "redis"
    is_memory = True  # a starting signer may continue from these heads

    def __init__(self, bus: EventBus) -> None:
        self._namespace = bus.namespace
        self._put = bus.script(_PUT)
        self._get = bus.script(_GET)

    async def put(self, heads: Mapping[TenantId, bytes]) -> None:
        """Store these heads in place of older ones.

        Raises:
            RedisUnavailable: Redis did not confirm; the heads may have been stored.
        """
        await self._put([self._key(tenant) for tenant in heads], _TTL_MS, *heads.values())

    async def get(self, tenant: TenantId) -> Sequence[bytes]:
        """Return the tenant's head, or an empty sequence.

        Raises:
            RedisUnavailable: nothing was read.
        """
        found: bytes | None = await self._get((self._key(tenant),))
        return [] if found is None else [found]

    def _key(self, tenant: TenantId) -> str:
        return f"{self._namespace}:t:{tenant}:audit-head"
