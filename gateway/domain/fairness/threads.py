"""Threads of the running event loop: bounded by kind, with a share of each kind for every tenant (decision 64).

Threads are a resource of the process: all that are busy wait for one interpreter lock, and the event loop waits with
them. So no module starts threads or uses the default executor; each kind of work has a row in `thread_kinds`.

A thread cannot be stopped. After a call is cancelled, its function continues in its thread and keeps its slot until it
returns. So functions that hang exhaust the tenant's share of one kind, but nothing else. The threads are daemons, which
do not delay the exit of the process.
"""

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Final, Generic, ParamSpec, TypeAlias, TypeVar

from gateway.domain.fairness.share import FairSlotPool

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Run: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadKind:
    """The limits of one kind of work; `name` is a plural noun for messages and metrics.

    One tenant holds at most a quarter of the `threads`, at least one; `queue` bounds the waiting calls of all tenants,
    and `timeout_s` the wait of one.
    """

    name: str
    threads: int
    queue: int = 256
    timeout_s: float = 30.0

    @property
    def busy(self) -> int:
        """Number of running functions in the running event loop, including those of cancelled calls."""
        return thread_pool(self).slot_pool.busy

    @property
    def refused(self) -> int:
        """Number of calls that got no thread in the running event loop."""
        return thread_pool(self).slot_pool.refused


async def run_in_thread(
    kind: ThreadKind, party: str, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Run the function in a thread of this kind and return its result, or raise its exception.

    `party` is the tenant, or another string that identifies who causes the work.

    Raises:
        LimitExceeded: no thread was free in time for this party, or too many calls wait; the function was not run.
    """
    return await thread_pool(kind).run(party, partial(function, *args, **kwargs))


def thread_pool(kind: ThreadKind) -> "ThreadPool":
    """Return the pool of this kind in the running event loop."""
    pools = _POOLS.setdefault(asyncio.get_running_loop(), {})
    found = pools.get(kind)
    if found is None:
        found = pools[kind] = ThreadPool(kind)
    return found


class ThreadPool:
    """The threads of one kind. They start when they are needed, and end with the pool."""

    def __init__(self, kind: ThreadKind) -> None:
        self.slot_pool = FairSlotPool(kind.name, slots=kind.threads, queue=kind.queue, timeout_s=kind.timeout_s)
        self._idle = 0
        self._jobs: SimpleQueue[_Run | None] = SimpleQueue()
        weakref.finalize(self, self._jobs.put, None)

    async def run(self, party: str, function: Callable[[], _T]) -> _T:
        """Run the function in a thread when one is free for this party; see `run_in_thread`."""
        await self.slot_pool.take(party)
        return await self.start(party, function)

    def start(self, party: str, function: Callable[[], _T]) -> "asyncio.Future[_T]":
        """Start the function for a party that has taken a slot, which is freed when the function returns."""
        try:
            job = _Job(function, partial(self._leave, party))
            if self._idle:
                self._idle -= 1
            else:
                threading.Thread(target=_work, args=(self._jobs,), name=self.slot_pool.name, daemon=True).start()
        except BaseException:
            self.slot_pool.free(party)
            raise
        self._jobs.put(partial(contextvars.copy_context().run, job.run))
        return job.done

    def _leave(self, party: str) -> None:
        self._idle += 1
        self.slot_pool.free(party)


_POOLS: Final[MutableMapping[asyncio.AbstractEventLoop, dict[ThreadKind, ThreadPool]]] = weakref.WeakKeyDictionary()


def _work(jobs: "SimpleQueue[_Run | None]") -> None:
    """Run jobs until the pool is gone. The mark of its end goes on to the next thread."""
    while (job := jobs.get()) is not None:
        job()
        del job
    jobs.put(None)


class _Job(Generic[_T]):
    """One function run in a thread."""

    def __init__(self, function: Callable[[], _T], leave: Callable[[], None]) -> None:
        self._function: Callable[[], _T] | None = function
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[_T] = self._loop.create_future()

    def run(self) -> None:
        """Run the function in its thread, then hand the outcome to the event loop."""
        function, self._function = self._function, None
        assert function is not None  # a job runs once
        try:
            response = function()
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
