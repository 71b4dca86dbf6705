"""Session records of protocol revisions with an initialize handshake; any replica can serve a session.

Records are stored in Redis. The key of a record contains the tenant, so a session of another tenant cannot be
addressed. A replica may use a record for up to three seconds after it was read (the lease). The end of a session is
published to all replicas; a replica that may have missed events drops every lease.
"""

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import structlog

from gateway.domain.events import SessionEnded
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import TenantId
from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, DocumentTooLarge, LimitExceeded, RedisUnavailable
from gateway.redis.client import NOW_MS
from gateway.redis.entry_mac import SESSIONS, ValueMac
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import (
    STANDALONE,
    SessionKeys,
    sessions_of,
    sessions_of_subject,
    subscribers_prefix,
)
from gateway.redis.sessions.limits import MAX_LEASES, MAX_RECORD_BYTES, RECORD_LEASE_S, RECORD_RENEW_S

log = structlog.get_logger(__name__)

_GRACE_DIVISOR = 8
_SEAL = b',"seal":"'
_SEALED = re.compile(rb'(\{.*),"seal":"([0-9a-f]{32})"\}', re.DOTALL)
_ID = re.compile(r"[A-Za-z0-9_-]{43}")

# KEYS: record, sessions of the tenant by last use, sessions of the subject by last use, state.
# ARGV: record, id, idle ms, the tenant's cap, the subject's cap.
# Returns -1 when created, -2 when the id is taken, else the ms until the oldest session may have expired.
# guard: session-cap
_CREATE = (
    NOW_MS
    + """
local idle = tonumber(ARGV[3])
for index = 2, 3 do
  redis.call('ZREMRANGEBYSCORE', KEYS[index], '-inf', string.format('(%.0f', now - idle))
  if redis.call('ZCARD', KEYS[index]) >= tonumber(ARGV[index + 2]) then
    local oldest = redis.call('ZRANGE', KEYS[index], 0, 0, 'WITHSCORES')
    if #oldest == 0 then return idle end
    return math.max(0, oldest[2] + idle - now)
  end
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', idle) then return -2 end
for index = 2, 3 do
  redis.call('ZADD', KEYS[index], string.format('%.0f', now), ARGV[2])
  redis.call('PEXPIRE', KEYS[index], idle)
end
redis.call('HSET', KEYS[4], 'of', KEYS[3])
redis.call('PEXPIRE', KEYS[4], idle)
return -1
"""
)

# KEYS: record, sessions of the tenant, state, index, log of the standalone stream, subscriptions, their URIs.
# ARGV: id, idle ms, prefix of the subscriber sets, time to live of subscriptions in ms.
# Returns the record, or nil, and renews the time to live of these keys. A session can have many subscriptions and is
# read every few seconds, so subscriptions live longer and are renewed only when they would end before the session.
# guard: subscriptions-seldom-renewed
_FIND = (
    NOW_MS
    + """
local record = redis.call('GETEX', KEYS[1], 'PX', ARGV[2])
if not record then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return false
end
local used = string.format('%.0f', now)
redis.call('ZADD', KEYS[2], used, ARGV[1])
local of = redis.call('HGET', KEYS[3], 'of')
if of then
  redis.call('ZADD', of, used, ARGV[1])
  redis.call('PEXPIRE', of, ARGV[2])
end
for index = 2, 5 do redis.call('PEXPIRE', KEYS[index], ARGV[2]) end
local left = redis.call('PTTL', KEYS[6])
if left ~= -2 and left < tonumber(ARGV[2]) then
  for _, uri in ipairs(redis.call('SMEMBERS', KEYS[6])) do redis.call('PEXPIRE', ARGV[3] .. uri, ARGV[4]) end
  for index = 6, 7 do redis.call('PEXPIRE', KEYS[index], ARGV[4]) end
end
return record
"""
)

# KEYS as for _FIND, then the wake-up channel of the session. ARGV: id, prefix of the logs, prefix of the subscriber
# sets. Deletes all parts of the session.
_REMOVE = """
redis.call('ZREM', KEYS[2], ARGV[1])
local of = redis.call('HGET', KEYS[3], 'of')
if of then redis.call('ZREM', of, ARGV[1]) end
for _, stream in ipairs(redis.call('SMEMBERS', KEYS[4])) do redis.call('DEL', ARGV[2] .. stream) end
for _, uri in ipairs(redis.call('SMEMBERS', KEYS[6])) do redis.call('SREM', ARGV[3] .. uri, ARGV[1]) end
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7])
redis.pcall('PUBLISH', KEYS[8], '')
return found
"""

# KEYS: record. ARGV: record, idle ms. Replaces only an existing record.
_REPLACE = "return redis.call('SET', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2])"

