"""Slots of one replica, limited in number and shared fairly between tenants.

It is the bulkhead of replica-wide pools such as workers, threads and database connections. One tenant holds at most a
quarter of the slots, and at most a quarter of the queue, but at least one of each. Freed slots go round-robin to the
waiting tenants, first in first out within a tenant.

A holder may take several slots at once, for pools whose slots are units of memory. A tenant that holds nothing may take
more than its share, up to all slots. Slots are saved up for the waiter whose turn it is, so small requests do not
overtake a large one for ever.

A wait is limited in time; a refused or cancelled waiter holds no slot. All calls must run in the event loop's thread.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from gateway.domain.fairness.limits import SLOT_RETRY_S
from gateway.errors import LimitExceeded

SHARE_DIVISOR: Final = 4
"""One tenant may use one part in `SHARE_DIVISOR` of a pool."""

_Waiter: TypeAlias = tuple[int, "asyncio.Future[None]"]
"""The number of slots that a waiter needs, and the future that resolves when it holds them."""


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
        """Waiting tenants whose first waiter fits into their share, in the order of their turns."""

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

    def try_take(self, tenant: str, count: int = 1) -> bool:
        """Acquire slots without waiting; return False if the tenant cannot have them now."""
        if count > self._free or self._turns or not self._fits(tenant, count):  # guard: share-of-places
            return False
        self._give(tenant, count)
        return True

    async def take(self, tenant: str, count: int = 1, *, within_s: float | None = None) -> None:
        """Acquire slots, waiting in turn, at most `within_s` seconds; they are held until `free`.

        Raises:
            LimitExceeded: no slots were released in time, or too many waiters exist; no slot is held.
        """
        if self.try_take(tenant, count):
            return
        self._check_queue(tenant)
        waiter = self._enqueue(tenant, count)
        try:
            async with asyncio.timeout(self._timeout_s if within_s is None else min(within_s, self._timeout_s)):
                await waiter[1]
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
        return LimitExceeded(f"{message}; retry later", limit=self.name, retry_after_s=SLOT_RETRY_S)

    def free(self, tenant: str, count: int = 1) -> None:
        """Release slots and assign them to the next waiters in turn, if there are any."""
        held = self._held[tenant] - count
        if held:
            self._held[tenant] = held
        else:
            del self._held[tenant]
        self._free += count
        if self._waiting:
            self._update_turn(tenant)
            self._grant()

    def _give(self, tenant: str, count: int) -> None:
        self._free -= count
        self._held[tenant] = self.held(tenant) + count

    def _fits(self, tenant: str, count: int) -> bool:
        held = self._held.get(tenant, 0)
        return held + count <= self.share or not held

    def _grant(self) -> None:
        while self._turns:
            tenant = next(iter(self._turns))
            count, future = self._queues[tenant][0]
            if not future.done():  # a cancelled waiter stays queued until its task runs again
                if count > self._free:
                    return
                future.set_result(None)
                self._give(tenant, count)
            self._turns.move_to_end(tenant)  # guard: places-round-robin
            self._leave_queue(tenant)
            self._update_turn(tenant)

    def _update_turn(self, tenant: str) -> None:
        """Keep the tenant's turn, or give it the last one, if its first waiter fits into its share."""
        queue = self._queues.get(tenant)
        if queue and self._fits(tenant, queue[0][0]):
            self._turns.setdefault(tenant)
        else:
            self._turns.pop(tenant, None)

    def _enqueue(self, tenant: str, count: int) -> _Waiter:
        waiter: _Waiter = (count, asyncio.get_running_loop().create_future())
        self._queues.setdefault(tenant, deque()).append(waiter)
        self._waiting += 1
        self._update_turn(tenant)
        return waiter

    def _leave_queue(self, tenant: str, waiter: _Waiter | None = None) -> None:
        """Remove one waiter, by default the first."""
        queue = self._queues[tenant]
        if waiter is None:
            queue.popleft()
        else:
            queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._queues[tenant]

    def _cancel_wait(self, tenant: str, waiter: _Waiter) -> None:
        count, future = waiter
        if future.done() and not future.cancelled():  # the slots were granted at the moment of the cancellation
            self.free(tenant, count)
        elif waiter in self._queues.get(tenant, ()):
            self._leave_queue(tenant, waiter)
            self._update_turn(tenant)
            self._grant()  # the slots that were saved up for this waiter

    def _check_queue(self, tenant: str) -> None:
        # guard: share-of-a-queue
        if self._waiting >= self.queue or len(self._queues.get(tenant, ())) >= share_of(self.queue):
            raise self.refuse(tenant)
