"""Pings and claims of a session as two replicas see them in Redis."""

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.redis.sessions.stores import session_stores
from tests.integration.redis.conftest import SECRET, Two, make_record

REQUEST = b'"one"'


async def test_a_ping_is_answered_at_any_replica_once(two: Two) -> None:
    """MCP: the outcome of a ping is known when the next one takes its place (SRV-2)."""
    here, there, keys = two.here.pending_requests, two.there.pending_requests, two.keys

    assert await here.ping(keys, "", "p1", is_patient=True) == "unanswered"
    assert await there.accept(keys, "p1", b'{"result":{}}')
    assert not await here.accept(keys, "p1", b'{"result":{}}')
    assert await here.ping(keys, "p1", "p2", is_patient=True) == "answered"
    assert not await there.accept(keys, "p1", b'{"result":{}}')
    assert await here.ping(keys, "p2", "p3", is_patient=True) == "unanswered"
    await here.close(keys, "p3")
    assert await here.get_response(keys, "p3") is None


async def test_no_ping_is_opened_during_a_request(two: Two) -> None:
    """Ours: a client with an open request receives no ping until the request has its response (SRV-1)."""
    here, keys = two.here, two.keys
    assert await two.there.logs.append(keys, "g", b"{}", request_id="q") is not None

    assert await here.pending_requests.ping(keys, "", "p1", is_patient=True) == "asking"
    assert await here.pending_requests.get_response(keys, "p1") is None
    assert await here.pending_requests.ping(keys, "", "p1", is_patient=False) == "unanswered"
    assert await here.pending_requests.ping(keys, "p1", "p2", is_patient=True) == "asking"
    await two.there.pending_requests.accept(keys, "q", b"{}")
    assert await here.pending_requests.ping(keys, "p1", "p2", is_patient=True) == "unanswered"


async def test_an_ended_session_is_pinged_no_more(two: Two) -> None:
    """Ours: nothing is written into what is gone (RES-6)."""
    await two.here.sessions.remove(two.record.tenant, two.record.id)

    assert await two.there.pending_requests.ping(two.keys, "", "p1", is_patient=True) == "ended"
    assert await two.there.claims.of(two.keys, "s", REQUEST).acquire()
    assert await two.there.pending_requests.get_response(two.keys, "p1") is None


async def test_a_claimed_id_is_taken_until_it_is_released(two: Two) -> None:
    """Ours: neither another claim nor the stream of another request gets it (SRV-2)."""
    here, there, keys = two.here, two.there, two.keys
    claim = here.claims.of(keys, "mine", REQUEST)
    assert await claim.acquire()

    other = there.claims.of(keys, "theirs", REQUEST)
    assert not await other.acquire()
    await other.release()  # it has nothing to give back
    assert await there.logs.open(keys, "rtheirs", REQUEST) == ""
    assert await there.claims.of(keys, "theirs", b"1").acquire()
    await claim.release()
    assert await there.logs.open(keys, "rtheirs", REQUEST)
    assert not await here.claims.of(keys, "again", REQUEST).acquire()


async def test_a_claim_becomes_a_stream(two: Two) -> None:
    """Ours: the stream of the same request takes the id over, and keeps it when the claim is given back (SRV-2)."""
    claim = two.here.claims.of(two.keys, "rmine", REQUEST)
    assert await claim.acquire()
    assert await two.here.logs.open(two.keys, "rmine", REQUEST)
    await claim.release()

    assert not await two.there.claims.of(two.keys, "theirs", REQUEST).acquire()
    assert await two.here.logs.append(two.keys, "rmine", b"{}", is_final=True)
    assert await two.there.claims.of(two.keys, "theirs", REQUEST).acquire()


async def test_a_claim_ends_with_its_replica(redis_url: str) -> None:
    """Ours: no client waits for the claims of a replica that is gone (SRV-3)."""
    record = make_record()
    async with EventBus(redis_url, secret=SECRET) as there, TaskSupervisor() as tasks:
        stores = session_stores(there, spawn=tasks.spawn, idle_s=60)
        await stores.sessions.create(record, cap=10)
        keys = stores.sessions.keys(record.tenant, record.id)
        async with EventBus(redis_url, secret=SECRET) as here, ReplicaHeartbeat(here):
            assert await session_stores(here, spawn=tasks.spawn, idle_s=60).claims.of(keys, "mine", REQUEST).acquire()
            assert not await stores.claims.of(keys, "theirs", REQUEST).acquire()
        assert await stores.claims.of(keys, "theirs", REQUEST).acquire()
