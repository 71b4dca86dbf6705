"""The attachments of this replica: acquired by lease, opened with back-off, rediscovered after changes.

PostgreSQL stores the declared sources and the discoveries; Redis stores only the leases. After a crash of a replica,
its sources are due again when the leases end, and other replicas attach. Until then their primitives stay listed.
"""

import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from random import uniform
from typing import Self

import anyio
import structlog

from gateway.catalog.live import attachments as records
from gateway.catalog.transaction import CatalogContext, announce
from gateway.domain.events import ResourceUpdated
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.live_sources import AttachmentEnd, Discovery, LiveKind, LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import GatewayError, RedisUnavailable, Unavailable
from gateway.jobs.live.held import HeldAttachment, HeldAttachments
from gateway.jobs.live.limits import (
    ATTACH_S,
    CLOSING_S,
    DISCOVERY_WAIT_S,
    FIRST_RETRY_S,
    LAST_RETRY_S,
    MAX_HELD,
    RECHECK_S,
    ROUND_S,
    STABLE_S,
)
from gateway.jobs.live.source_reports import SourceReports
from gateway.redis.live.leases import AttachmentLeases, SourceKey
from gateway.upstream.live.interfaces import LiveAttachment, LiveConnector, LiveListener

log = structlog.get_logger(__name__)

_TAKEN_AT_ONCE = 50
_SETTLED_ROUNDS = 3
"""Rounds without a Redis error before this replica takes expired leases."""


