"""Attacks on data that go through Redis: cancelled callers, and other writers."""

import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, cast

import anyio
import pytest
import redis.asyncio

from gateway.domain.events import CatalogMoved, Event
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.sessions import SessionRecord
from gateway.domain.tenancy.policy import Limits
from gateway.redis.envelopes import Envelope
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.call_limiter import CallLimiter
from gateway.redis.sessions.keys import STANDALONE, SessionKeys
from gateway.redis.sessions.limits import ENTRY_BYTES
from gateway.redis.sessions.records import Sessions, new_session_id
from gateway.redis.sessions.stores import SessionStores, session_stores
from gateway.redis.sessions.stream_log import START

SECRET = b"the secret of all replicas"
TENANTS = [TenantId(f"ten_{number}") for number in range(10)]


@pytest.fixture
async def bus(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[EventBus]:
    """A bus that gives Redis time on a busy machine."""
    monkeypatch.setattr("gateway.redis.client.COMMAND_S", 30.0)
    async with EventBus(redis_url, secret=SECRET) as opened:
        yield opened


@pytest.fixture
async def tasks(bus: EventBus) -> AsyncGenerator[TaskSupervisor]:
    async with TaskSupervisor() as opened:
        yield opened


def _record(tenant: TenantId) -> SessionRecord:
    return SessionRecord(
        id=new_session_id(), tenant=tenant, subject=tenant, profile=None, protocol_version="2025-11-25", client={}
    )


async def test_cancelled_callers_leave_no_reply_for_the_next(
    bus: EventBus, monkeypatch: pytest.MonkeyPatch, tasks: TaskSupervisor
) -> None:
    """Ours: a connection whose caller was cancelled never gives the next caller another tenant's answer (TEN-5)."""
    monkeypatch.setattr("gateway.redis.sessions.records.MAX_LEASES", 1)  # nearly every reading goes to Redis
    sessions = Sessions(bus, spawn=tasks.spawn)
    records = [_record(tenant) for tenant in TENANTS]
    for record in records:
        await sessions.create(record, cap=10)
    chance = random.Random(7)
    wrong, right = 0, 0

    async def read(record: SessionRecord) -> None:
        nonlocal wrong, right
        found = await sessions.find(record.tenant, record.id)
        if found == record:
            right += 1
        else:
            wrong += 1

    for _ in range(150):
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(read, chance.choice(records))
            for _ in range(chance.randrange(12)):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    for record in records:
        await read(record)

    assert wrong == 0
    assert right >= len(records)


async def test_events_of_one_tenant_never_reach_another(redis_url: str, bus: EventBus) -> None:
    """Ours: among many real and forged messages each listener receives exactly the real ones, of its own tenant."""
    received: list[Event] = []
    last = anyio.Event()
    bus.subscribe(received.append)
    bus.subscribe(lambda event: last.set() if event == CatalogMoved(tenant=TENANTS[0], revision=-1) else None)
    envelope = Envelope(namespace="gw", secret=SECRET)
    intruder: Any = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    reported: list[Event] = []
    for revision in range(300):
        mine, other = TENANTS[revision % 10], TENANTS[(revision + 1) % 10]
        event = CatalogMoved(tenant=mine, revision=revision)
        reported.append(event)
        await bus.publish(event)
        _, message = envelope.seal(event)
        await intruder.publish(f"gw:t:{other}:events", message)
        await intruder.publish(f"gw:t:{mine}:events", b"\0" * 16 + message[16:])
    await intruder.aclose()
    reported.append(CatalogMoved(tenant=TENANTS[0], revision=-1))
    await bus.publish(reported[-1])
    with anyio.fail_after(10):
        await last.wait()

    assert received == reported


async def test_planted_limits_do_not_break_calls(redis_url: str, bus: EventBus, tasks: TaskSupervisor) -> None:
    """Ours: nonsense in one tenant's limits in Redis breaks no call of any tenant."""
    intruder: Any = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    bad, good = TENANTS[:2]
    await intruder.hset(f"gw:t:{bad}:rate", mapping={"level": "moon", "at": "-"})
    await intruder.hset(f"gw:t:{bad}:slots", mapping={"ghost": "many until never", "other": "-5 9e99"})
    await intruder.aclose()
    buckets = CallLimiter(bus, spawn=tasks.spawn)
    for tenant in (bad, good):
        async with buckets.admit(tenant, KeyId("key_1"), Limits()):
            pass


@dataclass(frozen=True, slots=True)
class Streams:
    """Two sessions of one tenant and one of another, and a foreign writer in Redis."""

    stores: SessionStores
    intruder: Any
    mine: SessionKeys
    colleague: SessionKeys
    stranger: SessionKeys

    async def entries(self, keys: SessionKeys, stream: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Entries of a stream in Redis."""
        found: list[tuple[bytes, dict[bytes, bytes]]] = await self.intruder.xrange(keys.log(stream))
        return found

    async def plant(self, keys: SessionKeys, stream: str, fields: dict[Any, bytes]) -> None:
        """Add an entry as any writer of this Redis could."""
        await self.intruder.xadd(keys.log(stream), fields)

    async def notified(self, keys: SessionKeys, stream: str) -> list[str | bytes]:
        """Messages that a client of this session would receive."""
        found = await self.stores.logs.read(keys, stream, START)
        assert all(message.is_final is False for message in found.messages)
        return [message.uri or message.text for message in found.messages if message.uri or message.text]


@pytest.fixture
async def streams(redis_url: str, bus: EventBus, tasks: TaskSupervisor) -> AsyncGenerator[Streams]:
    """Each session is subscribed to a resource, and has received a notification."""
    stores, keys = session_stores(bus, spawn=tasks.spawn, idle_s=60), list[SessionKeys]()
    for tenant in (TENANTS[0], TENANTS[0], TENANTS[1]):
        record = _record(tenant)
        await stores.sessions.create(record, cap=10)
        keys.append(stores.sessions.keys(tenant, record.id))
    for each in keys:
        await stores.subscriptions.subscribe(each, "note://1")
        await stores.logs.append(each, STANDALONE, f"for {each.session}".encode())
    for tenant in TENANTS[:2]:
        await stores.subscriptions.publish(tenant, "note://1")
    intruder: Any = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    yield Streams(stores, intruder, *keys)
    await intruder.aclose()


async def test_forged_messages_reach_no_client(streams: Streams) -> None:
    """Ours: forged messages and updates never reach a client, the real ones around them do (TEN-5, SRV-2)."""
    mine, real = streams.mine, f"for {streams.mine.session}".encode()
    (_, reported), (_, update) = await streams.entries(mine, STANDALONE)
    for flag, text in ((b"d", b"forged"), (b"f", b"forged"), (b"u", b"note://2"), (b"x", b"odd"), (b"u", b"\xff")):
        await streams.plant(mine, STANDALONE, {flag: text})
        await streams.plant(mine, STANDALONE, {flag: text, b"m": b""})
        await streams.plant(mine, STANDALONE, {flag: text, b"m": reported[b"m"]})
    await streams.plant(mine, STANDALONE, {b"f": real, b"m": reported[b"m"]})
    await streams.plant(mine, STANDALONE, {b"u": real, b"m": reported[b"m"]})
    await streams.plant(mine, STANDALONE, {b"d": b"note://1", b"m": update[b"m"]})

    assert await streams.notified(mine, STANDALONE) == [real, "note://1"]
    assert streams.stores.logs.refused == 18


async def test_messages_for_another_stream_reach_no_client(streams: Streams) -> None:
    """Ours: an entry counts in its own stream of its own session of its own tenant only (TEN-5, SRV-2)."""
    mine = streams.mine
    await streams.stores.logs.append(mine, "r-request", b"an answer")
    for keys, stream in ((streams.colleague, STANDALONE), (streams.stranger, STANDALONE), (mine, "r-request")):
        for _, fields in await streams.entries(keys, stream):
            await streams.plant(mine, STANDALONE, fields)
    for _, fields in (await streams.entries(mine, STANDALONE))[:2]:
        await streams.plant(mine, "r-request", fields)

    assert await streams.notified(mine, STANDALONE) == [f"for {mine.session}".encode(), "note://1"]
    assert await streams.notified(mine, "r-request") == [b"an answer"]


async def test_pieces_of_a_message_cannot_be_changed_around(streams: Streams) -> None:
    """Ours: a long message is delivered whole as it was written, or not at all; a reader continues behind it
    (TEN-5).
    """
    logs, mine = streams.stores.logs, streams.mine
    await logs.append(mine, "r-long", b"1" * ENTRY_BYTES + b"2" * ENTRY_BYTES + b"3")
    pieces = [fields for _, fields in await streams.entries(mine, "r-long")]
    for order in ((1, 0, 2), (0, 2), (0, 0, 1, 2)):
        for place in order:
            await streams.plant(mine, "r-swapped", pieces[place])
    for place in (0, 1, 2):
        await streams.plant(mine, "r-other", pieces[place])
    await logs.append(mine, "r-swapped", b"whole")

    assert await streams.notified(mine, "r-swapped") == [b"whole"]
    assert await streams.notified(mine, "r-other") == []
    assert [len(text) for text in await streams.notified(mine, "r-long")] == [2 * ENTRY_BYTES + 1]


async def test_unfinished_messages_block_no_reader(streams: Streams) -> None:
    """Ours: an unfinished message in a stream is not read again and again (TEN-5)."""
    for _ in range(32):
        await streams.plant(streams.mine, "r-endless", {b"c": b"more"})

    found = await streams.stores.logs.read(streams.mine, "r-endless", START)

    assert (found.messages, found.has_more) == ([], False)


async def test_entries_without_a_mac_end_no_session(streams: Streams) -> None:
    """Ours: messages of a release before MACs existed are skipped, and the session continues (SRV-2)."""
    mine = streams.mine
    await streams.intruder.delete(mine.log(STANDALONE))
    await streams.plant(mine, STANDALONE, {b"d": b"old"})
    await streams.plant(mine, STANDALONE, {b"u": b"note://1"})
    await streams.stores.logs.append(mine, STANDALONE, b"new")

    assert await streams.notified(mine, STANDALONE) == [b"new"]
