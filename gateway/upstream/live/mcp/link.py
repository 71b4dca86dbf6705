"""Interface of links to MCP servers of any protocol era, and its implementation for servers with sessions."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gateway.domain.sessions import SessionOwner
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.session import ALL_CAPABILITIES, HandshakeSession, ServerFacts
from gateway.upstream.live.mcp.time_limit import TimeLimit


class McpLink(Protocol):
    """The protocol-level connection to one server."""

    facts: ServerFacts

    @property
    def is_local(self) -> bool:
        """True if sessions of callers exist only at one replica."""
        ...

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
        """Send a cheap request to check that the server is alive; end idle sessions."""
        ...

    async def close(self, *, is_retired: bool) -> None:
        """Close the connection. If the source was changed or removed, the sessions of all callers end."""
        ...


class ClientSessions(Protocol):
    """The sessions of the clients of one server."""

    @property
    def is_local(self) -> bool:
        """True if the sessions exist only at this replica."""
        ...

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient, owner: SessionOwner, *, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run a request in the session of its caller."""
        ...

    async def tidy(self) -> None:
        """End idle sessions."""
        ...

    async def close(self, *, is_retired: bool) -> None:
        """Forget the sessions; see `McpLink.close`."""
        ...


class HomeOpener(Protocol):
    """Opens sessions of one transport."""

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the stored credential."""
        ...

    async def open(self, capabilities: frozenset[str], limit: TimeLimit) -> HandshakeSession:
        """Open and initialize a session with the stored credential."""
        ...


class HandshakeLink:
    """Link to a server with handshake sessions: one session of the gateway, and those of the callers.

    Without `callers`, the gateway's session serves all clients.
    """

    def __init__(
        self, opener: HomeOpener, home: HandshakeSession, callers: ClientSessions | None, *, timeout_s: float
    ) -> None:
        self.facts = home.facts
        self._opener = opener
        self._home = home
        self._callers = callers
        self._timeout_s = timeout_s
        self._followed: set[str] = set()

    @property
    def is_local(self) -> bool:
        """True if sessions exist only as connections of this replica."""
        return self._callers is None or self._callers.is_local

    async def call(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run a request in the session of its caller."""
        owner = None if client is None else client.owner
        if client is None or owner is None or self._callers is None or self._home.is_shared:
            return await self._home.request(method, params, client, limit)
        return await self._callers.call(method, params, client, owner, limit=limit)

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
        if self._callers is not None:
            await self._callers.tidy()
        # guard: live-home-credential
        if not self._home.is_shared and await self._opener.identity() != self._home.identity:
            await self._renew()
            return
        async with TimeLimit(self._timeout_s) as limit:
            await self._home.request("ping", {}, None, limit)

    async def close(self, *, is_retired: bool) -> None:
        """End the gateway's session; see `McpLink.close`."""
        try:
            if self._callers is not None:
                await self._callers.close(is_retired=is_retired)
        finally:
            await self._home.close()

    async def _renew(self) -> None:
        async with TimeLimit(self._timeout_s) as limit:
            await self._home.close()
            self._home = await self._opener.open(ALL_CAPABILITIES, limit)
            self.facts = self._home.facts
            for uri in self._followed:
                await self._home.request("resources/subscribe", {"uri": uri}, None, limit)
