"""Single-flight lookups with a concurrency bound.

Callers with the same name share one lookup, and by default at most four lookups run at a time. So a thousand concurrent
first requests, or requests with invented keys, cannot exhaust the database connections.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import anyio

from gateway.errors import DatabaseUnavailable, GatewayError, Unavailable
from gateway.identity.limits import LOOKUP_RETRY_S, LOOKUP_SLOT_S

_CONCURRENT_LOOKUPS = 4  # guard: key-lookups-at-once

_Name = TypeVar("_Name", bound=Hashable)
_Answer = TypeVar("_Answer")


class _Flight(Generic[_Answer]):
    """One lookup. The caller that runs it holds the lock; the waiting callers then read the outcome."""

    __slots__ = ("answers", "failure", "lock", "waiting")

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.waiting = 0
        self.answers: list[_Answer] = []
        self.failure: GatewayError | None = None


class SingleFlight(Generic[_Name, _Answer]):
    """The lookups in progress, `at_once` at a time; `busy` is the error of lookups that do not start in time."""

    def __init__(self, busy: type[Unavailable] = DatabaseUnavailable, *, at_once: int = _CONCURRENT_LOOKUPS) -> None:
        self._busy = busy
        self._flights: dict[_Name, _Flight[_Answer]] = {}
        self._slots = anyio.Semaphore(at_once)

    @property
    def waiting(self) -> int:
        """Number of lookups that have not started."""
        return self._slots.statistics().tasks_waiting

    async def take(self, name: _Name, look_up: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return the result of the lookup of this name.

        If the caller that runs the lookup is cancelled, the next caller runs it.

        Raises:
            Unavailable: the lookup did not start within five seconds, because too many lookups were queued.
            GatewayError: the lookup failed.
        """
        turn = self._flights.get(name)
        if turn is None:
            turn = self._flights[name] = _Flight[_Answer]()
        # Counted before the lock: a caller that is cancelled while it waits must not remove a lookup of others.
        turn.waiting += 1
        try:
            async with turn.lock:
                return turn.answers[0] if turn.answers else await self._look_up(turn, look_up)
        finally:
            turn.waiting -= 1
            is_over = bool(turn.answers) or turn.failure is not None or not turn.waiting
            # `forget` may have replaced the flight meanwhile; the newer one is not ours to remove.
            if is_over and self._flights.get(name) is turn:
                del self._flights[name]

    def forget(self) -> None:
        """Make later callers start new lookups instead of sharing the lookups in progress."""
        self._flights.clear()

    async def _look_up(self, turn: _Flight[_Answer], look_up: Callable[[], Awaitable[_Answer]]) -> _Answer:
        if turn.failure is not None:
            # Each waiter raises the same error; its traceback would otherwise grow with each of them.
            raise turn.failure.with_traceback(None)
        try:
            answer = await self._in_place(look_up)
        except GatewayError as error:
            turn.failure = error
            raise
        turn.answers.append(answer)
        return answer

    async def _in_place(self, look_up: Callable[[], Awaitable[_Answer]]) -> _Answer:
        with anyio.move_on_after(LOOKUP_SLOT_S) as scope:
            await self._slots.acquire()
        if scope.cancelled_caught:
            raise self._busy("Too many credential lookups are pending; retry later.", retry_after_s=LOOKUP_RETRY_S)
        try:
            return await look_up()
        finally:
            self._slots.release()
