"""How often one key of one tenant may call: token buckets in Redis, taken from in small leases.

A lease debits the tenant's bucket and the key's bucket in one step, so that all replicas and all keys together never
get more than the tenant's rate. A lease is as large as recent use asks for, and what is left of it ends after a second:
tokens neither pile up on idle replicas nor leak away on slow ones. While Redis is away each replica goes on by itself
at half of the limit.
"""

import time

import anyio

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.policy import Limits
from gateway.errors import LimitExceeded, RedisUnavailable
from gateway.redis.client import Script
from gateway.redis.event_bus import EventBus

_LEASE_S = 1.0
_GROW_BELOW_S = 0.33  # what is used up as fast lasts for two thirds of a second when it is doubled
_MOST_OF_RATE_S = 0.1
_PROBE_S = 1.0
_ALONE = 0.5
_NEVER_S = 60.0

# KEYS: buckets, all debited alike. ARGV: rate per second, burst, wanted.
# Answers how many tokens were taken from every bucket, and, when none, the ms until one is there.
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
    """What this replica holds of the tokens of one key."""

    def __init__(self, bus: EventBus, script: Script, tenant: TenantId, key: KeyId) -> None:
        prefix = f"{bus.namespace}:t:{tenant}:rate"
        self._bus = bus
        self._script = script
        self._buckets = (prefix, f"{prefix}:{key}")
        self._limits = Limits()
        self._slice = 1
        self._tokens = 0
        self._leased_at = 0.0
        self._empty_until = 0.0
        self._waiting = 0
        self._refilled: anyio.Event | None = None
        self._alone = _LocalBucket()

    @property
    def is_alone(self) -> bool:
        """Whether Redis is out of reach, so that this replica counts by itself."""
        return self._alone.is_on

    def try_take(self, limits: Limits) -> bool:
        """Take a token that is at hand; False when Redis has to be asked."""
        self._limits = limits
        now = time.monotonic()
        if self._tokens <= 0 or now - self._leased_at >= _LEASE_S:
            return False
        self._tokens -= 1
        if self._slice > 1 and self._tokens * 3 <= self._slice:
            self._refill(now)
        return True

    async def take(self, limits: Limits) -> None:
        """Take a token, from Redis when none is at hand.

        Raises:
            LimitExceeded: the rate is used up; says when to come again.
        """
        while not self.try_take(limits):
            now = time.monotonic()
            if limits.calls_per_second <= 0 or limits.burst < 1:
                raise _exceeded(_NEVER_S)
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
        """Ask for more, at most once at a time; the answer is set when it has come."""
        if self._refilled is None:
            self._refilled = anyio.Event()
            self._resize(now)
            self._bus.spawn(self._lease, self._refilled)
        return self._refilled

    def _resize(self, now: float) -> None:
        """Want more when the last lease was used up fast, less when some of it was left."""
        age = now - self._leased_at
        if age >= _LEASE_S:
            self._slice = max(1, self._slice // 2) if self._tokens > 0 else self._slice
            if age >= 2 * _LEASE_S:
                self._slice = 1
            self._tokens = 0
        elif age < _GROW_BELOW_S:
            self._slice *= 2
        most = min(self._limits.calls_per_second * _MOST_OF_RATE_S, self._limits.burst * _MOST_OF_RATE_S)
        self._slice = max(1, min(self._slice, int(most)))

    async def _lease(self, done: anyio.Event) -> None:
        limits = self._limits
        wanted = max(self._slice, min(self._waiting, limits.burst))
        try:
            granted, wait_ms = await self._script(self._buckets, limits.calls_per_second, limits.burst, wanted)
        except RedisUnavailable:
            self._alone.begin(limits, time.monotonic())
        else:
            self._alone.is_on = False
            self._book(granted, wait_ms)
        finally:
            self._refilled = None
            done.set()

    def _book(self, granted: int, wait_ms: int) -> None:
        now = time.monotonic()
        if granted > 0:
            self._tokens += granted
            self._leased_at = now
        else:
            self._empty_until = now + min(wait_ms / 1000, _LEASE_S)

    def _take_alone(self, limits: Limits, now: float) -> None:
        wait = self._alone.take(limits, now)
        if self._alone.probe_at <= now:
            self._alone.probe_at = now + _PROBE_S
            self._refill(now)
        if wait > 0:
            raise _exceeded(wait)


class _LocalBucket:
    """The bucket of a replica that cannot reach Redis: it fills at half of the rate, and starts almost empty."""

    def __init__(self) -> None:
        self.is_on = False
        self.probe_at = 0.0
        self._level = 0.0
        self._at = 0.0

    def begin(self, limits: Limits, now: float) -> None:
        """Go on without Redis, or stay so."""
        if not self.is_on:
            self._level = max(1.0, limits.calls_per_second * _ALONE * _MOST_OF_RATE_S)
            self._at = now
        self.is_on = True
        self.probe_at = now + _PROBE_S

    def take(self, limits: Limits, now: float) -> float:
        """Take a token; the answer is how many seconds are missing until there is one."""
        rate = limits.calls_per_second * _ALONE
        self._level = min(max(1.0, limits.burst * _ALONE), self._level + (now - self._at) * rate)
        self._at = now
        if self._level < 1:
            return (1 - self._level) / rate
        self._level -= 1
        return 0.0


def _exceeded(wait_s: float) -> LimitExceeded:
    return LimitExceeded("the tenant's rate of calls is used up", retry_after_s=max(0.001, wait_s))
