"""Log of API key uses: last-use hours and renewed digests, collected in memory and stored once a minute.

Calls do not wait for the storage. A use is recorded when the key is looked up, within seconds of the use. A crash loses
the uses of up to a minute.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Self

import anyio
import structlog

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Key, KeySecret, KeyUse
from gateway.errors import GatewayError
from gateway.identity.limits import MAX_WAITING_USES, USES_CLOSE_S, USES_PAUSE_S

log = structlog.get_logger(__name__)


class KeyUseLog:
    """Buffer of uses that are not stored yet. Enter it with `async with`, once, while the store is open."""

    def __init__(
        self, save: Callable[[TenantId, Sequence[KeyUse]], Awaitable[None]], *, pause_s: float = USES_PAUSE_S
    ) -> None:
        self._save = save
        self._pause_s = pause_s
        self._waiting = BoundedCache[tuple[KeyId, int], tuple[TenantId, KeyUse]](MAX_WAITING_USES)
        self._tasks = TaskSupervisor()

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the writer, and store the remaining uses within 3 s."""
        await self._tasks.close()
        with anyio.move_on_after(USES_CLOSE_S, shield=True):
            await self.store()

    def note(self, key: Key, secret: KeySecret, renewed: KeySecret | None) -> None:
        """Record the use of a key's secret, and the renewed secret to store, if any."""
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        if renewed is None and key.last_used_at is not None and key.last_used_at >= hour:
            return
        place = (key.id, secret.number)
        if renewed is not None or place not in self._waiting:
            self._waiting[place] = key.tenant, KeyUse(key=key.id, hour=hour, secret=secret, renewed=renewed)

    async def store(self) -> None:
        """Store the recorded uses; after a failure, the tenant's uses are kept for the next attempt."""
        by_tenant = defaultdict[TenantId, list[KeyUse]](list)
        for tenant, use in self._waiting.values():
            by_tenant[tenant].append(use)
        for tenant, uses in by_tenant.items():
            try:
                await self._save(tenant, uses)
            except GatewayError as error:
                log.warning("key_uses_not_stored", tenant_id=tenant, reason=error.message)
                return
            for use in uses:
                place = (use.key, use.secret.number)
                if self._waiting.get(place, (tenant, None))[1] is use:
                    self._waiting.pop(place, None)

    async def _run(self) -> None:
        while True:
            await anyio.sleep(self._pause_s)
            await self.store()
