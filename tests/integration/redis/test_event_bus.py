"""Events between replicas, over a real Redis that comes and goes."""

import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from random import Random
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import pytest
from structlog.testing import capture_logs

from gateway.domain.events import CatalogMoved, Event, SessionEnded
from gateway.domain.identifiers import TenantId
from gateway.errors import RedisUnavailable
from gateway.redis.envelopes import Envelope
from gateway.redis.event_bus import EventBus
from tests.deploy.sockets import Relay
from tests.integration.redis.conftest import OwnRedis
from tests.support.replicas import commanding, until

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SECRET = b"the secret of all replicas"
ROUNDS = 12
CHANNELS = 300
AT_ONCE_S = 0.004
"""The time in which channels come and go and the connection is lost, which takes about as long."""


class Received:
    """A listener that can be waited for."""

    def __init__(self, bus: EventBus) -> None:
        self.events: list[Event] = []
        self._changed = anyio.Event()
        self.unsubscribe = bus.subscribe(self._receive)

    def _receive(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_for(self, event: Event) -> None:
        with anyio.fail_after(10):
            while event not in self.events:
                await self._changed.wait()


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    async with EventBus(redis_url, secret=SECRET) as opened:
        yield opened


async def _publish_until_received(bus: EventBus, received: Received, event: Event) -> None:
    """Send it again until the channel is open."""
    with anyio.fail_after(20):
        while event not in received.events:
            with contextlib.suppress(RedisUnavailable):
                await bus.publish(event)
            await anyio.sleep(0.05)


async def test_every_replica_receives_every_event(redis_url: str, bus: EventBus) -> None:
    """Ours: an event reaches all replicas, also the sender, of all tenants."""
    async with EventBus(redis_url, secret=SECRET) as other:
        here, there = Received(bus), Received(other)
        for event in (CatalogMoved(tenant=ACME, revision=3), SessionEnded(tenant=GLOBEX, session="s")):
            await bus.publish(event)
            await here.wait_for(event)
            await there.wait_for(event)

    assert here.events == there.events


async def test_events_keep_the_order_of_their_replica(bus: EventBus) -> None:
    """Ours: one replica's events are not reordered."""
    received = Received(bus)
    events = [CatalogMoved(tenant=ACME, revision=revision) for revision in range(200)]
    for event in events:
        await bus.publish(event)
    await received.wait_for(events[-1])

    assert received.events == events


async def test_a_closed_subscription_receives_nothing(bus: EventBus) -> None:
    """Ours: a closed part is not called any more; ending twice does no harm."""
    gone, here = Received(bus), Received(bus)
    gone.unsubscribe()
    gone.unsubscribe()
    event = CatalogMoved(tenant=ACME, revision=1)
    await bus.publish(event)
    await here.wait_for(event)

    assert gone.events == []


async def test_a_listener_that_breaks_does_not_stop_the_others(bus: EventBus) -> None:
    """Ours: its error is logged, the next listener and the next event come through."""

    def broken(_: Event) -> None:
        raise ValueError("a bug")

    bus.subscribe(broken)
    received = Received(bus)
    with capture_logs() as lines:
        for revision in (1, 2):
            event = CatalogMoved(tenant=ACME, revision=revision)
            await bus.publish(event)
            await received.wait_for(event)

    assert [line["event"] for line in lines] == ["listener_failed"] * 2


async def test_namespaces_do_not_receive_each_others_events(redis_url: str, bus: EventBus) -> None:
    """Ours: one Redis can serve several gateways."""
    async with EventBus(redis_url, secret=SECRET, namespace="gw:t:x") as other:
        here, there = Received(bus), Received(other)
        event = CatalogMoved(tenant=ACME, revision=1)
        await bus.publish(event)
        await here.wait_for(event)
        await other.publish(event)
        await there.wait_for(event)

    assert len(here.events) == len(there.events) == 1


async def test_a_forged_message_is_dropped_and_logged(bus: EventBus, raw: Any) -> None:
    """Ours: a foreign publisher in this Redis is not believed (TEN-5)."""
    received = Received(bus)
    channel, good = Envelope(namespace="gw", secret=SECRET).seal(CatalogMoved(tenant=ACME, revision=9))
    with capture_logs() as lines:
        await raw.publish("gw:t:ten_globex:events", good)
        await raw.publish(channel, b"\0" * 16 + good[16:])
        await raw.publish(channel, b"")
        await raw.publish("gw:t:\xff\n:events", b"{}")
        event = CatalogMoved(tenant=ACME, revision=1)
        await bus.publish(event)
        await received.wait_for(event)

    assert received.events == [event]
    assert [line["event"] for line in lines] == ["event_refused"] * 4


async def test_a_restarted_redis_is_found_again(own_redis: OwnRedis) -> None:
    """Ours: events flow again by themselves, and caches are notified that they may have missed one."""
    await own_redis.start()
    async with EventBus(own_redis.url, secret=SECRET) as bus:
        gap = anyio.Event()
        bus.subscribe_gaps(gap.set)
        received = Received(bus)
        await bus.check()
        own_redis.kill()
        with pytest.raises(RedisUnavailable):
            await bus.publish(CatalogMoved(tenant=ACME, revision=1))
        with pytest.raises(RedisUnavailable):
            await bus.check()
        assert not gap.is_set()
        await own_redis.start()
        with anyio.fail_after(10):
            await gap.wait()
        await bus.check()
        event = CatalogMoved(tenant=ACME, revision=2)
        await bus.publish(event)
        await received.wait_for(event)


async def test_a_redis_that_hangs_is_noticed(own_redis: OwnRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a connection that stays open and silent is closed, and made again when Redis responds."""
    monkeypatch.setattr("gateway.redis.event_bus.BUS_HEARTBEAT_S", 0.1)
    monkeypatch.setattr("gateway.redis.event_bus.MAX_SILENCE_S", 0.5)
    await own_redis.start()
    async with EventBus(own_redis.url, secret=SECRET) as bus:
        gap = anyio.Event()
        bus.subscribe_gaps(gap.set)
        own_redis.freeze()
        await until(lambda: not bus.is_live)
        own_redis.thaw()
        with anyio.fail_after(10):
            await gap.wait()
        received = Received(bus)
        await _publish_until_received(bus, received, CatalogMoved(tenant=ACME, revision=1))


async def test_a_redis_that_accepts_connections_and_does_not_answer_is_noticed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a lost subscription whose new connection gets no answer is down, and is restored when Redis answers."""
    monkeypatch.setattr("gateway.redis.client.COMMAND_S", 0.2)
    relay = Relay(urlsplit(redis_url).path)
    async with relay.listening() as port, EventBus(f"redis://127.0.0.1:{port}/1", secret=SECRET) as bus:
        await bus.check()
        relay.mute()
        await until(lambda: not bus.is_live)
        relay.speak()
        await until(lambda: bus.is_live)


async def test_a_connection_lost_while_channels_come_and_go_is_replaced_once(
    own_redis: OwnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a listener that begins or ends at that moment gets no error, and the replica receives events again."""
    monkeypatch.setattr("gateway.redis.event_bus._RETRY_S", (0.01, 0.02))
    chance = Random(ROUNDS)
    await own_redis.start()
    async with EventBus(f"{own_redis.url}?db=1", secret=SECRET) as bus:
        received = Received(bus)

        async def listen(channel: str) -> None:
            await anyio.sleep(chance.random() * AT_ONCE_S)
            async with bus.listening(channel, lambda: None):
                await anyio.sleep(chance.random() * AT_ONCE_S)

        with commanding(own_redis.url) as command, capture_logs() as lines:
            for number in range(ROUNDS):
                async with anyio.create_task_group() as group:
                    for name in "abcdef":
                        group.start_soon(listen, name)
                    await anyio.sleep(chance.random() * AT_ONCE_S)
                    command("CLIENT", "KILL", "TYPE", "pubsub")
                await _publish_until_received(bus, received, CatalogMoved(tenant=ACME, revision=number))
            subscribed = cast(bytes, command("CLIENT", "LIST", "TYPE", "pubsub"))
    assert len(subscribed.splitlines()) == 1
    assert Counter(line["event"] for line in lines)["bus_lost"] == ROUNDS


async def test_a_bus_closes_while_redis_is_frozen_and_channels_come_and_go(own_redis: OwnRedis) -> None:
    """Ours: a subscription that Redis does not read holds up neither the end of the bus nor its own task."""
    longer_than_any_buffer = "c" * 4_000_000
    await own_redis.start()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, EventBus(own_redis.url, secret=SECRET) as bus:
            await bus.check()

            async def listen(number: int) -> None:
                async with bus.listening(f"{longer_than_any_buffer}{number}", lambda: None):
                    pass

            own_redis.freeze()
            for number in range(3):
                group.start_soon(listen, number)
            await anyio.wait_all_tasks_blocked()
        assert not bus.is_live
        own_redis.kill()  # what was not sent keeps its socket until then
        await anyio.wait_all_tasks_blocked()


async def test_silence_alone_is_no_failure(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a bus without events receives its own heartbeat and stays connected."""
    monkeypatch.setattr("gateway.redis.event_bus.BUS_HEARTBEAT_S", 0.05)
    monkeypatch.setattr("gateway.redis.event_bus.MAX_SILENCE_S", 0.4)
    with capture_logs() as lines:
        async with EventBus(redis_url, secret=SECRET) as bus:
            await anyio.sleep(1.0)
            await bus.check()

    assert lines == []


async def test_a_bus_opens_without_redis_and_finds_it_later(own_redis: OwnRedis) -> None:
    """Ours: a replica that starts while Redis is away keeps trying; it reports that it is not ready."""
    async with EventBus(own_redis.url, secret=SECRET) as bus:
        with pytest.raises(RedisUnavailable):
            await bus.check()
        received = Received(bus)
        await own_redis.start()
        await _publish_until_received(bus, received, CatalogMoved(tenant=ACME, revision=1))
        await bus.check()


async def test_channels_that_open_together_are_subscribed_together(redis_url: str, bus: EventBus) -> None:
    """A fixed bug: each stream waited for the subscriptions of all earlier ones, so ended streams kept their places."""
    opened, leave, called = 0, anyio.Event(), Counter[int]()

    async def follow(number: int) -> None:
        nonlocal opened
        async with bus.listening(f"gw:many:{number}", lambda: called.update([number])):
            opened += 1
            await leave.wait()

    with commanding(redis_url) as command:

        def sent() -> dict[str, int]:
            counted = cast(dict[str, dict[str, int]], command("INFO", "commandstats"))
            return {name.removeprefix("cmdstat_"): each["calls"] for name, each in counted.items()}

        before = sent()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for number in range(CHANNELS):
                    group.start_soon(follow, number)
                await until(lambda: opened == CHANNELS)
                for number in range(CHANNELS):
                    command("PUBLISH", f"gw:many:{number}", "")
                await until(lambda: len(called) == CHANNELS)
                leave.set()
        await until(lambda: command("PUBSUB", "CHANNELS", "gw:many:*") == [])
        after = sent()

    assert {name: after[name] - before.get(name, 0) for name in ("subscribe", "unsubscribe")} == {
        "subscribe": 1,
        "unsubscribe": 1,
    }
