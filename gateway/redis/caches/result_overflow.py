"""Documents of summarised and cut tool results: in Redis for up to ten minutes, each readable by one owner.

The Redis key of a result contains its tenant and owner, so no other owner can use its URI. A MAC over key, type and
body proves that a replica stored the result. The bytes per owner and per tenant are limited. A new result evicts the
oldest results of its owner, and then those of the owner with the most bytes.
"""

import hashlib
import re
import secrets

import structlog

from gateway.domain.calls.limits import MAX_STORED_BYTES
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import TenantId
from gateway.domain.results import RESULT_SCHEME, StoredResult
from gateway.redis.caches.limits import MAX_RESULTS_OF_OWNER, MAX_RESULTS_OF_TENANT, MIN_CHARGED_BYTES, RESULT_TTL_S
from gateway.redis.entry_mac import RESULTS, ValueMac
from gateway.redis.event_bus import EventBus

log = structlog.get_logger(__name__)


_URI = re.compile(rf"{re.escape(RESULT_SCHEME)}://([A-Za-z0-9_-]{{32}})")
_ID_BYTES = 24
_MEMORY_SHARE = 0.6
"""The share of the memory of Redis up to which results are stored; sessions, limits and events have the rest."""

# KEYS: result, results of the tenant by expiry, their sizes. ARGV: type, body, size, lifetime in ms, the byte limits of
# the tenant and of an owner, MAC, the share of the memory. The name of a result is the owner's prefix, a colon, and 32
# characters. Returns 0 if Redis has no room: INFO costs about 20 µs, which is little beside a body of many kilobytes.
_KEEP = """
local memory = redis.call('INFO', 'memory')
local used = tonumber(string.match(memory, 'used_memory:(%d+)') or 0)
local most = tonumber(string.match(memory, 'maxmemory:(%d+)') or 0)
if most > 0 and used > most * tonumber(ARGV[8]) then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local total, of_owner, held, sizes = 0, {}, {}, {}
local function owner_of(key) return string.sub(key, 1, -34) end
local function count(key, size)
  total = total + size
  of_owner[owner_of(key)] = (of_owner[owner_of(key)] or 0) + size
end
local function forget(key)
  redis.call('DEL', key)
  redis.call('ZREM', KEYS[2], key)
  redis.call('HDEL', KEYS[3], key)
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))) do forget(key) end
local known = redis.call('HGETALL', KEYS[3])
for at = 1, #known, 2 do
  sizes[known[at]] = tonumber(known[at + 1])
  count(known[at], sizes[known[at]])
  held[owner_of(known[at])] = (held[owner_of(known[at])] or 0) + 1
end
local by_age = redis.call('ZRANGE', KEYS[2], 0, -1)
local function evict(owner)
  for _, key in ipairs(by_age) do
    if sizes[key] and owner_of(key) == owner then
      forget(key)
      count(key, -sizes[key])
      sizes[key] = nil
      held[owner] = held[owner] - 1
      return true
    end
  end
  return false
end
local function largest()
  local found
  for owner, size in pairs(of_owner) do
    if (held[owner] or 0) > 0 and (not found or size > of_owner[found]) then found = owner end
  end
  return found
end
count(KEYS[1], tonumber(ARGV[3]))
local own = owner_of(KEYS[1])
while of_owner[own] > tonumber(ARGV[6]) and evict(own) do end
while total > tonumber(ARGV[5]) and evict(largest()) do end
redis.call('HSET', KEYS[1], 'type', ARGV[1], 'body', ARGV[2], 'mac', ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[4] * 1000), KEYS[1])
redis.call('HSET', KEYS[3], KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return 1
"""
_READ = "return redis.call('HMGET', KEYS[1], 'type', 'body', 'mac')"


class ResultOverflow:
    """The stored results of all tenants."""

    def __init__(
        self,
        bus: EventBus,
        *,
        life_s: float = RESULT_TTL_S,
        tenant_limit: int = MAX_RESULTS_OF_TENANT,
        owner_limit: int = MAX_RESULTS_OF_OWNER,
        min_charge: int = MIN_CHARGED_BYTES,
        memory_share: float = _MEMORY_SHARE,
    ) -> None:
        self._limits = (tenant_limit, owner_limit)
        self._least = min_charge
        self._memory_share = memory_share
        self._namespace = bus.namespace
        self._life_ms = int(life_s * 1000)
        self._seal = ValueMac(bus, RESULTS)
        self._keep = bus.script(_KEEP)
        self._read = bus.script(_READ)

    async def keep(self, tenant: TenantId, owner: str, content_type: str, body: bytes) -> str | None:
        """Store a result and return the URI under which its owner can read it; None if it is too large.

        A Redis whose memory is used above the share for results stores none.

        Raises:
            RedisUnavailable: the result may or may not be stored.
        """
        if len(body) > MAX_STORED_BYTES:
            return None
        name = secrets.token_urlsafe(_ID_BYTES)
        of_tenant = f"{self._namespace}:t:{tenant}:leftovers"
        keys = (self._key(tenant, owner, name), f"{of_tenant}:ends", f"{of_tenant}:sizes")
        mac = await run_large(tenant, len(body), self._seal.make, keys[0], content_type.encode(), body)
        charge = max(len(body), self._least)  # guard: small-results-charged
        limits = (*self._limits, mac, self._memory_share)
        is_kept = await self._keep(keys, content_type, body, charge, self._life_ms, *limits)
        if not is_kept:  # guard: results-leave-memory
            log.warning("result_not_stored", reason="Redis is short of memory", tenant_id=tenant)
            return None
        return f"{RESULT_SCHEME}://{name}"

    async def read(self, tenant: TenantId, owner: str, uri: str) -> StoredResult | None:
        """Return the stored result; None if this owner has no such result, or its MAC is wrong.

        A result of another owner looks like a missing result.

        Raises:
            RedisUnavailable: the result cannot be read.
        """
        found = _URI.fullmatch(uri)
        if found is None:
            return None
        key = self._key(tenant, owner, found[1])
        content_type, body, mac = await self._read((key,))
        if content_type is None or body is None:
            return None
        is_ours = await run_large(tenant, len(body), self._seal.holds, key, content_type, body, mac=mac)
        if not is_ours:  # guard: kept-result-seal
            log.error("kept_result_refused", tenant_id=tenant)
            return None
        return StoredResult(content_type=content_type.decode("utf-8", "replace"), body=body)

    def _key(self, tenant: TenantId, owner: str, name: str) -> str:
        owner_digest = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"{self._namespace}:t:{tenant}:leftover:{owner_digest}:{name}"
