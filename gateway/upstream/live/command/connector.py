"""Connector of programs: starts one child process per attachment, and connects to it as an MCP server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeGuard, cast

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.command.child_channel import ChildChannel
from gateway.upstream.live.interfaces import LiveClient, LiveListener
from gateway.upstream.live.mcp.attachment import McpAttachment, timeout_of, translated
from gateway.upstream.live.mcp.changes import ChangeReport
from gateway.upstream.live.mcp.clean_up import clean_up
from gateway.upstream.live.mcp.conversation import Report
from gateway.upstream.live.mcp.duplex import DuplexSession
from gateway.upstream.live.mcp.link import HandshakeLink
from gateway.upstream.live.mcp.messages import is_object
from gateway.upstream.live.mcp.session import ALL_CAPABILITIES, HandshakeSession
from gateway.upstream.live.mcp.time_limit import TimeLimit


class ChildOpener:
    """Starts the program of a live source; one session serves all clients of the tenant."""

    def __init__(self, source: LiveSource, report: Report, spawn: Spawn) -> None:
        self._source = source
        self._report = report
        self._spawn = spawn

    async def identity(self, client: LiveClient | None = None) -> bytes:
        """Return an empty digest, because the child has no credential."""
        del client
        return b""

    async def open(self, capabilities: frozenset[str], limit: TimeLimit) -> HandshakeSession:
        """Start the program and initialize its session.

        `LiveClient.ask` refuses requests that a client does not support.
        """
        settings = self._source.settings
        argv, env = settings.get("argv"), settings.get("env", {})
        if not _is_texts(argv) or not argv or not is_object(env) or not _is_texts([*env, *env.values()]):
            raise LiveSourceFailed("the live source has no command")
        channel = await ChildChannel.start(argv, env, tenant=self._source.tenant, name=self._source.name)
        session = DuplexSession(channel, self._report, self._spawn, is_shared=True)
        await session.open(capabilities, limit)
        return session


class CommandConnector:
    """Attaches to programs. The composition root builds it only if the operator permits programs."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = partial(spawn, clean_up)

    @asynccontextmanager
    async def attach(self, source: LiveSource, listener: LiveListener) -> AsyncGenerator[McpAttachment]:
        """Run the program while the block runs.

        Raises:
            LiveSourceFailed: the program cannot be started, or does not speak MCP.
        """
        timeout_s = timeout_of(source)
        opener = ChildOpener(source, ChangeReport(listener), self._spawn)
        with translated():
            async with TimeLimit(timeout_s) as limit:
                home = await opener.open(ALL_CAPABILITIES, limit)
        link = HandshakeLink(opener, home, None, timeout_s=timeout_s)
        attachment = McpAttachment(source, link, listener, timeout_s=timeout_s)
        try:
            yield attachment
        finally:
            await clean_up(attachment.close)


def _is_texts(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(
        isinstance(value, str) and "\0" not in value for value in cast("list[object]", values)
    )
