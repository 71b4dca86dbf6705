"""Interface of links to MCP servers of any protocol era, and its implementation for servers with sessions."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from gateway.domain.task_supervisor import Spawn
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.session import (
    ALL_CAPABILITIES,
    CAPABILITIES,
    HandshakeSession,
    ServerFacts,
    SessionExpired,
)
from gateway.upstream.live.mcp.session_pool import SessionPool
from gateway.upstream.live.mcp.time_limit import TimeLimit


class McpLink(Protocol):
    """The protocol-level connection to one server."""

    facts: ServerFacts

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request; `client` is None for requests of the gateway itself."""
        ...

    async def subscribe(self, uri: str, limit: TimeLimit) -> None:
        """Subscribe to updates of a resource."""
        ...

    async def unsubscribe(self, uri: str, limit: TimeLimit) -> None:
        """Unsubscribe from updates of a resource."""
        ...

    async def follow(self, opened: Callable[[], None]) -> None:
        """Report changes until the notification stream ends; see `HandshakeSession.follow`."""
        ...

    async def ping(self) -> None:
        """Send a cheap request to check that the server is alive."""
        ...

    async def close(self) -> None:
        """End all sessions."""
        ...


class SessionOpener(Protocol):
    """Opens sessions of one transport."""

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the stored credential, or of the caller's credential if it is per caller."""
        ...

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> HandshakeSession:
        """Open and initialize a session with the stored credential, or with the caller's if it is per caller."""
        ...


class HandshakeLink:
    """Link to a server with handshake sessions: one session of the gateway, and a session pool for clients."""

    def __init__(self, opener: SessionOpener, home: HandshakeSession, spawn: Spawn, *, timeout_s: float) -> None:
        self.facts = home.facts
        self._opener = opener
        self._home = home
        self._timeout_s = timeout_s
        self._pool = SessionPool(spawn)
        self._followed: set[str] = set()

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run a request in a pooled session; if the server has ended the session, repeat it in a new one."""
        if client is None or self._home.is_shared:
            return await self._home.request(method, params, client, limit)
        capabilities = frozenset(name for name in CAPABILITIES if client.can(name))
        key = await self._opener.identity(client), capabilities
        opened = partial(self._opener.open, capabilities, limit, client)
        try:
            async with self._pool.lease(key, opened) as session:
                return await session.request(method, params, client, limit)
        except SessionExpired:
            self._pool.drop_idle()
        async with self._pool.lease(key, opened) as session:
            return await session.request(method, params, client, limit)

    async def subscribe(self, uri: str, limit: TimeLimit) -> None:
        """Subscribe in the gateway's own session, which receives the updates."""
        await self._home.request("resources/subscribe", {"uri": uri}, None, limit)
        self._followed.add(uri)

    async def unsubscribe(self, uri: str, limit: TimeLimit) -> None:
        """Unsubscribe in the same session."""
        self._followed.discard(uri)
        await self._home.request("resources/unsubscribe", {"uri": uri}, None, limit)

    async def follow(self, opened: Callable[[], None]) -> None:
        """Follow the stream of the gateway's own session; replace the session if the server has ended it."""
        if self._home.has_ended:
            await self._renew()
        await self._home.follow(opened)

    async def ping(self) -> None:
        """Send `ping`; if the stored credential has changed, replace the session instead."""
        # guard: live-home-credential
        if not self._home.is_shared and await self._opener.identity() != self._home.identity:
            await self._renew()
            return
        async with TimeLimit(self._timeout_s) as limit:
            await self._home.request("ping", {}, None, limit)

    async def close(self) -> None:
        """End all sessions."""
        try:
            await self._pool.close()
        finally:
            await self._home.close()

    async def _renew(self) -> None:
        async with TimeLimit(self._timeout_s) as limit:
            await self._home.close()
            self._home = await self._opener.open(ALL_CAPABILITIES, limit)
            self.facts = self._home.facts
            for uri in self._followed:
                await self._home.request("resources/subscribe", {"uri": uri}, None, limit)
