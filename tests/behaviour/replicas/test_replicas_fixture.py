"""The two replicas that other tests rely on: really two, reached in turn, killed, stopped and started again."""

import itertools
import os

import anyio
import httpx2
import pytest

from tests.behaviour.replicas.conftest import Acme
from tests.support.replicas import Mode, Replicas, tool_names, until

TOOLS = ["create_pet", "delete_pet", "get_pet", "list_pets"]


async def test_both_replicas_serve_one_catalog(acme: Acme) -> None:
    """Ours: data that one process writes are read by the other (SRV-1)."""
    replicas = acme.replicas

    assert replicas.a.pid != replicas.b.pid
    assert (await replicas.admin(replicas.b).get(f"/tenants/{acme.slug}")).json()["slug"] == acme.slug


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_alternates_between_the_replicas(acme: Acme, mode: Mode) -> None:
    """Ours: both eras work when requests in a row reach different replicas (SRV-1, CON-1)."""
    async with acme.replicas.client(acme.slug, acme.key, mode) as client:
        for _ in range(4):
            assert await tool_names(client) == TOOLS
            assert (await client.call_tool("get_pet", {"id": 7})).structured_content == {"ok": True}
    names = [name for name, _ in acme.replicas.turns]

    assert set(itertools.pairwise(names)) == {("a", "b"), ("b", "a")}


async def test_a_pinned_client_stays_where_it_is(acme: Acme) -> None:
    """Ours: a client pinned to one replica asks only that one (SRV-1)."""
    async with acme.replicas.client(acme.slug, acme.key, to=acme.replicas.b) as client:
        await tool_names(client)

    assert {name for name, _ in acme.replicas.turns} == {"b"}


async def test_a_killed_replica_gets_no_requests_until_it_is_started_again(acme: Acme) -> None:
    """Ours: a client goes on at the replica that is left, and at both when it is back (SRV-1)."""
    replicas = acme.replicas
    pid = replicas.a.pid
    replicas.a.kill()
    async with replicas.client(acme.slug, acme.key) as client:
        assert await tool_names(client) == TOOLS
        await replicas.a.start()
        replicas.turns.clear()
        for _ in range(2):
            assert not (await client.call_tool("get_pet", {"id": 7})).is_error

    assert replicas.a.pid != pid
    assert {name for name, _ in replicas.turns} == {"a", "b"}


async def test_a_paused_replica_answers_when_it_is_resumed(acme: Acme) -> None:
    """Ours: a stopped process keeps its sockets and does not respond (SRV-4)."""
    replica = acme.replicas.b
    replica.pause()
    async with acme.replicas.http(acme.key, to=replica) as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get("/healthz", timeout=0.2)
        replica.resume()
        assert (await http.get("/healthz")).status_code == 200


async def test_a_stopped_replica_exits_with_0_and_leaves_its_log(replicas: Replicas) -> None:
    """Ours: SIGTERM ends a replica in order, and the log shows it (SRV-3)."""
    replica = replicas.b
    with anyio.fail_after(20):
        assert await replica.stop() == 0

    assert [line["event"] for line in (*replica.lines("serving"), *replica.lines("stopped"))][-1] == "stopped"
    with pytest.raises(ProcessLookupError):
        os.kill(replica.pid, 0)


async def test_a_muted_replica_sends_no_events_and_a_cut_subscription_heals(acme: Acme) -> None:
    """Ours: the two ways in which tests lose events do lose them (SRV-4)."""
    muted, cut = acme.replicas.a, acme.replicas.b
    lost, resumed = len(muted.lines("event_lost")), len(cut.lines("bus_resumed"))
    with muted.muted():
        await muted.gateway.create_key(acme.slug)
        await until(lambda: len(muted.lines("event_lost")) == lost + 1)
    cut.drop_subscription()

    async def has_resumed() -> bool:
        return len(cut.lines("bus_resumed")) == resumed + 1

    await until(has_resumed)
    assert (await cut.gateway.http.get("/readyz")).status_code == 200