# KEYS: sessions by last use. Returns their ids.
_LIST = "return redis.call('ZRANGE', KEYS[1], 0, -1)"


def share_of(cap: int) -> int:
    """The cap per subject or key: 90 % of the tenant's cap, rounded up; so no single subject or key can exhaust it."""
    return cap - cap // 10


def is_session_id(name: bytes) -> bool:
    """True if the name has the form of a session id; `SessionSubscriptions.publish` checks names from Redis."""
    return _ID.fullmatch(name.decode("utf-8", "replace")) is not None


def new_session_id() -> str:
    """An unguessable session id: 32 random bytes, safe in a header."""
    return secrets.token_urlsafe(32)


@dataclass(slots=True)
class _Lease:
    """A record and the time at which it was read, when its lease began."""

    record: SessionRecord
    read_at: float
    is_renewing: bool = False


class Sessions:
    """All sessions, stored per tenant."""

    def __init__(self, bus: EventBus, *, spawn: Spawn, idle_s: int = 1800) -> None:
        self._bus = bus
        self._spawn = spawn
        self._idle_ms = idle_s * 1000
        self._lease_s = min(RECORD_LEASE_S, idle_s / 3)
        self._create = bus.script(_CREATE)
        self._find = bus.script(_FIND)
        self._replace = bus.script(_REPLACE)
        self._remove = bus.script(_REMOVE)
        self._list = bus.script(_LIST)
        self._seal = ValueMac(bus, SESSIONS)
        self._decoder = msgspec.json.Decoder(SessionRecord)
        self._leases: dict[tuple[TenantId, str], _Lease] = {}
        self._drops = 0

    @property
    def idle_ms(self) -> int:
        """Time in ms without use after which a session expires."""
        return self._idle_ms

    @property
    def subscription_ttl_ms(self) -> int:
        """Lifetime of a session's subscriptions in ms: `idle_ms` and an eighth, so that they are seldom renewed."""
        return self._idle_ms + self._idle_ms // _GRACE_DIVISOR

    def keys(self, tenant: TenantId, session: str) -> SessionKeys:
        """The Redis keys of the parts of a session."""
        return SessionKeys(self._bus.namespace, tenant, session)

    def __len__(self) -> int:
        """Number of leases on this replica, including some expired ones."""
        return len(self._leases)

    async def create(self, record: SessionRecord, *, cap: int) -> None:
        """Store a new session.

        Raises:
            LimitExceeded: the tenant, or the subject, has reached its cap of live sessions.
            DocumentTooLarge: the client's initialize parameters do not fit into a record.
            Conflict: the session id is in use.
            RedisUnavailable: the session may or may not be stored.
        """
        keys = self.keys(record.tenant, record.id)
        encoded = self._encode_with_mac(record)
        namespace = self._bus.namespace
        subject_sessions = sessions_of_subject(namespace, record.tenant, record.subject)
        names = (keys.record, sessions_of(namespace, record.tenant), subject_sessions, keys.state)
        created: int = await self._create(names, encoded, record.id, self._idle_ms, cap, share_of(cap))
        if created == -2:
            raise Conflict("the session id is in use")
        if created >= 0:
            message = f"too many open sessions (limit {cap} per tenant, {share_of(cap)} per subject); end one"
            raise LimitExceeded(message, limit="sessions", retry_after_s=created / 1000)

    async def replace(self, record: SessionRecord) -> bool:
        """Replace a stored session; False if it has ended."""
        self.forget(record.tenant, record.id)
        keys = self.keys(record.tenant, record.id)
        return await self._replace([keys.record], self._encode_with_mac(record), self._idle_ms) is not None

    async def find(self, tenant: TenantId, session: str) -> SessionRecord | None:
        """Return the session; None when the tenant has no session with this id.

        A leased record is returned without a read. Reads restart the idle time, and renew a lease that is in use.

        Raises:
            RedisUnavailable: the session cannot be read, and there is no lease to use instead.
        """
        lease = self._leases.get((tenant, session))
        if lease is not None:
            age = time.monotonic() - lease.read_at
            if age < self._lease_s:
                if age > RECORD_RENEW_S and not lease.is_renewing:
                    lease.is_renewing = True
                    self._spawn(self._renew, tenant, session, lease)
                return lease.record
        return await self._read(tenant, session)

    def is_leased(self, tenant: TenantId, session: str) -> bool:
        """True if this replica holds a lease of the session, even an expired lease."""
        return (tenant, session) in self._leases

    async def remove(self, tenant: TenantId, session: str) -> None:
        """End the session on every replica, and delete all of its parts."""
        if not _ID.fullmatch(session):
            return
        self.forget(tenant, session)
        keys = self.keys(tenant, session)
        names = (*self._keys_for_find(tenant, session), keys.wake)
        await self._remove(names, session, keys.logs, subscribers_prefix(self._bus.namespace, tenant))
        await self._bus.publish(SessionEnded(tenant=tenant, session=session))

    async def remove_all(self, tenant: TenantId, *, subject: str | None = None) -> int:
        """End every session of the tenant, or of one of its subjects; return the number of ids found."""
        found = await self.ids(tenant, subject=subject)
        for session in found:
            await self.remove(tenant, session)
        return len(found)

    async def ids(self, tenant: TenantId, *, subject: str | None = None) -> Sequence[str]:
        """The ids of the tenant's sessions, or of one of its subjects; some of them may have expired."""
        namespace = self._bus.namespace
        session_set = (
            sessions_of(namespace, tenant) if subject is None else sessions_of_subject(namespace, tenant, subject)
        )
        found: list[bytes] = await self._list([session_set])
        return [session.decode("utf-8", "replace") for session in found]

    async def _read(self, tenant: TenantId, session: str) -> SessionRecord | None:
        if not _ID.fullmatch(session):  # guard: session-id-form
            return None
        drops = self._drops
        prefix = subscribers_prefix(self._bus.namespace, tenant)
        arguments = self._idle_ms, prefix, self.subscription_ttl_ms
        raw: bytes | None = await self._find(self._keys_for_find(tenant, session), session, *arguments)
        record = None if raw is None else self._decode(tenant, session, raw)
        if record is None:
            self._leases.pop((tenant, session), None)
        elif drops == self._drops and record.is_open:  # no session ended while this one was being read
            self._store_lease(record)
            text, mac = _unseal(raw or b"")
            if not self._seal.is_current(self.keys(tenant, session).record, text, mac=mac):
                self._spawn(self.replace, record)  # the record of an open session no longer changes
        return record

    async def _renew(self, tenant: TenantId, session: str, lease: _Lease) -> None:
        """Read a session again before its lease expires, so that requests of active sessions seldom wait for Redis."""
        try:
            await self._read(tenant, session)
        except RedisUnavailable:
            lease.is_renewing = False

    def _decode(self, tenant: TenantId, session: str, raw: bytes) -> SessionRecord | None:
        text, mac = _unseal(raw)
        try:
            is_ours = self._seal.holds(self.keys(tenant, session).record, text, mac=mac)  # guard: session-record-seal
            record = self._decoder.decode(text) if is_ours else None
        except msgspec.MsgspecError:
            record = None
        if record is None or record.tenant != tenant or record.id != session:  # guard: session-record-of-its-tenant
            log.error("session_refused", tenant=tenant)
            return None
        return record

    def _encode_with_mac(self, record: SessionRecord) -> bytes:
        """The record with its MAC as the last member, which older replicas ignore."""
        encoded = _encode(record)
        mac = self._seal.make(self.keys(record.tenant, record.id).record, encoded)
        return encoded[:-1] + _SEAL + mac.hex().encode() + b'"}'

    def _keys_for_find(self, tenant: TenantId, session: str) -> tuple[str, ...]:
        keys = self.keys(tenant, session)
        return (
            keys.record,
            sessions_of(self._bus.namespace, tenant),
            keys.state,
            keys.index,
            keys.log(STANDALONE),
            keys.subscriptions,
            keys.uris,
        )

    def _store_lease(self, record: SessionRecord) -> None:
        key = (record.tenant, record.id)
        now = time.monotonic()
        self._leases.pop(key, None)  # keeps the leases in the order in which they were read
        while self._leases:
            oldest, lease = next(iter(self._leases.items()))
            if len(self._leases) < MAX_LEASES and now - lease.read_at < self._lease_s:
                break
            del self._leases[oldest]
        self._leases[key] = _Lease(record, now)

    def forget(self, tenant: TenantId, session: str) -> None:
        """Drop the lease of a session that has ended or changed."""
        self._drops += 1
        self._leases.pop((tenant, session), None)

    def forget_tenant(self, tenant: TenantId) -> None:
        """Drop the leases of a removed tenant."""
        for key in [key for key in self._leases if key[0] == tenant]:
            self.forget(*key)

    def forget_all(self) -> None:
        """Drop all leases, because events may have been lost."""
        self._drops += 1
        self._leases.clear()


def _encode(record: SessionRecord) -> bytes:
    encoded = msgspec.json.encode(record)
    if len(encoded) > MAX_RECORD_BYTES:
        raise DocumentTooLarge(f"the initialize parameters exceed {MAX_RECORD_BYTES} bytes")
    return encoded


def _unseal(raw: bytes) -> tuple[bytes, bytes | None]:
    """Split a stored record into the encoded record without its MAC, and the MAC or None."""
    found = _SEALED.fullmatch(raw)
    if found is None:
        return raw, None
    return found[1] + b"}", bytes.fromhex(found[2].decode())
