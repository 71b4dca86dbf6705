"""Leases of live sources: the replica that holds a source's lease attaches the source and renews the lease.

A sorted set holds, for each source, the time from which a replica may acquire it: the end of its lease, the next
attempt, or now. So another replica takes a crashed replica's sources when their leases expire. PostgreSQL is
authoritative: `jobs.live` adds missing sources.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.redis.client import NOW_MS
from gateway.redis.event_bus import EventBus
from gateway.redis.live.limits import LEASE_S

# KEYS: due, holders. ARGV: replica, lease in ms, maximum number. Returns the sources that this replica now holds.
_ACQUIRE = f"""{NOW_MS}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[3])
for _, source in ipairs(due) do
  redis.call('ZADD', KEYS[1], now + ARGV[2], source)
  redis.call('HSET', KEYS[2], source, ARGV[1])
end
return due
"""

# KEYS: due, holders. ARGV: replica, lease in ms, sources. Returns the sources that another replica holds. A source
# without a holder is leased again, because Redis has lost its data.
_RENEW = f"""{NOW_MS}
local lost = {{}}
for index = 3, #ARGV do
  local holder = redis.call('HGET', KEYS[2], ARGV[index])
  if not holder then redis.call('HSET', KEYS[2], ARGV[index], ARGV[1]) end
  if not holder or holder == ARGV[1] then
    redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[index])
  else lost[#lost + 1] = ARGV[index] end
end
return lost
"""

# KEYS: due, holders. ARGV: replica, source, ms until it is due, or -1 for never. Does nothing unless this replica holds
# the lease.
_RELEASE = f"""{NOW_MS}
if redis.call('HGET', KEYS[2], ARGV[2]) ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[2], ARGV[2])
if ARGV[3] == '-1' then redis.call('ZREM', KEYS[1], ARGV[2])
else redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2]) end
return 1
"""

# KEYS: due, holders. ARGV: replica, lease in ms, source. The replica replaces any other holder.
_SEIZE = f"""{NOW_MS}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[1])
return 1
"""

# KEYS: due, holders. ARGV: '1' to make sources without a holder due now, then the sources. Sources with a holder are
# unchanged.
_ADD = f"""{NOW_MS}
for index = 2, #ARGV do
  if ARGV[1] == '1' and not redis.call('HGET', KEYS[2], ARGV[index]) then
    redis.call('ZADD', KEYS[1], now, ARGV[index])
  else redis.call('ZADD', KEYS[1], 'NX', now, ARGV[index]) end
end
return 1
"""

_HOLDER = "return redis.call('HGET', KEYS[1], ARGV[1])"


@dataclass(frozen=True, slots=True)
class SourceKey:
    """A live source of a tenant."""

    tenant: TenantId
    source: LiveSourceId

    @property
    def member(self) -> str:
        """The member of the sorted set that represents the source."""
        return f"{self.tenant}/{self.source}"


class AttachmentLeases:
    """The leases of all live sources, as seen by one replica. All times are those of the Redis server."""

    def __init__(self, bus: EventBus, *, lease_s: float = LEASE_S) -> None:
        self._replica = bus.replica
        self._keys = (f"{bus.namespace}:live:due", f"{bus.namespace}:live:holders")
        self._lease_ms = round(lease_s * 1000)
        self._acquire = bus.script(_ACQUIRE)
        self._renew = bus.script(_RENEW)
        self._release = bus.script(_RELEASE)
        self._seize = bus.script(_SEIZE)
        self._add = bus.script(_ADD)
        self._find = bus.script(_HOLDER)

    async def take(self, limit: int) -> Sequence[SourceKey]:
        """Take the leases of at most `limit` sources that are due.

        Raises:
            RedisUnavailable: leases may have been taken.
        """
        members = await self._acquire(self._keys, self._replica, self._lease_ms, limit)
        return [key for member in members if (key := _read(member)) is not None]

    async def renew(self, held: Collection[SourceKey]) -> Sequence[SourceKey]:
        """Renew these leases; return those that this replica no longer holds.

        Raises:
            RedisUnavailable: the leases may expire.
        """
        if not held:
            return ()
        lost = await self._renew(self._keys, self._replica, self._lease_ms, *(key.member for key in held))
        return [key for member in lost if (key := _read(member)) is not None]

    async def release(self, key: SourceKey, *, due_in_s: float | None) -> None:
        """Release a lease; the source is due after `due_in_s`, or never if None.

        Raises:
            RedisUnavailable: the source is due when the lease expires.
        """
        wait_ms = -1 if due_in_s is None else round(due_in_s * 1000)
        await self._release(self._keys, self._replica, key.member, wait_ms)

    async def seize(self, key: SourceKey) -> None:
        """Take the lease of a source from any holder, because its client program has connected to this replica.

        Raises:
            RedisUnavailable: the source may have another holder.
        """
        await self._seize(self._keys, self._replica, self._lease_ms, key.member)

    async def add(self, keys: Collection[SourceKey], *, is_due: bool = False) -> None:
        """Add missing sources; with `is_due`, sources without a holder become due now.

        Raises:
            RedisUnavailable: some may still be missing.
        """
        if keys:
            await self._add(self._keys, "1" if is_due else "0", *(key.member for key in keys))

    async def holder(self, key: SourceKey) -> str | None:
        """Return the replica that holds the source; it may have crashed. None without a holder.

        Raises:
            RedisUnavailable: the holder is unknown.
        """
        found: bytes | None = await self._find((self._keys[1],), key.member)
        return None if found is None else found.decode()


def _read(member: bytes) -> SourceKey | None:
    tenant, _, source = member.decode("utf-8", "replace").partition("/")
    return SourceKey(TenantId(tenant), LiveSourceId(source)) if tenant and source else None
