"""Receivers and neighbours that misbehave: one tenant's dead endpoint, endless answers, lost replicas, removals."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from gateway.domain.updates.webhook_endpoints import DeliveryState
from gateway.store import jobs
from gateway.store.engine import Store
from gateway.store.notifications import deliveries
from gateway.store.notifications.deliveries import enqueue
from tests.behaviour.notifications.conftest import KINDS, REQUESTED, Outbox, make_outbox
from tests.support.primitives import add
from tests.support.stand import Stand

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def test_a_dead_endpoint_delays_no_other_tenant(outbox: Outbox, stand: Stand, events: Store) -> None:
    """Ours: ten thousand due deliveries of one tenant, on endpoints that never answer, are not in the way (TEN-3)."""
    other = await make_outbox(stand, events, "other")
    outbox.receiver.gate = asyncio.Event()
    for number in range(4):
        await outbox.endpoint(f"dead{number}")
        await outbox.fill(f"dead{number}", 2_500, prefix=f"m{number}_")
    with anyio.fail_after(30):
        while len(outbox.receiver.seen) < 4:
            await outbox.receiver.arrived.wait()
            outbox.receiver.arrived.clear()
    body = {"name": "chat", "url": f"{stand.upstreams[1].url}/other", "kinds": KINDS}
    await add(other.gateway, other.slug, "webhook-endpoints", body)
    for number in range(5):
        await other.raise_event(id=f"apr_{number}")
    delivered = await other.settled(*["delivered"] * 5)

    assert outbox.receiver.gate is not None
    assert len(outbox.receiver.seen) == 4, "one attempt at each of the endpoints that do not answer"
    assert len(stand.upstreams[1].seen) == len({one["id"] for one in delivered}) == 5


async def test_an_attempt_that_its_replica_did_not_end_is_repeated(outbox: Outbox) -> None:
    """Ours: at least once: the lease of a dead replica lapses, and the delivery has its id still (SAF-3)."""
    made = await outbox.endpoint(enabled=False)
    tenant, store, now = outbox.tenant, outbox.store, datetime.now(UTC)
    delivery = deliveries.new_delivery(made["id"], REQUESTED, {"id": "apr_1"}, now=now)
    async with store.transaction(tenant) as db:
        await deliveries.insert(tenant, db, delivery)
    async with store.transaction(tenant) as db:
        first = await deliveries.claim(tenant, db, made["id"], now=now, until=now + timedelta(minutes=2), limit=5)
    async with store.transaction(tenant) as db:
        assert await deliveries.claim(tenant, db, made["id"], now=now, until=now, limit=5) == []
        later = now + timedelta(minutes=3)
        [second] = await deliveries.claim(tenant, db, made["id"], now=later, until=later, limit=5)
        ended = replace(second, state=DeliveryState.DELIVERED, attempts=1)
        assert await deliveries.settle(tenant, db, ended, seen=second)
        assert not await deliveries.settle(tenant, db, ended, seen=first[0]), "the dead replica changes nothing"

    assert [one.id for one in first] == [second.id] == [delivery.id]


async def test_two_workers_claim_different_deliveries(outbox: Outbox) -> None:
    """PostgreSQL: `skip locked`: neither waits for the other, and none is sent twice (SAF-3)."""
    made = await outbox.endpoint(enabled=False)
    await outbox.fill("chat", 10)
    tenant, now = outbox.tenant, datetime.now(UTC) + timedelta(seconds=1)
    until = now + timedelta(minutes=2)
    async with outbox.store.transaction(tenant) as one, outbox.store.transaction(tenant) as two:
        first = await deliveries.claim(tenant, one, made["id"], now=now, until=until, limit=5)
        second = await deliveries.claim(tenant, two, made["id"], now=now, until=until, limit=5)

    assert len({delivery.id for delivery in (*first, *second)}) == 10


async def test_an_endpoint_removed_meanwhile_fails_no_event(outbox: Outbox) -> None:
    """Ours: the transaction of an approval commits, whatever happens to endpoints at the same moment (SAF-3)."""
    await outbox.endpoint()

    async def remove() -> None:
        (await outbox.gateway.admin.delete(f"{outbox.path}/chat")).raise_for_status()

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(outbox.raise_event)
        tasks.start_soon(remove)
        for _ in range(5):
            tasks.start_soon(outbox.raise_event)

    assert await outbox.raise_event() == 0
    assert (await outbox.gateway.admin.get(f"{outbox.path}/chat/deliveries")).status_code == 404


async def test_a_removed_tenant_leaves_no_delivery(outbox: Outbox) -> None:
    """Ours: endpoints, deliveries and jobs go with their tenant (TEN-4)."""
    outbox.receiver.status = 500
    await outbox.endpoint()
    await outbox.raise_event()
    await outbox.settled("pending")
    (await outbox.gateway.admin.delete(f"/tenants/{outbox.slug}")).raise_for_status()
    async with outbox.store.unscoped() as db:
        due = await jobs.page(db, until=datetime.now(UTC) + timedelta(days=30), limit=100, of_each=100)
    assert [job for job in due if job.tenant == outbox.tenant] == []


async def test_an_event_with_a_large_payload_is_a_mistake(outbox: Outbox) -> None:
    """Ours: a payload is bounded where it is made; the outbox refuses larger ones (SAF-3)."""
    await outbox.endpoint()
    with pytest.raises(ValueError, match="bytes"):
        async with outbox.store.transaction(outbox.tenant) as db:
            await enqueue(outbox.tenant, db, REQUESTED, {"text": "x" * 70_000})
    assert await outbox.log() == []


async def _endless_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while not writer.is_closing():  # uvloop: a write to a closed connection is a RuntimeError
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


async def _trickled_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while not writer.is_closing():  # uvloop: a write to a closed connection is a RuntimeError
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.2)  # the pace of the attack


async def _endless_header(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():  # uvloop: a write to a closed connection is a RuntimeError
        writer.write(b"x-more: " + b"x" * 1000 + b"\r\n")
        await writer.drain()


async def _broken_off(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 20")
    await writer.drain()


async def _no_http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff\x00\xffSSH-2.0\r\n\r\n")
    await writer.drain()


async def _odd_status(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 999 <script>\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def _listening(answer: Answer) -> AsyncGenerator[str]:
    """The host and port of a receiver that answers so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (_endless_body, "delivered"),
        (_trickled_body, "delivered"),
        (_endless_header, "pending"),
        (_broken_off, "pending"),
        (_no_http, "pending"),
        (_odd_status, "pending"),
    ],
)
async def test_a_hostile_receiver_costs_one_attempt(outbox: Outbox, answer: Answer, state: str) -> None:
    """Ours: the status decides; the rest of an answer is read within bounds or not at all (SAF-3)."""
    async with _listening(answer) as authority:
        entry = {"allow": [authority]}
        (await outbox.gateway.admin.put(f"/tenants/{outbox.slug}/egress", json=entry)).raise_for_status()
        await outbox.endpoint("odd", url=f"http://{authority}/")
        await outbox.raise_event()
        [delivery] = await outbox.settled(state, name="odd")

    assert delivery["attempts"] == 1
    assert "<" not in (delivery["error"] or "")
