"""The streams of sessions in a real Redis: written by one replica, read by another, ended once."""

from typing import Any

import pytest

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import STANDALONE
from gateway.redis.sessions.limits import ENTRY_BYTES
from gateway.redis.sessions.stores import session_stores
from gateway.redis.sessions.stream_log import START, LoggedMessage, RequestOwner
from tests.integration.redis.conftest import GLOBEX, SECRET, Two, make_record
from tests.support.replicas import until


async def _texts(two: Two, stream: str, after: str = START) -> list[bytes]:
    found = await two.there.logs.read(two.keys, stream, after)
    return [message.text for message in found.messages]


async def test_a_reader_continues_after_its_place(two: Two) -> None:
    """Ours: nothing is read twice, nothing is left out (SRV-2)."""
    first = await two.here.logs.append(two.keys, STANDALONE, b"first")
    await two.here.logs.append(two.keys, STANDALONE, b"second")
    assert first is not None

    assert await _texts(two, STANDALONE, first) == [b"second"]


@pytest.mark.parametrize("size", [0, 1, ENTRY_BYTES, ENTRY_BYTES + 1, 40 * ENTRY_BYTES + 7])
async def test_a_message_of_any_size_comes_whole(two: Two, size: int) -> None:
    """Ours: a message that is longer than an entry takes several and is still one message (SRV-2)."""
    text = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    await two.here.logs.append(two.keys, "r-large", b"before")
    await two.here.logs.append(two.keys, "r-large", text)
    last = await two.here.logs.append(two.keys, "r-large", b"after", is_final=True)

    seen: list[LoggedMessage] = []
    after = START
    while not seen or not seen[-1].is_final:
        found = await two.there.logs.read(two.keys, "r-large", after)
        seen += found.messages
        after = seen[-1].id

    assert [message.text for message in seen] == [b"before", text, b"after"]
    assert seen[-1].id == last


async def test_many_messages_are_read_in_portions(two: Two) -> None:
    """Ours: messages that one replica writes another reads, once and in order; no read holds a whole long stream
    (SRV-2).
    """
    for number in range(100):
        await two.here.logs.append(two.keys, STANDALONE, b"%d" % number)

    seen: list[bytes] = []
    after = START
    while True:
        found = await two.there.logs.read(two.keys, STANDALONE, after)
        assert len(found.messages) <= 32
        seen += [message.text for message in found.messages]
        after = found.messages[-1].id if found.messages else after
        if not found.has_more:
            break

    assert seen == [b"%d" % number for number in range(100)]


async def test_after_the_answer_nothing_is_added(two: Two) -> None:
    """Ours: the first to end a request's stream wins (SRV-3)."""
    logs = two.here.logs
    assert await logs.append(two.keys, "r-1", b"lost", is_final=True) is not None

    assert await two.there.logs.append(two.keys, "r-1", b"late", is_final=True) is None
    assert await logs.append(two.keys, "r-1", b"later") is None
    assert await _texts(two, "r-1") == [b"lost"]


async def test_an_ended_session_takes_nothing(two: Two) -> None:
    """Ours: nothing of a session is written once it has ended (RES-6)."""
    await two.here.sessions.remove(two.record.tenant, two.record.id)

    assert await two.there.logs.append(two.keys, STANDALONE, b"late") is None
    assert await two.there.logs.open(two.keys, "r-1", b"1") is None
    assert await two.there.logs.take_over(two.keys) is None


async def test_nothing_is_left_of_a_session(two: Two, raw: Any) -> None:
    """Ours: with the session all that belongs to it is gone from Redis (RES-6)."""
    here = two.here
    await here.logs.open(two.keys, "r-1", b"1")
    await here.logs.append(two.keys, "r-1", b"asked", request_id="q")
    await here.logs.append(two.keys, STANDALONE, b"told")
    await here.logs.take_over(two.keys)
    await here.preferences.set_level(two.keys, "error")
    await here.subscriptions.subscribe(two.keys, "note://1")
    assert len([key async for key in raw.scan_iter(f"*{two.record.id}*")]) >= 6

    await here.sessions.remove(two.record.tenant, two.record.id)

    left = [key async for key in raw.scan_iter("*") if b":alive" not in key]
    assert left == []


