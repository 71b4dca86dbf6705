"""Connector of remote MCP servers: detects the protocol era and transport of a server, and attaches to it.

It tries the newest revision first, then the handshake, then HTTP+SSE of 2024-11-05 (MCP 2025-11-25, Transports,
backwards compatibility). If a server does not respond, no other transport is tried.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.sessions import UpstreamSession
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import REQUESTED, LiveClient, LiveListener
from gateway.upstream.live.mcp.attachment import McpAttachment, timeout_of, translated
from gateway.upstream.live.mcp.caller_sessions import CallerSessions, SharedSessions
from gateway.upstream.live.mcp.changes import ChangeReport
from gateway.upstream.live.mcp.clean_up import clean_up
from gateway.upstream.live.mcp.conversation import Report
from gateway.upstream.live.mcp.duplex import DuplexSession
from gateway.upstream.live.mcp.endpoint import HttpRefusal, SourceAccess, SourceEndpoint
from gateway.upstream.live.mcp.http_sse import SseChannel
from gateway.upstream.live.mcp.link import HandshakeLink, McpLink
from gateway.upstream.live.mcp.local_sessions import LocalSessions
from gateway.upstream.live.mcp.messages import RemoteRefusal
from gateway.upstream.live.mcp.session import ALL_CAPABILITIES
from gateway.upstream.live.mcp.session_fallback import SessionFallback
from gateway.upstream.live.mcp.stateless import StatelessLink
from gateway.upstream.live.mcp.streamable_session import StreamableSession
from gateway.upstream.live.mcp.time_limit import TimeLimit

_OLD_TRANSPORT = frozenset({400, 404, 405})
"""Statuses with which HTTP+SSE servers refuse a POST at their URL."""
_REFUSED = frozenset({401, 403})


class StreamableOpener:
    """Opens and continues sessions over streamable HTTP."""

    def __init__(self, endpoint: SourceEndpoint, report: Report, spawn: Spawn) -> None:
        self._endpoint = endpoint
        self._report = report
        self._spawn = spawn

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the credential."""
        return (await self._endpoint.authorize(client)).identity

    async def secrets(self, client: LiveClient) -> tuple[str, ...]:
        """Return the secrets with which a client's session is opened; none if each request loads its caller's."""
        return () if self._endpoint.names_callers else (await self._endpoint.authorize(client)).secrets

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> StreamableSession:
        """Open a session; its client is the gateway itself, or the given one."""
        session = await self._build(capabilities, client)
        await session.open(capabilities, limit)
        return session

    async def adopt(
        self, record: UpstreamSession, capabilities: frozenset[str], client: LiveClient | None = None
    ) -> StreamableSession:
        """Continue a session that another replica has opened."""
        session = await self._build(capabilities, client)
        session.adopt(record)
        return session

    async def _build(self, capabilities: frozenset[str], client: LiveClient | None) -> StreamableSession:
        endpoint = await self._endpoint.authorize(client)
        asked = frozenset[str]() if client is None else capabilities & REQUESTED
        return StreamableSession(self._endpoint, endpoint, self._report, self._spawn, capabilities=asked)


class SseOpener:
    """Opens sessions over HTTP+SSE."""

    def __init__(self, endpoint: SourceEndpoint, report: Report, spawn: Spawn) -> None:
        self._endpoint = endpoint
        self._report = report
        self._spawn = spawn

    @property
    def names_callers(self) -> bool:
        """True if a session has the credential of one caller, which soon expires."""
        return self._endpoint.names_callers

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the stored credential."""
        del client
        return (await self._endpoint.authorize()).identity

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> DuplexSession:
        """Open a session."""
        endpoint = await self._endpoint.authorize(client)
        channel = await SseChannel.open(endpoint)
        session = DuplexSession(channel, self._report, self._spawn, is_shared=False, identity=endpoint.identity)
        await session.open(capabilities, limit)
        return session


class McpConnector:
    """Attaches to MCP servers over HTTP."""

    def __init__(self, upstream: UpstreamClient, access: SourceAccess, spawn: Spawn, sessions: SharedSessions) -> None:
        self._upstream = upstream
        self._access = access
        self._spawn = partial(spawn, clean_up)
        self._sessions = sessions

    @asynccontextmanager
    async def attach(self, source: LiveSource, listener: LiveListener) -> AsyncGenerator[McpAttachment]:
        """Connect to the server while the block runs.

        Raises:
            LiveSourceFailed: the server refuses the connection, or is not an MCP server.
            EgressDenied: the gateway may not connect to this address.
        """
        timeout_s = timeout_of(source)
        with translated():
            async with TimeLimit(timeout_s) as limit:
                endpoint = SourceEndpoint(source, self._upstream, self._access)
                link = await self._connect(endpoint, ChangeReport(listener), limit)
        attachment = McpAttachment(source, link, listener, timeout_s=timeout_s)
        try:
            yield attachment
        finally:
            await clean_up(attachment.close)

    async def _connect(self, endpoint: SourceEndpoint, report: Report, limit: TimeLimit) -> McpLink:
        source = endpoint.source
        timeout_s, transport = timeout_of(source), source.settings.get("transport", "auto")
        streamable = StreamableOpener(endpoint, report, self._spawn)
        sse = SseOpener(endpoint, report, self._spawn)
        callers = CallerSessions(source, streamable, self._sessions, self._spawn)
        local = LocalSessions(sse, self._spawn)
        if transport == "sse":
            return HandshakeLink(sse, await sse.open(ALL_CAPABILITIES, limit), local, timeout_s=timeout_s)
        stateless = StatelessLink(endpoint, report, SessionFallback(callers), timeout_s=timeout_s)
        try:
            await stateless.discover(limit)
        except LiveSourceFailed as fault:
            if isinstance(fault, HttpRefusal) and fault.status in _REFUSED:
                raise
        else:
            return stateless
        try:
            home = await streamable.open(ALL_CAPABILITIES, limit)
        except (HttpRefusal, RemoteRefusal) as fault:
            if transport != "auto" or fault.status not in _OLD_TRANSPORT:
                raise
            return HandshakeLink(sse, await _open_old(sse, fault, limit), local, timeout_s=timeout_s)
        return HandshakeLink(streamable, home, callers, timeout_s=timeout_s)


async def _open_old(sse: SseOpener, fault: LiveSourceFailed, limit: TimeLimit) -> DuplexSession:
    """Open a session over HTTP+SSE; if the server does not offer it either, raise the refusal of the POST."""
    try:
        return await sse.open(ALL_CAPABILITIES, limit)
    except (HttpRefusal, RemoteRefusal):
        raise fault from None
