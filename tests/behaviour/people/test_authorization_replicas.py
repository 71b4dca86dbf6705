"""The authorization server over two replicas: each step of a journey is at the other one than the step before."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace

import httpx
import pytest

from tests.support.authorization import Application, InTurn, register
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.replicas import until
from tests.support.servers import TestDatabase
from tests.support.upstream import recording_upstream

PUBLIC = "http://gateway.example"


@pytest.fixture
async def application(database: TestDatabase, redis_url: str) -> AsyncGenerator[Application]:
    """An application of `acme` behind two replicas."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(recording_upstream())
        started = [
            await stack.enter_async_context(
                running_gateway(database.app_url, redis_url, egress_allow=[server.authority], public_url=PUBLIC)
            )
            for _ in range(2)
        ]
        transport = InTurn([httpx.URL(each.url) for each in started])
        http = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=PUBLIC))
        browser = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=PUBLIC))
        gateway: RunningGateway = replace(started[0], url=PUBLIC, http=http)
        await gateway.create_tenant("acme")
        provider = LocalProvider(new_issuer(server))
        await add_provider(gateway, "acme", provider)
        yield Application(gateway, provider, (await register(gateway))["id"], browser)


async def test_a_journey_begins_at_one_replica_and_ends_at_the_other(application: Application) -> None:
    """Ours: requests, sessions, codes, tokens and their ends are known to every replica (IDN-2)."""
    for skipped in range(2):  # an odd number of steps more, so that each step is at each replica once
        for _ in range(skipped):
            await application.gateway.http.get("/t/acme/sign-in")
        application.http.cookies.clear()
        first = await application.tokens()
        assert [await application.status(first["access_token"]) for _ in range(2)] == [200, 200]
        second = (await application.refresh(first["refresh_token"])).json()
        retried = (await application.refresh(first["refresh_token"])).json()
        assert retried["refresh_token"] == second["refresh_token"]
        sent = {"client_id": application.client_id, "token": second["refresh_token"]}
        await application.gateway.http.post("/t/acme/oauth/revoke", data=sent)

        async def is_refused(token: str = second["access_token"]) -> bool:
            return [await application.status(token) for _ in range(2)] == [401, 401]

        await until(is_refused, seconds=5)
