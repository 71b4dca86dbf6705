"""A gateway with two tenants, one of which a creator has made, and a key of each role."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.gateway import running_gateway
from tests.support.operators import ROLES, Operators
from tests.support.servers import TestServers


@pytest.fixture(scope="package")
async def operators(servers: TestServers) -> AsyncGenerator[Operators]:
    """The tenants `acme` and `globex` of the operator, and `made` of the creator."""
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.own_redis()) as gateway:
            world = Operators(gateway)
            for slug in ("acme", "globex"):
                await gateway.create_tenant(slug)
            for name, rights in ROLES.items():
                await world.make(name, **rights)
            (await world.ask("creator", "POST", "/tenants", {"slug": "made"})).raise_for_status()
            yield world
