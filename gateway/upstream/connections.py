"""All connections to upstreams: which are kept between requests, and how many there may be at once.

A kept connection serves only its own origin, the latest one first. Where there is no room, the connection that was kept
longest makes some; where none is kept, whoever wants one waits in line.
"""

import asyncio
from collections import deque
from functools import partial
from typing import TypeAlias

from gateway.upstream.dialing import Dialer
from gateway.upstream.faults import ConnectedLate, Disconnected
from gateway.upstream.http1 import Connection
from gateway.upstream.origins import Origin

_KEPT_S = 15.0
_TICK_S = 5.0
_CLOSING_S = 1.0

_Place: TypeAlias = "asyncio.Future[Connection | None]"
"""What one waits for: a kept connection of that origin, or room for a new one."""


class Connections:
    """The connections of one pool; `connect_s` bounds the wait for room and the making of one together."""

    def __init__(self, dialer: Dialer, *, connect_s: float, most: int) -> None:
        self._dialer = dialer
        self._connect_s = connect_s
        self._most = most
        self._count = 0
        self._open: set[Connection] = set()
        self._kept: dict[str, list[Connection]] = {}
        self._oldest: dict[Connection, None] = {}
        self._waiting: deque[tuple[str, _Place]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        """How many there are, those that are being made included."""
        return self._count

    @property
    def kept(self) -> int:
        """How many of them serve nobody."""
        return len(self._oldest)

    def take(self, origin: Origin, now: float) -> Connection | None:
        """A kept connection of this origin, the latest."""
        kept = self._kept.get(origin.key)
        while kept:
            connection = kept.pop()
            del self._oldest[connection]
            if connection.is_fit and connection.kept_at + _KEPT_S > now:
                return connection
            connection.abort()
        return None

    async def open(self, origin: Origin) -> Connection:
        """A new connection, or one that became free meanwhile.

        Raises:
            EgressDenied: the upstream may not be dialled.
            NotConnected, DistrustedTls: there is no connection.
            Disconnected: the other side closed it at once.
        """
        try:
            async with asyncio.timeout(self._connect_s):
                return await self._find_room(origin.key) or await self._make(origin)
        except TimeoutError:
            raise ConnectedLate from None

    def keep(self, connection: Connection) -> None:
        """Give a connection that may serve another request to whoever is first in line, or keep it."""
        if self._closed is not None:
            connection.abort()
        elif (place := self._next_place()) is not None:
            if place[0] == connection.origin:
                place[1].set_result(connection)
            else:
                self._waiting.appendleft(place)  # for the room that this one leaves
                connection.abort()
        else:
            self._put_away(connection)

    def forget(self, connection: Connection) -> None:
        """A connection is closed: there is room for another."""
        if connection not in self._open:  # it never became one of ours
            return
        self._open.discard(connection)
        if connection in self._oldest:
            self._take_out(connection)
        self._leave_room()
        if self._closed is not None and not self._open and not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        """Close all, and let nobody open another; those who wait are told."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._closed = asyncio.get_running_loop().create_future()
        while (place := self._next_place()) is not None:
            place[1].set_result(None)
            self._count += 1
        for connection in list(self._open):
            connection.abort()
        if self._open:
            await asyncio.wait([self._closed], timeout=_CLOSING_S)

    async def _find_room(self, key: str) -> Connection | None:
        """Count one more connection, or wait in line for room or for a connection of this origin."""
        if self._count < self._most:
            self._count += 1
            return None
        if self._oldest:
            oldest = next(iter(self._oldest))
            self._take_out(oldest)
            oldest.abort()
        place: _Place = asyncio.get_running_loop().create_future()
        self._waiting.append((key, place))
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_back(place.result())
            raise

    async def _make(self, origin: Origin) -> Connection:
        """A connection in the room that was found for it, which is left again where there is none."""
        try:
            if self._closed is not None:
                raise RuntimeError("the pool is closed")
            connection = await self._dialer.dial(origin, partial(Connection, self, origin.key))
        except BaseException:
            self._leave_room()
            raise
        if not connection.is_fit or self._closed is not None:
            connection.abort()
            self._leave_room()
            raise Disconnected
        self._open.add(connection)
        return connection

    def _next_place(self) -> tuple[str, _Place] | None:
        """The first in line who still waits."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place[1].done():
                return place
        return None

    def _leave_room(self) -> None:
        place = self._next_place()
        if place is None:
            self._count -= 1
        else:
            place[1].set_result(None)

    def _give_back(self, given: Connection | None) -> None:
        """What came too late for the one that waited for it."""
        if given is None:
            self._leave_room()
        elif given.is_fit:
            self.keep(given)
        else:
            given.abort()

    def _put_away(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.kept_at = loop.time()
        self._oldest[connection] = None
        kept = self._kept.get(connection.origin)
        if kept is None:
            self._kept[connection.origin] = [connection]
        else:
            kept.append(connection)
        if self._timer is None:
            self._timer = loop.call_later(_TICK_S, self._sweep, loop)

    def _take_out(self, connection: Connection) -> None:
        del self._oldest[connection]
        self._kept[connection.origin].remove(connection)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what was kept long enough; one timer for all."""
        too_old = loop.time() - _KEPT_S
        for connection in list(self._oldest):
            if connection.kept_at > too_old:
                break
            self._take_out(connection)
            connection.abort()
        for key in [key for key, kept in self._kept.items() if not kept]:
            del self._kept[key]
        self._timer = loop.call_later(_TICK_S, self._sweep, loop) if self._oldest else None
