"""Logs of the messages to the client of a session, one per stream, so that any replica can replay them.

A log is a Redis Stream. A message longer than 64 KiB is split into several entries, written atomically. The last
message of a request's stream is marked final, and no message can be added after it. So all readers see the same end of
a call, even if its replica was paused and another replica ended the stream. Each message has a MAC
(`gateway.redis.entry_mac`); readers drop the content of a message with an invalid MAC.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from gateway.redis.entry_mac import UPDATE, EntryMac
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import heartbeat_key
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.limits import ENTRY_BYTES, FINISHED_TTL_S, MAX_ENTRIES
from gateway.redis.sessions.records import Sessions
from gateway.redis.sessions.request_claims import IS_TAKEN

log = structlog.get_logger(__name__)

START = "0-0"
"""The position before the first entry."""

_READ_ENTRIES = 32
_TEXT, _FINAL, _MORE = b"d", b"f", b"c"
_MAC_PLACE = 3
"""The index of the MAC in an entry: flag, value, `m`, MAC. Only the last piece of a message has a MAC."""
_Row = tuple[bytes, Sequence[bytes]]
_ENDED = 2

# KEYS: record, state, index. ARGV: stream, prefix of the logs, replica that runs it, request id as JSON, idle ms, MAC,
# heartbeat key of that replica.
# Returns the id of a first, empty entry; '' when another request has that id; nil when the session has
# ended. Also deletes the names of logs that have expired.
_OPEN = (
    IS_TAKEN
    + """
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
for _, name in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  if redis.call('EXISTS', ARGV[2] .. name) == 0 then
    redis.call('SREM', KEYS[3], name)
    redis.call('HDEL', KEYS[2], 'run:' .. name)
  end
end
if is_taken(redis.call('HGET', KEYS[2], 'id:' .. ARGV[4]), ARGV[1], ARGV[7], ARGV[2]) then return '' end
redis.call('HSET', KEYS[2], 'id:' .. ARGV[4], ARGV[1], 'run:' .. ARGV[1], ARGV[3] .. ' ' .. ARGV[4])
redis.call('SADD', KEYS[3], ARGV[1])
local id = redis.call('XADD', ARGV[2] .. ARGV[1], '*', 'd', '', 'm', ARGV[6])
for _, key in ipairs({ARGV[2] .. ARGV[1], KEYS[2], KEYS[3]}) do redis.call('PEXPIRE', key, ARGV[5]) end
return id
"""
)

# KEYS: record, log, state, index, channel. ARGV: stream, idle ms, entry limit, 'f' when it is the last message,
# id of a server-to-client request or '', the MAC of the message, then its pieces.
# Returns the id of its last entry; '' when the stream has ended; nil when the session has ended.
_APPEND = """
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if last and last[2][1] == 'f' then return '' end
for index = 7, #ARGV - 1 do redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'c', ARGV[index]) end
local flag = ARGV[4] == 'f' and 'f' or 'd'
local id = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', flag, ARGV[#ARGV], 'm', ARGV[6])
redis.call('SADD', KEYS[4], ARGV[1])
if ARGV[5] ~= '' then redis.call('HSET', KEYS[3], 'q:' .. ARGV[5], '') end
if ARGV[4] == 'f' then
  local run = redis.call('HGET', KEYS[3], 'run:' .. ARGV[1])
  if run then redis.call('HDEL', KEYS[3], 'id:' .. string.sub(run, string.find(run, ' ', 1, true) + 1)) end
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[3], ARGV[2])
redis.call('PEXPIRE', KEYS[4], ARGV[2])
redis.pcall('PUBLISH', KEYS[5], ARGV[1])
return id
"""

# KEYS: record, log, state, heartbeat key of the replica that runs it (or the record). ARGV: stream, entry to start
# after, entry limit, token of a reader of the standalone stream. If the token is the newest reader's, the script
# records the start position and the last entry returned.
# Returns 1 if the session exists, the token of the newest reader, 1 if the fourth key exists, the entries, and the
# state of the log: 0 absent, 1 open or with entries to read, 2 ended.
_READ = """
local rows, kept = redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', ARGV[3]), 1
if #rows == 0 then
  local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  kept = not last and 0 or last[2][1] == 'f' and 2 or 1
