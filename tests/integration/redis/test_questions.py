"""Questions, subscriptions, settings, nonces and places of sessions in a real Redis, from two replicas."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import KeyId, TenantId
from gateway.errors import LimitExceeded, NotFound
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.stream_limiter import StreamLimiter
from gateway.redis.sessions.keys import STANDALONE, SessionKeys
from gateway.redis.sessions.limits import MAX_SUBSCRIPTIONS
from gateway.redis.sessions.records import share_of
from gateway.redis.sessions.stores import SessionStores, session_stores
from gateway.redis.sessions.stream_log import START
from tests.integration.redis.conftest import ACME, GLOBEX, SECRET, OwnRedis, Two, make_record
from tests.support import replicas
from tests.support.replicas import until
from tests.support.streams import open_stream

ALICE, BOB = KeyId("key_alice"), KeyId("key_bob")


async def test_an_answer_is_found_at_every_replica(two: Two) -> None:
    """Ours: the asking replica finds the answer without a notification (SRV-2)."""
    await two.here.logs.append(two.keys, "r-1", b"asked", request_id="q-1")
    assert await two.here.pending_requests.get_response(two.keys, "q-1") == b""

    assert await two.there.pending_requests.accept(two.keys, "q-1", b'{"result":{}}')

    assert await two.here.pending_requests.get_response(two.keys, "q-1") == b'{"result":{}}'


async def test_only_the_first_answer_counts(two: Two) -> None:
    """Ours: a second answer changes nothing (SRV-2)."""
    await two.here.logs.append(two.keys, "r-1", b"asked", request_id="q-1")

    taken = [await two.there.pending_requests.accept(two.keys, "q-1", answer) for answer in (b"yes", b"no")]

    assert taken == [True, False]
    assert await two.here.pending_requests.get_response(two.keys, "q-1") == b"yes"


async def test_questions_of_another_session_cannot_be_answered_here(two: Two) -> None:
    """Ours: an answer belongs to the session that was asked, and to its tenant (TEN-1, TEN-5)."""
    other = make_record()
    await two.here.sessions.create(other, cap=10)
    await two.here.logs.append(two.keys, "r-1", b"asked", request_id="q-1")
    pending = two.there.pending_requests

    assert not await pending.accept(two.keys, "q-2", b"yes")
    assert not await pending.accept(two.there.sessions.keys(other.tenant, other.id), "q-1", b"yes")
    assert not await pending.accept(two.there.sessions.keys(GLOBEX, two.record.id), "q-1", b"yes")
    assert await two.here.pending_requests.get_response(two.keys, "q-1") == b""


async def test_a_closed_question_and_one_of_an_ended_session_are_gone(two: Two) -> None:
    """Ours: a waiting caller learns that there will be no answer (SRV-2)."""
    for name in ("q-1", "q-2"):
        await two.here.logs.append(two.keys, "r-1", b"asked", request_id=name)
    await two.here.pending_requests.close(two.keys, "q-1")
    assert not await two.there.pending_requests.accept(two.keys, "q-1", b"late")
    await two.there.sessions.remove(two.record.tenant, two.record.id)

    assert await two.here.pending_requests.get_response(two.keys, "q-1") is None
    assert await two.here.pending_requests.get_response(two.keys, "q-2") is None


async def test_listeners_of_a_session_are_woken(two: Two) -> None:
    """Ours: a message, an answer and the end of a session wake its streams on every replica (SRV-2)."""
    send, receive = anyio.create_memory_object_stream[None](100)

    async def wait() -> None:
        with anyio.fail_after(30):
            await receive.receive()

    async with send, receive, two.there.bus.listening(two.keys.wake, lambda: send.send_nowait(None)):
        await two.here.logs.append(two.keys, "r-1", b"asked", request_id="q-1")
        await wait()
        await two.here.pending_requests.accept(two.keys, "q-1", b"yes")
        await wait()
        await two.here.logs.take_over(two.keys)
        await wait()
        await two.here.sessions.remove(two.record.tenant, two.record.id)
        await wait()


async def test_channels_without_listeners_are_released(two: Two, raw: Any) -> None:
    """Ours: a subscription at Redis ends with its last listener (RES-6)."""

    async def count() -> int:
        found: int = (await raw.pubsub_numsub(two.keys.wake))[0][1]
        return found

    async def is_given_up() -> bool:
        return await count() == 0

    async with two.here.bus.listening(two.keys.wake, lambda: None):
        async with two.here.bus.listening(two.keys.wake, lambda: None):
            assert await count() == 1
        assert await count() == 1
    await replicas.until(is_given_up)


async def test_channels_are_restored_after_an_outage_of_redis(own_redis: OwnRedis) -> None:
    """Ours: a listener from before the break is notified to read, and receives again (SRV-2)."""
    await own_redis.start()
    rung = 0

    def ring() -> None:
        nonlocal rung
        rung += 1

    async with EventBus(own_redis.url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        stores = session_stores(bus, spawn=tasks.spawn, idle_s=60)
        async with bus.listening("some:channel", ring):
            own_redis.kill()
            await until(lambda: not bus.is_live)
            await own_redis.start()
            await until(lambda: rung > 0)  # notified to read
            record = make_record()
            await stores.sessions.create(record, cap=10)
            keys = stores.sessions.keys(record.tenant, record.id)
            async with bus.listening(keys.wake, ring):
                before = rung
                await stores.logs.append(keys, STANDALONE, b"told")
                await until(lambda: rung > before)


async def test_subscribers_find_an_update_in_their_logs(two: Two) -> None:
    """Ours: subscribers are notified, no other client, with or without an open stream (RES-4)."""
    other = make_record()
    await two.here.sessions.create(other, cap=10)
    await two.here.subscriptions.subscribe(two.keys, "note://1")

    notified = await two.there.subscriptions.publish(ACME, "note://1")

    found = await two.there.logs.read(two.keys, STANDALONE, START)
    assert (notified, [message.uri for message in found.messages]) == (1, ["note://1"])
    assert await two.there.subscriptions.publish(ACME, "note://2") == 0
    others = two.here.sessions.keys(other.tenant, other.id)
    assert (await two.here.logs.read(others, STANDALONE, START)).messages == []


async def test_an_update_of_another_tenants_resource_is_not_notified(two: Two) -> None:
    """Ours: the same URI in another tenant is another resource (TEN-1)."""
    await two.here.subscriptions.subscribe(two.keys, "note://1")

    assert await two.there.subscriptions.publish(GLOBEX, "note://1") == 0


async def test_after_unsubscribing_no_update_is_stored(two: Two) -> None:
    """MCP: `resources/unsubscribe` ends a subscription, and one that never was is no error (RES-4)."""
    await two.here.subscriptions.subscribe(two.keys, "note://1")
    await two.there.subscriptions.unsubscribe(two.keys, "note://1")
    await two.there.subscriptions.unsubscribe(two.keys, "note://2")

    assert await two.here.subscriptions.publish(ACME, "note://1") == 0


async def test_two_subscriptions_to_one_uri_are_one(two: Two) -> None:
    """Ours: the URI is the identity of a subscription (RES-4)."""
    for _ in range(2):
        await two.here.subscriptions.subscribe(two.keys, "note://1")

    assert await two.here.subscriptions.publish(ACME, "note://1") == 1
    await two.here.subscriptions.unsubscribe(two.keys, "note://1")
    assert await two.here.subscriptions.publish(ACME, "note://1") == 0


async def test_several_changes_before_a_read_are_one_update(two: Two) -> None:
    """Ours: a client that resumes finds each changed resource once; later changes are notified again (RES-4)."""
    subscriptions, logs = two.here.subscriptions, two.there.logs
    for uri in ("note://1", "note://2"):
        await subscriptions.subscribe(two.keys, uri)
    for uri in ("note://1", "note://2", "note://1", "note://1"):
        assert await subscriptions.publish(ACME, uri) == 1

    greeted = await logs.take_over(two.keys)
    assert greeted is not None
    reader = greeted[0]
    first = await logs.read(two.keys, STANDALONE, START, reader=reader)
    assert [message.uri for message in first.messages] == ["note://1", "note://2"]
    await subscriptions.publish(ACME, "note://1")  # before it is noted how far was sent
    second = await logs.read(two.keys, STANDALONE, first.messages[-1].id, reader=reader)
    assert [message.uri for message in second.messages] == ["note://1"]
    await subscriptions.unsubscribe(two.keys, "note://1")
    await subscriptions.subscribe(two.keys, "note://1")
    await subscriptions.publish(ACME, "note://1")
    third = await logs.read(two.keys, STANDALONE, second.messages[-1].id, reader=reader)
    assert [message.uri for message in third.messages] == ["note://1"]


async def test_an_expired_session_is_not_notified(two: Two, raw: Any) -> None:
    """Ours: a subscription does not outlive its session (RES-6)."""
    await two.here.subscriptions.subscribe(two.keys, "note://1")
    await raw.delete(two.keys.record)

    assert await two.there.subscriptions.publish(ACME, "note://1") == 0
    assert [key async for key in raw.scan_iter("*subscribers*")] == []


async def test_the_subscriptions_of_a_session_are_capped(two: Two) -> None:
    """Ours: one client cannot fill the store (TEN-3)."""
    for number in range(MAX_SUBSCRIPTIONS):
        await two.here.subscriptions.subscribe(two.keys, f"note://{number}")

    with pytest.raises(LimitExceeded):
        await two.here.subscriptions.subscribe(two.keys, "note://more")
    await two.here.subscriptions.subscribe(two.keys, "note://1")


async def test_an_ended_session_subscribes_to_nothing(two: Two) -> None:
    """Ours: a late answer leaves nothing behind (RES-6)."""
    await two.here.sessions.remove(two.record.tenant, two.record.id)

    with pytest.raises(NotFound):
        await two.there.subscriptions.subscribe(two.keys, "note://1")
    with pytest.raises(NotFound):
        await two.there.preferences.set_level(two.keys, "error")


async def test_a_log_level_holds_on_every_replica(two: Two) -> None:
    """MCP: `logging/setLevel` holds for the session (SRV-1)."""
    assert await two.there.preferences.level(two.keys) is None
    await two.here.preferences.set_level(two.keys, "error")

    assert await two.there.preferences.level(two.keys) == "error"


async def test_a_nonce_is_used_once_in_its_tenant(two: Two) -> None:
    """Ours: used on one replica is used on all; another tenant's is another (TEN-1)."""
    here, there = two.here.nonces, two.there.nonces

    assert await here.use(ACME, "n", for_s=60)
    assert not await there.use(ACME, "n", for_s=60)
    assert await there.use(GLOBEX, "n", for_s=60)
    await there.free(ACME, "n")
    assert await here.use(ACME, "n", for_s=60)