class LiveAttachments:
    """The attachments of this replica; open it with `async with` while bus and store are open."""

    def __init__(
        self,
        leases: AttachmentLeases,
        catalog: CatalogContext,
        connectors: Mapping[LiveKind, LiveConnector],
        held: HeldAttachments,
        *,
        replica: str,
        round_s: float = ROUND_S,
    ) -> None:
        self._leases = leases
        self._catalog = catalog
        self._held = held
        self._connectors = connectors
        self._replica = replica
        self._round_s = round_s
        self._scopes = held.scopes
        self._dialled: set[SourceKey] = set()
        self._tasks = TaskSupervisor()
        self.slot_pool = FairSlotPool("discoveries", slots=4, queue=2 * MAX_HELD, timeout_s=DISCOVERY_WAIT_S)

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._run_rounds, self._recheck_periodically)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    @asynccontextmanager
    async def offer(self, source: LiveSource, attachment: LiveAttachment) -> AsyncGenerator[LiveListener]:
        """Serve the attachment of a program that has connected to the gateway, until the block ends.

        The block is cancelled if the program connects elsewhere, or the source is changed.

        Raises:
            LiveSourceFailed: the program does not list its primitives, or the source was changed concurrently.
            Unavailable: Redis or PostgreSQL does not respond.
        """
        key = SourceKey(source.tenant, source.id)
        self._held.interrupt(key)
        scope = self._scopes[key] = anyio.CancelScope()
        held = HeldAttachment(source=source, attachment=attachment, reports=SourceReports())
        is_open = False
        try:
            with scope:
                await self._leases.seize(key)
                if not await self._record(held, await held.discover()):
                    raise LiveSourceFailed("the live source was changed or removed; connect again")
                self._held.add(key, held)
                is_open = True
                with self._handling_reports(held, scope):
                    yield held.reports
            if not is_open:
                raise LiveSourceFailed(
                    "the live source was changed during the connection; connect again", retry_after_s=1.0
                )
        finally:
            self._forget(key, held, scope)
            with anyio.move_on_after(CLOSING_S, shield=True):
                await self._withdraw(key, held.id)

    async def _run_rounds(self) -> None:
        settled = _SETTLED_ROUNDS
        while True:
            try:
                for lost in await self._leases.renew(tuple(self._scopes)):
                    log.warning("live_lease_lost", source=lost.source)
                    self._held.interrupt(lost)
                settled += 1
                free = MAX_HELD - len(self._dialled)
                if settled > _SETTLED_ROUNDS and free > 0:
                    for key in await self._leases.take(min(free, _TAKEN_AT_ONCE)):
                        self._tasks.spawn(self._hold_lease, key)
                elif free <= 0:
                    log.warning("live_sources_full", held=len(self._dialled))
            except RedisUnavailable as error:
                settled = 0  # other replicas renew first, so that they keep what they hold
                log.warning("live_leases_unknown", reason=error.message)
            await anyio.sleep(self._round_s)

    async def _recheck_periodically(self) -> None:
        """Compare PostgreSQL, Redis and the open attachments, because events and leases can be lost."""
        is_first = True
        while True:
            try:
                enabled = await records.all_enabled(self._catalog)
                # A program connects by itself; only its record has to be removed if a crash has left it.
                dialled = [one for one in enabled if is_first or one[2] is not LiveKind.AGENT]
                await self._leases.add([SourceKey(tenant, source) for tenant, source, _ in dialled])
                await self.compare()
                is_first = False
            except Unavailable as error:
                log.warning("live_recheck_postponed", reason=error.message)
            await anyio.sleep(RECHECK_S)

    async def compare(self) -> None:
        """Close the attachments that PostgreSQL no longer records, or whose origin the tenant may no longer call."""
        for key, attachment in self._held.attachments().items():
            source = await records.load(key.tenant, self._catalog, key.source)
            if self._held.attachments().get(key) != attachment:
                continue
            is_recorded = source is not None and source.status.attachment == attachment
            if source is None or not is_recorded or not await records.is_permitted(key.tenant, self._catalog, source):
                log.warning("live_attachment_not_recorded", source=key.source)
                (self._held.retire if source is None else self._held.interrupt)(key)

    async def _hold_lease(self, key: SourceKey) -> None:
        """Attach to a source under its lease until the attachment ends; then release the lease."""
        if key in self._scopes:
            return
        scope = self._scopes[key] = anyio.CancelScope()
        self._dialled.add(key)
        retry_in_s: float | None = 0.0
        try:
            with scope:
                retry_in_s = await self._attach(key, scope)
        except Unavailable as error:
            retry_in_s = ROUND_S
            log.warning("live_attachment_postponed", source=key.source, reason=error.message)
        except Exception:
            retry_in_s = LAST_RETRY_S
            raise
        finally:
            self._dialled.discard(key)
            if self._scopes.get(key) is scope:
                del self._scopes[key]
            if key not in self._scopes:  # otherwise a program has connected, and its offer holds the lease
                with anyio.move_on_after(CLOSING_S, shield=True):
                    await self._release(key, retry_in_s)

    async def _attach(self, key: SourceKey, scope: anyio.CancelScope) -> float | None:
        """Open an attachment and serve it until its end; return the seconds until the next attempt, or None for
        never.
        """
        source = await records.load(key.tenant, self._catalog, key.source)
        if source is None or not source.enabled:
            return None
        connector = self._connectors.get(source.kind)
        if connector is None:
            if await self._leases.holder(key) == self._replica:  # otherwise the program has connected elsewhere
                await self._detach(key, source.status.attachment, AttachmentEnd())
            return None
        began, recorded = time.monotonic(), source.status.attachment
        reports = SourceReports()
        try:
            if not await records.is_permitted(key.tenant, self._catalog, source):  # guard: live-origin-attached
                raise LiveSourceFailed("the tenant's policy does not allow requests to this origin")
            async with AsyncExitStack() as stack:
                with anyio.fail_after(ATTACH_S):
                    attachment = await stack.enter_async_context(connector.attach(source, reports))
                held = HeldAttachment(source=source, attachment=attachment, reports=reports)
                if not await self._record(held, await held.discover()):
                    return 0.0
                recorded = held.id
                self._held.add(key, held)
                try:
                    with self._handling_reports(held, scope):
                        fault = await attachment.wait_closed()
                finally:
                    self._forget(key, held, scope)
        except TimeoutError:
            fault = f"no connection within {ATTACH_S:.0f} s"
        except Unavailable:
            raise
        except GatewayError as error:
            fault = error.message
        self._held.failures[source.kind] += 1
        failures = 1 if time.monotonic() - began > STABLE_S else source.status.failures + 1
        retry_in_s = _back_off(failures)
        retry_at = datetime.now(UTC) + timedelta(seconds=retry_in_s)
        await self._detach(key, recorded, AttachmentEnd(fault=fault, failures=failures, retry_at=retry_at))
        return retry_in_s

    @contextmanager
    def _handling_reports(self, held: HeldAttachment, scope: anyio.CancelScope) -> Generator[None]:
        """Handle the source's reports while the block runs; cancel `scope` if the source has to be reattached."""
        following = anyio.CancelScope()

        async def follow() -> None:
            with following:
                try:
                    await held.follow(self._record_again, self._publish_update)
                finally:
                    if not following.cancel_called:
                        scope.cancel()

        self._tasks.spawn(follow)
        try:
            yield
        finally:
            following.cancel()

    async def _record(self, held: HeldAttachment, discovery: Discovery, *, is_again: bool = False) -> bool:
        source = held.source
        async with self.slot_pool.hold(source.tenant):
            return await records.record_attached(
                source.tenant,
                self._catalog,
                source,
                attachment=held.id,
                replica=None if is_again else self._replica,
                discovery=discovery,
            )

    async def _record_again(self, held: HeldAttachment, discovery: Discovery) -> bool:
        return await self._record(held, discovery, is_again=True)

    async def _publish_update(self, source: LiveSource, uri: str) -> None:
        await announce(self._catalog, ResourceUpdated(tenant=source.tenant, uri=uri))

    async def _withdraw(self, key: SourceKey, attachment: str) -> None:
        """Record the end of a program's connection; the source is not due until the program connects again."""
        await self._detach(key, attachment, AttachmentEnd())
        if key not in self._scopes:  # otherwise the program has connected again
            await self._release(key, None)

    async def _detach(self, key: SourceKey, attachment: str, end: AttachmentEnd) -> None:
        """Record the end of an attachment; if there was none, record only the failure."""
        tenant, source, catalog = key.tenant, key.source, self._catalog
        try:
            is_recorded = await records.record_detached(tenant, catalog, source, end, attachment=attachment)
            if not is_recorded and end.fault is not None:
                await records.record_failure(tenant, catalog, source, end)
        except Unavailable as error:  # the next holder of the lease records it
            log.warning("live_detachment_not_recorded", source=source, reason=error.message)

    async def _release(self, key: SourceKey, due_in_s: float | None) -> None:
        try:
            await self._leases.release(key, due_in_s=due_in_s)
        except RedisUnavailable:
            log.debug("live_lease_not_released")  # the attachment ends by itself

    def _forget(self, key: SourceKey, held: HeldAttachment, scope: anyio.CancelScope) -> None:
        self._held.remove(key, held)
        if self._scopes.get(key) is scope:
            del self._scopes[key]


def _back_off(failures: int) -> float:
    """Return the seconds before the next attempt; they double with each failure, up to five minutes."""
    return min(FIRST_RETRY_S * 2.0 ** min(failures - 1, 10), LAST_RETRY_S) * uniform(0.8, 1.2)  # noqa: S311
