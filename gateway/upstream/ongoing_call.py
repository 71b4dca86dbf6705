"""A call to an upstream in progress: its request, its slot in the bulkhead, its deadline, and the room of its body."""

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.upstream.body_room import BodyHolder, BodyRoom, RoomForBody
from gateway.upstream.bulkhead import Bulkhead
from gateway.upstream.deadlines import Deadline
from gateway.upstream.http.exchange import WireRequest


class OngoingCall:
    """One call, from its request to its response. `holder` keeps a large body; without one, `end` releases its room."""

    __slots__ = ("_room", "bulkhead", "deadline", "has_slot", "holder", "limit", "message", "request", "tenant")

    bulkhead: Bulkhead
    deadline: Deadline
    message: WireRequest

    def __init__(
        self, request: UpstreamRequest, tenant: TenantId | None, limit: int, holder: BodyHolder | None = None
    ) -> None:
        self.request = request
        self.tenant = tenant
        self.limit = limit
        self.holder = holder
        self.has_slot = False
        self._room: RoomForBody | None = None

    async def admit_body(self, rooms: BodyRoom, size: int) -> None:
        """Wait for room for a large body of at most `size` bytes; does nothing if the body has room already.

        While the body waits, the call has no slot in the bulkhead: the upstream has answered, and only the gateway is
        slow.

        Raises:
            ResultBusy: there was no room in time.
        """
        if self._room is None:
            self._room = rooms.open(self.tenant, self.holder)
        if not self._room.is_taken:
            await self._room.take(size, until=self.deadline.last, parked=self._park)

    def end(self, size: int) -> None:
        """Release the slot, and all room that a body of `size` bytes does not need, if a holder keeps the body."""
        if self.has_slot:
            self.has_slot = False
            self.bulkhead.leave()
        if self._room is not None:
            self._room.shrink(size)
            self._room.close()

    def _park(self) -> None:
        self.deadline.allow(self.deadline.last)
        if self.has_slot:
            self.has_slot = False
            self.bulkhead.leave()  # guard: parked-bodies-leave-the-bulkhead
