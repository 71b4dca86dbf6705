"""Wake-up channels: subscriptions of one replica, in addition to the event channels of all replicas.

The content of a message is ignored; a message only signals that there is data to read. Listeners are also called after
a reconnection. Messages can be lost, so the owners of listeners poll as well.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import structlog

from gateway.errors import RedisUnavailable
from gateway.redis.client import PubSub, redis_errors_translated

log = structlog.get_logger(__name__)

_CONFIRM_TIMEOUT_S = 2.0


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
        self._listener: PubSub | None = None
        self._subscription_lock = anyio.Lock()

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
        starts at once; the listener is called once the connection is back.
        """
        token = object()
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel()
        channel.listeners[token] = listener
        try:
            await self._begin(name, channel)
            yield
        finally:
            channel.listeners.pop(token, None)
            if not channel.listeners and self._channels.get(name) is channel:
                del self._channels[name]
                with anyio.CancelScope(shield=True):
                    await self._end(name)

    async def attach(self, listener: PubSub) -> None:
        """Use this connection: subscribe to every channel again, then call every listener.

        Raises:
            RedisUnavailable: the connection is lost again.
        """
        async with self._subscription_lock:
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
        async with self._subscription_lock:
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

    async def _begin(self, name: str, channel: _Channel) -> None:
        confirmed = channel.confirmed
        if confirmed is None or not self.is_live:
            return
        try:
            async with self._subscription_lock:
                listener = self._listener  # the connection may have been lost while this task waited
                if listener is not None and not channel.is_requested:
                    channel.is_requested = True
                    with redis_errors_translated():
                        await listener.subscribe(name)
        except RedisUnavailable as error:
            log.debug("channel_not_subscribed", reason=str(error))
            return
        with anyio.move_on_after(_CONFIRM_TIMEOUT_S):
            await confirmed.wait()

    async def _end(self, name: str) -> None:
        async with self._subscription_lock:
            if name in self._channels or self._listener is None:
                return  # the channel has a new listener, or the connection is lost
            try:
                with anyio.move_on_after(_CONFIRM_TIMEOUT_S), redis_errors_translated():
                    await self._listener.unsubscribe(name)
            except RedisUnavailable as error:
                log.debug("channel_not_unsubscribed", reason=str(error))


def _call(channel: _Channel) -> None:
    for listener in tuple(channel.listeners.values()):
        try:
            listener()
        except Exception:
            log.exception("listener_failed")
