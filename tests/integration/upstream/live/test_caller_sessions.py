"""Sessions of callers at a scripted server, used by two replicas: one session each, and questions on its GET stream."""

import asyncio
from typing import Any

import pytest

from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.sessions import SessionOwner
from gateway.errors import RedisUnavailable, UpstreamBusy
from gateway.upstream.live.mcp import caller_sessions, session_stream
from tests.integration.upstream.live.parts import ANN, Client
from tests.integration.upstream.live.question_server import two_replicas, until_true

ACCEPTED: dict[str, dict[str, Any]] = {"elicitation/create": {"action": "accept", "content": {}}}
DEAF = frozenset[str]()


async def test_a_caller_has_one_session_at_all_replicas() -> None:
    """DYN-5: each MCP session of a client has one at the server, and in 2026-07-28 each principal.

    The order of calls is that of IBM/mcp-context-forge#4205.
    """
    async with two_replicas() as replicas:
        alice, bob = Client(owner=SessionOwner("alice", "1")), Client(owner=SessionOwner("bob", "2"))
        counted = [await replicas.call(n % 2, who) for n, who in enumerate((alice, alice, bob, alice, bob))]
        assert counted == ["1", "2", "1", "3", "2"]
        other, modern = Client(owner=SessionOwner("alice", "3")), Client(owner=SessionOwner("alice"))
        assert [await replicas.call(n, who) for who in (other, modern) for n in (0, 1)] == ["1", "2", "1", "2"]
        assert len({*replicas.server.counts}) == 4


async def test_replicas_open_one_session_for_calls_at_the_same_time() -> None:
    """Ours: of two replicas one opens the session, the other continues it under request ids of its own (DYN-5)."""
    async with two_replicas() as replicas:
        counted = await asyncio.gather(*(replicas.call(n % 2, Client()) for n in range(6)))
        assert sorted(counted) == ["1", "2", "3", "4", "5", "6"]
        ids = [each["id"] for each in replicas.server.script.sent("tools/call")]
        assert len(set(ids)) == 6
        assert all(each < 1 << 53 for each in ids)


async def test_a_session_that_the_server_has_ended_is_opened_again_once() -> None:
    """Ours: both replicas go on in the same new session (DYN-5)."""
    async with two_replicas() as replicas:
        assert [await replicas.call(n, Client()) for n in (0, 1)] == ["1", "2"]
        replicas.server.ended.append("s-3")
        assert [await replicas.call(n, Client()) for n in (1, 0, 1)] == ["1", "2", "3"]
        assert replicas.server.counts == {"s-3": 2, "s-4": 3}


async def test_a_question_on_the_get_stream_reaches_the_client() -> None:
    """DYN-5: whichever replica has the stream; the answer of the client goes to the server."""
    async with two_replicas() as replicas:
        for replica in (0, 1):
            client = Client(ACCEPTED)
            assert "'action': 'accept'" in await replicas.call(replica, client, "ask")
            assert [method for method, _ in client.asked] == ["elicitation/create"]
        assert replicas.server.opened == 1  # a second one gets status 409


async def test_the_stream_is_opened_by_the_replica_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """DYN-5: a replica that was killed has no stream any more, so the next call opens it at another one."""
    monkeypatch.setattr(session_stream, "_PAUSES_S", (0.01,))
    async with two_replicas() as replicas:
        await replicas.call(0, Client(), "count")
        replicas.server.streams["s-3"].writer.close()
        await until_true(lambda: "s-3" not in replicas.server.streams)
        assert "accept" in await replicas.call(1, Client(ACCEPTED), "ask")
        assert replicas.server.opened == 2


