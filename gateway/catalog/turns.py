"""Whose turn it is when few may work at once and many want to: tenants take turns, and waiting has bounds.

A tenant that asks for much waits behind itself, not before others.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.errors import LimitExceeded

_RETRY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many work at once, how many may wait for them, and how many of those for one tenant."""

    at_once: int = 2
    waiting: int = 16
    waiting_each: int = 4


class Turns:
    """The places of one replica."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._free = bounds.at_once
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting_count(self) -> int:
        """How many wait now."""
        return sum(len(queue) for queue in self._waiting.values())

    @asynccontextmanager
    async def place(self, tenant: str) -> AsyncGenerator[None]:
        """A place for as long as the block runs, when it is the tenant's turn.

        Raises:
            LimitExceeded: too many wait already, of this tenant or in all.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(tenant)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, tenant: str) -> None:
        self._check(tenant)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came together with the cancellation
                self._pass_on()
            else:
                self._drop(tenant, turn)
            raise

    def _check(self, tenant: str) -> None:
        if len(self._waiting.get(tenant, ())) >= self._bounds.waiting_each:
            raise LimitExceeded(
                f"{self._bounds.waiting_each} documents of the tenant are waiting to be read already; try again soon",
                retry_after_s=_RETRY_S,
            )
        if self.waiting_count >= self._bounds.waiting:
            raise LimitExceeded(
                f"{self._bounds.waiting} documents are waiting to be read already; try again soon",
                retry_after_s=_RETRY_S,
            )

    def _pass_on(self) -> None:
        """Give the place to the tenant whose turn is next; it waits longest for its next turn then."""
        while self._waiting:
            tenant, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[tenant] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _drop(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(tenant)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[tenant]
