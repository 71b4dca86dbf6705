"""Scheduler of background jobs: every replica polls for due jobs every second, and the first to lease a job runs it.

Each replica runs at most 32 jobs at a time, 4 of one tenant. So the slow upstreams of one tenant leave capacity for the
jobs of others.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self

import anyio
import structlog

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.errors import GatewayError, Unavailable
from gateway.jobs.limits import AT_ONCE, AT_ONCE_EACH, MAX_DUE_JOBS, MAX_DUE_JOBS_EACH, SCHEDULER_PAUSE_S
from gateway.store import jobs
from gateway.store.engine import Store
from gateway.store.jobs import Job

log = structlog.get_logger(__name__)


Perform = Callable[[Job], Awaitable[None]]
"""Runs one job, unless another replica has leased it, and reschedules it if it recurs."""


class JobScheduler:
    """Runs due jobs on this replica; open it with `async with`, once, while the resources of its jobs are open."""

    def __init__(self, store: Store, kinds: Mapping[str, Perform], *, pause_s: float = SCHEDULER_PAUSE_S) -> None:
        self._store = store
        self._kinds = kinds
        self._pause_s = pause_s
        self._running: set[tuple[TenantId, str]] = set()
        self._tasks = TaskSupervisor()

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._run_rounds)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    async def _run_rounds(self) -> None:
        while True:
            try:
                await self._start_due_jobs()
            except Unavailable as error:
                log.warning("work_postponed", reason=error.cause)
            except Exception:
                log.exception("work_failed")
            await anyio.sleep(self._pause_s)

    async def _start_due_jobs(self) -> None:
        async with self._store.lookup() as db:
            found = await jobs.page(db, until=datetime.now(UTC), limit=MAX_DUE_JOBS, of_each=MAX_DUE_JOBS_EACH)
        busy = Counter(tenant for tenant, _ in self._running)
        for due in found:
            perform = self._kinds.get(due.kind)
            is_running = (due.tenant, due.id) in self._running
            if perform is None or is_running or busy[due.tenant] >= AT_ONCE_EACH:
                continue
            if len(self._running) >= AT_ONCE or not self._tasks.is_open:
                return
            busy[due.tenant] += 1
            self._running.add((due.tenant, due.id))
            self._tasks.spawn(self._perform, perform, due)

    async def _perform(self, perform: Perform, due: Job) -> None:
        try:
            await perform(due)
        except GatewayError as error:  # the job is due again when this replica's lease on it ends
            log.warning("work_interrupted", kind=due.kind, tenant_id=due.tenant, id=due.id, reason=error.message)
        except Exception:
            log.exception("work_failed", kind=due.kind, tenant_id=due.tenant, id=due.id)
        finally:
            self._running.discard((due.tenant, due.id))
