"""A running gateway that the tests of a folder or module borrow one after another, with its servers and two upstreams.

Starting a gateway on a database of its own takes 0.2 s of CPU, ten times what removing a tenant does. When a test
returns the `Stand`, its tenants are removed, and any remainder is an error of that test. The fixtures below are for the
`conftest.py` of folders whose tests borrow. A folder that is a package has one `Stand` for all its modules: its
`conftest.py` imports `package_stand` as `common_stand`. A module whose tests damage the database gives each test a
`Stand` of its own by a fixture `stand` of its own (`own_stand`).
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from gateway.store.database.connection import PostgresConnection, connect_owner
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase, TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream

_UNAVAILABLE = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """A gateway without tenants, which may call the upstreams."""

    gateway: RunningGateway
    database: TestDatabase
    redis_url: str
    upstreams: Sequence[RecordingUpstream]
    owner: PostgresConnection
    """Lists the tenants after each test, for a tenth of what the admin API takes."""

    async def clear(self) -> None:
        """Remove every tenant, and reset the upstreams."""
        for upstream in self.upstreams:
            upstream.reset()
        await self._remove_operators()
        found = await self._tenants()
        for tenant in found:
            await self._remove(tenant)
        if not found:  # else it has removed a tenant
            ready = await self.gateway.http.get("/readyz")
            assert ready.status_code == 200, ready.text

    async def _tenants(self) -> list[str]:
        if self.owner.is_closed():  # with all connections of a database, which a test has ended
            answer = (await self.gateway.admin.get("/tenants", params={"limit": 200})).raise_for_status()
            return [tenant["slug"] for tenant in answer.json()["items"]]
        return [
            str(row["slug"]) for row in await self.owner.fetch("select slug from tenants where id <> '_installation'")
        ]

    async def _remove_operators(self) -> None:
        """Remove what belongs to the installation itself."""
        if self.owner.is_closed():
            return
        for table in ("operator_keys", "operator_grants", "issuers"):
            rows = await self.owner.fetch(f"select name from {table} where tenant_id = '_installation'")
            for row in rows:
                gone = await self.gateway.admin.delete(f"/{table.replace('_', '-')}/{row['name']}")
                gone.raise_for_status()

    async def _remove(self, tenant: str) -> None:
        with anyio.fail_after(60):
            # Work of the last test may still hold rows of the tenant.
            while (  # noqa: ASYNC110  # the rows are in PostgreSQL
                answer := await self.gateway.admin.delete(f"/tenants/{tenant}")
            ).status_code == _UNAVAILABLE:
                await anyio.sleep(1)
        answer.raise_for_status()


@asynccontextmanager
async def running_stand(servers: TestServers, *, upstreams: int = 2, **settings: Any) -> AsyncGenerator[Stand]:
    """One for as long as the block runs, with so many upstreams and these settings of the gateway."""
    with servers.database() as database, servers.held_redis() as redis_url:
        async with AsyncExitStack() as stack:
            running = [await stack.enter_async_context(recording_upstream()) for _ in range(upstreams)]
            allowed = [upstream.authority for upstream in running]
            gateway = await stack.enter_async_context(
                running_gateway(database.app_url, redis_url, egress_allow=allowed, **settings)
            )
            owner = await connect_owner(database.superuser_url)
            stack.push_async_callback(owner.close)
            yield Stand(gateway=gateway, database=database, redis_url=redis_url, upstreams=running, owner=owner)


@pytest.fixture(scope="module")
async def common_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """The `Stand` that the tests of a module share."""
    async with running_stand(servers) as stand:
        yield stand


@pytest.fixture(scope="package")
async def package_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """The `Stand` that the tests of a package share."""
    async with running_stand(servers) as stand:
        yield stand


@pytest.fixture
async def own_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """One of this test alone."""
    async with running_stand(servers) as stand:
        yield stand


@pytest.fixture
async def stand(common_stand: Stand) -> AsyncGenerator[Stand]:
    """The one that is shared, given back as it was."""
    yield common_stand
    await common_stand.clear()


@pytest.fixture
def gateway(stand: Stand) -> RunningGateway:
    """A gateway without tenants that may call the upstream."""
    return stand.gateway


@pytest.fixture
def upstream(stand: Stand) -> RecordingUpstream:
    """An upstream that writes down what it is asked."""
    return stand.upstreams[0]


@pytest.fixture
def database(stand: Stand) -> TestDatabase:
    """The gateway's."""
    return stand.database


@pytest.fixture
def redis_url(stand: Stand) -> str:
    """The gateway's."""
    return stand.redis_url
