"""Sessions of callers at one server: one for each client's MCP session or, in 2026-07-28, for each principal.

The session of a caller is the same at every replica: its id is shared (`SessionRecords`), and each replica sends its
requests itself. A replica verifies a session that it uses every `CHECK_S` seconds, which also notes the use.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import LiveSource
from gateway.domain.sessions import SessionOwner, UpstreamSession, UpstreamSessionKey
from gateway.errors import RedisUnavailable, UpstreamBusy
from gateway.upstream.limits import BUSY_RETRY_S
from gateway.upstream.live.interfaces import CAPABILITIES, LiveClient
from gateway.upstream.live.mcp.limits import CHECK_S, MARK_AFTER_S, MAX_AT_ONCE, MAX_OF_CALLER, MAX_STREAMS, UNUSED_S
from gateway.upstream.live.mcp.messages import Message, read_message, write_message
from gateway.upstream.live.mcp.session import SessionExpired
from gateway.upstream.live.mcp.session_stream import SessionStream
from gateway.upstream.live.mcp.streamable_session import StreamableSession
from gateway.upstream.live.mcp.time_limit import TimeLimit

log = structlog.get_logger(__name__)


class SessionRecords(Protocol):
    """The sessions of callers that the replicas share."""

    async def touch(self, key: UpstreamSessionKey) -> UpstreamSession | None:
        """Return the caller's session and note its use; None if there is none."""
        ...

    def opening(self, key: UpstreamSessionKey) -> AbstractAsyncContextManager[None]:
        """Let one replica open a session for this key at a time."""
        ...

    async def store(self, key: UpstreamSessionKey, session: UpstreamSession) -> None:
        """Store a new session of the caller; the idlest sessions above the limits end."""
        ...

    async def drop(self, key: UpstreamSessionKey, session: UpstreamSession) -> None:
        """Forget a session that the server has ended, unless another replica has replaced it."""
        ...

    async def take_ended(self, tenant: TenantId, source: LiveSourceId, version: int) -> Sequence[UpstreamSession]:
        """Take sessions that have to be ended at the server."""
        ...

    async def take_all(self, tenant: TenantId, source: LiveSourceId, version: int) -> Sequence[UpstreamSession]:
        """Take the sessions of a source that was changed or removed."""
        ...

    async def mark(self, key: UpstreamSessionKey, request: str) -> None:
        """Note that this replica runs a request in the session."""
        ...

    async def unmark(self, key: UpstreamSessionKey, request: str) -> None:
        """Note the end of a request."""
        ...


class SessionsInUse:
    """The callers' sessions that this replica uses, at all servers."""

    def __init__(self) -> None:
        self._sessions: dict[UpstreamSessionKey, CallerSession] = {}

    def add(self, session: "CallerSession") -> None:
        """Add a session."""
        self._sessions[session.key] = session

    def remove(self, session: "CallerSession") -> None:
        """Remove a session, unless its caller has a later one."""
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]

    async def deliver(self, key: UpstreamSessionKey, message: bytes) -> None:
        """Handle a message of a server that another replica has received for a request here."""
        session = self._sessions.get(key)
        if session is None:
            return
        received = read_message(message)
        if not await session.deliver(received):
            await session.session.refuse(received)


@dataclass(frozen=True, slots=True)
class SharedSessions:
    """The sessions of callers, as all replicas and servers share them.

    `pass_on` gives a message to the replica that runs a request in the session; False if there is none. `digest_key` is
    a secret of all replicas, because the keys of records contain a digest of the credential.
    """

    records: SessionRecords
    in_use: SessionsInUse
    pass_on: Callable[[UpstreamSessionKey, bytes], Awaitable[bool]]
    digest_key: bytes


class SessionOpener(Protocol):
    """Opens and continues sessions of one server."""

    async def secrets(self, client: LiveClient) -> tuple[str, ...]:
        """Return the secrets with which a client's session is opened; none if each request loads its caller's."""
        ...

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> StreamableSession:
        """Open and initialize a session with the stored credential, or with the caller's if it is per caller."""
        ...

    async def adopt(
        self, record: UpstreamSession, capabilities: frozenset[str], client: LiveClient | None = None
    ) -> StreamableSession:
        """Continue a session that another replica has opened."""
        ...


