"""Attachment to one MCP server: runs clients' requests and discovery, and follows change notifications.

The notification stream is opened by the first discovery or subscription, so a replica that only runs calls has none.
"""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from gateway.domain.live_sources import DiscoveredPrimitive, Discovery, LiveSource
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import BadInput, EgressDenied, UpstreamError
from gateway.upstream.live.interfaces import NO_COMPLETIONS, LiveClient, LiveListener, LiveMethod
from gateway.upstream.live.limits import DEFAULT_TIMEOUT_S
from gateway.upstream.live.mcp.changes import follow_changes
from gateway.upstream.live.mcp.limits import MAX_FOLLOWED
from gateway.upstream.live.mcp.link import McpLink
from gateway.upstream.live.mcp.messages import METHOD_UNKNOWN, RemoteRefusal, refuse_missing, refuse_unknown
from gateway.upstream.live.mcp.pages import discover
from gateway.upstream.live.mcp.session import SessionExpired
from gateway.upstream.live.mcp.time_limit import TimeLimit

log = structlog.get_logger(__name__)


class McpAttachment:
    """An open attachment to an MCP server."""

    def __init__(self, source: LiveSource, link: McpLink, listener: LiveListener, *, timeout_s: float) -> None:
        self._source = source
        self._link = link
        self._listener = listener
        self._timeout_s = timeout_s
        self._followed: set[str] = set()
        self._following: asyncio.Task[None] | None = None
        self._is_retired = False
        self._last: Sequence[DiscoveredPrimitive] = ()
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def is_local(self) -> bool:
        """True if sessions of callers exist only at one replica."""
        return self._link.is_local

    def retire(self) -> None:
        """Note that the source was changed or removed."""
        self._is_retired = True

    async def discover(self) -> Discovery:
        """List the server's tools, resources, templates and prompts.

        Raises:
            LiveSourceFailed: the server does not respond, or refuses every list.
        """
        self._follow()
        with translated():
            async with TimeLimit(self._timeout_s) as limit:
                found = await discover(self._link, limit, self._last)
        self._last = found.primitives
        return found

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        """Run one request; see `LiveAttachment.request`."""
        if self._lost.done():
            raise LiveSourceDetached(self._lost.result())
        with translated():
            async with TimeLimit(self._timeout_s) as limit:
                if method in {"resources/subscribe", "resources/unsubscribe"}:
                    return await self._subscribe(method, params, limit)
                try:
                    return await self._link.call(method, params, client, limit)
                except RemoteRefusal as refusal:
                    if method == "completion/complete" and refusal.number == METHOD_UNKNOWN:
                        return NO_COMPLETIONS
                    refuse_missing(refusal)
                    refuse_unknown(refusal, method)

    async def wait_closed(self) -> str:
        """Wait until the connection to the server is lost; return the reason."""
        self._follow()
        # Shielded: several callers wait for one future, and the cancellation of one must not end it.
        return await asyncio.shield(self._lost)

    async def close(self) -> None:
        """Stop following changes and close the link; see `McpLink.close`."""
        try:
            if self._following is not None:
                self._following.cancel()
                await asyncio.gather(self._following, return_exceptions=True)
        finally:
            await self._link.close(is_retired=self._is_retired)

    async def _subscribe(self, method: str, params: Mapping[str, object], limit: TimeLimit) -> Mapping[str, Any]:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise BadInput("a subscription needs a URI")
        if not self._link.facts.has("resources", "subscribe"):
            raise LiveSourceFailed("the server does not report updates of resources")
        if method == "resources/unsubscribe":
            self._followed.discard(uri)
            await self._link.unsubscribe(uri, limit)
            return {}
        if len(self._followed) >= MAX_FOLLOWED and uri not in self._followed:  # guard: live-followed-count
            raise LiveSourceFailed(f"too many resource subscriptions (limit {MAX_FOLLOWED:,} per live source)")
        # The stream is opened first: an update that follows the subscription at once would be lost.
        self._follow()
        await self._link.subscribe(uri, limit)
        # After the server's answer: a refused subscription does not count towards the limit.
        self._followed.add(uri)
        return {}

    def _follow(self) -> None:
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        reason = "the stream of changes failed"
        try:
            reason = await follow_changes(self._source, self._link, self._listener)
        except Exception:
            log.exception("live_stream_failed", tenant_id=self._source.tenant, live_source=self._source.name)
        finally:
            if not self._lost.done():
                self._lost.set_result(reason)


@contextmanager
def translated() -> Generator[None]:
    """Convert transport errors to errors of the live source.

    Raises:
        LiveSourceFailed: in place of upstream errors, except EgressDenied.
    """
    try:
        yield
    except SessionExpired as error:
        raise LiveSourceDetached(error.message) from None
    except (LiveSourceFailed, EgressDenied):
        raise
    except UpstreamError as error:
        raise LiveSourceFailed(error.message, retry_after_s=error.retry_after_s) from error


def timeout_of(source: LiveSource) -> float:
    """Return the time limit of requests, in seconds."""
    seconds = source.settings.get("timeout_s")
    return float(seconds) if isinstance(seconds, int | float) else DEFAULT_TIMEOUT_S
