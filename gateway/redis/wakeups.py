"""Wake-up channels: subscriptions of one replica, in addition to the event channels of all replicas.

The content of a message is ignored; a message only signals that there is data to read. Listeners are also called after
a reconnection. Messages can be lost, so the owners of listeners poll as well.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

import anyio
import structlog

from gateway.errors import RedisUnavailable
from gateway.redis.client import PubSub, redis_errors_translated
from gateway.redis.limits.limits import CONFIRM_S, WAKEUP_SEND_S

log = structlog.get_logger(__name__)


class _Channel:
    """A channel and its listeners; `confirmed` is an unset event until Redis confirms the subscription, then None."""

    __slots__ = ("confirmed", "is_requested", "listeners")

    def __init__(self) -> None:
        self.listeners: dict[object, Callable[[], None]] = {}
        self.is_requested = False
        self.confirmed: anyio.Event | None = anyio.Event()


class Wakeups:
    """All wake-up channels of this replica, on one connection that can be lost and replaced."""

    def __init__(self) -> None:
        self._channels: dict[str, _Channel] = {}
        self._changed: set[str] = set()
        """Names whose subscription is to be sent or withdrawn."""
        self._has_changed = anyio.Event()
        self._listener: PubSub | None = None
        self._connection_lock = anyio.Lock()

    def __len__(self) -> int:
        """Number of channels with a listener."""
        return len(self._channels)

    @property
    def is_live(self) -> bool:
        """True while a connection for messages is attached."""
        return self._listener is not None

    @asynccontextmanager
    async def listening(self, name: str, listener: Callable[[], None]) -> AsyncGenerator[None]:
        """Call the listener for messages on the channel while the block runs.

        The block starts when Redis has confirmed the subscription, or after two seconds. While Redis is unavailable it
        starts at once; the listener is called once the connection is back. Leaving the block waits for nothing.
        """
        token = object()
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel()
            self._note_change(name)
        channel.listeners[token] = listener
        try:
            if channel.confirmed is not None and self.is_live:
                with anyio.move_on_after(CONFIRM_S):
                    await channel.confirmed.wait()
            yield
        finally:
            channel.listeners.pop(token, None)
            if not channel.listeners and self._channels.get(name) is channel:
                del self._channels[name]
                self._note_change(name)

    async def send_changes(self) -> None:
        """Send the subscriptions of new channels and withdraw those of closed channels, until cancelled.

        One task sends them for all streams, those of one turn of the event loop together. With a lock that the streams
        took one after the other, each turn served one of them, so that ended streams stayed open for seconds.
        """
        while True:
            await self._has_changed.wait()
            self._has_changed = anyio.Event()
            async with self._connection_lock:
                names, self._changed = self._changed, set()
                try:
                    if self._listener is not None:
                        await self._send(self._listener, names)
                except RedisUnavailable as error:  # the reader of the connection replaces it
                    log.debug("channels_not_subscribed", reason=str(error))

    async def attach(self, listener: PubSub) -> None:
        """Use this connection: subscribe to every channel again, then call every listener.

        Raises:
            RedisUnavailable: the connection is lost again.
        """
        async with self._connection_lock:
            self._listener = listener
            for channel in self._channels.values():
                channel.is_requested = True
            if self._channels:
                await listener.subscribe(*self._channels)
        for channel in tuple(self._channels.values()):
            _call(channel)

    async def detach(self, listener: PubSub) -> None:
        """Mark every subscription as unconfirmed, and close the lost connection when no task uses it."""
        self._listener = None
        for channel in self._channels.values():
            channel.is_requested = False
            if channel.confirmed is not None:
                channel.confirmed.set()  # it is not confirmed any more: its tasks go on
            channel.confirmed = anyio.Event()
        async with self._connection_lock:
            await listener.aclose()

    def confirm(self, name: bytes) -> None:
        """Record that Redis has confirmed the subscription to the channel."""
        channel = self._channels.get(name.decode("utf-8", "replace"))
        if channel is not None and channel.confirmed is not None:
            channel.confirmed.set()
            channel.confirmed = None

    def call(self, name: bytes) -> None:
        """Call the listeners of a channel that has received a message."""
        channel = self._channels.get(name.decode("utf-8", "replace"))
        if channel is not None:
            _call(channel)

    def _note_change(self, name: str) -> None:
        self._changed.add(name)
        self._has_changed.set()

    async def _send(self, listener: PubSub, names: Iterable[str]) -> None:
        closed = [name for name in names if name not in self._channels]
        opened = [name for name in names if name in self._channels and not self._channels[name].is_requested]
        for name in opened:
            self._channels[name].is_requested = True
        with redis_errors_translated(), anyio.fail_after(WAKEUP_SEND_S):
            if closed:
                await listener.unsubscribe(*closed)
            if opened:
                await listener.subscribe(*opened)


def _call(channel: _Channel) -> None:
    for listener in tuple(channel.listeners.values()):
        try:
            listener()
        except Exception:
            log.exception("listener_failed")
