"""The event bus between replicas, on Redis Pub/Sub.

A replica also receives its own events. Redis does not store published events, so a replica misses those published
while its subscription is broken. After every connection, the first one included, the gap listeners are called.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

import anyio
import structlog

from gateway.domain.events import Event
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import RedisUnavailable
from gateway.redis.client import Client, PubSub, Script, redis_errors_translated
from gateway.redis.envelopes import Envelope, MessageRefused
from gateway.redis.limits.limits import BUS_HEARTBEAT_S, CLOSE_S, MAX_SILENCE_S, SUBSCRIBE_S
from gateway.redis.refused_events import RefusedEvents
from gateway.redis.wakeups import Wakeups

log = structlog.get_logger(__name__)

_RETRY_S = (0.05, 1.0)


class EventBus:
    """The bus connection of one replica; open it with `async with`, once.

    Events carry a MAC made with `secret`. MACs made with an older secret are accepted, so that secrets can be rotated
    one replica after the other.
    """

    def __init__(
        self, url: str | ConfiguredSecret, *, secret: bytes, older: Sequence[bytes] = (), namespace: str = "gw"
    ) -> None:
        self.namespace = namespace
        self.replica = secrets.token_hex(8)
        self._client = Client(url)
        self._secrets = (secret, *older)
        self._envelope = Envelope(namespace=namespace, secret=secret, older=older)
        self._heartbeat = f"{namespace}:replica:{self.replica}"
        self._listeners: dict[object, Callable[[Event], None]] = {}
        self._gap_listeners: dict[object, Callable[[], None]] = {}
        self._channels = Wakeups()
        self._refusals = RefusedEvents()
        self._tasks = TaskSupervisor()
        self._subscribed = anyio.Event()
        self._is_live = False
        self._received_at = 0.0
        self._heartbeat_sent_at = 0.0
        self._unsealed_until = 0.0
        self.lag_s: float | None = None
        """Round trip of the last heartbeat message on the replica's own channel, in seconds; None before the first."""

    async def __aenter__(self) -> Self:
        """Subscribe, and wait at most two seconds for the confirmation. Retries continue until the bus is closed."""
        self._tasks.open(self._listen, self._send_heartbeats, self._channels.send_changes)
        try:
            with anyio.move_on_after(SUBSCRIBE_S):
                await self._subscribed.wait()
        except BaseException:  # cancelled: the block does not begin, so nothing else closes the tasks
            await self._tasks.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._tasks.close()
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True):
                await self._client.close()

    @property
    def is_live(self) -> bool:
        """True while the subscription works. A silent connection is detected after some seconds."""
        return self._is_live

    async def publish(self, event: Event) -> None:
        """Send an event to every replica.

        Raises:
            RedisUnavailable: the event may not have reached any replica.
        """
        await self._client.publish(*self._envelope.seal(event))

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call the listener with every event from now on; the returned function unsubscribes it."""
        token = object()
        self._listeners[token] = listener
        return lambda: _forget(self._listeners, token)

    def subscribe_gaps(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener after every connection, because events may have been lost before it.

        The returned function unsubscribes the listener.
        """
        token = object()
        self._gap_listeners[token] = listener
        return lambda: _forget(self._gap_listeners, token)

    def listening(self, channel: str, listener: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """While the block runs, call the listener for messages on the channel, and after every reconnection."""
        return self._channels.listening(channel, listener)

    async def check(self) -> None:
        """Check that Redis responds to commands.

        Raises:
            RedisUnavailable: it does not.
        """
        await self._client.ping()

    async def check_events(self) -> None:
        """Check that Redis delivers events; sends nothing.

        Raises:
            RedisUnavailable: it does not.
        """
        if not self._is_live or self._tasks.failing:
            raise RedisUnavailable("the event subscription is down", retry_after_s=1.0)

    async def reread_url(self) -> bool:
        """Read the URL again from its file; if it has changed, return True and replace all connections."""
        return await self._client.reread()

    @property
    def accepts_unsealed(self) -> bool:
        """True until the time set by `accept_unsealed`; the previous release stores some state without a MAC."""
        return time.time() < self._unsealed_until  # guard: unsealed-for-a-while

    def accept_unsealed(self, until: float) -> None:
        """Accept state without a MAC until this time, in seconds since 1970; a wrong MAC is refused at any time."""
        self._unsealed_until = until

    def derive_all(self, purpose: str) -> Sequence[bytes]:
        """Derive the keys for one purpose, equal on all replicas. The first key makes MACs; every key verifies MACs."""
        return [hmac.digest(secret, purpose.encode(), hashlib.sha256) for secret in self._secrets]

    def script(self, text: str) -> Script:
        """Return a callable Lua script for this Redis."""
        return self._client.script(text)

    async def _listen(self) -> None:
        pause = _RETRY_S[0]
        while True:
            began = time.monotonic()
            try:
                await self._receive_until_failure()
            except RedisUnavailable as error:
                self._is_live = False
                await self._client.recover(error)
                log.warning("bus_lost", reason=str(error.__cause__ or error))
            except Exception:
                log.exception("bus_failed")
            finally:
                self._is_live = False
            pause = _RETRY_S[0] if time.monotonic() - began > _RETRY_S[1] else min(pause * 2, _RETRY_S[1])
            await anyio.sleep(pause)

    async def _receive_until_failure(self) -> None:
        """Receive on one connection until it fails."""
        listener = self._client.listener()
        try:
            with redis_errors_translated(), anyio.fail_after(SUBSCRIBE_S):
                await listener.psubscribe(self._envelope.pattern)
                await listener.subscribe(self._heartbeat)
                await self._await_confirmation(listener)
            self._mark_subscribed()
            with redis_errors_translated(), anyio.fail_after(SUBSCRIBE_S):
                await self._channels.attach(listener)
            while True:
                with redis_errors_translated():
                    message = await listener.get_message(timeout=BUS_HEARTBEAT_S)
                now = time.monotonic()
                if message is not None:
                    self._received_at = now
                    self._receive(message)
                elif now - self._received_at > MAX_SILENCE_S:
                    raise RedisUnavailable("Redis does not respond on an open connection")
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True), redis_errors_translated():
                await self._channels.detach(listener)

    async def _await_confirmation(self, listener: PubSub) -> None:
        missing = {"psubscribe", "subscribe"}
        while missing:
            message = await listener.get_message(timeout=SUBSCRIBE_S)
            if message is not None:
                missing.discard(message["type"])

    def _mark_subscribed(self) -> None:
        self._received_at = time.monotonic()
        self._is_live = True
        is_resumed = self._subscribed.is_set()
        self._subscribed.set()
        for listener in tuple(self._gap_listeners.values()):
            _call_logged(listener)
        if is_resumed:
            log.warning("bus_resumed")

    def _receive(self, message: dict[str, Any]) -> None:
        channel: bytes = message["channel"]
        match message["type"]:
            case "pmessage":
                self._deliver_raw(channel, message["data"])
            case "message" if channel == self._heartbeat.encode():
                if self._heartbeat_sent_at:
                    self.lag_s, self._heartbeat_sent_at = time.monotonic() - self._heartbeat_sent_at, 0.0
            case "message":
                self._channels.call(channel)
            case "subscribe":
                self._channels.confirm(channel)
            case _:
                pass

    def _deliver_raw(self, channel: bytes, data: bytes) -> None:
        try:
            event = self._envelope.open(channel, data)
        except MessageRefused as error:
            self._refusals.note(channel, str(error))
            return
        if event is None:
            log.info("event_unknown", channel=ascii(channel))
            return
        for listener in tuple(self._listeners.values()):
            _call_logged(listener, event)

    async def _send_heartbeats(self) -> None:
        """Publish on this replica's own channel every two seconds, so that a silent connection counts as broken."""
        while True:
            await anyio.sleep(BUS_HEARTBEAT_S)
            try:
                self._heartbeat_sent_at = time.monotonic()
                await self._client.publish(self._heartbeat, b"")
            except RedisUnavailable:
                log.debug("heartbeat_failed")


def _forget(listeners: dict[object, Any], token: object) -> None:
    listeners.pop(token, None)


def _call_logged(listener: Callable[..., None], *arguments: object) -> None:
    try:
        listener(*arguments)
    except Exception:
        log.exception("listener_failed")
