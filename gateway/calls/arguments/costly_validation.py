"""Costly validations: checks that would block the event loop, run in child processes that can be killed.

Four checks run at once on a replica, one per tenant. Further checks wait in turn, for at most 30 s; then they are
rejected and can be retried. A check that exceeds its memory or time limit counts as a violation. The processes stay
warm for further checks of the same tenant (`gateway.sandbox.warm_children`); an idle one holds about 30 MB.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import structlog

from gateway.calls.arguments.limits import CHECK_QUEUE_S, MAX_CHECK_QUEUE
from gateway.definitions.json_schema.check_worker import OUT_OF_MEMORY, CheckTask, decode_result, frame_parts
from gateway.definitions.json_schema.validator import DeferredCheck, Validator
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.thread_kinds import METERED_SCHEMAS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.errors import Fault, Unavailable
from gateway.sandbox.warm_children import ChildEnded, WarmChildren

log = structlog.get_logger(__name__)

COMMAND = (sys.executable, "-I", "-m", "gateway.definitions.json_schema.check_worker")

CONCURRENT_CHECKS = 4
"""Child processes of one replica; one tenant uses at most one of them."""

_ADVICE = "send less in one call; the tool's author can simplify its schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """Limits of one check."""

    cpu_s: int = 2
    wall_s: float = 10.0
    memory_bytes: int = 128 * 2**20


class CostlyValidation:
    """Checks values against schemas: cheap checks in the event loop, costly checks in a child process."""

    def __init__(
        self,
        *,
        command: Sequence[str] = COMMAND,
        limits: CheckLimits | None = None,
        slot_pool: FairSlotPool | None = None,
    ) -> None:
        self._limits = limits or CheckLimits()
        self.slot_pool = slot_pool or FairSlotPool(
            "checks of large values", slots=CONCURRENT_CHECKS, queue=MAX_CHECK_QUEUE, timeout_s=CHECK_QUEUE_S
        )
        self.processes = WarmChildren(command, limit=self.slot_pool.slots)
        """The child processes; they stay warm while the block of `async with processes` runs."""

    async def check(self, tenant: TenantId, validator: Validator, instance: object) -> tuple[Fault, ...]:
        """Return the violations, none for a valid value; a check that exceeds its limits is a violation.

        Raises:
            LimitExceeded: too many checks of this tenant or of all tenants are queued, or no slot became free in time.
            Unavailable: the child process did not start or failed.
        """
        found = validator.check(instance)
        return await self.finish(tenant, found) if isinstance(found, DeferredCheck) else found

    async def finish(self, tenant: TenantId, check: DeferredCheck) -> tuple[Fault, ...]:
        """Return the violations of a deferred check, from a child process unless a metered check ends; see `check`."""
        if not check.validator.is_prepared:
            await run_in_thread(METERED_SCHEMAS, tenant, check.validator.prepare)
            found = check.validator.check_text(check.instance)
            if not isinstance(found, DeferredCheck):
                return found
        async with self.slot_pool.hold(tenant):
            started = time.monotonic()
            try:
                with anyio.fail_after(self._limits.wall_s):  # guard: child-wall-time
                    response = await self.processes.exchange(tenant, *self._request(check))
            except TimeoutError:
                return (self._limit_violation(),)
            except ChildEnded as ended:
                return self._ended(ended.status)
            log.info("value_checked", seconds=round(time.monotonic() - started, 3))
        return decode_result(response).faults

    def _request(self, check: DeferredCheck) -> tuple[bytes, ...]:
        task = CheckTask(
            memory_bytes=self._limits.memory_bytes,
            cpu_s=self._limits.cpu_s,
            member=check.validator.member,
            definition_bytes=len(check.validator.text),
        )
        return frame_parts(task, check.validator.text, check.instance)

    def _ended(self, status: int) -> tuple[Fault, ...]:
        """Return the violation of a process that its limits ended; raise Unavailable for any other end."""
        if status == OUT_OF_MEMORY or status < 0:  # killed by the system, or aborted by a library without memory
            return (self._limit_violation(),)
        log.error("check_not_started", status=status)
        raise Unavailable("The check of a large value did not start.")

    def _limit_violation(self) -> Fault:
        limits = self._limits
        reason = (
            f"cannot be checked: that takes more than the {limits.cpu_s} seconds or the"
            f" {limits.memory_bytes // 2**20} MiB that one check may take; {_ADVICE}"
        )
        return Fault(pointer="", reason=reason)
