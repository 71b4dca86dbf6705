"""Connection pool of a replica: idle connections by `PoolKey`, and the shares of the tenants.

An idle connection serves only the `PoolKey` that opened it; the most recently used one is reused first. A tenant holds
at most its share of all connections, including idle ones. Requests without capacity wait: first-in, first-out within a
tenant, and round-robin between tenants. In a full pool, or at the tenant's share, the longest idle connection is
closed.
"""

import asyncio
from collections import Counter, deque
from functools import partial
from typing import TypeAlias

from gateway.errors import UpstreamBusy
from gateway.upstream.egress.origins import Origin, PoolKey
from gateway.upstream.http.connection import Connection
from gateway.upstream.http.connector import Connector
from gateway.upstream.http.errors import ConnectedLate, Disconnected
from gateway.upstream.http.limits import CLOSING_S, KEEP_ALIVE_S, SWEEP_S
from gateway.upstream.limits import BUSY_RETRY_S

_ConnectionFuture: TypeAlias = "asyncio.Future[Connection | None]"
"""Resolves to a released connection of the same key, or to None if there is capacity for a new one."""
_Waiter: TypeAlias = tuple[PoolKey, _ConnectionFuture]


class ConnectionPool:
    """The connections of one replica: at most `limit`, at most `share` of one tenant.

    `connect_s` limits the wait for capacity and the dial together.
    """

    def __init__(self, dialer: Connector, *, connect_s: float, limit: int, share: int) -> None:
        self._dialer = dialer
        self._connect_s = connect_s
        self._limit = limit
        self._share = share
        self._held: Counter[str] = Counter()
        self._count = 0
        self._open: set[Connection] = set()
        self._kept: dict[PoolKey, list[Connection]] = {}
        self._oldest: dict[Connection, None] = {}
        self._waiting: dict[str, deque[_Waiter]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        """Number of connections, those being dialled included."""
        return self._count

    @property
    def kept(self) -> int:
        """Number of idle connections."""
        return len(self._oldest)

    def held_by(self, tenant: str) -> int:
        """Number of connections of one tenant, including idle ones and those being dialled."""
        return self._held[tenant]

    def take(self, key: PoolKey, now: float) -> Connection | None:
        """Return the most recently used idle connection of this key, or None; unusable ones are closed."""
        kept = self._kept.get(key)
        while kept:
            connection = kept.pop()
            del self._oldest[connection]
            if connection.kept_at + KEEP_ALIVE_S > now and connection.is_quiet:  # guard: bytes-on-an-idle-connection
                return connection
            connection.abort()
        return None

    async def open(self, key: PoolKey, origin: Origin) -> Connection:
        """Return a new connection, or one of the same key that was released during the wait.

        Raises:
            EgressDenied: the upstream may not be dialled.
            UpstreamBusy: the tenant holds its share of the pool, and no connection was released in time.
            NotConnected, DistrustedTls: no connection was established.
            Disconnected: the upstream closed the connection at once.
            RuntimeError: the pool is closed.
        """
        is_waiting = True
        try:
            async with asyncio.timeout(self._connect_s):
                given = await self._reserve(key)
                is_waiting = False
                return given or await self._dial(key, origin)
        except TimeoutError:
            if is_waiting and self._held[key.tenant] >= self._share:
                raise self._busy() from None
            raise ConnectedLate from None

    def keep(self, connection: Connection) -> None:
        """Pass a reusable connection to the next waiter of its key, or keep it idle.

        If the next waiter has another key, it gets the capacity: the connection is closed.
        """
        waiter = self._next_waiter(freed=connection.key.tenant) if self._waiting else None
        if self._closed is None and waiter is None:
            self._store_idle(connection)
        elif self._closed is None and waiter is not None and waiter[0] == connection.key:
            self._pop(waiter)
            waiter[1].set_result(connection)
        else:
            connection.abort()

    def forget(self, connection: Connection) -> None:
        """Release the capacity of a closed connection."""
        if connection not in self._open:  # the dial failed, and `_dial` released the capacity
            return
        self._open.discard(connection)
        if connection in self._oldest:
            self._remove_idle(connection)
        self._release_capacity(connection.key.tenant)
        if self._closed is not None and not self._open and not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        """Close every connection and wake every waiter; later dials are refused."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._closed = asyncio.get_running_loop().create_future()
        for key, waiter in [one for queue in self._waiting.values() for one in queue]:
            if not waiter.done():
                self._enter(key.tenant)
                waiter.set_result(None)
        self._waiting.clear()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            await asyncio.wait([self._closed], timeout=CLOSING_S)

    async def _reserve(self, key: PoolKey) -> Connection | None:
        """Reserve capacity and return None, at once or after waiting; or return a released connection of this key."""
        is_at_share = self._held[key.tenant] >= self._share  # guard: share-of-the-connections
        if not is_at_share and self._count < self._limit:
            self._enter(key.tenant)
            return None
        self._evict(key.tenant if is_at_share else None)
        waiter: _ConnectionFuture = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key.tenant, deque()).append((key, waiter))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._release_unclaimed(key, waiter.result())
            raise

    def _evict(self, tenant: str | None) -> None:
        """Close the longest idle connection of this tenant, or of all tenants with None."""
        for oldest in self._oldest:
            if tenant is None or oldest.key.tenant == tenant:
                self._remove_idle(oldest)
                oldest.abort()
                return

    async def _dial(self, key: PoolKey, origin: Origin) -> Connection:
        """Dial with the reserved capacity; a failed dial releases the capacity."""
        try:
            if self._closed is not None:
                raise RuntimeError("the pool is closed")
            self._loop = asyncio.get_running_loop()
            connection = await self._dialer.dial(origin, partial(Connection, self, key), key.permitted)
        except BaseException:
            self._release_capacity(key.tenant)
            raise
        if not connection.is_fit or self._closed is not None:
            connection.abort()
            self._release_capacity(key.tenant)
            raise Disconnected
        self._open.add(connection)
        return connection

    def _next_waiter(self, *, freed: str | None = None) -> _Waiter | None:
        """Return the next waiter whose tenant is below its share; `freed`: a tenant about to release a connection."""
        for tenant, queue in list(self._waiting.items()):
            while queue and queue[0][1].done():
                queue.popleft()
            if not queue:
                del self._waiting[tenant]
            elif self._held[tenant] < self._share or tenant == freed:
                return queue[0]
        return None

    def _pop(self, waiter: _Waiter) -> None:
        """Remove the first waiter of its tenant, and move the tenant to the end of the round-robin order."""
        tenant = waiter[0].tenant
        queue = self._waiting.pop(tenant)  # guard: turns-at-the-connections
        queue.popleft()
        if queue:
            self._waiting[tenant] = queue

    def _enter(self, tenant: str) -> None:
        self._count += 1
        self._held[tenant] += 1

    def _release_capacity(self, tenant: str) -> None:
        """Release the capacity for one connection and pass it to the next waiter."""
        self._count -= 1
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        waiter = self._next_waiter()
        if waiter is not None:
            self._pop(waiter)
            self._enter(waiter[0].tenant)
            waiter[1].set_result(None)

    def _release_unclaimed(self, key: PoolKey, given: Connection | None) -> None:
        """Release the connection or capacity that a cancelled waiter received."""
        if given is None:
            self._release_capacity(key.tenant)
        elif given.is_fit:
            self.keep(given)
        else:
            given.abort()

    def _store_idle(self, connection: Connection) -> None:
        loop = self._loop  # asyncio's own lookup makes a system call
        connection.kept_at = loop.time()
        self._oldest[connection] = None
        kept = self._kept.get(connection.key)
        if kept is None:
            self._kept[connection.key] = [connection]
        else:
            kept.append(connection)
        if self._timer is None:
            self._timer = loop.call_later(SWEEP_S, self._sweep, loop)

    def _remove_idle(self, connection: Connection) -> None:
        del self._oldest[connection]
        self._kept[connection.key].remove(connection)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that were idle for `_KEEP_ALIVE_S`; one timer serves all."""
        # Started first: a sweep that fails must not keep all later connections for ever.
        self._timer = loop.call_later(SWEEP_S, self._sweep, loop) if self._oldest else None
        too_old = loop.time() - KEEP_ALIVE_S
        for connection in list(self._oldest):
            if connection.kept_at > too_old:
                break
            self._remove_idle(connection)
            connection.abort()
        for key in [key for key, kept in self._kept.items() if not kept]:
            del self._kept[key]

    def _busy(self) -> UpstreamBusy:
        return UpstreamBusy(
            f"The tenant has too many connections to upstreams (limit {self._share} per replica); retry later, or "
            f"send fewer calls at once.",
            retry_after_s=BUSY_RETRY_S,
        )
