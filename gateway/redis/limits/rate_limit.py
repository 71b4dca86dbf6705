"""The call rate of one key of one tenant: token buckets in Redis, used through small leases.

A lease debits the tenant's bucket and the key's bucket in one step, so the tenant's rate bounds all replicas and keys
together. The size of a lease follows recent use, and its unused tokens expire after a second. So idle replicas hold
no tokens, and replicas with few calls waste few tokens. While Redis is unavailable, each replica counts separately,
with half of the rate and of the burst.
"""

import time

import anyio

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.policy import Limits
from gateway.errors import LimitExceeded, RedisUnavailable
from gateway.redis.client import Script
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import GROW_BELOW_S, MAX_LEASED_S, PROBE_S, TOKENS_LEASE_S, ZERO_RATE_RETRY_S

_OFFLINE_SHARE = 0.5

# KEYS: buckets, all debited alike. ARGV: rate per second, burst, wanted.
# Returns the number of tokens taken from each bucket and, if it is 0, the ms until a token is available.
LEASE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local rate, burst, granted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local levels, lowest = {}, burst
for index, key in ipairs(KEYS) do
  local state = redis.call('HMGET', key, 'level', 'at')
  local level, at = tonumber(state[1]) or burst, tonumber(state[2]) or now
  if now > at then level = level + (now - at) * rate / 1000000 end
  levels[index] = math.min(burst, level)
  lowest = math.min(lowest, levels[index])
end
granted = math.min(granted, math.floor(lowest))
local life = math.ceil(burst / rate * 1000) + 1000
for index, key in ipairs(KEYS) do
  redis.call('HSET', key, 'level', string.format('%.6f', levels[index] - granted), 'at', string.format('%.0f', now))
  redis.call('PEXPIRE', key, life)
end
if granted > 0 then return {granted, 0} end
return {0, math.ceil((1 - lowest) / rate * 1000) + 1}
"""


class LeasedTokenBucket:
    """The tokens of one key that this replica has leased."""

    def __init__(self, bus: EventBus, script: Script, tenant: TenantId, key: KeyId, *, spawn: Spawn) -> None:
        prefix = f"{bus.namespace}:t:{tenant}:rate"
        self._spawn = spawn
        self._script = script
        self._buckets = (prefix, f"{prefix}:{key}")
        self._limits = Limits()
        self._lease_size = 1
        self._tokens = 0
        self._leased_at = 0.0
        self._empty_until = 0.0
        self._waiting = 0
        self._refilled: anyio.Event | None = None
        self._local = _LocalBucket()

    @property
    def is_alone(self) -> bool:
        """True if Redis is unavailable, so that this replica counts separately."""
        return self._local.is_active

    def try_take(self, limits: Limits) -> bool:
        """Take a token that is already leased; return False if none is usable."""
        self._limits = limits
        now = time.monotonic()
        if self._tokens <= 0 or now - self._leased_at >= TOKENS_LEASE_S:
            return False
        self._tokens -= 1
        if self._lease_size > 1 and self._tokens * 3 <= self._lease_size:
            self._refill(now)
        return True

    async def take(self, limits: Limits) -> None:
        """Take a leased token, or lease some from Redis.

        Raises:
            LimitExceeded: the rate is used up or zero; contains the time to retry after.
        """
        while not self.try_take(limits):
            now = time.monotonic()
            if limits.calls_per_second <= 0 or limits.burst < 1:
                raise _exceeded(ZERO_RATE_RETRY_S)
            if now < self._empty_until:
                raise _exceeded(self._empty_until - now)
            if self.is_alone:
                self._take_alone(limits, now)
                return
            await self._await_refill(now)

    async def _await_refill(self, now: float) -> None:
        self._waiting += 1
        try:
            await self._refill(now).wait()
        finally:
            self._waiting -= 1

    def _refill(self, now: float) -> anyio.Event:
        """Request the next lease, one at a time; the returned event is set when the request has ended."""
        if self._refilled is None:
            self._refilled = anyio.Event()
            self._resize(now)
            self._spawn(self._lease, self._refilled)
        return self._refilled

    def _resize(self, now: float) -> None:
        """Adapt the lease size, up to 0.1 s of the rate.

        It doubles when a lease lasts less than 0.33 s, halves when tokens expire unused, and is 1 after 2 s.
        """
        age = now - self._leased_at
        if age >= TOKENS_LEASE_S:
            self._lease_size = max(1, self._lease_size // 2) if self._tokens > 0 else self._lease_size
            if age >= 2 * TOKENS_LEASE_S:
                self._lease_size = 1
            self._tokens = 0
        elif age < GROW_BELOW_S:
            self._lease_size *= 2
        max_lease = min(self._limits.calls_per_second * MAX_LEASED_S, self._limits.burst * MAX_LEASED_S)
        self._lease_size = max(1, min(self._lease_size, int(max_lease)))

    async def _lease(self, done: anyio.Event) -> None:
        limits = self._limits
        wanted = max(self._lease_size, min(self._waiting, limits.burst))
        try:
            granted, wait_ms = await self._script(self._buckets, limits.calls_per_second, limits.burst, wanted)
        except RedisUnavailable:
            self._local.begin(limits, time.monotonic())
        else:
            self._local.is_active = False
            self._store_lease(granted, wait_ms)
        finally:
            self._refilled = None
            done.set()

    def _store_lease(self, granted: int, wait_ms: int) -> None:
        now = time.monotonic()
        if granted > 0:
            self._tokens += granted
            self._leased_at = now
        else:
            self._empty_until = now + min(wait_ms / 1000, TOKENS_LEASE_S)

    def _take_alone(self, limits: Limits, now: float) -> None:
        wait = self._local.take(limits, now)
        if self._local.probe_at <= now:
            self._local.probe_at = now + PROBE_S
            self._refill(now)
        if wait > 0:
            raise _exceeded(wait)


class _LocalBucket:
    """The bucket of a replica without Redis: it refills at half of the rate, and starts almost empty."""

    def __init__(self) -> None:
        self.is_active = False
        self.probe_at = 0.0
        self._tokens = 0.0
        self._filled_at = 0.0

    def begin(self, limits: Limits, now: float) -> None:
        """Activate the bucket; an active bucket keeps its tokens."""
        if not self.is_active:
            self._tokens = max(1.0, limits.calls_per_second * _OFFLINE_SHARE * MAX_LEASED_S)
            self._filled_at = now
        self.is_active = True
        self.probe_at = now + PROBE_S

    def take(self, limits: Limits, now: float) -> float:
        """Take a token and return 0, or return the seconds until a token is available."""
        rate = limits.calls_per_second * _OFFLINE_SHARE
        self._tokens = min(max(1.0, limits.burst * _OFFLINE_SHARE), self._tokens + (now - self._filled_at) * rate)
        self._filled_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / rate
        self._tokens -= 1
        return 0.0


def _exceeded(wait_s: float) -> LimitExceeded:
    message = "the tenant exceeds its rate of calls; retry later"
    return LimitExceeded(message, limit="calls_per_second", retry_after_s=max(0.001, wait_s))
