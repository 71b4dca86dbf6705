"""Orphaned sessions: sessions that no key can use, because their key has ended or their tenant was removed.

All replicas receive the event; the first one removes the sessions.
"""

from collections.abc import Awaitable, Callable

import structlog

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.redis.sessions.records import Sessions

log = structlog.get_logger(__name__)


class OrphanedSessions:
    """Ends orphaned sessions in background tasks."""

    def __init__(self, sessions: Sessions, has_ended: Callable[[KeyId], Awaitable[bool]], *, spawn: Spawn) -> None:
        self._sessions = sessions
        self._has_ended = has_ended
        self._spawn = spawn

    def end(self, tenant: TenantId, key: KeyId | None = None) -> None:
        """End the sessions of the tenant, or only those of the key. Sessions of an explicitly named subject remain."""
        self._spawn(self._remove, tenant, key)

    def check(self, principal: Principal) -> None:
        """End the sessions of the principal's key if it has ended without an event, by expiry or because the event was
        lost.
        """
        self._spawn(self._remove_if_ended, principal)

    async def _remove_if_ended(self, principal: Principal) -> None:
        if await self._has_ended(principal.key):
            await self._remove(principal.tenant, principal.key)

    async def _remove(self, tenant: TenantId, key: KeyId | None) -> None:
        ended = await self._sessions.remove_all(tenant, subject=key)
        if ended:
            log.info("sessions_ended", tenant_id=tenant, count=ended)
