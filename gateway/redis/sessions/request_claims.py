"""Claims on the request ids of a session, so that two replicas do not run requests with the same id.

While Redis is available, a slow request claims its id. A claim is a field of the session's state that names the replica
which runs the request; a claim of a crashed replica is ignored. After the response has become a stream, the stream's
log reserves the id instead.
"""

from typing import Final

import anyio
import structlog

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import heartbeat_key
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.limits import CLAIM_RETRY_S

log = structlog.get_logger(__name__)

IS_TAKEN: Final = """
local function is_taken(held, stream, life, logs)
  local other, alive = string.match(held or '', '^(%S+) ?(%S*)$')
  if not other or other == stream then return false end
  return redis.call('EXISTS', logs .. other) == 1 or (alive ~= life and redis.call('EXISTS', alive) == 1)
end
"""
"""Lua function: true if a request id belongs to another stream with a log, or to a claim of another live replica.
Claims of this replica are ignored, because it knows its own running requests.
"""

# KEYS: record, state. ARGV: request id as JSON, stream, heartbeat key of the replica, prefix of the logs.
# Returns 1 when the id was claimed, 0 when another request has it, -1 when the session has ended.
_ACQUIRE = (  # guard: request-id-claimed
    IS_TAKEN
    + """
if redis.call('EXISTS', KEYS[1], KEYS[2]) < 2 then return -1 end
if is_taken(redis.call('HGET', KEYS[2], 'id:' .. ARGV[1]), ARGV[2], ARGV[3], ARGV[4]) then return 0 end
redis.call('HSET', KEYS[2], 'id:' .. ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
return 1
"""
)

# KEYS: state. ARGV: request id as JSON, stream, heartbeat key of the replica. Releases only this claim's id.
_RELEASE = """
if redis.call('HGET', KEYS[1], 'id:' .. ARGV[1]) ~= ARGV[2] .. ' ' .. ARGV[3] then return 0 end
return redis.call('HDEL', KEYS[1], 'id:' .. ARGV[1])
"""

_RETRIES = 60


class RequestClaims:
    """The claims of this replica for the requests that it runs."""

    def __init__(self, bus: EventBus, *, spawn: Spawn) -> None:
        self.spawn = spawn
        self.life = heartbeat_key(bus.namespace, bus.replica)
        self.acquire_script = bus.script(_ACQUIRE)
        self.release_script = bus.script(_RELEASE)

    def of(self, keys: SessionKeys, stream: str, request: bytes) -> "RequestClaim":
        """Build an unacquired claim on a request id (as JSON) for a stream, which need not be open yet."""
        return RequestClaim(self, keys, stream, request)


class RequestClaim:
    """One claim, to be acquired and released once."""

    def __init__(self, claims: RequestClaims, keys: SessionKeys, stream: str, request: bytes) -> None:
        self._claims = claims
        self._keys = keys
        self._arguments = (request, stream, claims.life)
        self._is_held = False

    async def acquire(self) -> bool:
        """Claim the id; False if another request has the id.

        Also True while Redis is unavailable, and when the session has ended.
        """
        keys = self._keys
        try:
            answer: int = await self._claims.acquire_script((keys.record, keys.state), *self._arguments, keys.logs)
        except RedisUnavailable:  # Redis may have stored the claim
            self._is_held = True
            self.unregister()
            return True
        self._is_held = answer == 1
        return answer != 0

    async def release(self) -> None:
        """Release the id; while Redis is unavailable, a background task retries."""
        if not self._is_held:
            return
        self._is_held = False
        try:
            await self._claims.release_script((self._keys.state,), *self._arguments)
        except RedisUnavailable:
            self._claims.spawn(self._retry_release)

    def unregister(self) -> None:
        """Release the id in a background task."""
        if self._is_held:
            self._is_held = False
            self._claims.spawn(self._retry_release)

    async def _retry_release(self) -> None:
        for _ in range(_RETRIES):
            try:
                await self._claims.release_script((self._keys.state,), *self._arguments)
            except RedisUnavailable:
                await anyio.sleep(CLAIM_RETRY_S)
                continue
            return
        log.error("claim_not_released", stream=self._arguments[1])  # the claim ends with the replica or the session
