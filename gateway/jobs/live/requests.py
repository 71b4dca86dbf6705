"""Requests to live sources: run at this replica's attachment, over a separate connection, or at another replica."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import structlog

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import GatewayError, RedisUnavailable
from gateway.jobs.live.forwarding import Forwarding
from gateway.jobs.live.held import HeldAttachments
from gateway.jobs.live.limits import ATTACH_S, MAX_OWN_ATTACHMENTS, OWN_IDLE_S
from gateway.jobs.live.result_notices import ResultNotices
from gateway.jobs.live.source_reports import SourceReports
from gateway.redis.live.leases import AttachmentLeases, SourceKey
from gateway.redis.live.linked_resources import LinkedResources
from gateway.upstream.live.interfaces import LiveAttachment, LiveClient, LiveConnector, LiveMethod

log = structlog.get_logger(__name__)


class _OwnAttachment:
    """An attachment of this replica for requests only; the replica that holds the source discovers its primitives."""

    __slots__ = ("attachment", "fault", "is_ready", "scope", "used_at", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.scope = anyio.CancelScope()
        self.is_ready = anyio.Event()
        self.attachment: LiveAttachment | None = None
        self.fault: GatewayError | None = None
        self.used_at = time.monotonic()


class LiveRequester:
    """Runs requests to live sources; open it with `async with` after the forwarding.

    Another MCP server can be reached from any replica, so requests are not forwarded to the holder of its attachment,
    unless sessions exist only as connections of one replica (HTTP+SSE).
    """

    def __init__(
        self,
        held: HeldAttachments,
        forwarding: Forwarding,
        leases: AttachmentLeases,
        connectors: Mapping[LiveKind, LiveConnector],
        *,
        links: LinkedResources,
        notices: ResultNotices,
    ) -> None:
        self._links = links
        self._notices = notices
        self._held = held
        self._forwarding = forwarding
        self._leases = leases
        self._connectors = connectors
        self._own = BoundedCache[SourceKey, _OwnAttachment](MAX_OWN_ATTACHMENTS)
        self._tasks = TaskSupervisor()

    async def __aenter__(self) -> Self:
        self._tasks.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    async def request(
        self, source: LiveSource, method: LiveMethod, params: Mapping[str, object], client: LiveClient
    ) -> Mapping[str, Any]:
        """Run a request; see `handlers.live.handlers.LiveRequests`."""
        key = SourceKey(source.tenant, source.id)
        if key in self._held:
            return await self._held.serve(key, method, params, client)
        if source.kind is LiveKind.MCP and source.kind in self._connectors:
            attachment = await self._open(key, source)
            # a forwarded request has no caller whose credential could be sent
            if not attachment.is_local or source.caller_credential is not None:
                return await attachment.request(method, params, client)
        holder = await self._leases.holder(key)
        if holder is None:
            raise LiveSourceDetached(f"the live source {source.name!r} is not attached", retry_after_s=1.0)
        return await self._forwarding.request(holder, source, method, params, client=client)

    async def note_links(self, source: LiveSource, owner: str, uris: Sequence[str]) -> None:
        """Store links; while Redis is unavailable, they cannot be read."""
        try:
            await self._links.note(source.tenant, owner, source.id, uris)
        except RedisUnavailable:
            log.warning("live_links_lost", live_source=source.name)

    def report(self, source: LiveSource, notices: Sequence[str]) -> None:
        """Store notices in the background; see `ResultNotices`."""
        for text in notices:
            if self._notices.is_new(source, text):
                self._tasks.spawn(self._notices.store, source, text)

    def forget(self, key: SourceKey) -> None:
        """Close this replica's own connection to a source that was changed or removed."""
        own = self._own.pop(key, None)
        if own is not None:
            if own.attachment is not None:
                own.attachment.retire()
            own.scope.cancel()

    def forget_tenant(self, tenant: TenantId) -> None:
        """Close this replica's own connections to the sources of a tenant that was removed."""
        for key in [key for key in self._own if key.tenant == tenant]:
            self.forget(key)

    async def _open(self, key: SourceKey, source: LiveSource) -> LiveAttachment:
        """Return this replica's own attachment to a source; the first request opens it.

        Raises:
            GatewayError: there is no connection.
        """
        own = self._own.get(key)
        if own is None or own.version != source.version:
            self.forget(key)
            own = self._own[key] = _OwnAttachment(source.version)
            self._tasks.spawn(self._run_until_idle, key, source, own)
        own.used_at = time.monotonic()
        await own.is_ready.wait()
        if own.attachment is None:
            failed = own.fault or LiveSourceDetached("the connection to the live source was closed", retry_after_s=1.0)
            raise failed.with_traceback(None)
        return own.attachment

    async def _run_until_idle(self, key: SourceKey, source: LiveSource, own: _OwnAttachment) -> None:
        """Keep this replica's attachment open until it ends, or is unused for five minutes."""
        try:
            with own.scope:
                async with self._attached(source) as attachment:
                    own.attachment = attachment
                    own.is_ready.set()
                    while (remaining_s := own.used_at + OWN_IDLE_S - time.monotonic()) > 0:
                        with anyio.move_on_after(remaining_s):
                            await attachment.wait_closed()
                            break
        except GatewayError as error:
            own.fault = error
        finally:
            own.attachment = None
            own.is_ready.set()
            if self._own.get(key) is own:
                del self._own[key]

    @asynccontextmanager
    async def _attached(self, source: LiveSource) -> AsyncGenerator[LiveAttachment]:
        try:
            with anyio.fail_after(ATTACH_S) as opening:
                async with self._connectors[source.kind].attach(source, SourceReports()) as attachment:
                    opening.deadline = float("inf")
                    yield attachment
        except TimeoutError:
            raise LiveSourceFailed(f"no connection to the live source within {ATTACH_S:.0f} s") from None
