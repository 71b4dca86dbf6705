"""Complete bodies of truncated tool results: in Redis for up to ten minutes, each readable by one subject.

The key of a result contains its tenant and its subject, so a link does not work for another subject. A MAC over key,
type and body proves that a replica stored it. The bytes per tenant are limited; new results evict the oldest.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass, field

import structlog

from gateway.domain.identifiers import TenantId
from gateway.redis.entry_mac import RESULTS, ValueMac
from gateway.redis.event_bus import EventBus

log = structlog.get_logger(__name__)

SCHEME = "gateway+result"
RESULT_TTL_S = 600
MAX_RESULT_BYTES = 7 * 1024 * 1024
MAX_OF_TENANT = 64 * 1024 * 1024
"""The byte limit for all stored results of one tenant."""

_URI = re.compile(rf"{re.escape(SCHEME)}://([A-Za-z0-9_-]{{32}})")
_ID_BYTES = 24

# KEYS: result, results of the tenant by expiry, their sizes. ARGV: type, body, size, lifetime in ms, the tenant's byte
# limit, MAC.
_KEEP = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function forget(key)
  redis.call('DEL', key)
  redis.call('ZREM', KEYS[2], key)
  redis.call('HDEL', KEYS[3], key)
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))) do forget(key) end
local used = tonumber(ARGV[3])
for _, size in ipairs(redis.call('HVALS', KEYS[3])) do used = used + size end
while used > tonumber(ARGV[5]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest then break end
  used = used - (redis.call('HGET', KEYS[3], oldest) or 0)
  forget(oldest)
end
redis.call('HSET', KEYS[1], 'type', ARGV[1], 'body', ARGV[2], 'mac', ARGV[6])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[4] * 1000), KEYS[1])
redis.call('HSET', KEYS[3], KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return 1
"""
_READ = "return redis.call('HMGET', KEYS[1], 'type', 'body', 'mac')"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """A complete result: its content type and its bytes."""

    content_type: str
    body: bytes = field(repr=False)


class ResultOverflow:
    """The stored results of all tenants."""

    def __init__(
        self,
        bus: EventBus,
        *,
        life_s: float = RESULT_TTL_S,
        largest: int = MAX_RESULT_BYTES,
        tenant_limit: int = MAX_OF_TENANT,
    ) -> None:
        self._largest = largest
        self._tenant_limit = tenant_limit
        self._namespace = bus.namespace
        self._life_ms = int(life_s * 1000)
        self._seal = ValueMac(bus, RESULTS)
        self._keep = bus.script(_KEEP)
        self._read = bus.script(_READ)

    async def keep(self, tenant: TenantId, subject: str, content_type: str, body: bytes) -> str | None:
        """Store a result and return the URI under which the subject can read it; None when it is too large.

        Raises:
            RedisUnavailable: the result may or may not be stored.
        """
        if len(body) > self._largest:
            return None
        name = secrets.token_urlsafe(_ID_BYTES)
        of_tenant = f"{self._namespace}:t:{tenant}:leftovers"
        keys = (self._key(tenant, subject, name), f"{of_tenant}:ends", f"{of_tenant}:sizes")
        mac = self._seal.make(keys[0], content_type.encode(), body)
        await self._keep(keys, content_type, body, len(body), self._life_ms, self._tenant_limit, mac)
        return f"{SCHEME}://{name}"

    async def read(self, tenant: TenantId, subject: str, uri: str) -> StoredResult | None:
        """Return the stored result; None if this subject has no such result, or its MAC is wrong.

        A result of another subject looks like a missing result.

        Raises:
            RedisUnavailable: the result cannot be read.
        """
        found = _URI.fullmatch(uri)
        if found is None:
            return None
        key = self._key(tenant, subject, found[1])
        content_type, body, mac = await self._read((key,))
        if content_type is None or body is None:
            return None
        if not self._seal.holds(key, content_type, body, mac=mac):  # guard: kept-result-seal
            log.error("kept_result_refused", tenant_id=tenant)
            return None
        return StoredResult(content_type=content_type.decode("utf-8", "replace"), body=body)

    def _key(self, tenant: TenantId, subject: str, name: str) -> str:
        whose = hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"{self._namespace}:t:{tenant}:leftover:{whose}:{name}"
