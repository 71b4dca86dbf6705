"""Two installations, each with a database of its own, that share one Redis."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from gateway.store.database.connection import connect_owner
from gateway.store.database.migrations import migrate
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, static_tool
from tests.support.replicas import commanding, until
from tests.support.servers import TestDatabase, TestServers, execute

_NAME = "current_database() = datname"
_SLUG = "acme"
_CALLS = 5


@dataclass(frozen=True, slots=True)
class Installation:
    """A gateway, its database and a key of its tenant."""

    gateway: RunningGateway
    database: TestDatabase
    key: str

    async def call(self) -> str:
        """One call that only reads; its correlation id."""
        answer = await self.gateway.rpc(_SLUG, self.key, "tools/call", {"name": "hello", "arguments": {}})
        assert "result" in answer.json(), answer.text
        return answer.headers["x-request-id"]

    async def lose_database(self) -> None:
        """Its database accepts no connections any more and ends the open ones."""
        own = await self._scalar(f"select datname from pg_database where {_NAME}")
        await execute(self._others, f"alter database {own} allow_connections false")
        await execute(self._others, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{own}'")

    async def find_database(self) -> None:
        """It is there again."""
        name = self.database.owner_url.partition("@/")[2].partition("?")[0]
        await execute(self._others, f"alter database {name} allow_connections true")

    async def recorded(self) -> set[str]:
        """The correlation ids of the calls in its trail."""
        answer = await self.gateway.admin.get(f"/tenants/{_SLUG}/audit?kind=call&limit=200")
        return {each["correlation_id"] for each in answer.json()["items"]} if answer.is_success else set()

    async def foreign(self) -> int:
        """Number of entries of its trail that belong to no tenant of its own."""
        return int(
            await self._scalar("select count(*) from audit_entries where tenant_id not in (select id from tenants)")
        )

    @property
    def _others(self) -> str:
        name = self.database.superuser_url.partition("@/")[2].partition("?")[0]
        return self.database.superuser_url.replace(f"/{name}?", "/postgres?")

    async def _scalar(self, query: str) -> str:
        connection = await connect_owner(self.database.superuser_url)
        try:
            return str(await connection.fetchval(query))
        finally:
            await connection.close()


@pytest.fixture
async def installations(servers: TestServers, redis_url: str) -> AsyncGenerator[Sequence[Installation]]:
    """Two, with the same secret keys: the worse case."""
    async with AsyncExitStack() as stack:
        made: list[Installation] = []
        for _ in range(2):
            database = stack.enter_context(servers.empty_database())
            await migrate(database.owner_url)
            gateway = await stack.enter_async_context(running_gateway(database.app_url, redis_url))
            await gateway.create_tenant(_SLUG)
            await add(gateway, _SLUG, "tools", static_tool("hello"))
            made.append(Installation(gateway, database, await gateway.create_key(_SLUG)))
        yield made


async def test_waiting_entries_are_not_brought_into_another_database(
    installations: Sequence[Installation], redis_url: str
) -> None:
    """Ours: while its PostgreSQL is away an installation's trail waits for it and for no other database (SRV-4)."""
    here, there = installations
    for each in installations:
        await each.call()
        await each.lose_database()
    mine = {await here.call() for _ in range(_CALLS)}
    theirs = {await there.call() for _ in range(_CALLS)}

    await there.find_database()

    async def has_theirs() -> bool:
        return theirs <= await there.recorded()

    await until(has_theirs, seconds=30, pause=0.2)
    assert not mine & await there.recorded()
    assert await there.foreign() == 0
    with commanding(redis_url) as command:
        assert command("KEYS", "gw:audit:*[^n]"), "what waits for the first one is gone"

    await here.find_database()

    async def has_mine() -> bool:
        return mine <= await here.recorded()

    await until(has_mine, seconds=30, pause=0.2)

    async def is_empty() -> bool:
        with commanding(redis_url) as command:
            return not command("KEYS", "gw:audit*")

    await until(is_empty, seconds=30, pause=0.2)
    assert await here.foreign() == 0
    for each in installations:
        answer = await each.gateway.admin.get(f"/tenants/{_SLUG}/audit/verify")
        assert answer.json()["ok"] is True, answer.text
