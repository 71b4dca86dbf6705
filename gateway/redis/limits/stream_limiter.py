"""The limit on open streams of one tenant, and of one of its keys, across all replicas.

Each open stream has a slot in two sorted sets. A replica renews its slots every 5 s; the slots of a killed replica are
free again after 15 s. A stream needs only two commands besides renewals, so slots are not leased in advance.
"""

import itertools

import anyio
import structlog

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import KeyId, TenantId
from gateway.errors import LimitExceeded, RedisUnavailable
from gateway.redis.client import NOW_MS
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import STREAM_RETRY_S, STREAMS_RENEW_S, STREAMS_TTL_S
from gateway.redis.sessions.records import share_of

log = structlog.get_logger(__name__)

_KEY_STREAMS = 50

# KEYS: slots of the tenant, of the key. ARGV: slot, lifetime in ms, cap of the tenant, cap of the key.
_ACQUIRE = (
    NOW_MS
    + """
for index = 1, 2 do
  redis.call('ZREMRANGEBYSCORE', KEYS[index], '-inf', string.format('%.0f', now))
  if redis.call('ZCARD', KEYS[index]) >= tonumber(ARGV[index + 2]) then return 0 end
end
for index = 1, 2 do
  redis.call('ZADD', KEYS[index], string.format('%.0f', now + ARGV[2]), ARGV[1])
  redis.call('PEXPIRE', KEYS[index], ARGV[2])
end
return 1
"""
)

# KEYS: slots of the tenant, of the key. ARGV: lifetime in ms, slots.
_RENEW = (
    NOW_MS
    + """
local ends = string.format('%.0f', now + ARGV[1])
for index = 1, 2 do
  for entry = 2, #ARGV do redis.call('ZADD', KEYS[index], ends, ARGV[entry]) end
  redis.call('PEXPIRE', KEYS[index], ARGV[1])
end
return 1
"""
)

# KEYS: slots of the tenant, of the key. ARGV: slot.
_RELEASE = "return redis.call('ZREM', KEYS[1], ARGV[1]) + redis.call('ZREM', KEYS[2], ARGV[1])"


def streams_of_key(cap: int) -> int:
    """The cap per key: 90 % of the tenant's cap but at most 50, and never less than half of the tenant's cap."""
    return max(min(share_of(cap), _KEY_STREAMS), cap - cap // 2)  # guard: streams-of-one-key


class StreamLimiter:
    """The open streams of this replica, counted together with the streams of the other replicas."""

    def __init__(self, bus: EventBus, *, spawn: Spawn) -> None:
        self._bus = bus
        self._spawn = spawn
        self._acquire_script = bus.script(_ACQUIRE)
        self._renew = bus.script(_RENEW)
        self._free = bus.script(_RELEASE)
        self._numbers = itertools.count(1)
        self._held: dict[tuple[TenantId, KeyId], set[str]] = {}
        self._is_renewing = False

    def __len__(self) -> int:
        """Number of streams that are open on this replica."""
        return sum(len(slots) for slots in self._held.values())

    async def acquire(self, tenant: TenantId, key: KeyId, cap: int) -> str:
        """Count one stream until its slot is released, and return the slot.

        While Redis is unavailable, each replica counts only its own streams.

        Raises:
            LimitExceeded: the tenant or the key has reached its cap of open streams.
        """
        slot = f"{self._bus.replica}:{next(self._numbers)}"
        self._held.setdefault((tenant, key), set()).add(slot)
        try:
            if not await self._is_free(tenant, key, slot, cap):  # guard: listen-limit
                message = f"too many open streams (limit {cap} per tenant, {streams_of_key(cap)} per key); close one"
                raise LimitExceeded(message, limit="streams", retry_after_s=STREAM_RETRY_S)
        except BaseException:
            await self.release(tenant, key, slot)
            raise
        self._keep_alive()
        return slot

    async def release(self, tenant: TenantId, key: KeyId, slot: str) -> None:
        """Release a slot."""
        held = self._held.get((tenant, key))
        if held is not None:
            held.discard(slot)
            if not held:
                del self._held[tenant, key]
        with anyio.CancelScope(shield=True):
            await self._release(tenant, key, slot)

    async def _is_free(self, tenant: TenantId, key: KeyId, slot: str, cap: int) -> bool:
        try:
            limits = (cap, streams_of_key(cap))
            taken = await self._acquire_script(self._slot_keys(tenant, key), slot, int(STREAMS_TTL_S * 1000), *limits)
        except RedisUnavailable:
            mine = sum(len(slots) for (of, _), slots in self._held.items() if of == tenant)
            return mine <= cap and len(self._held[tenant, key]) <= streams_of_key(cap)
        return bool(taken)

    async def _release(self, tenant: TenantId, key: KeyId, slot: str) -> None:
        try:
            await self._free(self._slot_keys(tenant, key), slot)
        except RedisUnavailable:
            log.debug("slot_not_released")  # the slot expires

    def _keep_alive(self) -> None:
        if not self._is_renewing:
            self._is_renewing = True
            self._spawn(self._renew_all)

    async def _renew_all(self) -> None:
        try:
            while self._held:
                await anyio.sleep(STREAMS_RENEW_S)
                for (tenant, key), slots in tuple(self._held.items()):
                    try:
                        await self._write(tenant, key, slots)
                    except Exception:  # the slots of the others would expire
                        log.exception("slots_not_renewed", tenant_id=tenant)
        finally:
            self._is_renewing = False

    async def _write(self, tenant: TenantId, key: KeyId, slots: set[str]) -> None:
        message = tuple(slots)
        try:
            await self._renew(self._slot_keys(tenant, key), int(STREAMS_TTL_S * 1000), *message)
        except RedisUnavailable:
            log.debug("slots_not_renewed")
        for slot in set(message) - slots:  # released during the renewal
            await self._release(tenant, key, slot)

    def _slot_keys(self, tenant: TenantId, key: KeyId) -> tuple[str, str]:
        prefix = f"{self._bus.namespace}:t:{tenant}:streams"
        return prefix, f"{prefix}:{key}"
