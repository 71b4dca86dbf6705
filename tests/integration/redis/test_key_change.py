"""Secret keys are changed one replica after the other; meanwhile both kinds believe each other."""

from collections.abc import AsyncGenerator, Sequence

import anyio
import pytest
from structlog.testing import capture_logs

from gateway.domain.events import CatalogMoved, Event
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.redis.audit_spool import AuditSpool
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.stores import session_stores
from gateway.redis.sessions.stream_log import START
from tests.integration.redis.conftest import ACME, make_record
from tests.support.replicas import until

OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture
async def both(redis_url: str) -> AsyncGenerator[Sequence[EventBus]]:
    """A replica that signs with the new key already, and one that still signs with the old one; both know both."""
    async with (
        EventBus(redis_url, secret=NEW, older=[OLD]) as here,
        EventBus(redis_url, secret=OLD, older=[NEW]) as there,
    ):
        yield here, there


async def test_events_are_received(both: Sequence[EventBus]) -> None:
    """Ours: no event that is sent during the change is lost (TEN-4, RES-4)."""
    for revision, (publisher, subscriber) in enumerate((both, both[::-1])):
        published = CatalogMoved(tenant=ACME, revision=revision)
        arrived = anyio.Event()

        def note(event: Event, published: Event = published, arrived: anyio.Event = arrived) -> None:
            if event == published:  # its own event of the round before may still arrive
                arrived.set()

        leave = subscriber.subscribe(note)
        await publisher.publish(published)
        with anyio.fail_after(10):
            await arrived.wait()
        leave()


async def test_streams_of_sessions_continue(both: Sequence[EventBus]) -> None:
    """Ours: a message that one replica wrote for a client is sent by the other (TEN-4, SRV-2)."""
    for writer, reader in (both, both[::-1]):
        spawn = TaskSupervisor().spawn  # nothing is started
        writing, reading = (session_stores(each, spawn=spawn, idle_s=60) for each in (writer, reader))
        record = make_record()
        await writing.sessions.create(record, cap=10)
        keys = writing.sessions.keys(ACME, record.id)
        await writing.logs.append(keys, "r-1", b"said")
        found = await reading.logs.read(keys, "r-1", START)
        assert [message.text for message in found.messages] == [b"said"]


async def test_a_session_in_use_outlives_the_older_key(both: Sequence[EventBus], redis_url: str) -> None:
    """Ours: a record of the older secret key is sealed again when it is read (IDN-5, SRV-2)."""
    async with TaskSupervisor() as tasks, EventBus(redis_url, secret=NEW) as later:
        here, there, alone = (session_stores(each, spawn=tasks.spawn, idle_s=60) for each in (*both, later))
        record = make_record()
        await there.sessions.create(record, cap=10)
        assert await alone.sessions.find(ACME, record.id) is None
        assert await here.sessions.find(ACME, record.id) == record

        async def is_sealed_again() -> bool:
            return await alone.sessions.find(ACME, record.id) == record

        await until(is_sealed_again)
        assert await here.sessions.find(ACME, record.id) == record


async def test_waiting_entries_come_back(both: Sequence[EventBus]) -> None:
    """Ours: an entry of the trail is none the less ours for its older key, and a stranger's is none (TEN-4, SRV-4)."""
    here, there = AuditSpool(both[0], secret=NEW, older=[OLD]), AuditSpool(both[1], secret=OLD, older=[NEW])
    stranger = AuditSpool(both[0], secret=b"x" * 32)
    for overflow in (here, there, stranger):
        overflow.belong_to("one")
    await there.keep([b"of the old"])
    await stranger.keep([b"of nobody"])
    await here.keep([b"of the new"])
    with capture_logs() as lines:
        assert [entry for _, entry in await here.peek(10)] == [b"of the old", b"of the new"]
    assert [line["event"] for line in lines] == ["audit_overflow_refused"]
