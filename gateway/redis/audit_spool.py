"""Where entries of the audit trail wait while PostgreSQL is away: in one stream of Redis, each under a MAC of ours.

The stream bears the name of the installation, so that several may share a Redis. What is kept there is as durable as
Redis is made to be (an append-only file, synced every second, for the embedded one). It never drops an entry to make
room: it takes no more.
"""

import hashlib
import hmac
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import structlog

from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus

log = structlog.get_logger(__name__)

MOST = 500_000
_MAC_BYTES = 16
_TURN_MS = 15_000

# KEYS: stream. ARGV: the most entries, entries. Answers how many wait now; nil when these were not taken.
_KEEP = """
if redis.call('XLEN', KEYS[1]) + #ARGV - 1 > tonumber(ARGV[1]) then return false end
for index = 2, #ARGV do redis.call('XADD', KEYS[1], '*', 'e', ARGV[index]) end
return redis.call('XLEN', KEYS[1])
"""

# KEYS: stream, whose turn it is. ARGV: replica, ms of a turn, how many. Answers how many wait, and the oldest of them;
# none while it is another's turn.
_PEEK = """
local holder, waiting = redis.call('GET', KEYS[2]), redis.call('XLEN', KEYS[1])
if holder and holder ~= ARGV[1] then return {waiting, {}} end
local found = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[3])
if #found > 0 then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2]) else redis.call('DEL', KEYS[2]) end
return {waiting, found}
"""

# KEYS: stream. ARGV: after which place, how many. Answers those.
_PEEK_SHARED = "return redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])"

# KEYS: stream. ARGV: places. Answers how many wait now; nothing is left of an empty stream.
_FORGET = """
redis.call('XDEL', KEYS[1], unpack(ARGV))
local waiting = redis.call('XLEN', KEYS[1])
if waiting == 0 then redis.call('DEL', KEYS[1]) end
return waiting
"""

_Found = list[tuple[bytes, list[bytes]]]


class AuditSpool:
    """The entries of all replicas of one installation; one replica at a time takes them out."""

    def __init__(self, bus: EventBus, *, secret: bytes, older: Sequence[bytes] = ()) -> None:
        self._shared = f"{bus.namespace}:audit"
        self._named: str | None = None
        self._replica = bus.replica
        self._secrets = (secret, *older)
        self.waiting: int | None = None
        """How many wait, of all replicas, as far as this one has heard; None while nobody knows."""
        self._keep = bus.script(_KEEP)
        self._peek = bus.script(_PEEK)
        self._peek_shared = bus.script(_PEEK_SHARED)
        self._forget = bus.script(_FORGET)

    def belong_to(self, installation: str) -> None:
        """Say whose entries these are; before that none is kept and none is shown."""
        self._named = f"{self._shared}:{installation}"

    async def keep(self, entries: Sequence[bytes]) -> None:
        """Have these wait, in this order.

        Raises:
            RedisUnavailable: they may or may not wait, or there is no room for more.
        """
        stream = self._stream
        sealed = [_mac(self._secrets[0], stream, entry) + entry for entry in entries]
        with self._counting():
            waiting: int | None = await self._keep((stream,), MOST, *sealed)
        if waiting is None:
            raise RedisUnavailable("no room for more entries of the audit trail")
        self.waiting = waiting

    async def peek(self, limit: int) -> Sequence[tuple[str, bytes]]:
        """The oldest that wait, each with its place; none while another replica takes them out.

        Raises:
            RedisUnavailable: nobody knows.
        """
        stream = self._stream
        with self._counting():
            answer: tuple[int, _Found] = await self._peek((stream, f"{stream}:turn"), self._replica, _TURN_MS, limit)
        self.waiting, found = answer
        good = self._ours(stream, found)
        if len(good) < len(found):
            log.error("audit_overflow_refused", entries=len(found) - len(good))
            believed = {place for place, _ in good}
            await self.forget([place.decode() for place, _ in found if place.decode() not in believed])
        return good

    async def forget(self, places: Sequence[str]) -> None:
        """These need not wait any more.

        Raises:
            RedisUnavailable: they may still be there.
        """
        if places:
            with self._counting():
                self.waiting = await self._forget((self._stream,), *places)

    async def peek_shared(self, after: str, limit: int) -> tuple[str, Sequence[tuple[str, bytes]]]:
        """What replicas of the release before have left in a stream that all installations shared.

        Answers how far it has looked, and those entries that were sealed with our secret.

        Raises:
            RedisUnavailable: nobody knows.
        """
        found: _Found = await self._peek_shared((self._shared,), after, limit)
        return found[-1][0].decode() if found else after, self._ours(self._shared, found)

    async def forget_shared(self, places: Sequence[str]) -> None:
        """These of them need not wait any more.

        Raises:
            RedisUnavailable: they may still be there.
        """
        if places:
            await self._forget((self._shared,), *places)

    @property
    def _stream(self) -> str:
        if self._named is None:
            raise RedisUnavailable("nobody has said yet whose entries of the audit trail wait here")
        return self._named

    @contextmanager
    def _counting(self) -> Generator[None]:
        try:
            yield
        except RedisUnavailable:
            self.waiting = None
            raise

    def _ours(self, stream: str, found: _Found) -> Sequence[tuple[str, bytes]]:
        waiting = [(place.decode(), fields[1]) for place, fields in found]
        return [(place, sealed[_MAC_BYTES:]) for place, sealed in waiting if self._is_ours(stream, sealed)]

    def _is_ours(self, stream: str, sealed: bytes) -> bool:
        mac, entry = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        return any(hmac.compare_digest(mac, _mac(secret, stream, entry)) for secret in self._secrets)


def _mac(secret: bytes, stream: str, entry: bytes) -> bytes:
    return hmac.digest(secret, stream.encode() + b"\0" + entry, hashlib.sha256)[:_MAC_BYTES]
