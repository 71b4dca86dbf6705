"""All four kinds of credentials at once: two tenants, two people each, two replicas, both eras."""

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import jwt
import orjson
import pytest
from mcp import Client
from mcp_types import TextContent

from tests.support.accounts import AccountServer, UserBrowser
from tests.support.authorization import Application, InTurn, register
from tests.support.delegation import API, PEOPLE, PUBLIC, TENANTS, Delegating, running_delegation
from tests.support.issuer import LocalProvider
from tests.support.pages import PAGE_HOOKS
from tests.support.servers import TestDatabase
from tests.support.upstream import Seen, recording_upstream

KINDS = ("shared", "exchange", "assertion", "account")
TOOLS = tuple(f"{form}_{kind}" for form in ("tool", "op") for kind in KINDS)
Person = tuple[str, str]
SIGNED_IN = PEOPLE[0]
"""The person of each tenant who has a token of the gateway too."""
AT_ONCE = 32
"""Calls at the same time. More of them wait longer for connections to PostgreSQL than they may on a busy machine."""


@dataclass(slots=True)
class Matrix:
    """The tenants with a credential of each kind, and an account of each person."""

    world: Delegating
    server: AccountServer
    issued: dict[Person, str] = field(default_factory=dict[Person, str])
    """The access token of the issuer for each person."""
    own: dict[Person, str] = field(default_factory=dict[Person, str])
    """The access token of the gateway for one person of each tenant."""
    provided: dict[Person, str] = field(default_factory=dict[Person, str])
    """The provider's access tokens of the people with a token of the gateway; the gateway keeps them sealed."""

    async def declare(self, tenant: str) -> None:
        """The credential of accounts."""
        allow = {"allow": [self.server.upstream.authority]}
        (await self.world.gateway.admin.put(f"/tenants/{tenant}/egress", json=allow)).raise_for_status()
        url = self.server.upstream.url
        urls = {"authorization_url": f"{url}/authorize", "token_url": f"{url}/token"}
        client = {"client_id": "gateway-client", "value": "s3cret-of-the-client", "scopes": ["read"]}
        await self.world.declare(tenant, "account", {"kind": "user", **client, **urls})

    async def connect(self, tenant: str, person: str) -> None:
        """Open the link of a refused call in the browser of the person, who signs in at the tenant's provider."""
        refused = await self.world.call(tenant, self.world.token(tenant, person), "tool_account")
        link = re.search(rf"{PUBLIC}/\S+", str(refused["content"]))
        assert link is not None, refused
        async with self.application(tenant, person) as application:
            browser, target = UserBrowser(application.http), link[0].removeprefix(PUBLIC)
            await application.follow(await application.http.get(f"/t/{tenant}/sign-in", params={"next": target}))
            done = await browser.connect(target, self.server, f"{tenant}.{person}", name="account", tenant=tenant)
            assert "is connected" in done.text, done.text

    async def sign_in(self, tenant: str, person: str) -> str:
        """The access token that the gateway issues to an application of the person."""
        self.provided[tenant, person] = self.world.issuers[tenant].token("https://provider.example/me", sub=person)
        client_id = (await register(self.world.gateway, tenant))["id"]
        async with self.application(tenant, person, client_id) as application:
            token: str = (await application.tokens())["access_token"]
        return token

    @asynccontextmanager
    async def application(self, tenant: str, person: str, client_id: str = "-") -> AsyncGenerator[Application]:
        """A browser of the person behind a load balancer, and the provider at which the person signs in."""
        issuer, token = self.world.issuers[tenant], self.provided.get((tenant, person), "-")
        answer = {"token_endpoint": f"{issuer.url}/token", "access_token": token, "expires_in": 3600}
        transport = InTurn([httpx.URL(each.url) for each in self.world.replicas])
        async with httpx.AsyncClient(
            transport=transport, base_url=PUBLIC, headers={"origin": PUBLIC}, event_hooks=PAGE_HOOKS
        ) as http:
            gateway = replace(self.world.gateway, url=PUBLIC, http=http)
            yield Application(gateway, LocalProvider(issuer, {"sub": person}, answer), client_id, http, tenant)


@pytest.fixture
async def matrix(database: TestDatabase, redis_url: str) -> AsyncGenerator[Matrix]:
    """Two replicas; each step of a person's sign-in and connection is at the other one than the step before."""
    sign_in = {"client_id": "gateway", "client_secret": "secret-at-the-provider"}
    async with (
        recording_upstream() as upstream,
        running_delegation(database, redis_url, replicas=2, sign_in=sign_in) as world,
    ):
        server = AccountServer(upstream)
        server.start()
        found = Matrix(world, server)
        for tenant in TENANTS:
            await found.declare(tenant)
        for one in itertools.product(TENANTS, PEOPLE):
            found.issued[one] = world.token(*one)
            await found.connect(*one)
        for tenant in TENANTS:
            found.own[tenant, SIGNED_IN] = await found.sign_in(tenant, SIGNED_IN)
        world.api.seen.clear()
        yield found


