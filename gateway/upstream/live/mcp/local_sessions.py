"""Sessions of callers over HTTP+SSE: each exists only as one connection, so the replica that holds the source has it.

A caller has one session. It ends when it was not used for `IDLE_S`, or is the idlest one above the limit.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Protocol

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.sessions import SessionOwner
from gateway.errors import UpstreamBusy
from gateway.upstream.limits import BUSY_RETRY_S
from gateway.upstream.live.interfaces import CAPABILITIES, LiveClient
from gateway.upstream.live.mcp.duplex import DuplexSession
from gateway.upstream.live.mcp.limits import IDLE_S, MAX_SESSIONS
from gateway.upstream.live.mcp.time_limit import TimeLimit

_Key = tuple[SessionOwner, bytes, frozenset[str]]


class DuplexOpener(Protocol):
    """Opens sessions over bidirectional channels."""

    @property
    def names_callers(self) -> bool:
        """True if a session has the credential of one caller, which soon expires."""
        ...

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the stored credential."""
        ...

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> DuplexSession:
        """Open and initialize a session for a client."""
        ...


class _Held:
    """One session, and its requests."""

    def __init__(self, session: DuplexSession) -> None:
        self.session = session
        self.running = 0
        self.used_at = time.monotonic()


class LocalSessions:
    """The sessions of one server's callers; `spawn` closes sessions in the background."""

    is_local = True

    def __init__(self, opener: DuplexOpener, spawn: Spawn) -> None:
        self._opener = opener
        self._spawn = spawn
        self._held: dict[_Key, _Held] = {}
        self._opening: dict[_Key, asyncio.Lock] = {}

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient, owner: SessionOwner, *, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run a request in the caller's session; without one, open it."""
        capabilities = frozenset(name for name in CAPABILITIES if client.can(name))
        if self._opener.names_callers:
            session = await self._opener.open(capabilities, limit, client)
            try:
                return await session.request(method, params, client, limit)
            finally:
                self._spawn(session.close)
        held = await self._find((owner, await self._opener.identity(client), capabilities), client, limit)
        held.running += 1
        try:
            return await held.session.request(method, params, client, limit)
        finally:
            held.running -= 1
            held.used_at = time.monotonic()

    async def tidy(self) -> None:
        """Close the sessions that are not used any more."""
        for key, held in list(self._held.items()):
            if held.session.has_ended or (not held.running and time.monotonic() - held.used_at > IDLE_S):
                self._remove(key)

    async def close(self, *, is_retired: bool) -> None:
        """Close all sessions."""
        del is_retired
        held, self._held = self._held, {}
        await asyncio.gather(*(one.session.close() for one in held.values()), return_exceptions=True)

    async def _find(self, key: _Key, client: LiveClient, limit: TimeLimit) -> _Held:
        async with self._opening.setdefault(key, asyncio.Lock()):
            try:
                held = self._held.get(key)
                if held is not None and not held.session.has_ended:
                    return held
                if held is not None:
                    self._remove(key)
                self._make_room()
                session = await self._opener.open(key[2], limit, client)
                session.has_one_client = bool(key[0].session)
                held = self._held[key] = _Held(session)
                return held
            finally:
                self._opening.pop(key, None)

    def _make_room(self) -> None:
        """Close the idlest session if there are too many.

        Raises:
            UpstreamBusy: all of them are in use.
        """
        if len(self._held) < MAX_SESSIONS:
            return
        idle = [key for key, one in self._held.items() if not one.running]
        if not idle:  # guard: live-local-session-count
            raise UpstreamBusy("too many callers use this live source at once; retry later", retry_after_s=BUSY_RETRY_S)
        self._remove(min(idle, key=lambda key: self._held[key].used_at))

    def _remove(self, key: _Key) -> None:
        self._spawn(self._held.pop(key).session.close)
