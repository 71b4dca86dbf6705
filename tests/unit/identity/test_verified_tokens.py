"""Cached verifications of access tokens, and all that ends them before the token does."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.errors import Unavailable
from gateway.identity import verified_tokens
from gateway.identity.access_tokens import TokenRejected, VerifiedToken
from gateway.identity.issued_tokens import IssuedTokens
from gateway.identity.limits import CLOCK_SKEW_S
from gateway.identity.verified_tokens import VerifiedTokens
from gateway.upstream.auth.signing_keys import SigningKeys
from tests.support.issuer import issuer_of, public_jwk
from tests.unit.identity.test_issued_tokens import ADA, GRANT, ISSUER, PROVIDER

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
PRIVATE = ec.generate_private_key(ec.SECP256R1())
CORP = issuer_of("corp", algorithms=("ES256",))
MCP, CATS = "https://gateway.example/t/acme/mcp", "https://gateway.example/t/acme/cats/mcp"


@dataclass(slots=True)
class Published:
    """The keys of the issuer; `asked` are the key ids that were looked up."""

    keys: Sequence[Mapping[str, Any]] = field(default_factory=lambda: [public_jwk(PRIVATE, "k")])
    asked: list[str | None] = field(default_factory=list[str | None])
    is_away: bool = False

    async def find(
        self, tenant: TenantId, url: str, kid: str | None, *, state: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        self.asked.append(kid)
        if self.is_away:
            raise Unavailable("the issuer is away")
        return [key for key in self.keys if kid is None or key.get("kid") == kid]


@dataclass(slots=True)
class Tokens:
    """Verified tokens, and what they depend on."""

    published: Published = field(default_factory=Published)
    found: TenantIssuers = field(default_factory=lambda: TenantIssuers(tenant=ACME, issuers=(CORP,)))
    own: IssuedTokens = field(default_factory=lambda: IssuedTokens(SigningKeys([b"k" * 32])))
    verified: VerifiedTokens = field(init=False)

    def __post_init__(self) -> None:
        self.verified = VerifiedTokens(self.published, self.own)

    def token(self, *, kid: str | None = "k", **claims: object) -> str:
        """A token that the issuer signed."""
        now = int(time.time())
        standard = {"iss": CORP.url, "sub": "ada", "aud": MCP, "iat": now, "exp": now + 600, "groups": ["cats"]}
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode({**standard, **claims}, PRIVATE, algorithm="ES256", headers=headers)

    async def verify(self, token: str, audience: str = MCP) -> VerifiedToken:
        """The contents of a token."""
        return await self.verified.verify(token, self.found, audience=audience)


@pytest.fixture
def verifications(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens whose signature is verified."""
    seen: list[str] = []
    decode = jwt.decode

    def spy(token: str, *given: Any, **more: Any) -> Any:
        seen.append(token)
        return decode(token, *given, **more)

    monkeypatch.setattr(jwt, "decode", spy)
    return seen


async def test_a_token_is_verified_once(verifications: list[str]) -> None:
    """Ours: later uses of a token compare what may have changed, and verify no signature (TEN-2)."""
    tokens = Tokens()
    text = tokens.token()

    first, again = await tokens.verify(text), await tokens.verify(text)

    assert again == first
    assert (again.issuer, again.person.groups) == (CORP, frozenset({"cats"}))
    assert verifications == [text]
    assert tokens.published.asked == ["k", "k"], "the key is looked up at each use"


async def test_a_remembered_token_ends_with_its_key() -> None:
    """Ours: neither a removed key, nor another one with its id, nor an ambiguous one verifies a token (TEN-2)."""
    tokens = Tokens()
    text, anonymous = tokens.token(), tokens.token(kid=None)
    key, other = public_jwk(PRIVATE, "k"), public_jwk(ec.generate_private_key(ec.SECP256R1()), "k")
    for given in (text, anonymous):
        await tokens.verify(given)
    for given, keys in ((text, []), (text, [other]), (anonymous, [key, other]), (anonymous, [])):
        tokens.published.keys = keys
        with pytest.raises(TokenRejected):
            await tokens.verify(given)
    tokens.published.keys = [key]
    assert await tokens.verify(text)
    tokens.published.is_away = True
    with pytest.raises(Unavailable):
        await tokens.verify(text)