end
local reader = redis.call('HGET', KEYS[3], 'reader') or ''
if ARGV[4] ~= '' and ARGV[4] == reader then
  if ARGV[2] ~= '0-0' then redis.call('HSET', KEYS[3], 'read', ARGV[2]) end
  if #rows > 0 then redis.call('HSET', KEYS[3], 'taken', rows[#rows][1]) end
end
return {redis.call('EXISTS', KEYS[1]), reader, redis.call('EXISTS', KEYS[4]), rows, kept}
"""

# KEYS: record, state, channel. ARGV: token, idle ms. The previous reader sees the new token and ends.
# Returns the position up to which the standalone stream was read; nil when the session has ended.
_BEGIN_READING = """
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
redis.call('HSET', KEYS[2], 'reader', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.pcall('PUBLISH', KEYS[3], '')
return redis.call('HGET', KEYS[2], 'read') or '0-0'
"""

_RUN = "return redis.call('HGET', KEYS[1], 'run:' .. ARGV[1])"

_TRIM = "return redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMessage:
    """One message of a stream; a resource update has a URI instead of a message.

    A message with an invalid MAC keeps its id, without content.
    """

    id: str
    text: bytes = b""
    uri: str | None = None
    is_final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead:
    """The result of one read of a stream."""

    messages: Sequence[LoggedMessage]
    is_alive: bool
    """True if the session still exists."""
    reader: str
    """The token of the newest reader of the standalone stream."""
    is_run: bool
    """True if the replica that runs the request is alive; equal to `is_alive` for a stream without a request."""
    is_kept: bool
    """True if the log exists and has entries."""
    is_ended: bool
    """True if the stream has ended and all its entries were read."""
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOwner:
    """The replica that runs a request, and the request's id as JSON."""

    replica: str
    request: bytes


class StreamLog:
    """The logs of all streams of all sessions."""

    def __init__(self, bus: EventBus, sessions: Sessions) -> None:
        self.replica = bus.replica
        self._namespace = bus.namespace
        self._idle_ms = sessions.idle_ms
        self._seal = EntryMac(bus)
        self.refused = 0
        """Number of messages whose content was dropped because their MAC was invalid."""
        self._open = bus.script(_OPEN)
        self._append = bus.script(_APPEND)
        self._read = bus.script(_READ)
        self._begin_reading = bus.script(_BEGIN_READING)
        self._run = bus.script(_RUN)
        self._trim = bus.script(_TRIM)

    async def open(self, keys: SessionKeys, stream: str, request: bytes) -> str | None:
        """Open the stream of a request, and return the id of its first, empty message.

        Returns '' when another request has that id, and None when the session has ended.

        Raises:
            RedisUnavailable: the stream may or may not have been opened.
        """
        redis_keys = (keys.record, keys.state, keys.index)
        mac = self._seal.make(keys.log(stream), _TEXT, b"")
        liveness_key = heartbeat_key(self._namespace, self.replica)
        return _text(
            await self._open(redis_keys, stream, keys.logs, self.replica, request, self._idle_ms, mac, liveness_key)
        )

    async def append(
        self, keys: SessionKeys, stream: str, text: bytes, *, is_final: bool = False, request_id: str = ""
    ) -> str | None:
        """Add one message and return its id; None, without adding it, when the stream or the session has ended.

        Raises:
            RedisUnavailable: the message may or may not have been added.
        """
        pieces = [text[start : start + ENTRY_BYTES] for start in range(0, len(text), ENTRY_BYTES)] or [b""]
        ttl_ms = min(self._idle_ms, FINISHED_TTL_S * 1000) if is_final else self._idle_ms
        redis_keys = (keys.record, keys.log(stream), keys.state, keys.index, keys.wake)
        flag = _FINAL if is_final else _TEXT
        mac = self._seal.make(keys.log(stream), flag, text)
        return (
            _text(await self._append(redis_keys, stream, ttl_ms, MAX_ENTRIES, flag, request_id, mac, *pieces)) or None
        )

    async def read(
        self, keys: SessionKeys, stream: str, after: str, *, run: RequestOwner | None = None, reader: str = ""
    ) -> LogRead:
        """Read the messages after an entry; `reader` is the token of the reader of the standalone stream.

        Raises:
            RedisUnavailable: nothing was read.
        """
        liveness_key = keys.record if run is None else heartbeat_key(self._namespace, run.replica)
        redis_keys = (keys.record, keys.log(stream), keys.state, liveness_key)
        alive, newest_reader, is_run, rows, log_state = await self._read(
            redis_keys, stream, after, _READ_ENTRIES, reader
        )
        more = len(rows) == _READ_ENTRIES
        while more and rows[-1][1][0] == _MORE:  # the read ended inside a message
            rest = await self._rest(redis_keys, stream, rows[-1][0].decode())
            more = bool(rest)  # a message is written atomically, so an incomplete one was not written by the gateway
            rows += rest
        messages = self._join(keys, stream, rows)
        return LogRead(
            messages=messages,
            is_alive=bool(alive),
            reader=newest_reader.decode(),
            is_run=bool(is_run),
            is_kept=log_state > 0,
            is_ended=log_state == _ENDED,
            has_more=more,
        )

    async def take_over(self, keys: SessionKeys) -> tuple[str, str] | None:
        """Become the reader of the standalone stream; return a token and the read position, None if the session ended.

        Raises:
            RedisUnavailable: the previous reader may continue.
        """
        token = secrets.token_hex(8)
        read = _text(await self._begin_reading((keys.record, keys.state, keys.wake), token, self._idle_ms))
        return None if read is None else (token, read)

    async def find_owner(self, keys: SessionKeys, stream: str) -> RequestOwner | None:
        """Return the owner of a stream's request; None if none is stored."""
        message = _text(await self._run((keys.state,), stream))
        if message is None:
            return None
        replica, _, request = message.partition(" ")
        return RequestOwner(replica=replica, request=request.encode())

    async def trim(self, keys: SessionKeys, stream: str, before: str) -> None:
        """Delete the entries older than the entry `before`."""
        await self._trim((keys.log(stream),), before)

    async def _rest(self, redis_keys: Sequence[str], stream: str, after: str) -> list[_Row]:
        _, _, _, rows, _ = await self._read(redis_keys, stream, after, _READ_ENTRIES, "")
        found: list[_Row] = rows
        return found

    def _join(self, keys: SessionKeys, stream: str, rows: Sequence[_Row]) -> list[LoggedMessage]:
        """The complete messages among entries of a log; pieces of an incomplete last message are dropped."""
        messages: list[LoggedMessage] = []
        pieces: list[bytes] = []
        name, refused = keys.log(stream), 0
        for entry, fields in rows:
            flag, value = fields[0], fields[1]
            if flag == _MORE:
                pieces.append(value)
                continue
            text = b"".join((*pieces, value)) if pieces else value
            pieces.clear()
            # guard: log-signature
            is_ours = len(fields) > _MAC_PLACE and self._seal.holds(name, flag, text, fields[_MAC_PLACE])
            refused += not is_ours
            messages.append(_message(entry.decode(), flag, text) if is_ours else LoggedMessage(id=entry.decode()))
        if refused:
            self.refused += refused
            log.error("messages_refused", tenant_id=keys.tenant, session=keys.session[:8], messages=refused)
        return messages


def _message(entry: str, flag: bytes, text: bytes) -> LoggedMessage:
    if flag == UPDATE:
        return LoggedMessage(id=entry, uri=text.decode("utf-8", "surrogatepass"))
    return LoggedMessage(id=entry, text=text, is_final=flag == _FINAL)


def _text(answer: bytes | None) -> str | None:
    return None if answer is None else answer.decode()
