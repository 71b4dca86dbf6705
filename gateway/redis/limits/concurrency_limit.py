"""The limit on concurrent calls of one tenant, across all replicas.

A replica leases slots from a Redis hash before it uses them, so the sum stays within the limit. A replica with calls
also leases a few spare slots. It renews its entry every two seconds; the slots of a killed replica are free again once
its entry expires. While Redis is unavailable, each replica admits half of the limit, at least one call. After an outage
or a lower limit, the sum may exceed the limit until running calls end.
"""

import time
from enum import Enum, auto

import anyio

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import TenantId
from gateway.errors import LimitExceeded, RedisUnavailable
from gateway.redis.client import NOW_MS, Script
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import MAX_ATTEMPTS, PROBE_S, RENEW_DELAY_S, SLOT_RETRY_S, SLOTS_TTL_S, SMALL_LIMIT

_SPARE_DIVISOR = 32

# KEYS: slots of the tenant, replica -> "held until". ARGV: replica, in use, wanted, limit, lifetime in ms.
# Returns the number of slots that this replica now holds.
SYNC = (
    NOW_MS
    + """
local others = 0
local entries = redis.call('HGETALL', KEYS[1])
for index = 1, #entries, 2 do
  local held, ends = string.match(entries[index + 1], '^(%d+) (%d+)$')
  if not held or tonumber(ends) <= now then redis.call('HDEL', KEYS[1], entries[index])
  elseif entries[index] ~= ARGV[1] then others = others + tonumber(held) end
end
local held = math.max(tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), tonumber(ARGV[4]) - others))
if held <= 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %.0f', held, now + ARGV[5]))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return held
"""
)


class _Grant(Enum):
    """The outcome of the last request to Redis; each request replaces it."""

    ENOUGH = auto()
    SHORT = auto()
    """Redis granted fewer slots than requested; a call that waited for this request is refused."""
    ALONE = auto()
    """Redis is unavailable: this replica admits half of the limit."""


class ConcurrencyLease:
    """The slots of one tenant that this replica has leased."""

    def __init__(self, bus: EventBus, script: Script, tenant: TenantId, *, spawn: Spawn) -> None:
        self._bus = bus
        self._spawn = spawn
        self._script = script
        self._hash = f"{bus.namespace}:t:{tenant}:slots"
        self._limit = 0
        self._spare = 0
        """Spare slots that are leased while calls run; 0 for a limit below 8."""
        self._max_idle = 0
        """Limit on the slots that stay leased while no call runs."""
        self._in_use = 0
        self._held = 0
        self._held_until = 0.0
        self._waiting = 0
        self._grant = _Grant.ENOUGH
        self._is_used = False
        """True if a call began since the last request."""
        self._is_renewal_due = False
        self._asked_at = 0.0
        self._synced: anyio.Event | None = None

    @property
    def in_use(self) -> int:
        """Number of the tenant's calls that run on this replica."""
        return self._in_use

    @property
    def is_idle(self) -> bool:
        """True if no call runs or waits, no slot is held and no request to Redis is pending."""
        return self._in_use == 0 and self._held == 0 and self._waiting == 0 and self._synced is None

    def try_take(self, limit: int) -> bool:
        """Take a slot that is already leased; return False if none is usable."""
        if self._in_use >= self._held or limit != self._limit or time.monotonic() >= self._held_until:
            return False
        self._in_use += 1
        self._is_used = True
        return True

    async def take(self, limit: int) -> None:
        """Take a leased slot, or lease one from Redis.

        Raises:
            LimitExceeded: the tenant's limit is reached; while Redis is unavailable, half of it on this replica.
        """
        for _ in range(MAX_ATTEMPTS):
            self._adopt(limit)
            if self.try_take(limit):
                return
            if self._grant is _Grant.ALONE:
                self._take_alone(limit)
                return
            was_asked = self._synced is not None  # a running synchronisation may not include this call
            await self._await_sync()
            if self._grant is _Grant.SHORT and not was_asked and self._in_use >= self._held:
                break
        raise _exceeded(limit)

    def free(self) -> None:
        """Release a slot when its call has ended."""
        self._in_use -= 1
        self._settle()

    async def renew(self) -> None:
        """Renew this replica's entry, and return the slots that it does not need."""
        if not self.is_idle:
            await (self._synced or self._start_sync()).wait()

    def _settle(self) -> None:
        """Return excess slots: after 0.25 s, or at once for a limit below 8, which leaves no spare slots.

        Without calls, up to `_max_idle` slots stay leased, until a renewal finds that no call began since the last one.
        """
        needed = self._in_use + self._waiting
        unused = self._held - needed
        if unused <= self._max_idle or (needed and self._spare and unused <= max(self._spare, needed)):
            return
        if self._synced is not None or self._is_renewal_due or self._grant is _Grant.ALONE:
            return
        if not self._spare:
            self._start_sync()
        else:
            self._is_renewal_due = True
            self._spawn(self._renew_later)

    async def _renew_later(self) -> None:
        try:
            await anyio.sleep(RENEW_DELAY_S)
        finally:
            self._is_renewal_due = False
        await self.renew()

    def _adopt(self, limit: int) -> None:
        if limit != self._limit:
            self._limit = limit
            self._spare = max(1, limit // _SPARE_DIVISOR) if limit >= SMALL_LIMIT else 0
            self._max_idle = 2 * (limit // _SPARE_DIVISOR)
            self._held = min(self._held, self._in_use)

    def _take_alone(self, limit: int) -> None:
        if time.monotonic() - self._asked_at > PROBE_S and self._synced is None:
            self._start_sync()
        if self._in_use >= max(1, limit // 2) or limit < 1:
            raise _exceeded(limit)
        self._in_use += 1

    async def _await_sync(self) -> None:
        self._waiting += 1
        try:
            await (self._synced or self._start_sync()).wait()
        finally:
            self._waiting -= 1

    def _start_sync(self) -> anyio.Event:
        self._synced = anyio.Event()
        self._spawn(self._sync, self._synced)
        return self._synced

    async def _sync(self, done: anyio.Event) -> None:
        """Report the used and wanted slots to Redis, and store the granted number."""
        self._asked_at = time.monotonic()
        running, needed = self._in_use, self._in_use + self._waiting
        wanted = min(self._limit, needed + self._spare) if needed else 0
        if not needed and self._is_used:
            wanted = min(1 + self._spare, self._max_idle)
        self._is_used = False
        self._held = min(self._held, max(wanted, running))  # slots that are being returned are no longer used
        try:
            held: int = await self._script(
                (self._hash,), self._bus.replica, running, wanted, self._limit, int(SLOTS_TTL_S * 1000)
            )
        except RedisUnavailable:
            self._grant = _Grant.ALONE
        else:
            self._grant = _Grant.SHORT if held < needed else _Grant.ENOUGH
            self._held, self._held_until = held, self._asked_at + SLOTS_TTL_S
        finally:
            self._synced = None
            done.set()
        self._settle()


def _exceeded(limit: int) -> LimitExceeded:
    return LimitExceeded(
        f"too many concurrent calls of the tenant (limit {limit}); retry later",
        limit="concurrency",
        retry_after_s=SLOT_RETRY_S,
    )
