"""What the clients of sessions were asked, and what they answered, whichever replica the answer reached.

An answer counts once and only for a question that is open in the same session: who knows another session's question
ids, or guesses them, answers nothing.
"""

from gateway.bus.bus import Bus
from gateway.bus.session_keys import SessionKeys

# KEYS: record, state, channel. ARGV: question, answer. Answers 1 when it was taken.
_ANSWER = """
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HGET', KEYS[2], 'q:' .. ARGV[1]) ~= '' then return 0 end
redis.call('HSET', KEYS[2], 'q:' .. ARGV[1], ARGV[2])
redis.pcall('PUBLISH', KEYS[3], '')
return 1
"""

_LOOK = "return redis.call('HGET', KEYS[1], 'q:' .. ARGV[1])"

_CLOSE = "return redis.call('HDEL', KEYS[1], 'q:' .. ARGV[1])"


class Questions:
    """The open questions of all sessions; one is opened together with its message (`Logs.append`)."""

    def __init__(self, bus: Bus) -> None:
        self._answer = bus.script(_ANSWER)
        self._look = bus.script(_LOOK)
        self._close = bus.script(_CLOSE)

    async def answer(self, keys: SessionKeys, question: str, answer: bytes) -> bool:
        """Take an answer; False when it is to no open question or not the first.

        Raises:
            RedisUnavailable: it may or may not have been taken.
        """
        taken: int = await self._answer((keys.record, keys.state, keys.wake), question, answer)
        return bool(taken)

    async def look(self, keys: SessionKeys, question: str) -> bytes | None:
        """The answer; empty while there is none, None when the question or its session is gone."""
        found: bytes | None = await self._look((keys.state,), question)
        return found

    async def close(self, keys: SessionKeys, question: str) -> None:
        """Wait for an answer no longer."""
        await self._close((keys.state,), question)
