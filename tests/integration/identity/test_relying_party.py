"""The gateway as a client of a provider: what a refresh of its tokens brings."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.tenancy.issuers import AdmissionRule, IdentityClaims, Issuer, SignInClient
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import TokenRefused
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.oauth.relying_party import ClaimsState, RelyingParty
from gateway.upstream.auth.key_sets import KeySets
from gateway.upstream.client import UpstreamClient
from tests.support.issuer import LocalProvider, new_issuer
from tests.support.upstream import Seen, recording_upstream

ACME = TenantId("ten_acme")
TOKENS = ProviderTokens(access_token="old", access_ends_at=0.0, refresh_token="first")
ADA = IdentityClaims(subject="ada", groups=frozenset({"before"}), scopes=frozenset({"openid"}))
NOW = datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Party:
    """The gateway's client, and its provider."""

    party: RelyingParty
    issuer: Issuer
    provider: LocalProvider

    def sign_in(self, **more: Any) -> SignInClient:
        """The gateway's client at the provider."""
        return SignInClient(client_id="gateway", token_url=f"{self.issuer.url}/token", **more)

    def with_userinfo(self) -> "Party":
        """The same, at a provider that has a UserInfo endpoint; it answers with the members of the one document."""
        return replace(
            self, issuer=replace(self.issuer, sign_in=self.sign_in(userinfo_url=f"{self.issuer.url}/userinfo"))
        )

    async def found(self, *, before: IdentityClaims = ADA, **claims: Any) -> tuple[IdentityClaims, ClaimsState]:
        """The claims after a refresh, and their state."""
        self.provider.publish(**claims)
        found = await self.party.refresh(ACME, self.issuer, "secret", TOKENS, before=before)
        return found.claims, found.state

    async def refresh(self, **claims: Any) -> tuple[IdentityClaims, ProviderTokens]:
        """Refresh the tokens; the provider returns these claims of the person."""
        self.provider.publish(**claims)
        found = await self.party.refresh(ACME, self.issuer, "secret", TOKENS, before=ADA)
        return found.claims, found.tokens


@pytest.fixture
async def party() -> AsyncGenerator[Party]:
    """A client whose provider answers with ID tokens of `ada`."""
    async with recording_upstream() as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        issuer = Issuer(
            id=IssuerId("iss_1"),
            name="corp",
            url=server.url,
            jwks_url=f"{server.url}/keys",
            audiences=(),
            algorithms=("RS256",),
            subject_claim="sub",
            groups_claim="groups",
            rules=(AdmissionRule(),),
            max_lifetime_s=3600,
            enabled=True,
            version=1,
            created_at=NOW,
            updated_at=NOW,
            sign_in=SignInClient(client_id="gateway", token_url=f"{server.url}/token"),
        )
        yield Party(RelyingParty(upstream, KeySets(upstream)), issuer, LocalProvider(new_issuer(server)))


async def test_a_refresh_brings_new_claims_and_tokens(party: Party) -> None:
    """OpenID Connect Core §12.2: groups are those of now; a refresh token that is not replaced stays (IDN-2)."""
    claims, tokens = await party.refresh(groups=["now"])
    party.provider.answer["refresh_token"] = "second"
    _, rotated = await party.refresh()

    assert claims == replace(ADA, groups=frozenset({"now"}))
    assert (tokens.access_token, tokens.refresh_token) == ("token-of-the-provider", "first")
    assert rotated.refresh_token == "second"
    sent = party.provider.issuer.upstream.seen[-1].body
    assert sent is not None
    assert b"grant_type=refresh_token&refresh_token=first" in sent


async def test_without_an_id_token_userinfo_describes_the_person(party: Party) -> None:
    """OpenID Connect Core §5.3, §12.2: an ID token is optional; groups are those of now all the same (IDN-2)."""
    party = party.with_userinfo()
    party.provider.answer |= {"id_token": None, "sub": "ada", "groups": ["now"], "scope": "openid tools"}

    claims, tokens = await party.refresh()

    assert claims == replace(ADA, groups=frozenset({"now"}), scopes=frozenset({"openid", "tools"}))
    assert tokens.access_token == "token-of-the-provider"
    asked = party.provider.issuer.upstream.seen[-1]
    assert (asked.target, asked.header("authorization")) == ("/userinfo", "Bearer token-of-the-provider")
    party.provider.answer |= {"sub": "root"}
    with pytest.raises(TokenRejected):
        await party.refresh()


async def test_groups_that_a_refresh_omits_are_unknown(party: Party) -> None:
    """Ours: neither the last groups nor none are assumed; a person who had none has none (IDN-4)."""
    unknown = replace(ADA, groups=frozenset(), has_all_groups=False)
    none = replace(ADA, groups=frozenset())
    party.provider.answer["id_token"] = None
    assert await party.found() == (unknown, ClaimsState.UNDESCRIBED)
    party = party.with_userinfo()
    assert await party.found() == (unknown, ClaimsState.UNDESCRIBED)
    party.provider.answer["sub"] = "ada"
    assert await party.found() == (unknown, ClaimsState.CURRENT)
    assert await party.found(before=none) == (none, ClaimsState.CURRENT)
    assert await party.found(before=unknown) == (unknown, ClaimsState.CURRENT)


async def test_new_tokens_are_not_lost_while_claims_are_unavailable(party: Party) -> None:
    """Ours: a provider that is half away, or whose new key is not published yet, ends no sign-in (IDN-2)."""
    party = party.with_userinfo()
    party.provider.answer["refresh_token"] = "second"
    await party.refresh()
    party.provider.issuer.keys["new"] = party.provider.issuer.keys["rsa"]
    _, tokens = await party.refresh(kid="new")
    assert (tokens.refresh_token, await party.found(kid="new")) == ("second", (ADA, ClaimsState.UNAVAILABLE))

    upstream = party.provider.issuer.upstream

    def respond(seen: Seen) -> bytes:
        upstream.status = 503 if seen.target == "/userinfo" else 200
        return upstream.body

    upstream.respond = respond
    party.provider.answer["id_token"] = None
    assert await party.found() == (ADA, ClaimsState.UNAVAILABLE)


async def test_a_refresh_never_makes_another_person(party: Party) -> None:
    """OpenID Connect Core §12.2: the subject has to be the same (IDN-2)."""
    for claims in ({"sub": "root"}, {"audience": "another-client"}, {"iss": "https://evil.example"}):
        with pytest.raises(TokenRejected):
            await party.refresh(**claims)


async def test_an_unknown_person_differs_from_a_failing_provider(party: Party) -> None:
    """RFC 6749 §5.2: `invalid_grant` is another answer than a provider that fails (IDN-2)."""
    party.provider.answer["error"] = "invalid_grant"
    party.provider.issuer.upstream.status = 400
    with pytest.raises(TokenRefused) as refused:
        await party.refresh()

    assert refused.value.error == "invalid_grant"
