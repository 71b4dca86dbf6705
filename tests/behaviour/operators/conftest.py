"""A gateway with two tenants, and a key of each role."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.gateway import running_gateway
from tests.support.operators import Operators
from tests.support.servers import TestServers


@pytest.fixture(scope="module")
async def operators(servers: TestServers) -> AsyncGenerator[Operators]:
    """The installation that the tests of a module share."""
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.own_redis()) as gateway:
            for slug in ("acme", "globex"):
                await gateway.create_tenant(slug)
            yield Operators(gateway)
