"""Session pool of one server: a session is leased to one request at a time, and reused for the same `SessionKey`.

So every message in a session belongs to exactly one client. A session with an abandoned request is closed.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from gateway.domain.task_supervisor import Spawn
from gateway.upstream.live.mcp.session import HandshakeSession

MAX_SESSIONS = 16
"""Limit on the sessions in use of one attachment, and separately on its idle sessions."""

SessionKey = tuple[bytes, frozenset[str]]
"""Digest of the credential, and the capabilities of the client."""


class SessionPool:
    """The session pool of one attachment; `spawn` closes sessions in the background.

    A request may outlive its attachment, for example when the source is changed; its session is closed after it.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._semaphore = asyncio.Semaphore(MAX_SESSIONS)
        self._idle: list[tuple[SessionKey, HandshakeSession]] = []
        self._is_closed = False

    @asynccontextmanager
    async def lease(
        self, key: SessionKey, opened: Callable[[], Awaitable[HandshakeSession]]
    ) -> AsyncGenerator[HandshakeSession]:
        """Wait for a slot, and lease an idle session of this key or a new one."""
        async with self._semaphore:
            session = self._pop_idle(key) or await opened()
            try:
                yield session
            finally:
                if session.is_clean and not self._is_closed:  # guard: live-session-clean
                    self._store_idle(key, session)
                else:
                    self._spawn(session.close)

    def drop_idle(self) -> None:
        """Close all idle sessions in the background, after the server has ended one of them."""
        idle, self._idle = self._idle, []
        for _, session in idle:
            self._spawn(session.close)

    async def close(self) -> None:
        """Close all idle sessions; the others are closed when their requests end."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(session.close() for _, session in idle), return_exceptions=True)

    def _pop_idle(self, key: SessionKey) -> HandshakeSession | None:
        for place, (held, session) in enumerate(reversed(self._idle)):
            if held == key:  # guard: live-session-identity
                del self._idle[-1 - place]
                return session
        return None

    def _store_idle(self, key: SessionKey, session: HandshakeSession) -> None:
        self._idle.append((key, session))
        if len(self._idle) > MAX_SESSIONS:
            self._spawn(self._idle.pop(0)[1].close)
