"""Follower of a server's change notifications: reopens a lost stream, and gives up after several failures."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

import structlog

from gateway.domain.live_sources import LiveSource
from gateway.errors import GatewayError, UpstreamBusy
from gateway.upstream.live.interfaces import LiveListener
from gateway.upstream.live.mcp.limits import PING_S, STABLE_S
from gateway.upstream.live.mcp.link import McpLink
from gateway.upstream.live.mcp.messages import Message, RemoteRefusal, is_object
from gateway.upstream.live.mcp.session import StreamNotOffered

log = structlog.get_logger(__name__)

PAUSES_S = (0.2, 0.5, 1.0, 2.0)
"""Pauses before the stream is reopened; one more consecutive failure ends the attachment."""
SKIPPED = "the server sent a message that is not JSON-RPC, for example a line for its log; such messages are skipped"
_LIST_CHANGES = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
)


async def follow_changes(source: LiveSource, link: McpLink, listener: LiveListener) -> str:
    """Report changes until the connection to the server is lost; return the reason."""
    failures, is_first = 0, True
    loop = asyncio.get_running_loop()

    def opened() -> None:
        nonlocal is_first
        if not is_first:
            listener.changed()  # changes during the interruption were missed
        is_first = False

    while True:
        began, fault = loop.time(), None
        try:
            await _wait_while_alive(link.follow(opened), link)
        except StreamNotOffered:
            return await _watch(link)
        except GatewayError as error:
            fault = error.message
        failures = 1 if loop.time() - began > STABLE_S else failures + 1
        if fault is not None:
            if failures > len(PAUSES_S):
                return f"the stream of changes is lost: {fault}"
            log.info("live_stream_lost", tenant_id=source.tenant, live_source=source.name, fault=fault)
        await asyncio.sleep(PAUSES_S[failures - 1] if failures <= len(PAUSES_S) else STABLE_S)


async def _watch(link: McpLink) -> str:
    """Ping a server without a stream until it stops responding; return the reason."""
    try:
        await _wait_while_alive(asyncio.Event().wait(), link)
    except GatewayError as error:
        return f"the server is lost: {error.message}"
    raise AssertionError("unreachable")


async def _wait_while_alive(following: Awaitable[object], link: McpLink) -> None:
    """Wait for the awaitable, as long as the server responds to pings."""
    task = asyncio.ensure_future(following)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=PING_S)
            if not task.done():
                with suppress(
                    RemoteRefusal, UpstreamBusy
                ):  # an error response proves liveness; a full pool is no evidence of failure
                    await link.ping()
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class ChangeReport:
    """Passes what a server sends outside of requests to the listener of its attachment."""

    def __init__(self, listener: LiveListener) -> None:
        self._listener = listener

    def __call__(self, message: Message) -> None:
        """Report a changed list or resource; other notifications are dropped."""
        method, params = message.get("method"), message.get("params")
        if method in _LIST_CHANGES:
            self._listener.changed()
        elif method == "notifications/resources/updated" and is_object(params) and isinstance(params.get("uri"), str):
            self._listener.updated(params["uri"])

    def skipped(self, fault: str) -> None:
        """Report a message that could not be read and was skipped."""
        log.info("live_message_skipped", fault=fault)
        self._listener.noticed(SKIPPED)