async def test_each_identity_arrives_for_its_own_calls_and_no_other_one_ever_does(matrix: Matrix) -> None:
    """Ours: tenants × people × kinds × declared and imported × replicas × eras, all at once (TEN-4, IDN-3).

    A token of the gateway is exchanged by the provider's token of the same sign-in.
    """
    world, tokens = matrix.world, [*matrix.issued.items(), *matrix.own.items()]
    world.api.respond = lambda seen: orjson.dumps({"for": seen.target})
    # who creates keys chooses their subjects, so a subject reaches neither account nor exchange
    keys = {tenant: await world.gateway.create_key(tenant, "mcp", subject="corp:ada") for tenant in TENANTS}
    refusals = {"tool_account": "not connected one yet", "op_exchange": "acts for the person who calls"}
    calls = list(itertools.product(tokens, TOOLS, range(len(world.replicas))))

    async def call(one: Person, token: str, tool: str, replica: int) -> None:
        result = await world.call(*(one[0], token, tool, ".".join(one)), replica=replica)
        assert result["structuredContent"] == {"for": _path(one, tool)}, result

    async def refuse(tenant: str, tool: str, reason: str) -> None:
        result = await world.call(tenant, keys[tenant], tool, "no.body")
        assert (result["isError"], reason in str(result["content"])) == (True, True), result

    async def call_in_session(one: Person, tool: str, client: Client) -> None:
        result = await client.call_tool(tool, {"as": ".".join(one)})
        assert isinstance(result.content[0], TextContent)
        assert orjson.loads(result.content[0].text) == {"for": _path(one, tool)}

    async with AsyncExitStack() as stack:
        sessions = {
            (token, number): await stack.enter_async_context(gateway.client(one[0], token, "legacy"))
            for one, token in tokens
            for number, gateway in enumerate(world.replicas)
        }
        every = [refuse(tenant, *each) for tenant in TENANTS for each in refusals.items()]
        for (one, token), tool, replica in calls:
            every += [call(one, token, tool, replica), call_in_session(one, tool, sessions[token, replica])]
        places = asyncio.Semaphore(AT_ONCE)

        async def wait_for_place(turn: Coroutine[Any, Any, None]) -> None:
            async with places:
                await turn

        await asyncio.gather(*map(wait_for_place, every))

    per_token = len(world.replicas) * 4
    expected = Counter({_path(one, tool): per_token * _ways(one[1]) for one, _ in tokens for tool in TOOLS})
    assert Counter(seen.target for seen in world.api.seen) == expected
    identify = await _identities(world)
    for seen in world.api.seen:
        _, kind, owner = seen.target.split("/")
        assert identify(seen) == (kind, owner.split(".")[0] if kind == "shared" else owner)
        assert not any(token in repr(seen) for token in (*(token for _, token in tokens), *matrix.provided.values()))
    for tenant, endpoint in world.endpoints.items():
        exchanged = {each["subject_token"] for each in endpoint.exchanged}
        assert exchanged == {matrix.provided[tenant, SIGNED_IN], *(matrix.issued[tenant, one] for one in PEOPLE)}
    await _check_records(world)


async def _check_records(world: Delegating) -> None:
    """The trail and the list of accounts name each person, and no token."""
    for tenant in TENANTS:
        trail = (await world.gateway.admin.get(f"/tenants/{tenant}/audit?tool=tool_account&limit=100")).json()["items"]
        # the refused call that led to the connection, and two eras at two replicas
        users = {f"user:corp:{one}": 1 + 4 * _ways(one) for one in PEOPLE}
        assert Counter(one["principal"] for one in trail if one["principal"][:4] == "user") == users
        actions = (await world.gateway.admin.get(f"/tenants/{tenant}/audit?limit=200")).json()["items"]
        connected = [(one["principal"], one["outcome"]) for one in actions if one["action"] == "account.connect"]
        assert sorted(connected) == [(f"user:corp:{one}", "ok") for one in PEOPLE]
        accounts = (await world.gateway.admin.get(f"/tenants/{tenant}/accounts")).json()["items"]
        assert {(one["subject"], one["state"]) for one in accounts} == {(f"corp:{one}", "connected") for one in PEOPLE}
        assert not re.search(r"\.(access|refresh)\.", str(accounts) + str(actions))


def _ways(person: str) -> int:
    """The number of the person's tokens."""
    return 2 if person == SIGNED_IN else 1


def _path(one: Person, tool: str) -> str:
    return f"/{tool.partition('_')[2]}/{'.'.join(one)}"


async def _identities(world: Delegating) -> Callable[[Seen], tuple[str, str]]:
    """A function that reads kind and identity from what arrived, without what was asked for."""
    [key] = jwt.PyJWKSet.from_dict((await world.gateway.http.get("/.well-known/jwks.json")).json()).keys

    def identify(seen: Seen) -> tuple[str, str]:
        [value] = [value.removeprefix("Bearer ") for name, value in seen.headers if name.lower() == "authorization"]
        if value.startswith("secret-of-"):
            return "shared", value.removeprefix("secret-of-")
        if ".access." in value:
            return "account", value.partition(".access.")[0]
        if f".{API}." in value:
            return "exchange", value.partition(f".{API}.")[0]
        claims: dict[str, Any] = jwt.decode(value, key, algorithms=["ES256"], audience=API)
        tenant, person = claims["tenant"], claims["sub"].removeprefix("corp:")
        assert (claims["iss"], claims["principal"]) == (f"{PUBLIC}/t/{tenant}", f"user:corp:{person}")
        assert (claims["tool"].endswith("_assertion"), claims["exp"] - claims["iat"]) == (True, 60)
        return "assertion", f"{tenant}.{person}"

    return identify
