"""Attacks on what goes through Redis: cancelled callers, and whoever else can write there."""

import random
from collections.abc import AsyncGenerator
from typing import Any, cast

import anyio
import pytest
import redis.asyncio

from gateway.bus.buckets import Buckets
from gateway.bus.bus import Bus
from gateway.bus.messages import Envelope
from gateway.bus.sessions import Sessions, new_session_id
from gateway.domain.events import CatalogMoved, Event
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.policy import Limits
from gateway.domain.sessions import SessionRecord

SECRET = b"the secret of all replicas"
TENANTS = [TenantId(f"ten_{number}") for number in range(10)]


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[Bus]:
    async with Bus(redis_url, secret=SECRET) as opened:
        yield opened


def _record(tenant: TenantId) -> SessionRecord:
    return SessionRecord(
        id=new_session_id(), tenant=tenant, subject=tenant, profile=None, protocol_version="2025-11-25", client={}
    )


async def test_cancelled_callers_leave_no_reply_for_the_next(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a connection whose caller was cancelled never gives the next caller another tenant's answer (TEN-5)."""
    monkeypatch.setattr("gateway.bus.sessions._MAX_LEASES", 1)  # nearly every reading goes to Redis
    sessions = Sessions(bus)
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
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(read, chance.choice(records))
            for _ in range(chance.randrange(12)):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    for record in records:
        await read(record)

    assert wrong == 0
    assert right >= len(records)


async def test_events_of_one_tenant_never_reach_another(redis_url: str, bus: Bus) -> None:
    """Ours: among many real and forged messages each listener hears exactly the real ones, of their own tenant."""
    heard: list[Event] = []
    last = anyio.Event()
    bus.subscribe(heard.append)
    bus.subscribe(lambda event: last.set() if event == CatalogMoved(tenant=TENANTS[0], revision=-1) else None)
    envelope = Envelope(namespace="gw", secret=SECRET)
    intruder: Any = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    said: list[Event] = []
    for revision in range(300):
        mine, other = TENANTS[revision % 10], TENANTS[(revision + 1) % 10]
        event = CatalogMoved(tenant=mine, revision=revision)
        said.append(event)
        await bus.publish(event)
        _, message = envelope.seal(event)
        await intruder.publish(f"gw:t:{other}:events", message)
        await intruder.publish(f"gw:t:{mine}:events", b"\0" * 16 + message[16:])
    await intruder.aclose()
    said.append(CatalogMoved(tenant=TENANTS[0], revision=-1))
    await bus.publish(said[-1])
    with anyio.fail_after(10):
        await last.wait()

    assert heard == said


async def test_planted_limits_do_not_break_calls(redis_url: str, bus: Bus) -> None:
    """Ours: nonsense in one tenant's limits in Redis breaks no call of any tenant."""
    intruder: Any = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    bad, good = TENANTS[:2]
    await intruder.hset(f"gw:t:{bad}:rate", mapping={"level": "moon", "at": "-"})
    await intruder.hset(f"gw:t:{bad}:slots", mapping={"ghost": "many until never", "other": "-5 9e99"})
    await intruder.aclose()
    buckets = Buckets(bus)
    for tenant in (bad, good):
        async with buckets.admit(tenant, KeyId("key_1"), Limits()):
            pass
