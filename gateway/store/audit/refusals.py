"""Tally of refusals for the audit trail: failed sign-ins, and requests and calls beyond a limit.

Equal refusals within a minute on one replica become one audit entry with a count, so a flood of refused requests writes
few rows. A credential that matches no key has no tenant, so its refusal is only logged.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Self

import anyio
import structlog

from gateway.domain.audit import AuditKind, CallRecord, CountedRefusal
from gateway.domain.identifiers import TenantId
from gateway.domain.task_supervisor import TaskSupervisor
from gateway.errors import AuditUnavailable
from gateway.store.audit.export_lines import moment
from gateway.store.audit.hash_chain import now_us

log = structlog.get_logger(__name__)

PAUSE_S = 60.0
MAX_OF_A_TENANT = 100
"""Maximum number of different refusals per tenant and minute; others are counted under the principal `others`."""
_MAX_TENANTS = 10_000
_CLOSE_TIMEOUT_S = 3.0
_MAX_CONCURRENT_WRITES = 100
_OTHERS_PRINCIPAL = "others"


@dataclass(slots=True)
class _Count:
    count: int = 0
    first_us: int = 0
    last_us: int = 0


class RefusalTally:
    """The refusals of this replica since the last minute; open it with `async with` while the audit writer is open.

    `write` is the writer's own method, so the tally is also the sink of the records that are not counted.
    """

    def __init__(self, write: Callable[[CallRecord], Coroutine[Any, Any, None]], *, pause_s: float = PAUSE_S) -> None:
        self.write = write
        self._pause_s = pause_s
        self._counted: dict[TenantId, dict[CountedRefusal, _Count]] = {}
        self._tasks = TaskSupervisor()

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and write the counted refusals for at most 3 s."""
        await self._tasks.close()
        with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
            await self.flush()

    def count(self, tenant: TenantId, refusal: CountedRefusal, *, times: int = 1) -> None:
        """Count a refusal. It costs a few dictionary operations, and no memory beyond the limits."""
        counted = self._counted.get(tenant)
        if counted is None:
            if len(self._counted) >= _MAX_TENANTS:  # guard: refusals-bounded
                return
            counted = self._counted[tenant] = {}
        found = counted.get(refusal)
        if found is None:
            if len(counted) >= MAX_OF_A_TENANT:  # guard: refusals-of-a-tenant-bounded
                refusal = refusal._replace(principal=_OTHERS_PRINCIPAL)
            found = counted.setdefault(refusal, _Count(first_us=now_us()))
        found.count += times
        found.last_us = now_us()

    async def flush(self) -> None:
        """Write one entry for each counted refusal; a refusal whose entry cannot be written stays counted."""
        flushed, self._counted = self._counted, {}
        counts = [(tenant, *one) for tenant, counted in flushed.items() if tenant for one in counted.items()]
        while counts:
            begun, counts = counts[:_MAX_CONCURRENT_WRITES], counts[_MAX_CONCURRENT_WRITES:]
            try:
                async with anyio.create_task_group() as group:
                    for one in begun:
                        group.start_soon(self._write, *one)
            except BaseException:  # the writer stores what it has, also after a cancellation
                for tenant, refusal, counted in counts:
                    self.count(tenant, refusal, times=counted.count)
                raise

    async def _run(self) -> None:
        while True:
            await anyio.sleep(self._pause_s)
            await self.flush()

    async def _write(self, tenant: TenantId, refusal: CountedRefusal, counted: _Count) -> None:
        detail: dict[str, object] = {
            "count": counted.count,
            "first": moment(counted.first_us),
            "last": moment(counted.last_us),
        }
        record = CallRecord(
            tenant=tenant,
            kind=AuditKind.CALL,
            principal=refusal.principal,
            subject="",
            tool="",
            outcome=refusal.outcome,
            correlation_id="",
            action=refusal.action,
            detail=detail,
        )
        try:
            await self.write(record)
        except AuditUnavailable as error:
            self.count(tenant, refusal, times=counted.count)
            log.warning("refusals_not_written", tenant_id=tenant, reason=error.message)
