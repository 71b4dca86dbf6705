"""Fair queues: groups are taken round-robin by tenant, and no tenant fills the queue."""

import pytest

from gateway.domain.fairness.queue import FairQueue
from gateway.errors import LimitExceeded


def test_a_group_has_something_of_each_tenant() -> None:
    """ISO-3: a thousand entries of one tenant do not delay the first entry of another."""
    queue = FairQueue[str]("entries", size=8000)
    for number in range(1000):
        queue.put("a", f"a{number}")
    queue.put("b", "b0")
    queue.put("c", "c0")

    assert queue.take(5) == ["a0", "b0", "c0", "a1", "a2"]
    assert queue.take(2) == ["a3", "a4"]
    assert len(queue) == 995


def test_a_tenant_fills_a_quarter() -> None:
    """ISO-3: the busy tenant is refused, and the others continue."""
    queue = FairQueue[int]("entries", size=8)
    queue.put("a", 1)
    queue.put("a", 2)
    with pytest.raises(LimitExceeded, match=r"too many entries are queued \(limit 2 per tenant\)"):
        queue.put("a", 3)
    for tenant in "bcd":
        queue.put(tenant, 1)
        queue.put(tenant, 2)
    with pytest.raises(LimitExceeded):
        queue.put("e", 1)

    assert (len(queue), queue.refused, sorted(queue)) == (8, 2, [1, 1, 1, 1, 2, 2, 2, 2])
    assert len(queue.take(100)) == 8
    assert (len(queue), queue.take(1)) == (0, [])
