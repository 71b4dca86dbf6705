"""Queue of many tenants' items that are processed in batches.

Items are taken round-robin by tenant, first in first out within a tenant, so a busy tenant does not delay the others.
One tenant fills at most a quarter of the queue. If only one tenant has items, it gets the whole batch.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from gateway.domain.fairness.share import share_of
from gateway.errors import LimitExceeded

_Item = TypeVar("_Item")


class FairQueue(Generic[_Item]):
    """The waiting items; `name` is a plural noun for messages."""

    def __init__(self, name: str, *, size: int) -> None:
        self.name = name
        self.size = size
        self.share = share_of(size)
        """Limit on the items of one tenant."""
        self.refused = 0
        self._count = 0
        self._queues: OrderedDict[str, deque[_Item]] = OrderedDict()

    def __len__(self) -> int:
        """Number of waiting items."""
        return self._count

    def __iter__(self) -> Iterator[_Item]:
        """All items, grouped by tenant."""
        return (item for queue in self._queues.values() for item in queue)

    @property
    def busy(self) -> int:
        """Number of waiting items."""
        return self._count

    def put(self, tenant: str, item: _Item) -> None:
        """Append an item.

        Raises:
            LimitExceeded: the tenant's share of the queue, or the queue, is full.
        """
        queue = self._queues.get(tenant)
        # guard: share-of-the-audit-queue
        if self._count >= self.size or (queue is not None and len(queue) >= self.share):
            self.refused += 1
            raise LimitExceeded(
                f"too many {self.name} are queued (limit {self.share} per tenant); retry later", retry_after_s=1.0
            )
        if queue is None:
            queue = self._queues[tenant] = deque()
        queue.append(item)
        self._count += 1

    def take(self, limit: int) -> list[_Item]:
        """Remove and return up to `limit` items, one per tenant in turn."""
        if len(self._queues) == 1:  # guard: audit-groups-round-robin
            return self._take_alone(limit)
        taken: list[_Item] = []
        while len(taken) < limit and self._queues:
            tenant, queue = self._queues.popitem(last=False)
            taken.append(queue.popleft())
            if queue:
                self._queues[tenant] = queue
        self._count -= len(taken)
        return taken

    def _take_alone(self, limit: int) -> list[_Item]:
        tenant, queue = next(iter(self._queues.items()))
        taken = [queue.popleft() for _ in range(min(len(queue), limit))]
        if not queue:
            del self._queues[tenant]
        self._count -= len(taken)
        return taken
