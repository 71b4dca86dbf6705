"""Connector of remote MCP servers: detects the protocol era and transport of a server, and attaches to it.

It tries the newest revision first, then the handshake, then HTTP+SSE of 2024-11-05 (MCP 2025-11-25, Transports,
backwards compatibility). If a server does not respond, no other transport is tried.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.task_supervisor import Spawn
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import LiveClient, LiveListener
from gateway.upstream.live.mcp.attachment import McpAttachment, timeout_of, translated
from gateway.upstream.live.mcp.changes import report_change
from gateway.upstream.live.mcp.clean_up import clean_up
from gateway.upstream.live.mcp.conversation import Report
from gateway.upstream.live.mcp.duplex import DuplexSession
from gateway.upstream.live.mcp.endpoint import HttpRefusal, SourceAccess, SourceEndpoint
from gateway.upstream.live.mcp.http_sse import SseChannel
from gateway.upstream.live.mcp.link import HandshakeLink, McpLink, SessionOpener
from gateway.upstream.live.mcp.messages import RemoteRefusal
from gateway.upstream.live.mcp.session import ALL_CAPABILITIES, HandshakeSession, StreamableSession
from gateway.upstream.live.mcp.stateless import StatelessLink
from gateway.upstream.live.mcp.time_limit import TimeLimit

_OLD_TRANSPORT = frozenset({400, 404, 405})
"""Statuses with which HTTP+SSE servers refuse a POST at their URL."""
_REFUSED = frozenset({401, 403})


class StreamableOpener:
    """Opens sessions over streamable HTTP."""

    def __init__(self, endpoint: SourceEndpoint, report: Report, spawn: Spawn) -> None:
        self._endpoint = endpoint
        self._report = report
        self._spawn = spawn

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the credential."""
        return (await self._endpoint.authorize(client)).identity

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> HandshakeSession:
        """Open a session."""
        session = StreamableSession(self._endpoint, await self._endpoint.authorize(client), self._report, self._spawn)
        await session.open(capabilities, limit)
        return session


class SseOpener:
    """Opens sessions over HTTP+SSE."""

    def __init__(self, endpoint: SourceEndpoint, report: Report, spawn: Spawn) -> None:
        self._endpoint = endpoint
        self._report = report
        self._spawn = spawn

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return the digest of the credential.

        For a per-caller credential, the digest is random, so that its session is not reused.
        """
        if client is not None and self._endpoint.names_callers:
            return os.urandom(16)  # the session keeps its credential, which soon expires
        return (await self._endpoint.authorize()).identity

    async def open(
        self, capabilities: frozenset[str], limit: TimeLimit, client: LiveClient | None = None
    ) -> HandshakeSession:
        """Open a session."""
        endpoint = await self._endpoint.authorize(client)
        channel = await SseChannel.open(endpoint)
        session = DuplexSession(channel, self._report, self._spawn, is_shared=False, identity=endpoint.identity)
        await session.open(capabilities, limit)
        return session


class McpConnector:
    """Attaches to MCP servers over HTTP."""

    def __init__(self, upstream: UpstreamClient, access: SourceAccess, spawn: Spawn) -> None:
        self._upstream = upstream
        self._access = access
        self._spawn = partial(spawn, clean_up)

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
                link = await _connect(endpoint, partial(report_change, listener), self._spawn, limit)
        attachment = McpAttachment(source, link, listener, timeout_s=timeout_s)
        try:
            yield attachment
        finally:
            await clean_up(attachment.close)


async def _connect(endpoint: SourceEndpoint, report: Report, spawn: Spawn, limit: TimeLimit) -> McpLink:
    timeout_s = timeout_of(endpoint.source)
    transport = endpoint.source.settings.get("transport", "auto")
    streamable = StreamableOpener(endpoint, report, spawn)
    sse = SseOpener(endpoint, report, spawn)
    if transport == "sse":
        return HandshakeLink(sse, await sse.open(ALL_CAPABILITIES, limit), spawn, timeout_s=timeout_s)
    stateless = StatelessLink(endpoint, report, timeout_s=timeout_s)
    try:
        await stateless.discover(limit)
    except LiveSourceFailed as fault:
        if isinstance(fault, HttpRefusal) and fault.status in _REFUSED:
            raise
    else:
        return stateless
    opener: SessionOpener = streamable
    try:
        home = await streamable.open(ALL_CAPABILITIES, limit)
    except (HttpRefusal, RemoteRefusal) as fault:
        if transport != "auto" or fault.status not in _OLD_TRANSPORT:
            raise
        opener, home = sse, await _open_old(sse, fault, limit)
    return HandshakeLink(opener, home, spawn, timeout_s=timeout_s)


async def _open_old(sse: SseOpener, fault: LiveSourceFailed, limit: TimeLimit) -> HandshakeSession:
    """Open a session over HTTP+SSE; if the server does not offer it either, raise the refusal of the POST."""
    try:
        return await sse.open(ALL_CAPABILITIES, limit)
    except (HttpRefusal, RemoteRefusal):
        raise fault from None
