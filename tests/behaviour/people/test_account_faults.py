"""Accounts in faults: a database that is away when refreshed tokens come back, and a replica that is killed there."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.behaviour.people.test_accounts import Tracker, declare
from tests.support.accounts import PUBLIC, AccountServer
from tests.support.replicas import Replicas, running_replicas
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.upstream import recording_upstream

_EXPIRE = "update accounts set leased_until = now() - interval '1 second'"


@pytest.fixture
def database(servers: TestServers) -> Iterator[TestDatabase]:
    """A database of this test alone, which loses its connections."""
    with servers.database() as lost:
        yield lost


@pytest.fixture
def redis_url(servers: TestServers) -> str:
    """The Redis of the replicas."""
    return servers.own_redis()


@pytest.fixture
async def pair(database: TestDatabase, redis_url: str, tmp_path: Path) -> AsyncGenerator[tuple[Tracker, Replicas]]:
    """A tenant at two processes, with one user."""
    async with recording_upstream() as api, recording_upstream() as upstream:
        allowed = [api.authority, upstream.authority]
        async with running_replicas(
            database.app_url, redis_url, tmp_path, egress_allow=allowed, public_url=PUBLIC
        ) as replicas:
            gateway, server = replicas.a.gateway, AccountServer(upstream)
            server.start()
            await gateway.create_tenant("acme")
            await declare(gateway, "acme", api, upstream)
            keys = {("acme", "ada"): await gateway.create_key("acme", "mcp", subject="ada")}
            yield Tracker((gateway, replicas.b.gateway), api, server, keys), replicas


async def test_a_fault_between_refresh_and_store_loses_no_token_or_one_connection(
    pair: tuple[Tracker, Replicas], database: TestDatabase
) -> None:
    """Ours: while the database is away, storing is tried again; after a crash, the user connects again (TEN-4)."""
    tracker, replicas = pair
    tracker.server.life_s = 0
    await tracker.connect()
    tracker.server.life_s = 3600
    name = urlsplit(database.owner_url).path.removeprefix("/")
    others = database.superuser_url.replace(f"/{name}?", "/postgres?")

    async def lose_database() -> None:
        await execute(others, f"alter database {name} allow_connections false")
        await execute(others, f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{name}'")

    call = await _refresh_during(tracker, lose_database)
    await execute(others, f"alter database {name} allow_connections true")
    assert not (await call).json()["result"].get("isError")
    assert not (await tracker.call(replica=1))["result"].get("isError")
    sent = [seen.header("authorization") for seen in tracker.api.seen]
    # the second replica reads what the first one stored
    assert (sent, len(tracker.server.asked)) == (["Bearer acme.ada.access.2"] * 2, 2)

    await execute(database.superuser_url, _EXPIRE)
    tracker.api.status = 401

    async def kill() -> None:
        replicas.a.kill()

    call = await _refresh_during(tracker, kill)
    with pytest.raises(httpx.HTTPError):
        await call
    tracker.api.status = 200
    await execute(database.superuser_url, _EXPIRE)
    tracker.api.status = 401
    refused: dict[str, Any] = (await tracker.call(replica=1))["result"]
    assert (refused["isError"], "accepts the tokens of your account" in str(refused["content"])) == (True, True), (
        refused
    )
    tracker.api.status = 200
    alive = Tracker((tracker.replicas[1], tracker.replicas[1]), tracker.api, tracker.server, tracker.keys)
    await alive.connect()
    assert not (await alive.call())["result"].get("isError")
    assert [outcome for _, outcome in await alive.actions()] == ["ok", "upstream.token_refused", "ok"]


async def _refresh_during(tracker: Tracker, fault: Callable[[], Awaitable[None]]) -> "asyncio.Task[httpx.Response]":
    """Begin a call at the first replica; the fault happens while the server refreshes its tokens."""
    upstream = tracker.server.upstream
    upstream.gate, upstream.arrived = asyncio.Event(), asyncio.Event()
    params = {"name": "tool_tracker", "arguments": {"as": "acme.ada"}}
    key = tracker.keys["acme", "ada"]
    call = asyncio.create_task(tracker.gateway.rpc("acme", key, "tools/call", params))
    await asyncio.wait_for(upstream.arrived.wait(), 20)
    await fault()
    upstream.gate.set()
    upstream.gate = None
    return call
