"""Access tokens from a real token endpoint: what is sent to it, and that it is asked no more than needed."""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl

import anyio
import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.errors import TokenRefused, UpstreamError
from gateway.redis.caches.oauth_tokens import SharedTokens
from gateway.redis.event_bus import EventBus
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.loopback import Answer, Exchange, Loopback, body, loopback, states

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SOURCE = SourceId("src_1")
CLIENT = Credential(username="client:1", value="s&cret é")
JSON = "Content-Type: application/json"


def granted(value: str = "tok-1", **more: object) -> bytes:
    """The answer of an endpoint that gives a token."""
    content = {"access_token": value, "token_type": "Bearer", "expires_in": 3600, **more}
    return body(json.dumps({key: item for key, item in content.items() if item is not None}).encode(), JSON)


def scheme(server: Loopback, *scopes: str) -> SchemePlan:
    """Client credentials at this server."""
    url = f"http://{server.authority}/token"
    return SchemePlan(name="oauth", kind=SchemeKind.CLIENT_CREDENTIALS, token_url=url, scopes=scopes)


@asynccontextmanager
async def endpoint(answer: Answer) -> AsyncGenerator[tuple[Loopback, UpstreamClient]]:
    """A token endpoint, and a pool that may dial it."""
    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        yield server, upstream


async def token(tokens: Tokens, plan: SchemePlan, *, tenant: TenantId = ACME, client: Credential = CLIENT) -> str:
    """The token that a request of this scheme gets."""
    found: Mapping[str, Credential] = await tokens.exchange(tenant, SOURCE, ((plan,),), {"oauth": client})
    assert found["oauth"].username is None
    return found["oauth"].value


async def test_the_client_sends_its_name_and_scopes() -> None:
    """RFC 6749: sections 2.3.1 and 4.4.2, the credential encoded as a form before it is encoded in base64."""
    async with endpoint(states(granted())) as (server, upstream):
        assert await token(Tokens(upstream), scheme(server, "read", "write:x")) == "tok-1"

    [exchange] = server.exchanges
    assert exchange.line == "POST /token"
    assert parse_qsl(exchange.body.decode()) == [("grant_type", "client_credentials"), ("scope", "read write:x")]
    assert exchange.header("content-type") == ["application/x-www-form-urlencoded"]
    [authorization] = exchange.header("authorization")
    assert b64decode(authorization.removeprefix("Basic ")) == b"client%3A1:s%26cret+%C3%A9"


async def test_many_calls_send_one_token_request() -> None:
    """Ours: one request to the endpoint, however many calls wait for the token."""
    gate = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        await gate.wait()
        await exchange.write(granted())
        return True

    async with endpoint(answer) as (server, upstream):
        tokens, found = Tokens(upstream), list[str]()

        async def ask() -> None:
            found.append(await token(tokens, scheme(server)))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(ask)
            with anyio.fail_after(30):
                await server.arrived.wait()
            gate.set()
        await ask()

    assert found == ["tok-1"] * 21
    assert len(server.exchanges) == 1


async def test_a_cancelled_request_leaves_the_fetch_to_the_next() -> None:
    """Ours: a caller that goes away costs the others nothing but time."""
    gate = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        if not gate.is_set():
            await asyncio.Event().wait()
        await exchange.write(granted())
        return True

    async with endpoint(answer) as (server, upstream), anyio.create_task_group() as group:
        tokens, leader = Tokens(upstream), anyio.CancelScope()

        async def lead() -> None:
            with leader:
                await token(tokens, scheme(server))

        group.start_soon(lead)
        with anyio.fail_after(30):
            await server.arrived.wait()
            gate.set()
            leader.cancel()
            assert await token(tokens, scheme(server)) == "tok-1"


async def test_tokens_are_kept_apart() -> None:
    """Ours: by tenant, scopes and client; a new secret never gets an old one's token (TEN-4)."""
    numbers = iter(range(1, 9))

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(granted(f"tok-{next(numbers)}"))
        return True

    async with endpoint(answer) as (server, upstream):
        tokens, plan = Tokens(upstream), scheme(server)
        first = await token(tokens, plan)
        others = {
            await token(tokens, plan, tenant=GLOBEX),
            await token(tokens, scheme(server, "read")),
            await token(tokens, plan, client=Credential(username="client:1", value="new")),
        }
        again = await token(tokens, plan)

    assert first == again
    assert first not in others
    assert len(others) == 3


@pytest.mark.parametrize("expires_in", [10**400, "1e999", "soon", None, True])
async def test_a_lifetime_that_is_no_number_of_seconds_ends_no_call(expires_in: object) -> None:
    """Ours: nothing that a token endpoint declares ends a call (OAS-4)."""
    async with endpoint(states(granted(expires_in=expires_in))) as (server, upstream):
        tokens = Tokens(upstream)
        assert [await token(tokens, scheme(server)) for _ in range(2)] == ["tok-1", "tok-1"]

    assert len(server.exchanges) == 1


