"""Live sources of the kind `agent`, for the endpoint of providers: created and attached by connections of programs.

Implements `gateway.web.providers.attachments.ProvidedAttachments`.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime

import anyio

from gateway.catalog.kinds.live_sources import LIVE_SOURCES
from gateway.catalog.live import attachments as records
from gateway.catalog.live.discovery import read_discovery
from gateway.catalog.live.limits import DISCOVERY_CPU_S
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.thread_kinds import PROVIDER_CHECKS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import AttachmentState, DiscoveredPrimitive, Discovery, LiveKind, LiveSource
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Conflict, LimitExceeded, NameTaken, NotFound
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.jobs.live.attachments import LiveAttachments
from gateway.jobs.live.limits import CHECK_TIME_PER_S, CHECK_WAIT_S, LEASE_RECHECK_S
from gateway.kinds.sources import LIVE_SOURCE
from gateway.redis.live.leases import AttachmentLeases, SourceKey
from gateway.redis.live.limits import LEASE_S
from gateway.upstream.live.interfaces import LiveAttachment, LiveListener

_ELSEWHERE = "the program has connected to another replica"
_REMOVED = "the live source was removed or disabled"
_UNREACHED = "not checked: the schemas of earlier definitions take too long"
_EPOCH = datetime.fromtimestamp(0, UTC)
_ANY_SOURCE = LiveSource(id=LiveSourceId(""), name="", kind=LiveKind.AGENT, created_at=_EPOCH, updated_at=_EPOCH)
"""A source without prefix and patterns, for the check of definitions."""


class AgentSources:
    """The agent sources of all tenants, on this replica. A source belongs to the subject that its settings name."""

    def __init__(
        self, catalog: CatalogContext, attachments: LiveAttachments, leases: AttachmentLeases, *, replica: str
    ) -> None:
        self._catalog = catalog
        self._attachments = attachments
        self._leases = leases
        self._replica = replica
        self._checks = FairSlotPool(
            "checks of providers", slots=PROVIDER_CHECKS.threads, queue=PROVIDER_CHECKS.queue, timeout_s=CHECK_WAIT_S
        )
        self._time = TokenBuckets(rate=CHECK_TIME_PER_S, burst=2 * DISCOVERY_CPU_S)

    async def claim(self, principal: Principal, name: str) -> LiveSource:
        """Return the source of this name for the principal; create it unless it exists."""
        source = await self._find_or_create(principal, name)
        if source.kind is not LiveKind.AGENT:
            raise Conflict(f"the live source {name!r} is of the kind {source.kind.value}")
        if source.settings.get("subject", principal.subject) != principal.subject:  # guard: agent-source-owner
            raise Conflict(f"the live source {name!r} belongs to another subject")
        if not source.enabled:
            raise NotFound(_REMOVED)
        return source

    async def renew(self, source: LiveSource) -> LiveSource:
        """Return the current source, unless it was removed or is attached elsewhere.

        PostgreSQL decides, because a replica can hold an expired lease only to withdraw the source. While another
        replica holds the lease, it may be about to record the program, so this waits for the end of the lease.
        """
        key, until = SourceKey(source.tenant, source.id), time.monotonic() + LEASE_S
        while True:
            is_held = await self._leases.holder(key) not in {None, self._replica}
            current = await records.load(source.tenant, self._catalog, source.id)
            if current is None or not current.enabled or not _is_of_one_subject(current, source):
                raise NotFound(_REMOVED)
            status = current.status
            if status.state is AttachmentState.ATTACHED and status.replica != self._replica:
                raise Conflict(_ELSEWHERE)
            if not is_held or time.monotonic() > until:
                return current
            await anyio.sleep(LEASE_RECHECK_S)

    async def check(self, tenant: TenantId, primitives: Sequence[DiscoveredPrimitive]) -> Sequence[str | None]:
        """Return the faults of definitions, by the rules of discoveries; costly checks of a tenant are rate-limited.

        Raises:
            LimitExceeded: the tenant's checks take too much processor time.
        """
        until = time.monotonic() + CHECK_WAIT_S
        while (left_s := until - time.monotonic()) > 0:
            async with self._checks.hold(tenant):
                rest_s = self._time.wait_for(tenant, DISCOVERY_CPU_S)
                if rest_s == 0:  # guard: agent-checks-rest
                    faults, spent_s = await run_in_thread(PROVIDER_CHECKS, tenant, _faults_of, primitives)
                    self._time.take(tenant, min(spent_s, DISCOVERY_CPU_S))
                    return faults
            await anyio.sleep(min(rest_s, left_s))
        raise LimitExceeded(
            "the check of this tenant's definitions takes too long; register fewer or simpler definitions",
            retry_after_s=CHECK_WAIT_S,
        )

    def offer(self, source: LiveSource, attachment: LiveAttachment) -> AbstractAsyncContextManager[LiveListener]:
        """Serve the attachment; see `LiveAttachments.offer`."""
        return self._attachments.offer(source, attachment)

    async def _find_or_create(self, principal: Principal, name: str) -> LiveSource:
        tenant, catalog = principal.tenant, self._catalog
        with suppress(NotFound):
            return await LIVE_SOURCES.get(tenant, catalog, name)
        new = LIVE_SOURCE.make(name, {"kind": LiveKind.AGENT, "settings": {"subject": principal.subject}})
        try:
            return await LIVE_SOURCES.create(tenant, catalog, new, by=Author(caller=principal, correlation_id=""))
        except NameTaken as taken:  # another connection, or a source with a document, took the name since
            try:
                return await LIVE_SOURCES.get(tenant, catalog, name)
            except NotFound:
                raise taken from None


def _is_of_one_subject(current: LiveSource, earlier: LiveSource) -> bool:
    return current.settings.get("subject") == earlier.settings.get("subject")


def _faults_of(primitives: Sequence[DiscoveredPrimitive]) -> tuple[Sequence[str | None], float]:
    """Return the fault of each definition, and the CPU time of the check."""
    began = time.thread_time()
    reading = read_discovery(_ANY_SOURCE, Discovery(primitives=primitives), (), room=len(primitives))
    valid = {(one.family, one.remote) for one in reading.primitives}
    keys = [(one.family, one.name) for one in primitives]
    faults = [None if key in valid else reading.faults.get(key, _UNREACHED) for key in keys]
    return faults, time.thread_time() - began
