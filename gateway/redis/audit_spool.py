"""Spool for audit entries while PostgreSQL is unavailable: one Redis stream, each entry under a MAC.

The stream's name contains the installation, so several installations can share a Redis. The entries are as durable as
Redis is configured to be (an append-only file, synced every second, for the embedded one). A full spool refuses new
entries instead of dropping old ones.
"""

import hashlib
import hmac
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import structlog

from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import MAC_BYTES, MAX_SPOOLED

log = structlog.get_logger(__name__)

_LEASE_MS = 15_000

# KEYS: stream. ARGV: maximum number of entries, entries. Returns the number of entries; nil when they would exceed it.
_KEEP = """
if redis.call('XLEN', KEYS[1]) + #ARGV - 1 > tonumber(ARGV[1]) then return false end
for index = 2, #ARGV do redis.call('XADD', KEYS[1], '*', 'e', ARGV[index]) end
return redis.call('XLEN', KEYS[1])
"""

# KEYS: stream, holder of the lease. ARGV: replica, lease in ms, limit. Returns the number of entries and the oldest
# entries, or no entries while another replica holds the lease.
_PEEK = """
local holder, waiting = redis.call('GET', KEYS[2]), redis.call('XLEN', KEYS[1])
if holder and holder ~= ARGV[1] then return {waiting, {}} end
local found = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[3])
if #found > 0 then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2]) else redis.call('DEL', KEYS[2]) end
return {waiting, found}
"""

# KEYS: stream. ARGV: entry id to start after, limit. Returns those entries.
_PEEK_SHARED = "return redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])"

# KEYS: stream. ARGV: entry ids. Returns the number of entries left; deletes an empty stream.
_FORGET = """
redis.call('XDEL', KEYS[1], unpack(ARGV))
local waiting = redis.call('XLEN', KEYS[1])
if waiting == 0 then redis.call('DEL', KEYS[1]) end
return waiting
"""

_StreamEntries = list[tuple[bytes, list[bytes]]]


class AuditSpool:
    """The spooled entries of all replicas of one installation; one replica at a time drains them."""

    def __init__(self, bus: EventBus, *, secret: bytes, older: Sequence[bytes] = ()) -> None:
        self._shared = f"{bus.namespace}:audit"
        self._named: str | None = None
        self._replica = bus.replica
        self._secrets = (secret, *older)
        self.waiting: int | None = None
        """Number of spooled entries of all replicas, as last reported by Redis; None while unknown."""
        self._keep = bus.script(_KEEP)
        self._peek = bus.script(_PEEK)
        self._peek_shared = bus.script(_PEEK_SHARED)
        self._forget = bus.script(_FORGET)

    def belong_to(self, installation: str) -> None:
        """Set the installation that owns the entries; before that, `keep` and `peek` raise `RedisUnavailable`."""
        self._named = f"{self._shared}:{installation}"  # guard: overflow-of-its-installation

    async def keep(self, entries: Sequence[bytes]) -> None:
        """Append these entries, in this order.

        Raises:
            RedisUnavailable: the entries may or may not be stored; or the spool is full or has no installation yet.
        """
        stream = self._stream
        sealed = [_mac(self._secrets[0], stream, entry) + entry for entry in entries]
        with self._clear_count_on_error():
            waiting: int | None = await self._keep((stream,), MAX_SPOOLED, *sealed)
        if waiting is None:
            raise RedisUnavailable("the audit spool in Redis is full")
        self.waiting = waiting

    async def peek(self, limit: int) -> Sequence[tuple[str, bytes]]:
        """Return the oldest entries with their stream ids; no entries while another replica drains the spool.

        Entries with a wrong MAC are deleted, and their number is logged.

        Raises:
            RedisUnavailable: the spool cannot be read or changed.
        """
        stream = self._stream
        with self._clear_count_on_error():
            reply: tuple[int, _StreamEntries] = await self._peek(
                (stream, f"{stream}:turn"), self._replica, _LEASE_MS, limit
            )
        self.waiting, found = reply
        valid = self._select_authentic(stream, found)
        if len(valid) < len(found):
            log.error("audit_overflow_refused", entries=len(found) - len(valid))
            valid_ids = {entry_id for entry_id, _ in valid}
            await self.forget([entry_id.decode() for entry_id, _ in found if entry_id.decode() not in valid_ids])
        return valid

    async def forget(self, entry_ids: Sequence[str]) -> None:
        """Delete these entries.

        Raises:
            RedisUnavailable: the entries may still be stored.
        """
        if entry_ids:
            with self._clear_count_on_error():
                self.waiting = await self._forget((self._stream,), *entry_ids)

    async def peek_shared(self, after: str, limit: int) -> tuple[str, Sequence[tuple[str, bytes]]]:
        """Read entries that replicas of the previous release left in a stream shared by all installations.

        Returns the id of the last entry read, or `after` if there is none, and the entries with a valid MAC.

        Raises:
            RedisUnavailable: the stream cannot be read.
        """
        found: _StreamEntries = await self._peek_shared((self._shared,), after, limit)
        return found[-1][0].decode() if found else after, self._select_authentic(self._shared, found)

    async def forget_shared(self, entry_ids: Sequence[str]) -> None:
        """Delete these entries of the shared stream.

        Raises:
            RedisUnavailable: the entries may still be stored.
        """
        if entry_ids:
            await self._forget((self._shared,), *entry_ids)

    @property
    def _stream(self) -> str:
        if self._named is None:
            raise RedisUnavailable("the installation of the waiting audit entries is not known yet")
        return self._named

    @contextmanager
    def _clear_count_on_error(self) -> Generator[None]:
        try:
            yield
        except RedisUnavailable:
            self.waiting = None
            raise

    def _select_authentic(self, stream: str, found: _StreamEntries) -> Sequence[tuple[str, bytes]]:
        waiting = [(entry_id.decode(), fields[1]) for entry_id, fields in found]
        return [(entry_id, sealed[MAC_BYTES:]) for entry_id, sealed in waiting if self._is_authentic(stream, sealed)]

    def _is_authentic(self, stream: str, sealed: bytes) -> bool:
        mac, entry = sealed[:MAC_BYTES], sealed[MAC_BYTES:]
        # guard: overflow-signature
        return any(hmac.compare_digest(mac, _mac(secret, stream, entry)) for secret in self._secrets)


def _mac(secret: bytes, stream: str, entry: bytes) -> bytes:
    return hmac.digest(secret, stream.encode() + b"\0" + entry, hashlib.sha256)[:MAC_BYTES]
