"""Where entries of the audit trail wait while PostgreSQL is away: in one stream of Redis, each under a MAC of ours.

What is kept there is as durable as Redis is made to be (an append-only file, synced every second, for the embedded
one). It never drops an entry to make room: it takes no more.
"""

import hashlib
import hmac
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import structlog

from gateway.bus.bus import Bus
from gateway.errors import RedisUnavailable

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

# KEYS: stream. ARGV: places. Answers how many wait now.
_FORGET = """
redis.call('XDEL', KEYS[1], unpack(ARGV))
return redis.call('XLEN', KEYS[1])
"""


class Overflow:
    """The entries of all replicas; one replica at a time takes them out."""

    def __init__(self, bus: Bus, *, secret: bytes) -> None:
        self._stream = f"{bus.namespace}:audit"
        self._turn = f"{bus.namespace}:audit:turn"
        self._replica = bus.replica
        self._secret = secret
        self.waiting: int | None = None
        """How many wait, of all replicas, as far as this one has heard; None while nobody knows."""
        self._keep = bus.script(_KEEP)
        self._peek = bus.script(_PEEK)
        self._forget = bus.script(_FORGET)

    async def keep(self, entries: Sequence[bytes]) -> None:
        """Have these wait, in this order.

        Raises:
            RedisUnavailable: they may or may not wait, or there is no room for more.
        """
        sealed = [self._mac(entry) + entry for entry in entries]
        with self._counting():
            waiting: int | None = await self._keep((self._stream,), MOST, *sealed)
        if waiting is None:
            raise RedisUnavailable("no room for more entries of the audit trail")
        self.waiting = waiting

    async def peek(self, limit: int) -> Sequence[tuple[str, bytes]]:
        """The oldest that wait, each with its place; none while another replica takes them out.

        Raises:
            RedisUnavailable: nobody knows.
        """
        with self._counting():
            answer: tuple[int, list[tuple[bytes, list[bytes]]]] = await self._peek(
                (self._stream, self._turn), self._replica, _TURN_MS, limit
            )
        self.waiting, found = answer
        waiting = [(place.decode(), fields[1]) for place, fields in found]
        good = [(place, sealed[_MAC_BYTES:]) for place, sealed in waiting if self._is_ours(sealed)]
        if len(good) < len(waiting):
            log.error("audit_overflow_refused", entries=len(waiting) - len(good))
            await self.forget([place for place, sealed in waiting if not self._is_ours(sealed)])
        return good

    async def forget(self, places: Sequence[str]) -> None:
        """These need not wait any more.

        Raises:
            RedisUnavailable: they may still be there.
        """
        if places:
            with self._counting():
                self.waiting = await self._forget((self._stream,), *places)

    @contextmanager
    def _counting(self) -> Generator[None]:
        try:
            yield
        except RedisUnavailable:
            self.waiting = None
            raise

    def _is_ours(self, sealed: bytes) -> bool:
        return hmac.compare_digest(sealed[:_MAC_BYTES], self._mac(sealed[_MAC_BYTES:]))

    def _mac(self, entry: bytes) -> bytes:
        return hmac.digest(self._secret, self._stream.encode() + b"\0" + entry, hashlib.sha256)[:_MAC_BYTES]
