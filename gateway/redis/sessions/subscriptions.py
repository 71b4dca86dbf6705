"""Resource subscriptions of sessions. Updates are written to the log of each subscriber, for replay.

A set per tenant and URI digest contains the subscribed sessions; ended sessions are removed when the set is used. Each
session also stores its URIs, except long ones, so that a changed resource template can be matched against them.
"""

from collections.abc import AsyncGenerator, Sequence

from gateway.domain.identifiers import TenantId
from gateway.errors import LimitExceeded, NotFound
from gateway.redis.entry_mac import UPDATE, EntryMac
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import STANDALONE, SessionKeys, digest_uri, subscribers_prefix
from gateway.redis.sessions.limits import MAX_ENTRIES, MAX_PARAMS_BYTES, MAX_SUBSCRIPTIONS, SUBSCRIBE_RETRY_S
from gateway.redis.sessions.records import Sessions, is_session_id

_BATCH = 200
_READ_BATCH = 20
_SUBSCRIBERS_CHECKED = 3

# KEYS: record, subscriptions of the session, subscribers of the URI, URIs of the session. ARGV: session, digest, cap,
# time to live of subscriptions in ms, prefix of session names, number of other subscribers to check, URI or nothing.
# Returns 1; 0 beyond the cap; nil when the session has ended. Ended sessions among the checked subscribers are
# removed; otherwise they would accumulate for a resource that never changes. Only the first subscription sets the time
# to live of the session's set, because the script does not renew the sets of its earlier URIs (`_FIND` renews all).
_SUBSCRIBE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local known = redis.call('SCARD', KEYS[2])
if known >= tonumber(ARGV[3]) and redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 0 then return 0 end
for _, other in ipairs(redis.call('SRANDMEMBER', KEYS[3], ARGV[6])) do
  if redis.call('EXISTS', ARGV[5] .. other) == 0 then redis.call('SREM', KEYS[3], other) end