@pytest.mark.parametrize("expires_in", [0, 1, "5"])
async def test_a_token_that_is_about_to_end_is_used_once(expires_in: object) -> None:
    """Ours: a call does not set out with a token that ends on its way."""
    answers = iter([granted("tok-1", expires_in=expires_in), granted("tok-2")])

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(next(answers))
        return True

    async with endpoint(answer) as (server, upstream):
        tokens = Tokens(upstream)
        if expires_in == 0:
            assert [await token(tokens, scheme(server)) for _ in range(3)] == ["tok-1", "tok-2", "tok-2"]
        else:
            assert await token(tokens, scheme(server)) == "tok-1"


async def test_a_refused_token_is_fetched_again() -> None:
    """Ours: a token that the upstream refuses is not used again."""
    answers = iter([granted("tok-1"), granted("tok-2")])

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(next(answers))
        return True

    async with endpoint(answer) as (server, upstream):
        tokens, plan = Tokens(upstream), scheme(server)
        assert await token(tokens, plan) == "tok-1"
        await tokens.forget(ACME, SOURCE, ((plan,),), {"oauth": CLIENT})
        assert await token(tokens, plan) == "tok-2"


async def test_a_server_may_receive_the_client_in_the_body() -> None:
    """Ours: both ways of RFC 6749 section 2.3.1 are known."""

    async def answer(exchange: Exchange) -> bool:
        fields = dict(parse_qsl(exchange.body.decode()))
        is_known = fields.get("client_secret") == CLIENT.value and fields.get("client_id") == CLIENT.username
        await exchange.write(granted() if is_known else body(b'{"error":"invalid_client"}', JSON, status=401))
        return True

    async with endpoint(answer) as (server, upstream):
        assert await token(Tokens(upstream), scheme(server)) == "tok-1"

    assert [bool(exchange.header("authorization")) for exchange in server.exchanges] == [True, False]


@pytest.mark.parametrize(
    "answer",
    [
        body(b'{"error":"invalid_scope","error_description":"s&cret"}', JSON, status=400),
        body(b"{}", JSON),
        body(b"<html>", "Content-Type: text/html"),
        body(b'{"access_token":7}', JSON),
        body(b'{"access_token":"a\\r\\nX: y"}', JSON),
        body(b'{"access_token":""}', JSON),
        body(b"", "Location: http://127.0.0.1:1/", status=302),
        granted(token_type="mac"),
    ],
)
async def test_a_response_without_a_token_is_an_error_that_repeats_nothing(answer: bytes) -> None:
    """Ours: the error names the scheme and the status, never what was sent or answered."""
    async with endpoint(states(answer)) as (server, upstream):
        with pytest.raises(TokenRefused) as caught:
            await token(Tokens(upstream), scheme(server))

    assert "oauth" in caught.value.message
    assert CLIENT.value not in caught.value.message
    assert "s&cret" not in caught.value.message


async def test_the_token_endpoint_is_guarded_like_every_upstream() -> None:
    """Ours: a document cannot have client secrets sent into the operator's network (TEN-4)."""
    async with loopback(states(granted())) as server, UpstreamClient() as upstream:
        with pytest.raises(UpstreamError):
            await token(Tokens(upstream), scheme(server))

    assert server.exchanges == []


async def test_a_stored_token_is_sent_as_it_is() -> None:
    """Ours: a credential without a client name is a token already."""
    async with endpoint(states(granted())) as (server, upstream):
        stored = {"oauth": Credential(value="mine")}
        assert await Tokens(upstream).exchange(ACME, SOURCE, ((scheme(server),),), stored) is stored

    assert server.exchanges == []


async def test_replicas_share_one_token_request(redis_url: str) -> None:
    """Ours: a token that one replica fetched is used by all (OAS-2)."""
    gate = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        await gate.wait()
        await exchange.write(granted())
        return True

    secret = b"k" * 32
    async with (
        endpoint(answer) as (server, upstream),
        EventBus(redis_url, secret=secret) as one,
        EventBus(redis_url, secret=secret) as two,
    ):
        replicas = [Tokens(upstream, SharedTokens(bus, secret=secret)) for bus in (one, two)]
        found: list[str] = []

        async def ask(tokens: Tokens) -> None:
            found.append(await token(tokens, scheme(server)))

        async with anyio.create_task_group() as group:
            for tokens in replicas:
                group.start_soon(ask, tokens)
            with anyio.fail_after(30):
                await server.arrived.wait()
            gate.set()
        third: Any = Tokens(upstream, SharedTokens(two, secret=secret))
        await ask(third)

    assert found == ["tok-1"] * 3
    assert len(server.exchanges) == 1


async def test_without_redis_each_replica_fetches_its_own_token() -> None:
    """Ours: the shared cache saves requests, and is not required (SRV-4)."""
    async with endpoint(states(granted())) as (server, upstream):
        bus = EventBus("unix:///nowhere/redis.sock", secret=b"k" * 32)
        tokens = Tokens(upstream, SharedTokens(bus, secret=b"k" * 32))

        assert await token(tokens, scheme(server)) == "tok-1"
        await tokens.forget(ACME, SOURCE, ((scheme(server),),), {"oauth": CLIENT})
        assert await token(tokens, scheme(server)) == "tok-1"
