"""Inboxes of replicas: one Redis list per replica, to which other replicas add messages.

A MAC binds a message to its inbox, so that a Redis client without the secret can neither forge a message nor move it to
another inbox. A full inbox refuses messages; an inbox expires 10 s after the last message was added.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import structlog

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.errors import RedisUnavailable
from gateway.redis.entry_mac import MESSAGES, ValueMac
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.limits import MAC_BYTES
from gateway.redis.live.limits import INBOX_POLL_S, INBOX_RETRY_S, MAX_INBOX_BYTES, MAX_INBOX_MESSAGES

log = structlog.get_logger(__name__)

_TTL_MS = 10_000
_BATCH_SIZE = 64

# KEYS: inbox, its size in bytes, its channel. ARGV: message, maximum length, maximum bytes, time to live in ms.
# Returns 1 if the message was added.
_SEND = """
local size = tonumber(redis.call('GET', KEYS[2]) or '0')
if redis.call('EXISTS', KEYS[1]) == 0 then size = 0 end
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) or (size > 0 and size + #ARGV[1] > tonumber(ARGV[3])) then
  return 0
end
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], size + #ARGV[1], 'PX', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.pcall('PUBLISH', KEYS[3], '')
return 1
"""

# KEYS: inbox, its size in bytes. ARGV: maximum number of messages. Removes and returns the oldest messages.
_RECEIVE = """
local found = redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
if #found == 0 then return found end
redis.call('LTRIM', KEYS[1], #found, -1)
local size = 0
for _, message in ipairs(found) do size = size + #message end
redis.call('DECRBY', KEYS[2], size)
redis.call('PEXPIRE', KEYS[2], 10000)
return found
"""


class ReplicaInboxes:
    """Sends messages to the inboxes of other replicas, and receives the messages of this replica's inbox."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._mac = ValueMac(bus, MESSAGES)
        self._send = bus.script(_SEND)
        self._receive = bus.script(_RECEIVE)
        self._wake = anyio.Event()
        self._tasks = TaskSupervisor()

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def send(self, replica: str, message: bytes) -> bool:
        """Add a message to a replica's inbox; False if the inbox is full.

        Raises:
            RedisUnavailable: the message may or may not arrive.
        """
        keys = self._redis_keys(replica)
        sealed = self._mac.make(keys[0], message) + message
        return bool(await self._send(keys, sealed, MAX_INBOX_MESSAGES, MAX_INBOX_BYTES, _TTL_MS))

    @asynccontextmanager
    async def receiving(self, deliver: Callable[[bytes], None]) -> AsyncGenerator[None]:
        """While the block runs, call `deliver` with each message for this replica, in order of arrival."""

        async def read() -> None:
            await self._read(deliver)

        inbox, _, channel = self._redis_keys(self._bus.replica)
        async with self._bus.listening(channel, self._notify), self._tasks:
            self._tasks.spawn_loop(read)
            yield
        log.debug("inbox_closed", inbox=inbox)

    def _notify(self) -> None:
        self._wake.set()

    async def _read(self, deliver: Callable[[bytes], None]) -> None:
        keys = self._redis_keys(self._bus.replica)
        while True:
            self._wake = anyio.Event()
            try:
                found: list[bytes] = await self._receive(keys[:2], _BATCH_SIZE)
            except RedisUnavailable:
                await anyio.sleep(INBOX_RETRY_S)
                continue
            for message in found:
                mac, text = message[:MAC_BYTES], message[MAC_BYTES:]
                if self._mac.holds(keys[0], text, mac=mac):  # guard: inbox-mac
                    deliver(text)
                else:
                    log.warning("message_refused", inbox=keys[0])
            if not found:
                with anyio.move_on_after(INBOX_POLL_S):
                    await self._wake.wait()

    def _redis_keys(self, replica: str) -> tuple[str, str, str]:
        inbox = f"{self._bus.namespace}:replica:{replica}:inbox"
        return inbox, f"{inbox}:size", f"{inbox}:notify"
