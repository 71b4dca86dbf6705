"""The log level of a session: the least severe level that its client receives."""

from gateway.errors import NotFound
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import SessionKeys

_SET = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'level', ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
return 1
"""

_GET = "return redis.call('HGET', KEYS[1], 'level')"


class LogLevels:
    """The log levels of all sessions."""

    def __init__(self, bus: EventBus) -> None:
        self._set = bus.script(_SET)
        self._get = bus.script(_GET)

    async def set_level(self, keys: SessionKeys, level: str) -> None:
        """Store the level.

        Raises:
            NotFound: the session has ended.
            RedisUnavailable: the level may or may not be stored.
        """
        if not await self._set((keys.record, keys.state), level):
            raise NotFound("session not found")

    async def level(self, keys: SessionKeys) -> str | None:
        """Return the stored level; None if the client has set none."""
        found: bytes | None = await self._get((keys.state,))
        return None if found is None else found.decode("utf-8", "replace")
