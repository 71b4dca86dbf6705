"""Where the sessions of the handshake era are: in Redis, so that any replica can serve them.

The key of a record starts with the tenant, so a session of another tenant cannot even be addressed. A replica may go on
with what it has read for a few seconds (its lease); whoever ends a session tells all replicas, and a replica that may
have missed such an event drops every lease.
"""

import re
import secrets
import time
from dataclasses import dataclass

import msgspec
import structlog

from gateway.bus.bus import Bus
from gateway.domain.events import Event, SessionEnded, TenantRemoved
from gateway.domain.identifiers import TenantId
from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, DocumentTooLarge, LimitExceeded, RedisUnavailable

log = structlog.get_logger(__name__)

_LEASE_S = 3.0
_RENEW_S = 1.0
_MAX_LEASES = 20_000
_MAX_RECORD_BYTES = 64 * 1024
_ID = re.compile(r"[A-Za-z0-9_-]{43}")

# KEYS: record, sessions of the tenant by when they were last seen. ARGV: record, id, idle ms, cap.
# Answers -1 when created, -2 when the id is taken, else the ms until the oldest session may have gone.
_CREATE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local idle = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', now - idle))
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if #oldest == 0 then return idle end
  return math.max(0, oldest[2] + idle - now)
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', idle) then return -2 end
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[2])
redis.call('PEXPIRE', KEYS[2], idle)
return -1
"""

# KEYS as above. ARGV: id, idle ms. Answers the record, whose life begins anew, or nil.
_FIND = """
local record = redis.call('GETEX', KEYS[1], 'PX', ARGV[2])
if not record then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return false
end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[2], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return record
"""

# KEYS as above. ARGV: id.
_REMOVE = """
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
"""


def new_session_id() -> str:
    """A session id nobody can guess: 32 random bytes, safe in a header."""
    return secrets.token_urlsafe(32)


@dataclass(slots=True)
class _Lease:
    """A record as read, and until when it may be used without reading it again."""

    record: SessionRecord
    read_at: float
    is_renewing: bool = False


class Sessions:
    """All sessions of all tenants, one tenant at a time."""

    def __init__(self, bus: Bus, *, idle_s: int = 1800) -> None:
        self._bus = bus
        self._idle_ms = idle_s * 1000
        self._lease_s = min(_LEASE_S, idle_s / 3)
        self._create = bus.script(_CREATE)
        self._find = bus.script(_FIND)
        self._remove = bus.script(_REMOVE)
        self._decoder = msgspec.json.Decoder(SessionRecord)
        self._leases: dict[tuple[TenantId, str], _Lease] = {}
        self._drops = 0
        bus.subscribe(self._hear)
        bus.subscribe_gaps(self._drop_all)

    async def create(self, record: SessionRecord, *, cap: int) -> None:
        """Keep a new session.

        Raises:
            LimitExceeded: the tenant has as many live sessions as it may have.
            DocumentTooLarge: what the client says of itself does not fit into a session.
        """
        encoded = msgspec.json.encode(record)
        if len(encoded) > _MAX_RECORD_BYTES:
            raise DocumentTooLarge(f"the initialize parameters exceed {_MAX_RECORD_BYTES} bytes")
        keys = self._keys(record.tenant, record.id)
        answer: int = await self._create(keys, encoded, record.id, self._idle_ms, cap)
        if answer == -2:
            raise Conflict("the session id is in use")
        if answer >= 0:
            raise LimitExceeded(f"the tenant has {cap} sessions, the most it may", retry_after_s=answer / 1000)

    async def find(self, tenant: TenantId, session: str) -> SessionRecord | None:
        """The session, whose idle time begins anew; None when the tenant has none of that id.

        Raises:
            RedisUnavailable: and there is no lease to go on with.
        """
        lease = self._leases.get((tenant, session))
        if lease is not None:
            age = time.monotonic() - lease.read_at
            if age < self._lease_s:
                if age > _RENEW_S and not lease.is_renewing:
                    lease.is_renewing = True
                    self._bus.spawn(self._renew, tenant, session, lease)
                return lease.record
        return await self._read(tenant, session)

    def is_leased(self, tenant: TenantId, session: str) -> bool:
        """Whether this replica holds what it read of the session; a lease may be too old to be used."""
        return (tenant, session) in self._leases

    async def remove(self, tenant: TenantId, session: str) -> None:
        """End the session, here and on every replica."""
        if not _ID.fullmatch(session):
            return
        self._drop(tenant, session)
        await self._remove(self._keys(tenant, session), session)
        await self._bus.publish(SessionEnded(tenant=tenant, session=session))

    async def _read(self, tenant: TenantId, session: str) -> SessionRecord | None:
        if not _ID.fullmatch(session):
            return None
        drops = self._drops
        raw: bytes | None = await self._find(self._keys(tenant, session), session, self._idle_ms)
        record = None if raw is None else self._decode(tenant, session, raw)
        if record is None:
            self._leases.pop((tenant, session), None)
        elif drops == self._drops:  # no session ended while this one was being read
            self._keep(record)
        return record

    async def _renew(self, tenant: TenantId, session: str, lease: _Lease) -> None:
        """Read a session in use again before its lease ends, so that no request waits for it."""
        try:
            await self._read(tenant, session)
        except RedisUnavailable:
            lease.is_renewing = False

    def _decode(self, tenant: TenantId, session: str, raw: bytes) -> SessionRecord | None:
        try:
            record = self._decoder.decode(raw)
        except msgspec.MsgspecError:
            record = None
        if record is None or record.tenant != tenant or record.id != session:
            log.error("session_refused", tenant=tenant)
            return None
        return record

    def _keys(self, tenant: TenantId, session: str) -> tuple[str, str]:
        prefix = f"{self._bus.namespace}:t:{tenant}"
        return f"{prefix}:s:{session}", f"{prefix}:sessions"

    def _keep(self, record: SessionRecord) -> None:
        key = (record.tenant, record.id)
        self._leases.pop(key, None)  # so that the order stays that of reading
        while len(self._leases) >= _MAX_LEASES:
            del self._leases[next(iter(self._leases))]
        self._leases[key] = _Lease(record, time.monotonic())

    def _hear(self, event: Event) -> None:
        match event:
            case SessionEnded(tenant=tenant, session=session):
                self._drop(tenant, session)
            case TenantRemoved(tenant=tenant):
                for leased in [leased for leased in self._leases if leased[0] == tenant]:
                    self._drop(*leased)
            case _:
                pass

    def _drop(self, tenant: TenantId, session: str) -> None:
        self._drops += 1
        self._leases.pop((tenant, session), None)

    def _drop_all(self) -> None:
        self._drops += 1
        self._leases.clear()