end
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('SADD', KEYS[3], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
if known == 0 then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
if ARGV[7] ~= '' then
  redis.call('HSET', KEYS[4], ARGV[2], ARGV[7])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
end
return 1
"""

# KEYS: subscriptions of the session, subscribers of the URI, state, URIs of the session. ARGV: session, digest.
_UNSUBSCRIBE = """
redis.call('HDEL', KEYS[3], 'update:' .. ARGV[2])
redis.call('HDEL', KEYS[4], ARGV[2])
redis.call('SREM', KEYS[2], ARGV[1])
return redis.call('SREM', KEYS[1], ARGV[2])
"""

_SUBSCRIBERS = "return redis.call('SMEMBERS', KEYS[1])"

# KEYS: URIs of some sessions. Returns all of them.
_URIS = """
local found = {}
for _, key in ipairs(KEYS) do
  for _, uri in ipairs(redis.call('HVALS', key)) do found[#found + 1] = uri end
end
return found
"""

# KEYS: subscribers of the URI. ARGV: prefix of session names, URI, entry limit, idle ms, stream, digest, then sessions,
# each with the MAC of its entry. Returns the number of notified sessions. While no reader has taken the previous
# update of the URI, no entry is added.
_PUBLISH = """
local function is_after(one, other)
  local ms, number = string.match(one, '^(%d+)%-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)%-(%d+)$')
  if tonumber(ms) ~= tonumber(other_ms) then return tonumber(ms) > tonumber(other_ms) end
  return tonumber(number) > tonumber(other_number)
end
local reached = 0
for index = 7, #ARGV, 2 do
  local record = ARGV[1] .. ARGV[index]
  if redis.call('EXISTS', record) == 0 then
    redis.call('SREM', KEYS[1], ARGV[index])
  else
    local stream, state = record .. ':log:' .. ARGV[5], record .. ':state'
    local last = redis.call('HGET', state, 'update:' .. ARGV[6])
    if not last or not is_after(last, redis.call('HGET', state, 'taken') or '0-0') then
      local id = redis.call('XADD', stream, 'MAXLEN', '~', ARGV[3], '*', 'u', ARGV[2], 'm', ARGV[index + 1])
      redis.call('HSET', state, 'update:' .. ARGV[6], id)
    end
    redis.call('SADD', record .. ':logs', ARGV[5])
    redis.call('PEXPIRE', stream, ARGV[4])
    redis.call('PEXPIRE', record .. ':logs', ARGV[4])
    redis.pcall('PUBLISH', record .. ':wake', ARGV[5])
    reached = reached + 1
  end
end
return reached
"""


class SessionSubscriptions:
    """The subscriptions of all sessions, stored per tenant."""

    def __init__(self, bus: EventBus, sessions: Sessions) -> None:
        self._namespace = bus.namespace
        self._sessions = sessions
        self._idle_ms = sessions.idle_ms
        self._seal = EntryMac(bus)
        self._subscribe = bus.script(_SUBSCRIBE)
        self._unsubscribe = bus.script(_UNSUBSCRIBE)
        self._subscribers = bus.script(_SUBSCRIBERS)
        self._uris = bus.script(_URIS)
        self._publish = bus.script(_PUBLISH)

    async def subscribe(self, keys: SessionKeys, uri: str) -> None:
        """Notify the session of updates to this resource from now on.

        Raises:
            NotFound: the session has ended.
            LimitExceeded: the session has reached the cap of subscriptions.
            RedisUnavailable: the session may or may not be subscribed.
        """
        named = (keys.record, keys.subscriptions, self._key(keys.tenant, uri), keys.uris)
        prefix = SessionKeys(self._namespace, keys.tenant, "").record
        limits = (MAX_SUBSCRIPTIONS, self._sessions.subscription_ttl_ms)
        encoded = uri.encode("utf-8", "surrogatepass")
        kept = encoded if len(encoded) <= MAX_PARAMS_BYTES else b""
        done = await self._subscribe(named, keys.session, digest_uri(uri), *limits, prefix, _SUBSCRIBERS_CHECKED, kept)
        if done is None:
            raise NotFound("session not found")
        if not done:
            message = f"the session has {MAX_SUBSCRIPTIONS} subscriptions (the limit); unsubscribe from some"
            raise LimitExceeded(message, limit="subscriptions", retry_after_s=SUBSCRIBE_RETRY_S)

    async def unsubscribe(self, keys: SessionKeys, uri: str) -> None:
        """Stop notifying the session of updates to this resource."""
        named = (keys.subscriptions, self._key(keys.tenant, uri), keys.state, keys.uris)
        await self._unsubscribe(named, keys.session, digest_uri(uri))

    async def followed(self, tenant: TenantId) -> AsyncGenerator[Sequence[str]]:
        """Yield the stored URIs of the tenant's sessions, in parts; URIs of more than 512 bytes are not stored.

        Raises:
            RedisUnavailable: further URIs may be missing.
        """
        sessions = await self._sessions.ids(tenant)
        for start in range(0, len(sessions), _READ_BATCH):
            some = sessions[start : start + _READ_BATCH]
            found: list[bytes] = await self._uris([self._sessions.keys(tenant, session).uris for session in some])
            yield [uri.decode("utf-8", "replace") for uri in dict.fromkeys(found)]

    async def publish(self, tenant: TenantId, uri: str) -> int:
        """Write an update to the log of every subscribed session, and return the number of sessions.

        Raises:
            RedisUnavailable: some sessions may miss the update.
        """
        of = self._key(tenant, uri)
        # guard: subscribers-are-sessions
        found = [session for session in await self._subscribers((of,)) if is_session_id(session)]
        prefix, encoded = SessionKeys(self._namespace, tenant, "").record, uri.encode("utf-8", "surrogatepass")
        notified = 0
        for start in range(0, len(found), _BATCH):
            batch = [
                part for session in found[start : start + _BATCH] for part in self._with_mac(tenant, session, encoded)
            ]
            notified += await self._publish(
                (of,), prefix, encoded, MAX_ENTRIES, self._idle_ms, STANDALONE, digest_uri(uri), *batch
            )
        return notified

    def _with_mac(self, tenant: TenantId, session: bytes, uri: bytes) -> tuple[bytes, bytes]:
        """Return the session, and the MAC of the update in its log."""
        log = SessionKeys(self._namespace, tenant, session.decode("utf-8", "replace")).log(STANDALONE)
        return session, self._seal.make(log, UPDATE, uri)

    def _key(self, tenant: TenantId, uri: str) -> str:
        return f"{subscribers_prefix(self._namespace, tenant)}{digest_uri(uri)}"
