"""Introspection at a real endpoint: which answers count how long, and what else is asked meanwhile."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import anyio
import pytest
from msgspec.structs import replace as replace_struct

from gateway.domain.credentials import AccountTerms, TokenExchange
from gateway.domain.identifiers import KeyId, TenantId, new_issuer_id
from gateway.domain.refusals import SecretUnavailable
from gateway.domain.tenancy.issuers import IntrospectionClient, Issuer, TenantIssuers
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.secret_references import SecretReference, SecretStoreKind
from gateway.errors import LimitExceeded, Unauthenticated, Unavailable
from gateway.identity import introspection
from gateway.identity.access_tokens import TokenRejected, VerifiedToken
from gateway.identity.authenticator import Authenticator
from gateway.identity.introspection import Introspection
from gateway.identity.issued_tokens import IssuedTokens
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.identity.own_audiences import OwnAudiences
from gateway.identity.people import IssuerDirectory, People, Target, TokenVerifiers
from gateway.upstream.auth.signing_keys import SigningKeys
from gateway.upstream.client import UpstreamClient
from tests.support.issuer import INTROSPECTION_SECRET, OpaqueTokens, issuer_of, new_issuer
from tests.support.upstream import recording_upstream
from tests.unit.identity.test_authenticator import DIGESTS, OPERATOR_KEY
from tests.unit.identity.test_people import Published, Stored

ACME = TenantId("ten_acme")
URL = "https://gateway.example/t/acme/mcp"


@dataclass(slots=True)
class IntrospectionBench:
    """The gateway's introspection, and the tokens of one issuer; `opened` has the reads of the client's secret."""

    tokens: OpaqueTokens
    issuer: Issuer
    asks: Introspection
    opened: list[int]

    async def verify(self, token: str) -> VerifiedToken:
        """Verify an opaque token at the tenant's URL."""
        found = TenantIssuers(tenant=ACME, issuers=(self.issuer,))
        return await self.asks.verify(token, found, audience=URL, client="192.0.2.1")


@pytest.fixture
async def bench() -> AsyncGenerator[IntrospectionBench]:
    """An issuer that is asked about all tokens."""
    async with recording_upstream() as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        tokens = OpaqueTokens(new_issuer(server))
        client = IntrospectionClient(client_id="gateway", url=f"{server.url}/introspect", tokens="all")
        issuer = issuer_of("corp", url=server.url, introspection=client)

        opened: list[int] = []

        async def open_secret(tenant: TenantId, wanted: Issuer) -> str:
            assert (tenant, wanted.id) == (ACME, issuer.id)
            opened.append(wanted.version)
            return INTROSPECTION_SECRET

        yield IntrospectionBench(tokens, issuer, Introspection(upstream, open_secret), opened)


async def test_one_request_serves_all_callers_of_a_token(bench: IntrospectionBench) -> None:
    """Ours: concurrent and later checks share an answer; the secret is read once per version of the issuer (TEN-2)."""
    bench.tokens.add("token-of-ada", URL, groups=["keepers"])
    found = await asyncio.gather(*(bench.verify("token-of-ada") for _ in range(20)))
    bench.tokens.add("token-of-bob", URL, sub="bob")
    bob = await bench.verify("token-of-bob")
    bench.issuer = replace(bench.issuer, version=2)
    await bench.verify("token-of-ada")

    assert {(one.person.subject, one.person.groups) for one in found} == {("ada", frozenset({"keepers"}))}
    assert all(0 < one.fresh_s <= 30 for one in found)
    assert bob.person.subject == "bob"
    assert bench.tokens.asked == ["token-of-ada", "token-of-bob", "token-of-ada"]
    assert bench.opened == [1, 2]


async def test_an_answer_never_counts_beyond_the_end_of_its_token(bench: IntrospectionBench) -> None:
    """Ours: a token that ends soon is asked about again at its end, not at the end of the cache time (TEN-2)."""
    bench.tokens.add("token-of-ada", URL)
    end = int(bench.tokens.states["token-of-ada"]["iat"]) + 2  # type: ignore[call-overload]  # no bytes
    bench.tokens.add("token-of-ada", URL, exp=end)

    assert (await bench.verify("token-of-ada")).fresh_s <= 2