class CallerSession:
    """One caller's session, as this replica uses it; `admit_stream` decides before its GET stream opens."""

    def __init__(
        self,
        key: UpstreamSessionKey,
        session: StreamableSession,
        shared: SharedSessions,
        spawn: Spawn,
        *,
        admit_stream: "Callable[[CallerSession], bool]",
    ) -> None:
        self.key = key
        self.session = session
        self.stream = SessionStream(session, self._take)
        self.checked_at = self.used_at = time.monotonic()
        self.is_stored = self.is_retired = False
        self.running = 0
        self._shared = shared
        self._spawn = spawn
        self._admit_stream = admit_stream
        self._at_once = asyncio.Semaphore(MAX_OF_CALLER)
        self._marking = asyncio.Lock()
        self._requests = 0

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request; see `Conversation.run`."""
        async with self._at_once:
            self.used_at = time.monotonic()
            self.running += 1
            try:
                if self.session.record is not None and (self.stream.is_open or self._admit_stream(self)):
                    await self.stream.ensure()
                with self._marked():
                    return await self.session.request(method, params, client, limit)
            finally:
                self.running -= 1
                if not self.running:
                    self.stream.release()
                if not self.running and self.is_retired:
                    self._spawn(self.session.close)

    async def deliver(self, message: Message) -> bool:
        """Pass a message to a request that runs here; False if there is none."""
        return await self.session.deliver(message, is_one_client=bool(self.key.owner.session))

    @contextmanager
    def _marked(self) -> Generator[None]:
        """Mark a request that is older than `_MARK_AFTER_S` as running, if its client can be asked."""
        if not self.session.capabilities:
            yield
            return
        self._requests += 1
        mark = f"{id(self):x}.{self._requests}"
        is_marked = False

        def begin() -> None:
            nonlocal is_marked
            is_marked = True
            self._spawn(self._mark, self._shared.records.mark, mark)

        timer = asyncio.get_running_loop().call_later(MARK_AFTER_S, begin)
        try:
            yield
        finally:
            timer.cancel()
            if is_marked:
                self._spawn(self._mark, self._shared.records.unmark, mark)

    async def _mark(self, change: Callable[[UpstreamSessionKey, str], Awaitable[None]], mark: str) -> None:
        async with self._marking:  # in order: the end of a request may follow its mark at once
            with suppress(RedisUnavailable):
                await change(self.key, mark)

    async def _take(self, message: Message) -> None:
        """Pass a message of the GET stream to a request, here or at another replica; otherwise refuse it."""
        if not self.session.capabilities:
            await self.session.refuse(message)  # the client did not declare what the server asks for
        elif not await self.deliver(message):
            self._spawn(self._pass_on, message)  # the other replica may not have marked its request yet

    async def _pass_on(self, message: Message) -> None:
        if not await self._shared.pass_on(self.key, write_message(**message)):
            await self.session.refuse(message)


class CallerSessions:
    """The sessions of one server's callers at this replica; `spawn` runs clean-up in the background."""

    is_local = False

    def __init__(self, source: LiveSource, opener: SessionOpener, shared: SharedSessions, spawn: Spawn) -> None:
        self._place = source.tenant, source.id, source.version
        self._opener = opener
        self._shared = shared
        self._spawn = spawn
        self._held: dict[UpstreamSessionKey, CallerSession] = {}
        self._opening: dict[UpstreamSessionKey, asyncio.Lock] = {}
        self._at_once = asyncio.Semaphore(MAX_AT_ONCE)

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient, owner: SessionOwner, *, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run a request in the caller's session; if the server has ended it, repeat the request in a new one."""
        capabilities = frozenset(name for name in CAPABILITIES if client.can(name))
        key = UpstreamSessionKey(*self._place, owner, await self._variant(client, capabilities))
        async with self._at_once:
            session = await self._find(key, capabilities, client, limit)
            try:
                return await session.call(method, params, client, limit)
            except SessionExpired:
                await self._forget(session)
            session = await self._find(key, capabilities, client, limit)
            return await session.call(method, params, client, limit)

    async def are_offered(self, limit: TimeLimit) -> bool:
        """True if the server opens a session with an id.

        Raises:
            LiveSourceFailed, UpstreamError: the server opens no session.
        """
        session = await self._opener.open(frozenset(), limit)
        self._spawn(session.close)
        return session.record is not None

    async def tidy(self) -> None:
        """Forget sessions that are not used here, and end idle ones at the server."""
        now = time.monotonic()
        for key, held in list(self._held.items()):
            if now - held.used_at > UNUSED_S and not held.running:
                self._remove(key, held)
        with suppress(RedisUnavailable):
            if taken := await self._shared.records.take_ended(*self._place):
                self._spawn(self._end, taken)

    async def close(self, *, is_retired: bool) -> None:
        """Forget the sessions, which other replicas use; a source that was changed or removed ends all of them."""
        held = list(self._held.items())
        for key, session in held:
            self._remove(key, session)
        await asyncio.gather(*(session.stream.close() for _, session in held if not session.running))
        busy = {session.session.record: session for _, session in held if session.running}
        with suppress(RedisUnavailable):
            while is_retired and (taken := await self._shared.records.take_all(*self._place)):
                for record in taken:
                    if record in busy:
                        busy[record].is_retired = True  # ended after its request, which outlives the attachment
                self._spawn(self._end, [record for record in taken if record not in busy])

    async def _variant(self, client: LiveClient, capabilities: frozenset[str]) -> bytes:
        parts = (*sorted(capabilities), "", *await self._opener.secrets(client))
        digest = hashlib.blake2b(json.dumps(parts).encode(), key=self._shared.digest_key, digest_size=16)
        return digest.digest()  # guard: live-session-identity

    async def _find(
        self, key: UpstreamSessionKey, capabilities: frozenset[str], client: LiveClient, limit: TimeLimit
    ) -> CallerSession:
        """Return the caller's session: the one that the replicas share, or a new one."""
        held = self._held.get(key)
        if held is not None and time.monotonic() - held.checked_at < CHECK_S and not held.session.has_ended:
            return held
        async with self._opening.setdefault(key, asyncio.Lock()):
            held = self._held.get(key)
            if held is not None and held.session.has_ended:
                self._remove(key, held)
                held = None
            elif held is not None and time.monotonic() - held.checked_at < CHECK_S:
                return held
            try:
                return await self._synchronize(key, held, capabilities, client, limit=limit)
            except RedisUnavailable:
                if held is not None:
                    return held
                session = await self._opener.open(capabilities, limit, client)
                return self._add(key, session, is_stored=False)
            finally:
                self._opening.pop(key, None)

    async def _synchronize(
        self,
        key: UpstreamSessionKey,
        held: CallerSession | None,
        capabilities: frozenset[str],
        client: LiveClient,
        *,
        limit: TimeLimit,
    ) -> CallerSession:
        records, record = self._shared.records, await self._shared.records.touch(key)
        if held is not None:
            if record is None and not held.is_stored and held.session.record is not None:  # opened without Redis
                await records.store(key, held.session.record)
                held.is_stored, record = True, held.session.record
            if record == held.session.record:
                held.checked_at = time.monotonic()
                return held
            self._remove(key, held)
        if record is None:
            async with records.opening(key):
                record = await records.touch(key)
                if record is None:
                    session = await self._opener.open(capabilities, limit, client)
                    if session.record is not None:
                        await records.store(key, session.record)
                    return self._add(key, session, is_stored=True)
        return self._add(key, await self._opener.adopt(record, capabilities, client), is_stored=True)

    def _add(self, key: UpstreamSessionKey, session: StreamableSession, *, is_stored: bool) -> CallerSession:
        held = CallerSession(key, session, self._shared, self._spawn, admit_stream=self._admit_stream)
        held.is_stored = is_stored
        self._held[key] = held
        self._shared.in_use.add(held)
        return held

    def _admit_stream(self, session: CallerSession) -> bool:
        """Close an unused stream if there are too many; False if all of them are in use.

        Raises:
            UpstreamBusy: they are, and the server could ask the client of this session.
        """
        open_streams = [one for one in self._held.values() if one.stream.is_open]
        if len(open_streams) < MAX_STREAMS:
            return True
        idle = min((one for one in open_streams if not one.running), key=lambda one: one.used_at, default=None)
        if idle is not None:
            idle.stream.stop()
        elif session.session.capabilities:  # guard: live-stream-count
            raise UpstreamBusy("too many callers use this live source at once; retry later", retry_after_s=BUSY_RETRY_S)
        return idle is not None

    def _remove(self, key: UpstreamSessionKey, held: CallerSession) -> None:
        if self._held.get(key) is held:
            del self._held[key]
        self._shared.in_use.remove(held)
        if not held.running:
            held.stream.stop()

    async def _forget(self, session: CallerSession) -> None:
        """Forget a session that the server has ended."""
        self._remove(session.key, session)
        if session.session.record is not None:
            with suppress(RedisUnavailable):
                await self._shared.records.drop(session.key, session.session.record)

    async def _end(self, taken: Sequence[UpstreamSession]) -> None:
        """End sessions at the server; one whose credential only its caller has expires there."""
        await asyncio.gather(*(self._end_one(record) for record in taken), return_exceptions=True)

    async def _end_one(self, record: UpstreamSession) -> None:
        await (await self._opener.adopt(record, frozenset())).close()
