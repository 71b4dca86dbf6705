"""A gateway whose tenant `acme` signs people in at a provider, and an application of one person."""

from collections.abc import AsyncGenerator, Mapping

import pytest

from tests.support.authorization import Application, register
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, PrivateKey, add_provider, new_issuer, new_keys
from tests.support.serving import http_client
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]


@pytest.fixture(scope="module")
def provider_keys() -> Mapping[str, PrivateKey]:
    """The keys of the provider, which every test of a module starts with."""
    return new_keys()


@pytest.fixture
async def application(
    gateway: RunningGateway, upstream: RecordingUpstream, provider_keys: Mapping[str, PrivateKey]
) -> AsyncGenerator[Application]:
    """An application that the administrator of `acme` registered; its person is `corp:ada`."""
    await gateway.create_tenant("acme")
    provider = LocalProvider(new_issuer(upstream, provider_keys))
    await add_provider(gateway, "acme", provider, sign_in={**provider.client, "registration": True})
    client = await register(gateway)
    async with http_client(timeout=30) as http:
        yield Application(gateway, provider, client["id"], http)
