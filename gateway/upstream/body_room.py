"""Room for large bodies of responses: megabytes of this replica, shared fairly between tenants (decision 65).

A body of more than `SMALL_BODY_BYTES` is read only when it has room. It keeps its room until its call has rendered it,
so that bodies that wait for a thread, for Redis or for a check are counted too. A call holds the room of one body at a
time: it releases the last body before it waits for the next one, so that no two calls wait for each other.

While a body waits, its connection is paused, and the bytes stay with the upstream. The wait does not count against the
bulkhead of the upstream, which has answered.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from gateway.domain.fairness.large_work import result_busy
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.errors import LimitExceeded
from gateway.upstream.limits import BODY_MARGIN_S, BODY_WAIT_S, MAX_QUEUED_BODIES, ROOM_UNIT_BYTES

_UNITS: Final = 256
"""Units of a replica; a tenant has a quarter, room for six bodies of 10 MiB. Two of all bodies are copied at a time."""


class BodyHolder(Protocol):
    """The call that keeps a body until its result is rendered."""

    def hold_body(self, release: Callable[[], None]) -> None:
        """Keep the room of a body; call `release` when the body is no longer needed."""
        ...

    def release_body(self) -> None:
        """Release the room of the last body, if there is one."""
        ...


class BodyRoom:
    """The room of this replica."""

    def __init__(self, units: int = _UNITS) -> None:
        self.slot_pool = FairSlotPool(
            "megabytes of large results", slots=units, queue=MAX_QUEUED_BODIES, timeout_s=BODY_WAIT_S
        )

    def open(self, tenant: TenantId | None, holder: BodyHolder | None = None) -> "RoomForBody":
        """Return the room of one body, which takes nothing yet."""
        return RoomForBody(self.slot_pool, tenant or "", holder)


class RoomForBody:
    """The room of one body. Without a holder, its owner has to release it."""

    def __init__(self, slot_pool: FairSlotPool, party: str, holder: BodyHolder | None) -> None:
        self._slot_pool = slot_pool
        self._party = party
        self._holder = holder
        self._held = 0

    @property
    def is_taken(self) -> bool:
        """True if the body holds room."""
        return self._held > 0

    async def take(self, size: int, *, until: float | None = None, parked: Callable[[], None] | None = None) -> None:
        """Wait for room for a body of `size` bytes, until the loop's clock passes `until` less a margin.

        `parked` is called if the body has to wait.

        Raises:
            ResultBusy: there was no room in time.
        """
        count = min(_units(size), self._slot_pool.slots)
        if self._holder is not None:
            self._holder.release_body()  # guard: one-body-of-a-call
        if not self._slot_pool.try_take(self._party, count):
            if parked is not None:
                parked()
            left_s = None if until is None else max(0.0, until - BODY_MARGIN_S - asyncio.get_running_loop().time())
            try:
                await self._slot_pool.take(self._party, count, within_s=left_s)
            except LimitExceeded as error:
                raise result_busy(error) from None
        self._held = count
        if self._holder is not None:
            self._holder.hold_body(self.release)

    def shrink(self, size: int) -> None:
        """Release what a body of `size` bytes does not need."""
        if (excess := self._held - _units(size)) > 0:
            self._held -= excess
            self._slot_pool.free(self._party, excess)

    def release(self) -> None:
        """Release the room, if the body holds any."""
        held, self._held = self._held, 0
        if held:
            self._slot_pool.free(self._party, held)

    def close(self) -> None:
        """Release the room, unless a call keeps it."""
        if self._holder is None:
            self.release()


def _units(size: int) -> int:
    return max(1, -(-size // ROOM_UNIT_BYTES))
