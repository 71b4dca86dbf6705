"""A database under contention, and one that hangs: only callers that need it wait."""

import os
import signal
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx
import pytest

from gateway.store.database.connection import PostgresConnection, connect_owner
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.replicas import until
from tests.support.servers import TestDatabase
from tests.support.upstream import RecordingUpstream, recording_upstream

LOCKED = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'gateway'"
BACKENDS = "select pid from pg_stat_activity where backend_type = 'client backend'"
POSTMASTER = "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int"
PATIENCE_S = 2
"""The longest wait of a call for a database that does not respond."""


@dataclass(frozen=True, slots=True)
class World:
    """A gateway that knows nothing yet, and keys that another one made."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    keys: Sequence[tuple[str, str]]

    async def call(self, number: int, tool: str = "get_pet", **arguments: object) -> httpx.Response:
        """One call, with each key in turn."""
        slug, key = self.keys[number % len(self.keys)]
        params = {"name": tool, "arguments": arguments or {"id": number}}
        return await self.gateway.rpc(slug, key, "tools/call", params)


@asynccontextmanager
async def _world(database: TestDatabase, redis_url: str, *, tenants: int, keys: int) -> AsyncGenerator[World]:
    made: list[tuple[str, str]] = []
    own_redis = f"{redis_url}?db=7"  # other gateways of the test run bring back what waits in the Redis they share
    async with recording_upstream() as upstream:
        more = {"egress_allow": [upstream.authority], "log_level": "error"}
        async with running_gateway(database.app_url, own_redis, **more) as gateway:
            for slug in (f"t{number}" for number in range(tenants)):
                await gateway.create_tenant(slug)
                await gateway.import_document(slug, pets(upstream.url))
                made += [(slug, await gateway.create_key(slug)) for _ in range(keys)]
        async with running_gateway(database.app_url, own_redis, **more) as gateway:
            yield World(gateway, upstream, made)


@asynccontextmanager
async def _superuser(database: TestDatabase) -> AsyncGenerator[PostgresConnection]:
    connection = await connect_owner(database.superuser_url)
    try:
        yield connection
    finally:
        await connection.close()


def _is_ok(answer: httpx.Response) -> bool:
    return answer.status_code == 200 and "structuredContent" in answer.json().get("result", {})


async def test_many_first_requests_take_no_more_than_their_share(database: TestDatabase, redis_url: str) -> None:
    """Ours: a crowd with cold keys is served, and leaves connections for everybody else (TEN-3, TEN-5)."""
    async with (
        _world(database, redis_url, tenants=4, keys=5) as world,
        _superuser(database) as holder,
        _superuser(database) as looking,  # a transaction sees the connections of its start
    ):
        answers: list[httpx.Response] = []

        async def ask(number: int) -> None:
            slug, key = world.keys[number % len(world.keys)]
            answers.append(await world.gateway.rpc(slug, key, "tools/list", {}))

        async def is_begun() -> bool:
            return bool(await looking.fetchval(f"select ({LOCKED}) >= 4"))

        await holder.execute("begin; lock table keys in access exclusive mode")
        found: list[object] = []
        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(ask, number)
            await until(is_begun, seconds=30)
            found += [(await world.gateway.admin.get("/tenants/t0/sources")).status_code]
            found += [await looking.fetchval(LOCKED)]
            await holder.execute("rollback")

        assert found == [200, 4]
        assert [answer.text for answer in answers if "get_pet" not in answer.text] == []
        assert len(answers) == 200


@asynccontextmanager
async def _hung(database: TestDatabase) -> AsyncGenerator[None]:
    """While the block runs PostgreSQL holds its connections, takes new ones, and answers on none."""
    async with _superuser(database) as connection:
        pids = [await connection.fetchval(POSTMASTER), *(row["pid"] for row in await connection.fetch(BACKENDS))]
        found = [pid for pid in pids if isinstance(pid, int)]
        assert len(found) == len(pids) > 1
        try:
            for pid in found:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in found:
                os.kill(pid, signal.SIGCONT)


async def test_a_database_that_hangs_keeps_few_waiting(
    database: TestDatabase, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: one reading call finds it out, the others do not wait for it; what changes something is refused (SRV-4)."""
    monkeypatch.setattr("gateway.identity.authenticator.REMEMBERED_S", 0.0)  # each call wants to look its key up,
    monkeypatch.setattr("gateway.catalog.snapshots.snapshots.CHECK_S", 0.0)  # and compare its catalog
    async with _world(database, redis_url, tenants=1, keys=1) as world:
        assert _is_ok(await world.call(1))
        seen = len(world.upstream.seen)
        async with _hung(database):
            began = time.monotonic()
            reads = [await world.call(number) for number in range(20)]
            took = time.monotonic() - began
            change = await world.call(1, "create_pet", body={"name": "Rex"})

        assert [answer.text for answer in reads if not _is_ok(answer)] == []
        assert took < len(reads) * PATIENCE_S * 0.75  # if each of them had waited it would be more
        assert change.json()["error"]["code"] == 50300
        assert [one.method for one in world.upstream.seen[seen:]] == ["GET"] * len(reads)

        async def is_well() -> bool:
            return _is_ok(await world.call(1, "create_pet", body={"name": "Rex"}))

        async def is_recorded() -> bool:
            answer = await world.gateway.admin.get("/tenants/t0/audit?kind=call&tool=get_pet&limit=200")
            return len(answer.json()["items"]) == len(reads) + 1

        await until(is_well, seconds=30)
        await until(is_recorded, seconds=30)


@pytest.mark.early
async def test_a_revoked_key_has_nothing_from_a_database_that_hangs(
    database: TestDatabase, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the stored fallback of a key ends with the key (TEN-2)."""
    monkeypatch.setattr("gateway.identity.authenticator.REMEMBERED_S", 0.0)
    async with _world(database, redis_url, tenants=1, keys=2) as world:
        assert _is_ok(await world.call(0))
        assert _is_ok(await world.call(1))
        revoked = world.keys[1][1].split("_")[2]
        (await world.gateway.admin.post(f"/tenants/t0/keys/key_{revoked}/revoke")).raise_for_status()
        async with _hung(database):
            statuses = [(await world.call(number)).status_code for number in range(2)]

        assert statuses == [200, 503]
