"""Links that tools of live sources returned to callers: in Redis, so that every replica can read what they name.

A link belongs to its caller: the owner of the caller's results (subject, profile and rules) and the client's MCP
session. A MAC proves that a replica stored it. When an owner has too many links, the source with the most of them
loses its oldest one, so that no source evicts the links of one with fewer. A new owner evicts the links of the owner
that used none for longest. A URI is read at the first source that returned it, until the link is evicted or expires.
"""

import hashlib
from collections.abc import Sequence

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.redis.client import NOW_US
from gateway.redis.entry_mac import LINKS, ValueMac
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import MAC_BYTES
from gateway.redis.live.limits import MAX_OF_OWNER, MAX_OWNERS, MAX_URI_LENGTH

# KEYS: links of the owner by digest, their order, owners of the tenant by last use. ARGV: lifetime in ms, most links,
# most owners, length of a MAC, then digest and value of each link. `mine` has the digests of each source, oldest first.
# guard: linked-resource-count, linked-resource-first, linked-resource-fair
_NOTE = (
    NOW_US  # two calls in one millisecond would be ordered by name
    + """
for index = 5, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[index], ARGV[index + 1]) == 1
      or redis.call('HGET', KEYS[1], ARGV[index]) == ARGV[index + 1] then
    redis.call('ZADD', KEYS[2], now, ARGV[index])
  end
end
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[2])
if over > 0 then
  local mine, names = {}, {}
  for _, digest in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    local source = string.sub(redis.call('HGET', KEYS[1], digest) or '', tonumber(ARGV[4]) + 1)
    if not mine[source] then
      mine[source] = {first = 1}
      names[#names + 1] = source
    end
    table.insert(mine[source], digest)
  end
  for _ = 1, over do
    local most = names[1]
    for _, source in ipairs(names) do
      if #mine[source] - mine[source].first > #mine[most] - mine[most].first then most = source end
    end
    local oldest = mine[most][mine[most].first]
    mine[most].first = mine[most].first + 1
    redis.call('HDEL', KEYS[1], oldest)
    redis.call('ZREM', KEYS[2], oldest)
  end
end
redis.call('ZADD', KEYS[3], now, KEYS[1])
local owners = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[3])
if owners > 0 then
  for _, idlest in ipairs(redis.call('ZRANGE', KEYS[3], 0, owners - 1)) do
    redis.call('DEL', idlest, idlest .. ':order')
  end
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, owners - 1)
end
for index = 1, 3 do redis.call('PEXPIRE', KEYS[index], ARGV[1]) end
return 1
"""
)

_FIND = "return redis.call('HGET', KEYS[1], ARGV[1])"


class LinkedResources:
    """The links of all callers; a link is forgotten after `idle_s` seconds without a new one of its owner."""

    def __init__(self, bus: EventBus, *, idle_s: int) -> None:
        self._bus = bus
        self._mac = ValueMac(bus, LINKS)
        self._idle_ms = idle_s * 1000
        self._note_script = bus.script(_NOTE)
        self._find_script = bus.script(_FIND)

    async def note(self, tenant: TenantId, owner: str, source: LiveSourceId, uris: Sequence[str]) -> None:
        """Store links that a tool of the source has returned to the owner, except those of another source.

        Raises:
            RedisUnavailable: the links may not be readable.
        """
        keys = self._keys(tenant, owner)
        stored: list[str | bytes] = []
        for uri in uris[-MAX_OF_OWNER:]:
            if len(uri) <= MAX_URI_LENGTH:
                digest = _digest(uri)
                stored += [digest, self._mac.make(keys[0], digest.encode(), source.encode()) + source.encode()]
        if stored:
            await self._note_script(keys, self._idle_ms, MAX_OF_OWNER, MAX_OWNERS, MAC_BYTES, *stored)

    async def find(self, tenant: TenantId, owner: str, uri: str) -> LiveSourceId | None:
        """Return the first source that returned a link with this URI to the owner; None if there is none.

        Raises:
            RedisUnavailable: it is unknown.
        """
        if len(uri) > MAX_URI_LENGTH:
            return None
        keys, digest = self._keys(tenant, owner), _digest(uri)
        found: bytes | None = await self._find_script((keys[0],), digest)
        if found is None:
            return None
        mac, source = found[:MAC_BYTES], found[MAC_BYTES:]
        is_ours = self._mac.holds(keys[0], digest.encode(), source, mac=mac)  # guard: linked-resource-mac
        return LiveSourceId(source.decode()) if is_ours else None

    def _keys(self, tenant: TenantId, owner: str) -> tuple[str, str, str]:
        of_tenant = f"{self._bus.namespace}:t:{tenant}:live:links:"
        links = f"{of_tenant}{_digest(owner)}"  # guard: linked-resource-owner
        return links, f"{links}:order", f"{of_tenant}owners"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
