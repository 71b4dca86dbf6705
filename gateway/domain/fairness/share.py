"""Slots of one replica, limited in number and shared fairly between tenants.

It is the bulkhead of replica-wide pools such as workers, threads and database connections. One tenant holds at most a
quarter of the slots, and at most a quarter of the queue, but at least one of each. Freed slots go round-robin to the
waiting tenants, first in first out within a tenant.

A wait is limited in time; a refused or cancelled waiter holds no slot. All calls must run in the event loop's thread.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from gateway.errors import LimitExceeded

SHARE_DIVISOR: Final = 4
"""One tenant may use one part in `SHARE_DIVISOR` of a pool."""

_RETRY_S: Final = 5.0

_Waiter: TypeAlias = asyncio.Future[None]


def share_of(size: int) -> int:
    """Return the limit of one tenant in a pool of this size: a quarter, at least one."""
    return max(1, size // SHARE_DIVISOR)


class FairSlotPool:
    """The slots of one pool; `name` is a short plural noun for messages and metrics, such as `document workers`.

    `queue` is the limit on waiters of all tenants together, `timeout_s` the maximum wait. The `tenant` of a call may be
    another string that identifies a party, such as a client address.
    """

    def __init__(self, name: str, *, slots: int, queue: int | None = None, timeout_s: float = 5.0) -> None:
        self.name = name
        self.slots = slots
        self.share = share_of(slots)
        """Limit on the slots of one tenant."""
        self.queue = 4 * slots if queue is None else queue
        self.refused = 0
        self._timeout_s = timeout_s
        self._free = slots
        self._waiting = 0
        self._held: dict[str, int] = {}
        self._queues: dict[str, deque[_Waiter]] = {}
        self._turns: OrderedDict[str, None] = OrderedDict()
        """Waiting tenants below their share, in the order of their turns; empty while a slot is free."""

    @property
    def busy(self) -> int:
        """Number of slots in use."""
        return self.slots - self._free

    @property
    def waiting(self) -> int:
        """Number of waiters of all tenants."""
        return self._waiting

    def held(self, tenant: str) -> int:
        """Number of slots that the tenant holds."""
        return self._held.get(tenant, 0)

    @asynccontextmanager
    async def hold(self, tenant: str) -> AsyncGenerator[None]:
        """Hold a slot while the block runs.

        Raises:
            LimitExceeded: no slot was released in time, or too many waiters exist; the block was not entered.
        """
        await self.take(tenant)
        try:
            yield
        finally:
            self.free(tenant)

    def try_take(self, tenant: str) -> bool:
        """Acquire a slot without waiting; return False if the tenant cannot have one now."""
        held = self._held.get(tenant, 0)
        if not self._free or held >= self.share:  # guard: share-of-places
            return False
        self._free -= 1
        self._held[tenant] = held + 1
        return True

    async def take(self, tenant: str) -> None:
        """Acquire a slot, waiting in turn; it is held until `free`.

        Raises:
            LimitExceeded: no slot was released in time, or too many waiters exist; no slot is held.
        """
        if self.try_take(tenant):
            return
        self._check_queue(tenant)
        waiter = self._enqueue(tenant)
        try:
            async with asyncio.timeout(self._timeout_s):
                await waiter
        except BaseException as error:
            self._cancel_wait(tenant, waiter)
            if isinstance(error, TimeoutError):
                raise self.refuse(tenant) from None
            raise

    def refuse(self, tenant: str) -> LimitExceeded:
        """Count a refusal and return its error."""
        self.refused += 1
        if self.held(tenant) >= self.share:
            message = f"the tenant uses its share of the {self.name} of this replica ({self.share} of {self.slots})"
        else:
            message = f"all {self.name} of this replica are in use ({self.slots})"
        return LimitExceeded(f"{message}; retry later", retry_after_s=_RETRY_S)

    def free(self, tenant: str) -> None:
        """Release a slot and assign it to the next waiter in turn, if there is one."""
        held = self._held[tenant] - 1
        if held:
            self._held[tenant] = held
        else:
            del self._held[tenant]
        self._free += 1
        if self._waiting:
            if tenant in self._queues:
                self._turns.setdefault(tenant)
            self._grant()

    def _grant(self) -> None:
        while self._free and self._turns:
            tenant, _ = self._turns.popitem(last=False)  # guard: places-round-robin
            waiter = self._leave_queue(tenant)
            if not waiter.done():  # a cancelled waiter stays queued until its task runs again
                waiter.set_result(None)
                self._free -= 1
                self._held[tenant] = self.held(tenant) + 1
            if tenant in self._queues and self.held(tenant) < self.share:
                self._turns[tenant] = None

    def _enqueue(self, tenant: str) -> _Waiter:
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append(waiter)
        self._waiting += 1
        if self.held(tenant) < self.share:
            self._turns.setdefault(tenant)
        return waiter

    def _leave_queue(self, tenant: str, waiter: _Waiter | None = None) -> _Waiter:
        """Remove and return one waiter, by default the first."""
        queue = self._queues[tenant]
        if waiter is None:
            waiter = queue.popleft()
        else:
            queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._queues[tenant]
            self._turns.pop(tenant, None)
        return waiter

    def _cancel_wait(self, tenant: str, waiter: _Waiter) -> None:
        if waiter.done() and not waiter.cancelled():  # the slot was granted at the moment of the cancellation
            self.free(tenant)
        elif waiter in self._queues.get(tenant, ()):
            self._leave_queue(tenant, waiter)

    def _check_queue(self, tenant: str) -> None:
        # guard: share-of-a-queue
        if self._waiting >= self.queue or len(self._queues.get(tenant, ())) >= share_of(self.queue):
            raise self.refuse(tenant)
