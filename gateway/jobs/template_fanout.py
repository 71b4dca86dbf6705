"""Fan-out of template changes: the followers of every URI that matches a changed resource template are notified.

A pass reads the followed URIs of a tenant from the store of subscriptions. Each tenant has one pass at a time; changes
during a pass wait for the next pass. If Redis is unavailable, the pass ends and its waiting changes are dropped.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence, Set
from contextlib import aclosing

import structlog

from gateway.catalog.updates.resource_updates import matched_by
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.fairness.thread_kinds import TEMPLATE_MATCHES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.errors import LimitExceeded, RedisUnavailable
from gateway.jobs.limits import MAX_NOTIFIED

log = structlog.get_logger(__name__)


Followed = Callable[[TenantId], AsyncGenerator[Sequence[str]]]
"""Yields the URIs that clients of the tenant follow, in parts; a URI with several followers may be repeated."""
Publish = Callable[[TenantId, str], Awaitable[object]]
"""Notifies the followers of the URI."""


class TemplateFanout:
    """Notifies the followers of URIs that match changed templates; `spawn` runs a background task."""

    def __init__(self, followed: Followed, publish: Publish, *, spawn: Spawn) -> None:
        self._followed = followed
        self._publish = publish
        self._spawn = spawn
        self._pending: dict[TenantId, dict[str, None]] = {}
        self._running: set[TenantId] = set()

    def note(self, tenant: TenantId, template: str) -> None:
        """Record that the template has changed, and start a pass unless one is running."""
        self._pending.setdefault(tenant, {})[template] = None
        if tenant not in self._running:
            self._running.add(tenant)
            self._spawn(self._run_pass, tenant)

    async def _run_pass(self, tenant: TenantId) -> None:
        try:
            while templates := self._pending.pop(tenant, None):
                await self._notify_instances(tenant, tuple(templates))
        except (RedisUnavailable, LimitExceeded) as error:
            log.warning("subscribers_not_notified", tenant_id=tenant, reason=error.message)
        finally:
            self._running.discard(tenant)
            self._pending.pop(tenant, None)

    async def _notify_instances(self, tenant: TenantId, templates: Sequence[str]) -> None:
        notified: Set[str] = frozenset()
        async with aclosing(self._followed(tenant)) as followed:
            async for uris in followed:
                matched = await run_in_thread(TEMPLATE_MATCHES, tenant, matched_by, templates, uris)
                for uri in sorted(matched - notified):
                    await self._publish(tenant, uri)
                notified = (
                    notified | matched if len(notified) < MAX_NOTIFIED else matched
                )  # a repeated notification does no harm
