"""Whose turn it is when few may work at once and many want to: tenants take turns, and waiting has bounds.

A tenant that asks for much waits behind itself, not before others.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.errors import LimitExceeded

_RETRY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many work at once, how many may wait for them, and how many of both may be of one tenant.

    `work` names what waits, for the refusal.
    """

    at_once: int = 2
    at_once_each: int | None = None
    """None: as many as work at once."""
    waiting: int = 16
    waiting_each: int = 4
    work: str = "documents"


class Turns:
    """The places of one replica."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._free = bounds.at_once
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting_count(self) -> int:
        """How many wait now."""
        return sum(len(queue) for queue in self._waiting.values())

    @property
    def working_count(self) -> int:
        """How many work now."""
        return self._held.total()

    @asynccontextmanager
    async def place(self, tenant: str) -> AsyncGenerator[None]:
        """A place for as long as the block runs, when it is the tenant's turn.

        Raises:
            LimitExceeded: too many wait already, of this tenant or in all.
        """
        if self._free and self._may_begin(tenant):
            self._begin(tenant)
        else:
            await self._wait(tenant)
        try:
            yield
        finally:
            self._pass_on(tenant)

    def _may_begin(self, tenant: str) -> bool:
        most = self._bounds.at_once_each
        return most is None or self._held[tenant] < most

    def _begin(self, tenant: str) -> None:
        self._free -= 1
        self._held[tenant] += 1

    async def _wait(self, tenant: str) -> None:
        self._check(tenant)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came together with the cancellation
                self._pass_on(tenant)
            else:
                self._drop(tenant, turn)
            raise

    def _check(self, tenant: str) -> None:
        if len(self._waiting.get(tenant, ())) >= self._bounds.waiting_each:
            raise LimitExceeded(
                f"{self._bounds.waiting_each} {self._bounds.work} of the tenant are waiting already; try again soon",
                retry_after_s=_RETRY_S,
            )
        if self.waiting_count >= self._bounds.waiting:
            raise LimitExceeded(
                f"{self._bounds.waiting} {self._bounds.work} are waiting already; try again soon",
                retry_after_s=_RETRY_S,
            )

    def _pass_on(self, tenant: str) -> None:
        """Give the place to the tenant whose turn is next; it waits longest for its next turn then."""
        self._free += 1
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        while (following := self._next()) is not None:
            queue = self._waiting.pop(following)
            turn = queue.popleft()
            if queue:
                self._waiting[following] = queue
            if not turn.done():
                self._begin(following)
                turn.set_result(None)
                return

    def _next(self) -> str | None:
        """The first tenant in line that may have another place."""
        return next((tenant for tenant in self._waiting if self._may_begin(tenant)), None)

    def _drop(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(tenant)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[tenant]
