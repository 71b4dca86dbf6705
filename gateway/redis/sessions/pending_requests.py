"""Questions (requests to the client) of sessions; any replica can receive the answer.

An answer counts once, and only for an open question of the same session. A client that knows the question ids of
another session cannot answer its questions. A ping to the client is also a question, but no log contains it.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

import structlog

from gateway.redis.entry_mac import ANSWERS, ValueMac
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import SessionKeys

log = structlog.get_logger(__name__)

# KEYS: record, state, channel. ARGV: question, answer, its MAC. Returns 1 when the answer was accepted.
_ANSWER = """
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HGET', KEYS[2], 'q:' .. ARGV[1]) ~= '' then return 0 end
redis.call('HSET', KEYS[2], 'q:' .. ARGV[1], ARGV[2], 'a:' .. ARGV[1], ARGV[3])
redis.pcall('PUBLISH', KEYS[3], '')
return 1
"""

# KEYS: state. ARGV: question. Returns the answer and its MAC.
_LOOK = "return redis.call('HMGET', KEYS[1], 'q:' .. ARGV[1], 'a:' .. ARGV[1])"

_CLOSE = "return redis.call('HDEL', KEYS[1], 'q:' .. ARGV[1], 'a:' .. ARGV[1])"

# KEYS: record, state. ARGV: the previous ping or '', the ping that replaces it, '1' to change nothing while other
# questions are open. Returns if the previous ping was answered; 'asking' for other open questions; 'ended' without a
# session.
_PING = """
if redis.call('EXISTS', KEYS[1], KEYS[2]) < 2 then return 'ended' end
local before, name = 'q:' .. ARGV[1], 'q:' .. ARGV[2]
if ARGV[3] == '1' then
  for _, other in ipairs(redis.call('HKEYS', KEYS[2])) do
    local is_other = string.sub(other, 1, 2) == 'q:' and other ~= before and other ~= name
    if is_other and redis.call('HGET', KEYS[2], other) == '' then return 'asking' end
  end
end
local answer = redis.call('HGET', KEYS[2], before) or ''
redis.call('HDEL', KEYS[2], before, 'a:' .. ARGV[1])
redis.call('HSET', KEYS[2], name, '')
return answer == '' and 'unanswered' or 'answered'
"""

Pinged = Literal["answered", "unanswered", "asking", "ended"]
_PINGED: Final[Mapping[bytes, Pinged]] = {pinged.encode(): pinged for pinged in get_args(Pinged)}


class PendingRequests:
    """The open questions of all sessions. `StreamLog.append` opens a question together with its message."""

    def __init__(self, bus: EventBus) -> None:
        self._seal = ValueMac(bus, ANSWERS)
        self._answer = bus.script(_ANSWER)
        self._look = bus.script(_LOOK)
        self._close = bus.script(_CLOSE)
        self._ping = bus.script(_PING)

    async def answer(self, keys: SessionKeys, question: str, answer: bytes) -> bool:
        """Accept an answer; False if the session has ended, or the question is not open or already answered.

        Raises:
            RedisUnavailable: the answer may or may not have been accepted.
        """
        mac = self._seal.make(keys.state, question.encode(), answer)
        taken: int = await self._answer((keys.record, keys.state, keys.wake), question, answer, mac)
        return bool(taken)

    async def get_answer(self, keys: SessionKeys, question: str) -> bytes | None:
        """Return the answer; empty while there is none, None if the question does not exist.

        An answer with a wrong MAC for this session and question is refused: None, as for a missing question.
        """
        answer: bytes | None
        answer, mac = await self._look((keys.state,), question)
        if answer and not self._seal.holds(keys.state, question.encode(), answer, mac=mac):  # guard: answer-seal
            log.error("answer_refused", tenant_id=keys.tenant, session=keys.session[:8])
            return None
        return answer

    async def close(self, keys: SessionKeys, question: str) -> None:
        """Delete a question and its answer."""
        await self._close((keys.state,), question)

    async def ping(self, keys: SessionKeys, before: str, name: str, *, is_patient: bool) -> Pinged:
        """Open a ping in place of the previous one ('' for none), and return the outcome of the previous ping.

        Returns `ended` if the session has ended. With `is_patient`, returns `asking` and opens no ping while another
        question is open: a client that waits for its user may not answer pings.

        Raises:
            RedisUnavailable: the ping may or may not have been opened.
        """
        message: bytes = await self._ping((keys.record, keys.state), before, name, "1" if is_patient else "")
        return _PINGED[message]