@pytest.fixture
async def backings(redis_url: str) -> AsyncGenerator[tuple[SessionStores, SessionStores]]:
    async with (
        EventBus(redis_url, secret=SECRET) as here,
        EventBus(redis_url, secret=SECRET) as there,
        TaskSupervisor() as tasks,
    ):
        yield session_stores(here, spawn=tasks.spawn, idle_s=60), session_stores(there, spawn=tasks.spawn, idle_s=60)


async def _fill(stack: contextlib.AsyncExitStack, places: StreamLimiter, key: KeyId, count: int, cap: int) -> None:
    for _ in range(count):
        await stack.enter_async_context(open_stream(places, ACME, key, cap))


async def test_streams_are_counted_over_replicas(backings: tuple[SessionStores, SessionStores]) -> None:
    """Ours: the tenant's streams are counted exactly, wherever they are open (TEN-3)."""
    here, there = backings
    async with contextlib.AsyncExitStack() as stack:
        await _fill(stack, here.stream_limiter, ALICE, 2, 5)
        await _fill(stack, there.stream_limiter, ALICE, 3, 5)
        with pytest.raises(LimitExceeded) as caught:
            await _fill(stack, there.stream_limiter, BOB, 1, 5)
        assert caught.value.retry_after_s is not None
        async with open_stream(there.stream_limiter, GLOBEX, ALICE, 5):
            pass
    async with open_stream(here.stream_limiter, ACME, BOB, 1):
        assert (len(here.stream_limiter), len(there.stream_limiter)) == (1, 0)


