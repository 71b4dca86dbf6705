"""Threads for plain functions of operators' code, with a share of the slots per tenant.

A thread cannot be stopped. After a call is abandoned, its function continues in the thread and keeps its slot until it
returns. So hanging functions can exhaust the tenant's share of the slots, but nothing else. The threads do not keep the
gateway from exiting.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from gateway.domain.fairness.share import FairSlotPool

_MAX_QUEUE_LENGTH = 1024
_QUEUE_TIMEOUT_S = 30.0

_T = TypeVar("_T")


class ThreadPool:
    """The thread slots of one gateway."""

    def __init__(self, threads: int = 64) -> None:
        self.slot_pool = FairSlotPool(
            "handler threads", slots=threads, queue=_MAX_QUEUE_LENGTH, timeout_s=_QUEUE_TIMEOUT_S
        )

    @property
    def busy(self) -> int:
        """Number of running functions, including those of abandoned calls."""
        return self.slot_pool.busy

    async def run(self, tenant: str, function: Callable[[], _T]) -> _T:
        """Run the function in a thread when a slot is free; return its result or raise its exception.

        Raises:
            LimitExceeded: no slot was released in time for this tenant, or too many calls wait.
        """
        job = _Job(function, partial(self.slot_pool.free, tenant))
        await self.slot_pool.take(tenant)
        try:
            threading.Thread(target=contextvars.copy_context().run, args=(job.run,), daemon=True).start()
        except BaseException:
            self.slot_pool.free(tenant)
            raise
        return await job.done


class _Job(Generic[_T]):
    """One function run in a thread."""

    def __init__(self, function: Callable[[], _T], leave: Callable[[], None]) -> None:
        self._function = function
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[_T] = self._loop.create_future()

    def run(self) -> None:
        """Run the function in its thread, then hand the outcome to the event loop."""
        try:
            response = self._function()
        except Exception as error:  # any exception is passed to the awaiting task
            self._deliver(partial(self._fail, error))
        except BaseException as error:  # for example SystemExit, which would end the gateway
            failure = RuntimeError(f"the function raised {type(error).__name__}")
            failure.__cause__ = error
            self._deliver(partial(self._fail, failure))
        else:
            self._deliver(partial(self._succeed, response))

    def _deliver(self, settle: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the event loop has closed
            return

    def _succeed(self, response: _T) -> None:
        self._leave()
        if not self.done.done():
            self.done.set_result(response)

    def _fail(self, error: Exception) -> None:
        self._leave()
        if not self.done.done():
            stops = isinstance(error, StopIteration)  # no future can carry StopIteration
            self.done.set_exception(RuntimeError("the function raised StopIteration") if stops else error)
