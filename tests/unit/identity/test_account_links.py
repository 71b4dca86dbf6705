"""Links to the pages of accounts: their host, their claims about the user, and the time of a token's refresh."""

import math
import time

import pytest

from gateway.domain.credentials import connect_url
from gateway.domain.http.requests import AccessToken, NamedCredential
from gateway.domain.http.requests import Credential as Secret
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import CredentialMissing
from gateway.identity.oauth.account_tokens import AccountLinks, tokens_of
from gateway.upstream.auth.token_endpoint import TokenResponse

ACME, ADA = TenantId("ten_acme"), KeyId("key_ada")
NAMED = NamedCredential(place="bearer", credential=Secret(value="s"), origins=(), name="tracker", id="cred_1")


def _links(public_url: str | None = "https://gateway.example", key: bytes = b"k") -> AccountLinks:
    return AccountLinks(key, public_url=public_url)


def test_a_link_has_the_public_url_and_no_user() -> None:
    """MCP: the host is always the gateway's, and the URL has no data of the user (TEN-4)."""
    link = _links().of(ACME, "acme", ADA, NAMED)
    place, _, tag = link.partition("?for=")
    assert place == "https://gateway.example/t/acme/connect/tracker/account"
    assert (len(tag), "ada" in tag, "ten_" in tag) == (32, False, False)
    assert _links().callback("acme", "tracker") == connect_url("https://gateway.example", "acme", "tracker", "callback")
    with pytest.raises(CredentialMissing):
        _links(None).of(ACME, "acme", ADA, NAMED)


def test_a_link_is_of_one_tenant_user_and_credential() -> None:
    """Ours: the digest differs for every other user, tenant, credential and key of an installation (TEN-4)."""
    tags = {
        _links().tag(ACME, ADA, "cred_1"),
        _links().tag(TenantId("ten_globex"), ADA, "cred_1"),
        _links().tag(ACME, KeyId("key_bob"), "cred_1"),
        _links().tag(ACME, ADA, "cred_2"),
        _links(key=b"other").tag(ACME, ADA, "cred_1"),
        _links().tag(ACME, KeyId("key_adacred"), "_1"),
    }
    assert len(tags) == 6


@pytest.mark.parametrize(
    ("life_s", "declared", "refresh", "kept_s"),
    [(3600.0, True, "r", 3570.0), (20.0, True, "r", 16.0), (300.0, False, "r", math.inf), (60.0, True, None, math.inf)],
)
def test_tokens_are_used_until_shortly_before_their_end(
    life_s: float, declared: bool, refresh: str | None, kept_s: float
) -> None:
    """Ours: without a declared life, or a token to refresh with, only a refusal of the upstream is the end (TEN-4)."""
    now = time.time()
    token = AccessToken(value="a", expires_at=now + life_s, life_s=life_s)
    made = tokens_of(TokenResponse(access_token=token, refresh_token=refresh, declares_life=declared))
    assert made.access_ends_at - now == pytest.approx(kept_s, abs=0.01)
    before = ProviderTokens(access_token="old", access_ends_at=0, refresh_token="first")
    renewed = tokens_of(TokenResponse(access_token=token, refresh_token=refresh), before)
    assert renewed.refresh_token == (refresh or "first")
