"""The authorization server over two replicas: each step of a journey is at the other one than the step before."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import anyio
import httpx
import pytest

from gateway.identity import authenticator, people
from tests.support.authorization import Application, InTurn, register
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.pages import PAGE_HOOKS
from tests.support.primitives import add, static_tool
from tests.support.replicas import until
from tests.support.servers import TestDatabase, execute
from tests.support.upstream import recording_upstream

PUBLIC = "http://gateway.example"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replicas behind one URL, and an application of `corp:ada` there."""

    application: Application
    replicas: list[RunningGateway]


@pytest.fixture
async def pair(database: TestDatabase, redis_url: str) -> AsyncGenerator[Pair]:
    """The replicas, with the tenant `acme`."""
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
        browser = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url=PUBLIC, event_hooks=PAGE_HOOKS)
        )
        gateway: RunningGateway = replace(started[0], url=PUBLIC, http=http)
        await gateway.create_tenant("acme")
        provider = LocalProvider(new_issuer(server))
        await add_provider(gateway, "acme", provider)
        yield Pair(Application(gateway, provider, (await register(gateway))["id"], browser), started)


async def test_a_journey_begins_at_one_replica_and_ends_at_the_other(pair: Pair) -> None:
    """Ours: requests, sessions, codes, tokens and their ends are known to every replica (IDN-2)."""
    application = pair.application
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


async def test_scopes_of_a_token_count_at_every_replica(pair: Pair) -> None:
    """Ours: a rule about a scope that one replica stores holds at both, for tokens of the provider and ours (IDN-4)."""
    application = pair.application
    gateway, provider = application.gateway, application.provider
    await add(gateway, "acme", "tools", static_tool("say"))
    rule = {"effect": "deny", "who": ["people"], "unless": ["scope:corp:write"], "what": {"names": ["say"]}}
    (await gateway.admin.patch("/tenants/acme/access", json={"rules": [rule]})).raise_for_status()
    provider.answer["scope"] = "openid read write"
    sign_in = {**provider.client, "scopes": ["openid", "read", "write"]}
    (await gateway.admin.patch("/tenants/acme/issuers/corp", json={"sign_in": sign_in})).raise_for_status()
    tokens = [provider.issuer.token(application.resource, scope=scope) for scope in ("read", "write")]
    tokens.append((await application.tokens(scope="write"))["access_token"])

    async def counts() -> bool:
        answers = [await gateway.rpc("acme", token, "tools/list") for token in tokens for _ in pair.replicas]
        return ["say" in answer.text for answer in answers] == [False] * 2 + [True] * 4

    await until(counts, seconds=5)


async def test_a_change_of_an_issuer_reaches_cached_tokens_of_all_replicas(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: tokens of the issuer and of the gateway are checked again before their cached results expire (TEN-2)."""
    monkeypatch.setattr(authenticator, "REMEMBERED_S", 60.0)
    monkeypatch.setattr(people, "FRESH_ISSUERS_S", 600.0)
    application, path = pair.application, "/tenants/acme/issuers/corp"
    bearer = application.provider.issuer.token(application.resource)
    tokens = (bearer, (await application.tokens())["access_token"])

    async def statuses() -> set[int]:
        return {await application.status(token) for token in tokens for _ in pair.replicas}

    assert await statuses() == {200}
    for replica, is_demanded, expected in ((0, True, 401), (1, False, 200), (1, True, 401)):
        changed = await pair.replicas[replica].admin.patch(path, json={"requires_dpop": is_demanded})
        assert changed.status_code == 200, changed.text

        async def is_applied(wanted: int = expected) -> bool:
            return await statuses() == {wanted}

        await until(is_applied, seconds=10)


async def test_a_denied_person_is_refused_everywhere_within_five_seconds(pair: Pair, database: TestDatabase) -> None:
    """Ours: tokens of the issuer and of the gateway, keys and streams; also if no replica gets the event.

    A subject that has not signed in is denied too (TEN-2).
    """
    application, replicas = pair.application, pair.replicas
    issuer, admin = application.provider.issuer, application.gateway.admin
    ada, bob = (issuer.token(application.resource, sub=name) for name in ("ada", "bob"))
    key = await application.gateway.create_key("acme", subject="corp:ada")
    own = (ada, (await application.tokens())["access_token"], key)

    async def statuses(*tokens: str) -> set[int]:
        return {await application.status(token) for token in tokens for _ in replicas}

    async def is_refused() -> bool:
        return await statuses(*own) == {401}

    async def is_admitted() -> bool:
        return await statuses(*own) == {200}

    assert await statuses(*own, bob) == {200}
    leaver = await application.gateway.create_key("acme", subject="corp:eve")
    assert await statuses(leaver) == {200}
    (await admin.post("/tenants/acme/people/corp:eve/deny")).raise_for_status()
    people = (await admin.get("/tenants/acme/people")).json()["items"]
    [person] = [each["id"] for each in people if each["subject"] == "corp:ada"]
    async with (
        replicas[1].client("acme", ada, "2026-07-28") as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        (await admin.post(f"/tenants/acme/people/{person}/deny")).raise_for_status()
        await until(is_refused, seconds=5)
        assert await statuses(leaver, issuer.token(application.resource, sub="eve")) == {401}
        with anyio.fail_after(10):
            async for event in stream:
                assert event
    (await admin.post(f"/tenants/acme/people/{person}/allow")).raise_for_status()
    await until(is_admitted, seconds=5)

    await execute(database.superuser_url, f"update keys set revoked_at = now() where id = '{person}'")
    await until(is_refused, seconds=5)
    assert await statuses(bob) == {200}