async def test_a_remembered_token_ends_with_the_settings_of_its_issuer() -> None:
    """Ours: other algorithms or audiences, a shorter life, a disabled or another issuer are verified again (TEN-2)."""
    tokens = Tokens()
    text, elsewhere = tokens.token(), tokens.token(aud="api://gateway")
    revised = replace(CORP, version=2, audiences=("api://gateway",))
    tokens.found = TenantIssuers(tenant=ACME, issuers=(revised,))
    for given in (text, elsewhere):
        assert (await tokens.verify(given)).issuer == revised
    for issuers in (
        (),
        (replace(CORP, version=3),),
        (replace(CORP, version=3, audiences=("api://gateway",), algorithms=("RS256",)),),
        (replace(CORP, version=3, url="https://other.example"),),
        (replace(CORP, id=issuer_of("corp").id, version=2, algorithms=("RS256",)),),
    ):
        tokens.found = TenantIssuers(tenant=ACME, issuers=issuers)
        with pytest.raises(TokenRejected):
            await tokens.verify(elsewhere)


async def test_a_remembered_token_is_of_one_tenant_and_one_audience() -> None:
    """Ours: neither another tenant with this issuer nor another URL gets the result (TEN-2, ISO-1)."""
    tokens = Tokens()
    text = tokens.token()
    await tokens.verify(text)
    with pytest.raises(TokenRejected):
        await tokens.verify(text, CATS)
    tokens.found = TenantIssuers(tenant=GLOBEX, issuers=(replace(CORP, audiences=()),))
    with pytest.raises(TokenRejected):
        await tokens.verify(text, MCP.replace("acme", "globex"))


async def test_a_remembered_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the end of a token is that of its claims, or of the lifetime that the issuer permits (TEN-2)."""
    tokens, now = Tokens(), time.time()
    for life_s, text in ((600, tokens.token()), (CORP.max_lifetime_s, tokens.token(exp=int(now) + 36_000))):
        await tokens.verify(text)
        with monkeypatch.context() as later:
            later.setattr(time, "time", lambda life_s=life_s: now + life_s + CLOCK_SKEW_S + 1)
            with pytest.raises(TokenRejected):
                await tokens.verify(text)


def test_a_token_of_the_gateway_is_verified_once_for_a_tenant_and_a_resource(
    verifications: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the result is for one server, resource and tenant, and ends with the token (TEN-2, IDN-2)."""
    tokens = Tokens()
    text = tokens.own.sign(GRANT, ADA, PROVIDER, issuer=ISSUER, life_s=300)
    verified, place = tokens.verified, {"issuer": ISSUER, "audience": GRANT.resource}
    first = verified.verify_issued(ACME, text, **place)
    assert verified.verify_issued(ACME, text, **place) == first
    assert verifications == [text]

    for other in ({"issuer": f"{ISSUER}x"}, {"audience": CATS}):
        with pytest.raises(TokenRejected):
            verified.verify_issued(ACME, text, **{**place, **other})
    verifications.clear()
    verified.verify_issued(GLOBEX, text, **place)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 301)
    verified.verify_issued(ACME, text, **place)
    assert verifications == [text, text]


async def test_claims_that_are_no_unicode_text_are_verified_each_time(verifications: list[str]) -> None:
    """Ours: a group with a lone surrogate, which JSON permits, refuses no person, and is not stored (TEN-2)."""
    tokens = Tokens()
    text = tokens.token(groups=["cats", "\ud800"], scope="\udfff", aud=[MCP, "\ud800"])
    own = tokens.own.sign(GRANT, replace(ADA, groups=frozenset({"\ud800"})), PROVIDER, issuer=ISSUER, life_s=300)
    for _ in range(2):
        assert "cats" in (await tokens.verify(text)).person.groups
        found = tokens.verified.verify_issued(ACME, own, issuer=ISSUER, audience=GRANT.resource)
        assert found.person.groups == {"\ud800"}
    assert verifications == [text, own] * 2


async def test_remembered_tokens_are_bounded_and_contain_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a tenant with many tokens uses its share of the memory, and no text of a token is kept (ISO-6, TEN-2)."""
    monkeypatch.setattr(verified_tokens, "MAX_TOKEN_CACHE_BYTES", 40_000)
    tokens = Tokens()
    texts = [tokens.token(jti=str(number)) for number in range(30)]
    for text in texts:
        await tokens.verify(text)

    held = tokens.verified._held  # pyright: ignore[reportPrivateUsage]
    assert 0 < held.used_by(ACME) <= 10_000
    assert 5 < len(held) < 30
    kept = [repr(held.get(ACME, mark)) for _, mark in tuple(held._entries)]  # pyright: ignore[reportPrivateUsage]
    assert not [text for text in texts if text.rpartition(".")[2] in "".join(kept)]
