"""Attacks by endpoints of identity: a provider's metadata names a private server that the operator does not permit.

Each way sends its request with the component that sends it in the gateway. An outbound client that may reach the server
shows that the way leads there; without the permission, nothing arrives.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import pytest

from gateway.domain.credentials import TokenExchange
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.tenancy.issuers import (
    AdmissionRule,
    IdentityClaims,
    IntrospectionClient,
    Issuer,
    SignInClient,
    TenantIssuers,
)
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import EgressDenied, GatewayError, Unavailable
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.introspection import Introspection
from gateway.identity.oauth.relying_party import AuthorizationTerms, ClaimsState, RelyingParty
from gateway.upstream.auth.key_sets import KeySets, discover
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.auth.token_endpoint import (
    fetch_tokens,
    revoke_token,
    token_exchange,
    token_refresh,
    token_revocation,
)
from gateway.upstream.client import UpstreamClient
from tests.support.issuer import LocalProvider, issuer_of, new_issuer
from tests.support.upstream import RecordingUpstream, recording_upstream

ACME = TenantId("ten_acme")
CLIENT = Credential(username="gateway", value="secret")
TOKENS = ProviderTokens(access_token="old", access_ends_at=0.0, refresh_token="refresh")
ADA = IdentityClaims(subject="ada", groups=frozenset(), scopes=frozenset({"openid"}))
TERMS = AuthorizationTerms(redirect_uri="https://gateway.example/back", state="s", nonce="n", verifier="v", scopes=())


@dataclass(frozen=True, slots=True)
class Metadata:
    """A provider that may be reached, and the private server that its metadata names."""

    provider: LocalProvider
    private: RecordingUpstream

    def issuer(self, **client: str) -> Issuer:
        """The issuer as it is stored."""
        own = self.provider.issuer.url
        client = {"token_url": f"{own}/token", **client}
        return issuer_of(
            "corp",
            url=own,
            jwks_url=f"{own}/keys",
            rules=(AdmissionRule(group="keepers"),),
            sign_in=SignInClient(client_id="gateway", **client),  # type: ignore[arg-type]  # strings only
        )


@pytest.fixture
async def metadata() -> AsyncGenerator[Metadata]:
    """The provider signs `ada` in, without groups."""
    async with recording_upstream() as server, recording_upstream() as private:
        provider = LocalProvider(new_issuer(server))
        provider.publish()
        yield Metadata(provider, private)


async def by_code(upstream: UpstreamClient, found: Metadata) -> object:
    """The token endpoint, at a sign-in."""
    issuer = found.issuer(token_url=f"{found.private.url}/token")
    return await RelyingParty(upstream, KeySets(upstream)).exchange_code(ACME, issuer, "secret", TERMS, code="code")


async def by_refresh(upstream: UpstreamClient, found: Metadata) -> object:
    """The token endpoint, at a refresh."""
    issuer = found.issuer(token_url=f"{found.private.url}/token")
    return await RelyingParty(upstream, KeySets(upstream)).refresh(ACME, issuer, "secret", TOKENS, before=ADA)


async def by_userinfo(upstream: UpstreamClient, found: Metadata) -> object:
    """The UserInfo endpoint, for groups that the ID token lacks; the refresh continues, and reports that it was not
    read.
    """
    issuer = found.issuer(userinfo_url=f"{found.private.url}/userinfo")
    person = await RelyingParty(upstream, KeySets(upstream)).refresh(ACME, issuer, "secret", TOKENS, before=ADA)
    if person.state is ClaimsState.UNAVAILABLE:
        raise Unavailable("UserInfo")
    return person


async def by_keys(upstream: UpstreamClient, found: Metadata) -> object:
    """The signing keys."""
    return await KeySets(upstream).find(ACME, f"{found.private.url}/keys", "rsa")


async def by_discovery(upstream: UpstreamClient, found: Metadata) -> object:
    """The metadata."""
    return await discover(upstream, ACME, found.private.url)


async def by_introspection(upstream: UpstreamClient, found: Metadata) -> object:
    """The introspection endpoint."""

    async def open_secret(_: TenantId, __: Issuer) -> str:
        return "secret"

    client = IntrospectionClient(client_id="gateway", url=f"{found.private.url}/introspect", tokens="all")
    issuers = TenantIssuers(tenant=ACME, issuers=(replace(found.issuer(), introspection=client),))
    return await Introspection(upstream, open_secret).verify(
        "opaque-token-of-ada", issuers, audience="a", client="192.0.2.1"
    )


async def by_exchange(upstream: UpstreamClient, found: Metadata) -> object:
    """The token endpoint, for an exchange of the caller's token."""
    url = f"{found.private.url}/token"
    terms = TokenExchange(issuer=IssuerId("iss_1"), issuer_name="corp", token_url=url, client_id="gateway")
    return await Tokens(upstream).obtain(ACME, "credential", token_exchange(terms, "hr", CLIENT, "token-of-ada"))


async def by_account(upstream: UpstreamClient, found: Metadata) -> object:
    """The token endpoint of a user's account."""
    return await fetch_tokens(upstream, ACME, token_refresh("hr", f"{found.private.url}/token", CLIENT, "refresh"))


async def by_revocation(upstream: UpstreamClient, found: Metadata) -> object:
    """The revocation endpoint of a user's account."""
    return await revoke_token(upstream, ACME, token_revocation("hr", f"{found.private.url}/revoke", CLIENT, "refresh"))


Way: TypeAlias = Callable[[UpstreamClient, Metadata], Awaitable[object]]
WAYS: Mapping[Way, type[GatewayError]] = {
    by_code: EgressDenied,
    by_refresh: EgressDenied,
    by_userinfo: Unavailable,
    by_keys: Unavailable,
    by_discovery: GatewayError,
    by_introspection: Unavailable,
    by_exchange: EgressDenied,
    by_account: EgressDenied,
    by_revocation: EgressDenied,
}
"""The error of each way if its server is not permitted."""


async def test_no_endpoint_of_identity_leads_to_a_private_server(metadata: Metadata) -> None:
    """Ours: each endpoint is reached with the operator's permission only, whatever metadata contain (ISO-5)."""
    own, private = metadata.provider.issuer.upstream.authority, metadata.private
    for way, error in WAYS.items():
        private.seen.clear()
        async with UpstreamClient(egress_allow=[own]) as guarded:
            with pytest.raises(error):
                await way(guarded, metadata)
        assert not private.seen, way
        async with UpstreamClient(egress_allow=[own, private.authority]) as permitted:
            with suppress(GatewayError, TokenRejected):
                await way(permitted, metadata)
        assert private.seen, f"{way} leads nowhere"