async def test_one_key_leaves_streams_to_the_others(backings: tuple[SessionStores, SessionStores]) -> None:
    """Ours: a key cannot lock out the rest of its tenant (TEN-3)."""
    here, there = backings
    assert share_of(20) == 18
    async with contextlib.AsyncExitStack() as stack:
        await _fill(stack, here.stream_limiter, ALICE, 18, 20)
        with pytest.raises(LimitExceeded):
            await _fill(stack, there.stream_limiter, ALICE, 1, 20)
        await _fill(stack, there.stream_limiter, BOB, 2, 20)


async def test_one_subject_leaves_sessions_to_the_others(backings: tuple[SessionStores, SessionStores]) -> None:
    """Ours: neither can one subject with its sessions (TEN-3)."""
    here, there = backings
    for _ in range(9):
        await here.sessions.create(make_record(subject="alice"), cap=10)

    with pytest.raises(LimitExceeded):
        await there.sessions.create(make_record(subject="alice"), cap=10)
    await there.sessions.create(make_record(subject="bob"), cap=10)
    assert await there.sessions.remove_all(ACME, subject="alice") == 9
    assert await there.sessions.remove_all(ACME) == 1
    await here.sessions.create(make_record(subject="alice"), cap=1)


async def test_without_redis_each_replica_counts_by_itself(own_redis: OwnRedis) -> None:
    """Ours: the cap holds on each replica while Redis is away (TEN-3)."""
    await own_redis.start()
    async with EventBus(own_redis.url, secret=SECRET) as bus, TaskSupervisor() as tasks:
        own_redis.kill()
        places = session_stores(bus, spawn=tasks.spawn, idle_s=60).stream_limiter
        async with contextlib.AsyncExitStack() as stack:
            await _fill(stack, places, ALICE, 2, 2)
            with pytest.raises(LimitExceeded):
                await _fill(stack, places, BOB, 1, 2)


def test_every_name_contains_its_tenant() -> None:
    """Ours: no part of a session has a name without its tenant (TEN-1)."""
    keys = SessionKeys("gw", TenantId("ten_x"), "sid")
    names = (keys.record, keys.state, keys.index, keys.subscriptions, keys.wake, keys.log("g"))
    assert all(name.startswith("gw:t:ten_x:s:sid") for name in names)
    assert len(set(names)) == len(names)