async def test_a_refused_token_is_not_introspected_again_at_once(bench: IntrospectionBench) -> None:
    """Ours: a client that repeats a refused token costs the issuer one request in three seconds (ISO-6)."""
    for _ in range(10):
        with pytest.raises(TokenRejected):
            await bench.verify("invented-token")

    assert bench.tokens.asked == ["invented-token"]


async def test_known_tokens_do_not_wait_for_unknown_ones(
    bench: IntrospectionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: while invented tokens fill every place at a slow issuer, a known token has its own; few wait (ISO-6)."""
    monkeypatch.setattr(introspection, "MAX_WAITING_LOOKUPS", 10)
    client = bench.issuer.introspection
    assert client is not None
    bench.issuer = replace(bench.issuer, introspection=replace(client, cache_s=0))
    bench.tokens.add("token-of-ada", URL)
    await bench.verify("token-of-ada")
    server, bench.tokens.issuer.upstream.gate = bench.tokens.issuer.upstream, asyncio.Event()
    server.arrived.clear()
    crowd = [asyncio.create_task(bench.verify(f"invented-{number}")) for number in range(14)]
    await asyncio.wait_for(server.arrived.wait(), 10)
    with pytest.raises(Unavailable, match="wait"):
        await bench.verify("invented-late")
    seen = len(server.seen)
    known = asyncio.create_task(bench.verify("token-of-ada"))
    with anyio.fail_after(10):
        while not [each for each in server.seen[seen:] if b"token-of-ada" in each.body]:  # noqa: ASYNC110  # no event
            await anyio.sleep(0.01)
    assert server.gate is not None
    server.gate.set()

    assert (await known).person.subject == "ada"
    outcomes = await asyncio.gather(*crowd, return_exceptions=True)
    assert all(isinstance(outcome, TokenRejected) for outcome in outcomes)


async def test_invented_tokens_use_up_nothing_of_verified_ones(
    bench: IntrospectionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a JWT of the issuer is asked about while the tenant's limit of invented ones is used up (ISO-6)."""
    monkeypatch.setattr(bench.asks, "_all", TokenBuckets(rate=1e-6, burst=1))
    monkeypatch.setattr(bench.asks, "_each", TokenBuckets(rate=1e-6, burst=1))
    keys = bench.tokens.issuer
    token = await bench.verify(bench.tokens.add("token-of-ada", URL))
    with pytest.raises(TokenRejected):
        await bench.verify("invented-token")
    with pytest.raises(LimitExceeded):
        await bench.verify("invented-again")

    jwt = bench.tokens.add(keys.token(URL), URL)
    assert (await bench.asks.confirm(ACME, jwt, token)).person.subject == "ada"
    with pytest.raises(TokenRejected):  # revoked
        await bench.asks.confirm(ACME, keys.token(URL, jti="1"), token)
    with pytest.raises(LimitExceeded):
        await bench.asks.confirm(ACME, keys.token(URL, jti="2"), token)
    bob = replace(token, person=replace(token.person, subject="bob"))
    with pytest.raises(TokenRejected):
        await bench.asks.confirm(ACME, keys.token(URL, sub="bob"), bob)


async def test_a_stream_continues_only_while_the_issuer_vouches_for_its_token(bench: IntrospectionBench) -> None:
    """Ours: revoked tokens, issuers that do not answer, and those that are not asked any more end streams (TEN-2)."""
    jwt = bench.tokens.add(bench.tokens.issuer.token(URL), URL)
    opaque = bench.tokens.add("token-of-ada", URL)
    client = bench.issuer.introspection
    assert client is not None
    eager = replace(bench.issuer, introspection=replace(client, cache_s=0))
    silent = replace(bench.issuer, introspection=None)

    active = [await bench.asks.is_active(ACME, eager, token) for token in (jwt, opaque)]
    unasked = [await bench.asks.is_active(ACME, silent, token) for token in (jwt, opaque)]
    bench.tokens.is_broken = True
    broken = await bench.asks.is_active(ACME, eager, opaque)
    bench.tokens.is_broken = False
    bench.tokens.states.clear()
    revoked = await bench.asks.is_active(ACME, eager, jwt)

    assert (active, unasked, broken, revoked) == ([True, True], [True, False], False, False)


async def test_a_caller_is_remembered_no_longer_than_the_answer_counts(bench: IntrospectionBench) -> None:
    """Ours: the memory of callers does not prolong an answer; open streams are compared with the issuer (TEN-2)."""
    client = bench.issuer.introspection
    assert client is not None
    issuer = replace(bench.issuer, introspection=replace(client, cache_s=0))
    stored = Stored()
    stored.issuers = {"acme": TenantIssuers(tenant=ACME, issuers=(issuer,))}
    directory = IssuerDirectory(stored.find_issuers, interval_s=0.01)
    verifiers = TokenVerifiers(Published(), IssuedTokens(SigningKeys([b"k" * 32])), bench.asks)
    people = People(directory, verifiers, stored, public_url="https://gateway.example")
    credentials = Authenticator(stored, digests=DIGESTS, operator_key=OPERATOR_KEY, people=people)
    token, target = bench.tokens.add("token-of-ada", URL), Target("http://inside", "/t/acme/mcp")

    callers = [await credentials.authenticate(f"Bearer {token}", target=target) for _ in range(3)]
    ada = callers[0]
    assert isinstance(ada, Principal)
    stored.stored[ada.key] = (stored.stored[ada.key][0], "acme")
    valid = await credentials.still_valid(ada)
    bench.tokens.states.clear()

    assert (len(set(map(id, callers))), bench.tokens.asked) == (1, [token] * 4)
    assert (valid, await credentials.still_valid(ada)) == (True, False)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(f"Bearer {token}", target=target)


async def test_an_opaque_token_for_the_gateway_is_recognised_by_its_own_issuer_only(bench: IntrospectionBench) -> None:
    """Ours: tokens of accounts and exchanges; a token of another server is not shown to the issuer (TEN-4)."""
    stored, url = Stored(), bench.issuer.url
    stored.issuers = {"acme": TenantIssuers(tenant=ACME, issuers=(bench.issuer,))}
    directory = IssuerDirectory(stored.find_issuers, interval_s=0.01)
    own = OwnAudiences(directory, bench.asks, public_url="https://gateway.example")
    ada = Principal(tenant=ACME, slug="acme", key=KeyId("key_1"), subject="corp:ada", scopes=frozenset())
    account = AccountTerms(authorization_url=f"{url}/authorize", token_url=f"{url}/token", client_id="gateway")
    exchange = TokenExchange(issuer=bench.issuer.id, issuer_name="corp", token_url="https://x.example", client_id="g")
    mine, other = (
        bench.tokens.add("token-for-the-gateway", URL),
        bench.tokens.add("token-for-an-api", "https://hr.example"),
    )

    for terms in (account, exchange):
        assert [await own.accept_opaque(ada, token, terms) for token in (mine, other, "ended-token")] == [
            True,
            False,
            False,
        ]
    bench.tokens.asked.clear()
    elsewhere = (
        replace_struct(account, token_url="https://x.example"),
        replace_struct(exchange, issuer=new_issuer_id()),
    )
    fresh = bench.tokens.add("token-of-another-server", URL)
    assert [await own.accept_opaque(ada, fresh, terms) for terms in elsewhere] == [False, False]
    assert not await own.accept_opaque(ada, bench.tokens.issuer.token(URL), exchange)
    assert bench.tokens.asked == []
    bench.tokens.is_broken = True
    with pytest.raises(Unavailable):
        await own.accept_opaque(ada, bench.tokens.add("token-of-bob", URL), exchange)


async def test_a_flood_of_invented_tokens_reads_an_external_secret_once(
    bench: IntrospectionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: while the store of the client's secret fails, strangers cannot make the gateway flood it (ISO-6)."""
    monkeypatch.setattr(introspection, "SECRET_RETRY_S", 60.0)
    reads: list[TenantId] = []

    async def open_secret(tenant: TenantId, _: Issuer) -> str:
        reads.append(tenant)
        raise SecretUnavailable("vault has no secret at this path")

    client, reference = bench.issuer.introspection, SecretReference(store=SecretStoreKind.FILE, path="idp")
    assert client is not None
    bench.issuer = replace(bench.issuer, introspection=replace(client, client_secret_reference=reference))
    async with UpstreamClient() as upstream:
        bench.asks = Introspection(upstream, open_secret)
        for number in range(20):
            with pytest.raises(Unavailable):
                await bench.verify(f"invented-token-{number}")

    assert reads == [ACME]
