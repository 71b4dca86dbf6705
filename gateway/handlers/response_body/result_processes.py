"""Work on large results: on the event loop, in a thread, or in a child process that can be killed, by size and cost.

A child process serves one tenant and stays warm (`gateway.sandbox.warm_children`). It has limits of CPU time, wall time
and memory, and the replica's interpreter lock is free meanwhile.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio
import structlog

from gateway.domain.fairness.large_work import result_busy, run_large
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.errors import HandlerFailed, LimitExceeded
from gateway.handlers.response_body.limits import MAX_PROCESS_QUEUE, MAX_THREAD_BYTES, PROCESS_QUEUE_S
from gateway.sandbox.result_tasks import OUT_OF_MEMORY, ResultTask, read_answer, write_task
from gateway.sandbox.warm_children import ChildEnded, WarmChildren

log = structlog.get_logger(__name__)

COMMAND = (sys.executable, "-I", "-m", "gateway.calls.result_worker")
_PROCESSES = 2
"""Child processes of a replica; a tenant has one."""

_Head = TypeVar("_Head")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLimits:
    """Limits of one task in a child process. Usual bodies of 10 MiB take about 0.3 s of CPU; hostile ones take more."""

    cpu_s: float = 3.0
    wall_s: float = 15.0
    memory_bytes: int = 192 * 2**20


class ResultProcesses:
    """Runs tasks on results; the child processes stay warm while the block of `async with processes` runs."""

    def __init__(
        self,
        *,
        command: Sequence[str] = COMMAND,
        limits: ResultLimits | None = None,
        slot_pool: FairSlotPool | None = None,
    ) -> None:
        self._limits = limits or ResultLimits()
        self.slot_pool = slot_pool or FairSlotPool(
            "processes for large results", slots=_PROCESSES, queue=MAX_PROCESS_QUEUE, timeout_s=PROCESS_QUEUE_S
        )
        self.processes = WarmChildren(command, limit=self.slot_pool.slots)

    async def run(
        self,
        tenant: TenantId,
        task: ResultTask[_Head, _Answer],
        head: _Head,
        body: bytes,
        *,
        weight: int = 0,
    ) -> _Answer:
        """Return the answer to the task. The size of the body decides where it runs, or the `weight` of costlier work.

        Raises:
            HandlerFailed, ArgumentsInvalid: the task's function raised it.
            HandlerFailed: the task exceeded its limits, or the child process failed.
            ResultBusy: too many large results are in work.
        """
        size = max(weight, len(body))
        if size <= MAX_THREAD_BYTES:  # guard: large-results-in-processes
            return await run_large(tenant, size, task.run, head, body)
        limits = self._limits
        request = write_task(task, head, body, memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s)
        try:
            async with self.slot_pool.hold(tenant):
                with anyio.fail_after(limits.wall_s):  # guard: result-child-wall-time
                    response = await self.processes.exchange(tenant, *request)
        except LimitExceeded as error:
            raise result_busy(error) from None
        except TimeoutError:
            raise self._exceeded() from None
        except ChildEnded as ended:
            if ended.status == OUT_OF_MEMORY or ended.status < 0:  # killed, or aborted by a library without memory
                raise self._exceeded() from None
            log.error("result_process_failed", status=ended.status)
            raise HandlerFailed("the process that reads the result failed") from None
        return await run_large(tenant, len(response), read_answer, task, response)

    def _exceeded(self) -> HandlerFailed:
        limits = self._limits
        return HandlerFailed(
            f"the result is too large: reading it takes more than {limits.cpu_s:g} seconds or"
            f" {limits.memory_bytes // 2**20} MiB (the limits); request less data"
        )