async def test_a_session_that_is_not_used_leaves_nothing(redis_url: str, raw: Any) -> None:
    """Ours: everything of a session expires with it (RES-6)."""
    async with EventBus(redis_url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        stores, record = session_stores(bus, spawn=tasks.spawn, idle_s=1), make_record()
        await stores.sessions.create(record, cap=10)
        keys = stores.sessions.keys(record.tenant, record.id)
        await stores.logs.open(keys, "r-1", b"1")
        await stores.logs.append(keys, STANDALONE, b"told")
        await stores.preferences.set_level(keys, "error")
        await stores.subscriptions.subscribe(keys, "note://1")

        async def is_empty() -> bool:
            return not [key async for key in raw.scan_iter("*")]

        await until(is_empty, seconds=10)


async def test_a_use_keeps_all_of_a_session(two: Two, raw: Any) -> None:
    """Ours: a session's data live exactly as long as the session (SRV-1)."""
    await two.here.subscriptions.subscribe(two.keys, "note://1")
    await two.here.logs.append(two.keys, STANDALONE, b"told")
    await two.here.preferences.set_level(two.keys, "error")
    for key in [key async for key in raw.scan_iter("*") if b":alive" not in key]:
        await raw.pexpire(key, 5000)

    assert await two.there.sessions.find(two.record.tenant, two.record.id) is not None

    lives = {key: await raw.pttl(key) async for key in raw.scan_iter("*") if b":alive" not in key}
    assert all(life > 50_000 for life in lives.values()), lives


async def test_a_running_request_is_found_and_its_id_is_taken(two: Two) -> None:
    """Ours: any replica finds the replica that answers a request; a second request of that id is distinguished
    (SRV-1).
    """
    here, there = two.here.logs, two.there.logs
    assert await here.open(two.keys, "r-one", b'"seven"')

    assert await there.find_owner(two.keys, "r-one") == RequestOwner(replica=here.replica, request=b'"seven"')
    assert await there.find_owner(two.keys, "r-other") is None
    assert await there.open(two.keys, "r-two", b'"seven"') == ""
    assert await there.open(two.keys, "r-three", b"7")

    await here.append(two.keys, "r-one", b"done", is_final=True)
    assert await there.open(two.keys, "r-four", b'"seven"')


async def test_a_dead_replica_is_noticed(two: Two, raw: Any) -> None:
    """Ours: a stream knows whether the replica that writes it is alive (SRV-3)."""
    await two.here.logs.open(two.keys, "r-one", b"1")
    run = await two.there.logs.find_owner(two.keys, "r-one")
    assert run is not None
    assert (await two.there.logs.read(two.keys, "r-one", START, run=run)).is_run

    unowned = RequestOwner(replica="0" * 16, request=run.request)
    assert not (await two.there.logs.read(two.keys, "r-one", START, run=unowned)).is_run


async def test_the_newest_reader_continues_the_stream_of_the_last_one(two: Two) -> None:
    """Ours: one client reads the standalone stream, the one who came last, on whatever replica (SRV-2)."""
    here, there = two.here.logs, two.there.logs
    last = await here.append(two.keys, STANDALONE, b"told")
    assert last is not None
    first = await here.take_over(two.keys)
    assert first is not None
    assert first[1] == START
    assert (await here.read(two.keys, STANDALONE, first[1], reader=first[0])).reader == first[0]
    assert (await here.read(two.keys, STANDALONE, last, reader=first[0])).messages == []

    second = await there.take_over(two.keys)

    assert second is not None
    assert second[1] == last
    assert (await here.read(two.keys, STANDALONE, last)).reader == second[0] != first[0]
    await here.read(two.keys, STANDALONE, "0-1", reader=first[0])  # the one before notes nothing any more
    third = await there.take_over(two.keys)
    assert third is not None
    assert third[1] == last


async def test_another_tenants_session_of_the_same_id_is_another(two: Two) -> None:
    """Ours: every name in Redis begins with the tenant (TEN-1)."""
    foreign = two.there.sessions.keys(GLOBEX, two.record.id)
    await two.here.logs.append(two.keys, STANDALONE, b"acme's")

    assert await two.there.logs.append(foreign, STANDALONE, b"globex'") is None
    assert (await two.there.logs.read(foreign, STANDALONE, START)).messages == []
    assert await two.there.logs.find_owner(foreign, "r-1") is None


async def test_sent_messages_can_be_deleted(two: Two) -> None:
    """Ours: a stream without a possible reader does not pile up."""
    await two.here.logs.append(two.keys, STANDALONE, b"one")
    last = await two.here.logs.append(two.keys, STANDALONE, b"two")
    assert last is not None

    await two.here.logs.trim(two.keys, STANDALONE, last)

    assert await _texts(two, STANDALONE) == [b"two"]
