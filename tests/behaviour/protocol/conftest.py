"""A gateway with one tenant, its key, and a recording upstream behind it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway, gateway_beside_upstream, running_gateway
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream


@dataclass(frozen=True, slots=True)
class Acme:
    """The tenant `acme` with the pets document, and everything that talks to it."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    key: str
    slug: str = "acme"


@pytest.fixture
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture
async def gateway(database_url: str, redis_url: str, upstream: RecordingUpstream) -> AsyncGenerator[RunningGateway]:
    """A gateway that may call the recording upstream."""
    async with running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as started:
        yield started


@pytest.fixture
async def own_acme(gateway: RunningGateway, upstream: RecordingUpstream) -> Acme:
    """A tenant with four tools, of this test alone."""
    return await _found(gateway, upstream)


@pytest.fixture
def acme(own_acme: Acme) -> Acme:
    """That of the test, unless its module says that its tests share one."""
    return own_acme


@pytest.fixture(scope="module")
async def common_acme(servers: TestServers) -> AsyncGenerator[Acme]:
    """The same for all tests of a module, for those that change nothing of it."""
    async with gateway_beside_upstream(servers) as (gateway, upstream):
        yield await _found(gateway, upstream)


async def _found(gateway: RunningGateway, upstream: RecordingUpstream) -> Acme:
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    return Acme(gateway, upstream, await gateway.create_key("acme"))
