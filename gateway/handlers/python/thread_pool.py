"""Threads for plain functions of operators' code, with a share of the places for each tenant.

A thread cannot be stopped. When a call is given up its function goes on in the thread and keeps its place until it
returns, so functions that hang can use up the places but nothing else; the threads do not keep the gateway from ending.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from gateway.domain.fairness.share import FairShare

_WAITING = 1024
_PATIENCE_S = 30.0

_T = TypeVar("_T")


class ThreadPool:
    """The places of one gateway."""

    def __init__(self, places: int = 64) -> None:
        self.places = FairShare("handler threads", places=places, queue=_WAITING, patience_s=_PATIENCE_S)

    @property
    def busy(self) -> int:
        """How many functions run now, those nobody waits for included."""
        return self.places.busy

    async def run(self, tenant: str, function: Callable[[], _T]) -> _T:
        """Run the function in a thread when a place is free; return or raise what it does.

        Raises:
            LimitExceeded: there was none in time for this tenant.
        """
        job = _Job(function, partial(self.places.free, tenant))
        await self.places.take(tenant)
        try:
            threading.Thread(target=contextvars.copy_context().run, args=(job.run,), daemon=True).start()
        except BaseException:
            self.places.free(tenant)
            raise
        return await job.done


class _Job(Generic[_T]):
    """One function on its way through a thread."""

    def __init__(self, function: Callable[[], _T], leave: Callable[[], None]) -> None:
        self._function = function
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[_T] = self._loop.create_future()

    def run(self) -> None:
        """Run the function, in its thread, and tell the event loop."""
        try:
            answer = self._function()
        except Exception as error:  # it belongs to whoever waits, whatever it is
            self._tell(partial(self._fail, error))
        except BaseException as error:  # such as SystemExit, which would end the gateway
            failure = RuntimeError(f"the function raised {type(error).__name__}")
            failure.__cause__ = error
            self._tell(partial(self._fail, failure))
        else:
            self._tell(partial(self._succeed, answer))

    def _tell(self, settle: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the gateway has ended meanwhile
            return

    def _succeed(self, answer: _T) -> None:
        self._leave()
        if not self.done.done():
            self.done.set_result(answer)

    def _fail(self, error: Exception) -> None:
        self._leave()
        if not self.done.done():
            stops = isinstance(error, StopIteration)  # which no future can carry
            self.done.set_exception(RuntimeError("the function raised StopIteration") if stops else error)
