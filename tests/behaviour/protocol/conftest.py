"""A gateway with one tenant, its key, and a recording upstream behind it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.servers import TestServers
from tests.support.stand import Stand, database, gateway, own_stand, redis_url, running_stand, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]


@dataclass(frozen=True, slots=True)
class Acme:
    """The tenant `acme` with the pets document, and everything that talks to it."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    key: str
    slug: str = "acme"


@pytest.fixture
async def own_acme(gateway: RunningGateway, upstream: RecordingUpstream) -> Acme:
    """A tenant with four tools, of this test alone."""
    return await _found(gateway, upstream)


@pytest.fixture
def acme(own_acme: Acme) -> Acme:
    """The tenant of the test, unless its module shares one."""
    return own_acme


@pytest.fixture(scope="package")
async def acme_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """A `Stand` whose tenants stay for a module."""
    async with running_stand(servers) as stand:
        yield stand


@pytest.fixture(scope="module")
async def common_acme(acme_stand: Stand) -> AsyncGenerator[Acme]:
    """The same for all tests of a module, for those that change nothing of it."""
    found = await _found(acme_stand.gateway, acme_stand.upstreams[0])
    await found.gateway.lift_rate(found.slug)
    yield found
    await acme_stand.clear()


async def _found(gateway: RunningGateway, upstream: RecordingUpstream) -> Acme:
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    return Acme(gateway, upstream, await gateway.create_key("acme"))