async def test_a_question_without_a_request_is_refused_at_once() -> None:
    """DYN-5: neither a caller's session nor the gateway's own leaves a server without an answer; a ping has one."""
    async with two_replicas() as replicas:
        await replicas.call(0, Client())
        await replicas.attachments[0].request("resources/subscribe", {"uri": "x:"}, Client())  # follows its own stream
        await until_true(lambda: "s-1" in replicas.server.streams)
        for session in ("s-1", "s-3"):
            refused = await replicas.server.ask(session, "roots/list")
            assert refused["error"]["code"] == -32601
            assert "no request" in refused["error"]["message"]
            assert (await replicas.server.ask(session, "ping"))["result"] == {}
            assert (await replicas.server.ask(session, "x/y"))["error"]["code"] == -32601


@pytest.mark.parametrize(("session", "is_answered"), [("s", True), ("", False)])
async def test_a_question_while_several_requests_run(session: str, is_answered: bool) -> None:
    """DYN-5: the client of a session is asked, whichever of its calls the question is about; of several clients of a
    principal none is guessed.
    """
    async with two_replicas() as replicas:
        server, client = replicas.server, Client(ACCEPTED, owner=SessionOwner("ann", session))
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(replicas.call(0, client, "wait"))
            await until_true(lambda: server.counts)
            assert ("accept" in await replicas.call(0, client, "ask")) is is_answered
            assert bool(client.asked) is is_answered
            server.released.set()
        assert waiting.result() == "1"


async def test_a_client_that_cannot_be_asked_is_not_asked() -> None:
    """DYN-5: nothing is declared to the server; one that asks all the same is refused at once, without a wait."""
    async with two_replicas() as replicas:
        assert "no request" in await replicas.call(0, Client(abilities=DEAF), "ask")
        assert replicas.server.script.sent("initialize")[-1]["params"]["capabilities"] == {}
        await replicas.call(0, Client())
        assert {*replicas.server.counts} == {"s-3", "s-4"}  # other capabilities are declared in another session


async def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: callers of one server cannot use up the tenant's connections; an unused stream gives way (ISO-3)."""
    monkeypatch.setattr(caller_sessions, "MAX_STREAMS", 1)
    async with two_replicas() as replicas:
        server, others = replicas.server, [Client(owner=SessionOwner("ann", str(n))) for n in range(3)]
        await replicas.call(0, others[0])
        await replicas.call(0, others[1])
        await until_true(lambda: {*server.streams} & {"s-3", "s-4"} == {"s-4"})
        async with asyncio.TaskGroup() as group:
            group.create_task(replicas.call(0, others[1], "wait"))
            await until_true(lambda: server.counts["s-4"] == 2)
            with pytest.raises(LiveSourceFailed, match="too many callers") as busy:
                await replicas.call(0, others[2])
            assert isinstance(busy.value.__cause__, UpstreamBusy)
            server.released.set()


async def test_sessions_without_redis_are_of_one_replica_until_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: calls go on while Redis is away, and the session is shared once it is back (SRV-4)."""
    monkeypatch.setattr(caller_sessions, "CHECK_S", 0.0)
    async with two_replicas() as replicas:

        async def fail(*_: object) -> Any:
            raise RedisUnavailable("away")

        with monkeypatch.context() as away:
            away.setattr(replicas.records, "touch", fail)
            assert [await replicas.call(0, Client()) for _ in range(2)] == ["1", "2"]
        assert [await replicas.call(n, Client()) for n in (0, 1)] == ["3", "4"]


async def test_sessions_that_ended_are_ended_at_the_server() -> None:
    """Ours: idle, evicted and orphaned sessions leave nothing at the server; a changed source ends all (DYN-5)."""
    async with two_replicas() as replicas:
        await replicas.call(0, Client(abilities=DEAF))
        [(key, session)] = replicas.records.stored.items()
        assert (key.owner, key.source, key.version) == (ANN, "liv_1", 1)
        del replicas.records.stored[key]
        replicas.records.ended.append(session)
        link: Any = replicas.attachments[1]
        await link._link.ping()
        await until_true(lambda: replicas.server.ended == [session.id])
        await replicas.call(0, Client(owner=SessionOwner("bob", "t")))
        replicas.attachments[0].retire()
    assert sorted(replicas.server.ended) == ["s-1", "s-2", "s-3", "s-4"]
