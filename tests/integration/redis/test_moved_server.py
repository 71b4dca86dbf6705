"""A Redis that lives on and is no longer the right one, behind a name that moves: a fail-over of a managed service."""

import contextlib
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from gateway.domain.events import CatalogMoved, Event
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.redis.sessions.stores import SessionStores, session_stores
from tests.deploy.sockets import Relay
from tests.integration.redis.conftest import ACME, SECRET, OwnRedis, make_record
from tests.support.replicas import commanding, until


@dataclass(frozen=True, slots=True)
class Moving:
    """A replica of the gateway that knows Redis by a name, and the two servers that the name leads to."""

    bus: EventBus
    heartbeat: ReplicaHeartbeat
    stores: SessionStores
    old: OwnRedis
    new: OwnRedis
    relay: Relay

    def demote(self) -> None:
        """Make the old server a replica of one that cannot be reached."""
        with commanding(self.old.url) as command:
            command("REPLICAOF", "127.0.0.1", "1")

    def move(self) -> None:
        """Let the name lead to the new server."""
        self.relay.move(self.new.url.removeprefix("unix://"))


@pytest.fixture
def two_redis() -> Iterator[tuple[OwnRedis, OwnRedis]]:
    """Not started yet."""
    with tempfile.TemporaryDirectory(prefix="gwr-") as old, tempfile.TemporaryDirectory(prefix="gwr-") as new:
        both = OwnRedis(Path(old)), OwnRedis(Path(new))
        yield both
        for server in both:
            server.kill()


@pytest.fixture
async def moving(two_redis: tuple[OwnRedis, OwnRedis]) -> AsyncGenerator[Moving]:
    """Both servers run, and the replica is at the old one."""
    old, new = two_redis
    await old.start()
    await new.start()
    relay = Relay(old.url.removeprefix("unix://"))
    async with (
        relay.listening() as port,
        EventBus(f"redis://127.0.0.1:{port}/0", secret=SECRET) as bus,
        TaskSupervisor() as tasks,
        ReplicaHeartbeat(bus) as heartbeat,
    ):
        stores = session_stores(bus, spawn=tasks.spawn, idle_s=60)
        await stores.sessions.create(make_record(), cap=100)
        yield Moving(bus, heartbeat, stores, old, new, relay)


async def _demoted(moving: Moving) -> None:
    moving.demote()


async def _without_its_primary(moving: Moving) -> None:
    moving.demote()
    with commanding(moving.old.url) as command:
        command("CONFIG", "SET", "replica-serve-stale-data", "no")


@asynccontextmanager
async def _received(bus: EventBus) -> AsyncGenerator[list[Event]]:
    received: list[Event] = []
    unsubscribe = bus.subscribe(received.append)
    yield received
    unsubscribe()


@pytest.mark.parametrize("demote", [_demoted, _without_its_primary])
async def test_a_server_that_refuses_writes_is_left_at_once(
    moving: Moving, demote: Callable[[Moving], Awaitable[None]]
) -> None:
    """Ours: READONLY and MASTERDOWN make the name resolve again, for commands and events (SRV-4, SCL-2)."""
    async with EventBus(moving.new.url, secret=SECRET) as other, _received(moving.bus) as received:
        moving.move()
        await demote(moving)
        await moving.stores.sessions.create(make_record(), cap=100)  # the first attempt succeeds

        async def is_received() -> bool:
            await other.publish(CatalogMoved(tenant=ACME, revision=7))
            return bool(received)

        await until(is_received)
        with anyio.fail_after(10):
            await moving.bus.check()
            await moving.heartbeat.check()
    with commanding(moving.new.url) as command:
        assert command("KEYS", "gw:*sess*")


async def test_a_server_that_is_not_ready_is_left(moving: Moving) -> None:
    """Ours: LOADING makes the name resolve again (SRV-4, SCL-2)."""
    await moving.old.restart_slowly()
    with pytest.raises(RedisUnavailable):
        await moving.stores.sessions.create(make_record(), cap=100)
    moving.move()

    async def is_created() -> bool:
        with contextlib.suppress(RedisUnavailable):
            await moving.stores.sessions.create(make_record(), cap=100)
            return True
        return False

    await until(is_created)
    with commanding(moving.new.url) as command:
        assert command("KEYS", "gw:*sess*")


async def test_a_server_without_a_successor_costs_few_connections(moving: Moving) -> None:
    """Ours: while the name still leads to the old server, commands are refused, not connections made (SRV-4)."""
    moving.demote()
    before = moving.relay.accepted
    for _ in range(200):
        with pytest.raises(RedisUnavailable, match="read-only replica"):
            await moving.stores.sessions.create(make_record(), cap=100)

    async def is_noticed() -> bool:
        try:
            await moving.heartbeat.check()
        except RedisUnavailable:
            return True
        return False

    await until(is_noticed)
    assert moving.relay.accepted - before < 100
    moving.move()

    async def is_over() -> bool:
        return not await is_noticed()

    await until(is_over)
