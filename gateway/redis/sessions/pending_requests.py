"""Pending server-to-client requests of sessions; any replica can receive the client's response.

A response is accepted once, and only for a pending request of the same session. So a client that knows the request ids
of another session cannot respond to them. Pings to the client are also stored here, but not in the stream's log.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

import structlog

from gateway.redis.entry_mac import ANSWERS, ValueMac
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import SessionKeys

log = structlog.get_logger(__name__)

# KEYS: record, state, channel. ARGV: request id, response, its MAC. Returns 1 if the response was accepted.
_ACCEPT = """
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HGET', KEYS[2], 'q:' .. ARGV[1]) ~= '' then return 0 end
redis.call('HSET', KEYS[2], 'q:' .. ARGV[1], ARGV[2], 'a:' .. ARGV[1], ARGV[3])
redis.pcall('PUBLISH', KEYS[3], '')
return 1
"""

# KEYS: state. ARGV: request id. Returns the response and its MAC.
_GET = "return redis.call('HMGET', KEYS[1], 'q:' .. ARGV[1], 'a:' .. ARGV[1])"

_CLOSE = "return redis.call('HDEL', KEYS[1], 'q:' .. ARGV[1], 'a:' .. ARGV[1])"

# KEYS: record, state. ARGV: the previous ping or '', the ping that replaces it, '1' to store no ping while another
# request is pending. Returns 'answered' or 'unanswered' for the previous ping; 'asking' while another request is
# pending; 'ended' without a session.
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
    """The pending requests of all sessions. `StreamLog.append` adds a request together with its message."""

    def __init__(self, bus: EventBus) -> None:
        self._seal = ValueMac(bus, ANSWERS)
        self._accept = bus.script(_ACCEPT)
        self._get = bus.script(_GET)
        self._close = bus.script(_CLOSE)
        self._ping = bus.script(_PING)

    async def accept(self, keys: SessionKeys, request_id: str, response: bytes) -> bool:
        """Accept a response; False if the session has ended, or the request is unknown or already has a response.

        Raises:
            RedisUnavailable: the response may or may not have been accepted.
        """
        mac = self._seal.make(keys.state, request_id.encode(), response)
        is_accepted: int = await self._accept((keys.record, keys.state, keys.wake), request_id, response, mac)
        return bool(is_accepted)

    async def get_response(self, keys: SessionKeys, request_id: str) -> bytes | None:
        """Return the response; empty while the request is pending, None if the request does not exist.

        None is also returned if the response's MAC does not match this session and request.
        """
        response: bytes | None
        response, mac = await self._get((keys.state,), request_id)
        if response and not self._seal.holds(keys.state, request_id.encode(), response, mac=mac):  # guard: answer-seal
            log.error("answer_refused", tenant_id=keys.tenant, session=keys.session[:8])
            return None
        return response

    async def close(self, keys: SessionKeys, request_id: str) -> None:
        """Delete a request and its response."""
        await self._close((keys.state,), request_id)

    async def ping(self, keys: SessionKeys, before: str, name: str, *, is_patient: bool) -> Pinged:
        """Store a ping in place of the previous one ('' for none), and return the outcome of the previous ping.

        Returns `ended` if the session has ended. With `is_patient`, returns `asking` and stores no ping while another
        request is pending, because a client that waits for its user may not respond to pings.

        Raises:
            RedisUnavailable: the ping may or may not be stored.
        """
        message: bytes = await self._ping((keys.record, keys.state), before, name, "1" if is_patient else "")
        return _PINGED[message]
