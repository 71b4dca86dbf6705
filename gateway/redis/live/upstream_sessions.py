"""Sessions of callers at live sources: encrypted in Redis, so that every replica continues the same session.

A session ends when it was not used for the idle time, when its caller or tenant has more sessions than permitted (the
idlest one ends), or with the client's own MCP session. Its record then waits in a list of its source, until a replica
that is connected to the source takes it and ends the session there.
"""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.sessions import UpstreamSession, UpstreamSessionKey
from gateway.redis.client import NOW_MS
from gateway.redis.event_bus import EventBus
from gateway.redis.live.limits import MAX_ENDED, MAX_OF_CALLER, MAX_OF_TENANT
from gateway.redis.locks import WorkLocks
from gateway.redis.sealed_values import SealedValues

_GRACE_MS = 120_000
"""Time that the record of an unused session stays for the replica that ends the session at the source."""
_TAKEN_AT_ONCE = 50
_MARK_MS = 600_000
"""Lifetime of the mark of a running request, if its replica was killed."""

# A record's key names the sets that contain it: `…:live:SOURCE:SUBJECT.SESSION.VARIANT` is in `…:live:SOURCE:sessions`,
# `…:live:sessions` and `…:live:caller:SUBJECT`, each sorted by last use.
_PARTS = (
    NOW_MS
    + """
local function sets_of(record)
  local of_source, subject = string.match(record, '^(.*:)([^:.]+)[^:]*$')
  local of_tenant = string.match(of_source, '^(.*:)[^:]+:$')
  return {of_source .. 'sessions', of_tenant .. 'sessions', of_tenant .. 'caller:' .. subject}, of_source .. 'ended'
end
local function use(record, life)
  local sets = sets_of(record)
  for _, set in ipairs(sets) do
    redis.call('ZADD', set, now, record)
    redis.call('PEXPIRE', set, life)
  end
  redis.call('PEXPIRE', record, life)
  return sets
end
local function forget(record)
  local sealed = redis.call('GET', record)
  redis.call('DEL', record)
  for _, set in ipairs(sets_of(record)) do redis.call('ZREM', set, record) end
  return sealed
end
local function finish(record, most, life)
  local sealed, _, ended = forget(record), sets_of(record)
  if sealed and redis.call('LLEN', ended) < tonumber(most) then
    redis.call('RPUSH', ended, record, sealed)
    redis.call('PEXPIRE', ended, life)
  end
end
"""
)

# KEYS: record. ARGV: lifetime in ms. Returns the sealed session.
_TOUCH = (
    _PARTS
    + """
local found = redis.call('GET', KEYS[1])
if found then use(KEYS[1], ARGV[1]) end
return found
"""
)

# KEYS: record, records of the client's session. ARGV: lifetime in ms, sealed session, caps of the tenant and of the
# subject, 1 if there is a client's session, most ended sessions.
# guard: upstream-session-cap
_STORE = (
    _PARTS
    + """
redis.call('SET', KEYS[1], ARGV[2])
local sets = use(KEYS[1], ARGV[1])
if ARGV[5] == '1' then
  redis.call('SADD', KEYS[2], KEYS[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[1] * 4)
end
for index = 2, 3 do
  local over = redis.call('ZCARD', sets[index]) - tonumber(ARGV[index + 1])
  if over > 0 then
    for _, idlest in ipairs(redis.call('ZRANGE', sets[index], 0, over - 1)) do finish(idlest, ARGV[6], ARGV[1]) end
  end
end
return 1
"""
)

# KEYS: record. ARGV: sealed session. Deletes the record only if it still has this session.
_DROP = (
    _PARTS
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
forget(KEYS[1])
return 1
"""
)

# KEYS: sessions of the source, ended sessions of the source. ARGV: idle ms (-1: sessions in use too), most. Returns
# record keys and sealed sessions.
_TAKE = (
    _PARTS
    + """
local taken = redis.call('LRANGE', KEYS[2], 0, ARGV[2] * 2 - 1)
if #taken > 0 then redis.call('LTRIM', KEYS[2], #taken, -1) end
local limit = '+inf'
if ARGV[1] ~= '-1' then limit = now - ARGV[1] end
for _, record in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', limit, 'LIMIT', 0, ARGV[2])) do
  local sealed = forget(record)
  if sealed then
    taken[#taken + 1] = record
    taken[#taken + 1] = sealed
  end
end
return taken
"""
)

# KEYS: records of the client's session. ARGV: most ended sessions, lifetime in ms.
_END = (
    _PARTS
    + """
for _, record in ipairs(redis.call('SMEMBERS', KEYS[1])) do finish(record, ARGV[1], ARGV[2]) end
return redis.call('DEL', KEYS[1])
"""
)

_GET = "return redis.call('GET', KEYS[1])"
_MARK = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]); return redis.call('PEXPIRE', KEYS[1], ARGV[3])"
_UNMARK = "return redis.call('HDEL', KEYS[1], ARGV[1])"
_MARKED = "return redis.call('HVALS', KEYS[1])"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(UpstreamSession).decode


class UpstreamSessions:
    """The sessions of all callers at live sources; implements `gateway.upstream.live.mcp.caller_sessions.Records`."""

    def __init__(self, bus: EventBus, *, secret: bytes, idle_s: int) -> None:
        self._bus = bus
        self._values = SealedValues(secret)
        self._locks = WorkLocks(bus)
        self._idle_ms = idle_s * 1000
        self._life_ms = self._idle_ms + _GRACE_MS
        self._get_script = bus.script(_GET)
        self._touch_script = bus.script(_TOUCH)
        self._store_script = bus.script(_STORE)
        self._drop_script = bus.script(_DROP)
        self._take_script = bus.script(_TAKE)
        self._end_script = bus.script(_END)
        self._mark_script = bus.script(_MARK)
        self._unmark_script = bus.script(_UNMARK)
        self._marked_script = bus.script(_MARKED)

    async def touch(self, key: UpstreamSessionKey) -> UpstreamSession | None:
        """Return the caller's session and note its use; None if there is none.

        Raises:
            RedisUnavailable: the session is unknown.
        """
        record = self._record(key)
        return self._open(record, await self._touch_script((record,), self._life_ms))

    def opening(self, key: UpstreamSessionKey) -> AbstractAsyncContextManager[None]:
        """Let one replica open a session for this key at a time; see `WorkLocks.hold`."""
        return self._locks.hold(f"{self._record(key)}:opening")

    async def store(self, key: UpstreamSessionKey, session: UpstreamSession) -> None:
        """Store a new session of the caller; the idlest sessions above the limits end.

        Raises:
            RedisUnavailable: the session may or may not be stored.
        """
        record = self._record(key)
        sealed = self._values.seal(record, _encode(session))
        keys = record, self._of_client(key.tenant, key.owner.session)
        has_client = "1" if key.owner.session else "0"
        await self._store_script(keys, self._life_ms, sealed, MAX_OF_TENANT, MAX_OF_CALLER, has_client, MAX_ENDED)

    async def drop(self, key: UpstreamSessionKey, session: UpstreamSession) -> None:
        """Forget a session that the source has ended, unless another replica has replaced it.

        Raises:
            RedisUnavailable: the session may still be stored.
        """
        record = self._record(key)
        sealed: bytes | None = await self._get_script((record,))
        if sealed is not None and self._open(record, sealed) == session:
            await self._drop_script((record,), sealed)

    async def take_ended(self, tenant: TenantId, source: LiveSourceId, version: int) -> Sequence[UpstreamSession]:
        """Take up to 100 sessions that have to be ended at the source; each is returned to one replica only.

        Raises:
            RedisUnavailable: sessions may have been taken.
        """
        return await self._take(self._of_source(tenant, source, version), self._idle_ms)

    async def take_all(self, tenant: TenantId, source: LiveSourceId, version: int) -> Sequence[UpstreamSession]:
        """Take up to 100 sessions of a source that was changed or removed, in use or not.

        Raises:
            RedisUnavailable: sessions may have been taken.
        """
        return await self._take(self._of_source(tenant, source, version), -1)

    async def end_of_client(self, tenant: TenantId, session: str) -> None:
        """End the sessions of a client whose own MCP session has ended.

        Raises:
            RedisUnavailable: they end when they are idle.
        """
        await self._end_script((self._of_client(tenant, session),), MAX_ENDED, self._life_ms)

    async def mark(self, key: UpstreamSessionKey, request: str) -> None:
        """Note that this replica runs a request in the session.

        Raises:
            RedisUnavailable: other replicas may not learn of it.
        """
        await self._mark_script((f"{self._record(key)}:running",), request, self._bus.replica, _MARK_MS)

    async def unmark(self, key: UpstreamSessionKey, request: str) -> None:
        """Note the end of a request.

        Raises:
            RedisUnavailable: the mark expires.
        """
        await self._unmark_script((f"{self._record(key)}:running",), request)

    async def runners(self, key: UpstreamSessionKey) -> Sequence[str]:
        """Return the other replicas that run requests in the session, once for each request.

        Raises:
            RedisUnavailable: they are unknown.
        """
        found: list[bytes] = await self._marked_script((f"{self._record(key)}:running",))
        return [replica for one in found if (replica := one.decode()) != self._bus.replica]

    async def _take(self, of_source: str, idle_ms: int) -> Sequence[UpstreamSession]:
        taken: list[bytes] = await self._take_script(
            (f"{of_source}sessions", f"{of_source}ended"), idle_ms, _TAKEN_AT_ONCE
        )
        found = [self._open(record.decode(), sealed) for record, sealed in zip(taken[::2], taken[1::2], strict=True)]
        return [session for session in found if session is not None]

    def _open(self, record: str, sealed: bytes | None) -> UpstreamSession | None:
        value = None if sealed is None else self._values.open(record, sealed)
        return None if value is None else _decode(value)

    def _record(self, key: UpstreamSessionKey) -> str:
        subject, session = _digest(key.owner.subject), _digest(key.owner.session)  # guard: upstream-session-owner
        return f"{self._of_source(key.tenant, key.source, key.version)}{subject}.{session}.{key.variant.hex()}"

    def _of_source(self, tenant: TenantId, source: LiveSourceId, version: int) -> str:
        return f"{self._of_tenant(tenant)}{source}.{version}:"

    def _of_client(self, tenant: TenantId, session: str) -> str:
        return f"{self._of_tenant(tenant)}client:{_digest(session)}"

    def _of_tenant(self, tenant: TenantId) -> str:
        return f"{self._bus.namespace}:t:{tenant}:live:"


def _digest(text: str) -> str:
    """The digest of a text for a Redis key: a subject may contain any character."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
