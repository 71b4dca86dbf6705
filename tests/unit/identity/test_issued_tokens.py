"""Access tokens that the gateway issues: what they contain, and which other tokens are none."""

from dataclasses import replace
from datetime import timedelta

import jwt
import pytest

from gateway.domain.tenancy.issuers import AdmissionRule, IdentityClaims
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.issued_tokens import IssuedTokens
from gateway.upstream.auth.signing_keys import SigningKeys
from tests.integration.store.samples import NOW, make_client, make_grant, make_issuer, make_person, make_sign_in
from tests.integration.store.samples import make_tenant as new_tenant

SEED, OLDER = b"s" * 32, b"o" * 32
TENANT = new_tenant()
PROVIDER = replace(make_issuer("corp"), rules=(AdmissionRule(group="keepers"), AdmissionRule(scope="read")))
PERSON = make_person(TENANT.id, PROVIDER)
GRANT = replace(
    make_grant(make_sign_in(PROVIDER, PERSON, "corp"), PERSON, make_client("corp"), "acme"),
    ends_at=NOW + timedelta(days=90),
    scopes=("read",),
)
ADA = IdentityClaims(subject="ada", groups=frozenset({"keepers", "of no rule"}), scopes=frozenset({"read"}))
ISSUER = "https://gateway.example/t/acme"


def _sign(keys: SigningKeys) -> str:
    return IssuedTokens(keys).sign(GRANT, ADA, PROVIDER, issuer=ISSUER, life_s=60)


def test_a_token_names_its_grant_and_its_person() -> None:
    """RFC 9068: the person with all groups, the resource and the grant (IDN-2)."""
    keys = SigningKeys([SEED])
    found = IssuedTokens(keys).verify(_sign(keys), issuer=ISSUER, audience=GRANT.resource)

    assert (found.grant, found.provider, found.client) == (GRANT.id, PROVIDER.id, GRANT.client)
    assert found.person == ADA


def test_a_person_of_too_many_groups_is_known_to_have_more() -> None:
    """Ours: requests stay small; access rules take the stricter sense where groups are missing (IDN-2)."""
    keys = SigningKeys([SEED])
    for many, named in ((replace(ADA, has_all_groups=False), ADA.groups), (_with_many_groups(), {"keepers"})):
        text = IssuedTokens(keys).sign(GRANT, many, PROVIDER, issuer=ISSUER, life_s=60)
        found = IssuedTokens(keys).verify(text, issuer=ISSUER, audience=GRANT.resource).person
        assert (found.groups, found.has_all_groups) == (named, False)
        assert len(text) < 1500


def _with_many_groups() -> IdentityClaims:
    return replace(ADA, groups=ADA.groups | {f"group {number:05}" for number in range(1000)})


def test_a_token_outlives_a_rotation_of_secret_keys() -> None:
    """Ours: the newest secret key signs, all verify (TEN-4, IDN-2)."""
    older = _sign(SigningKeys([OLDER]))

    assert IssuedTokens(SigningKeys([SEED, OLDER])).verify(older, issuer=ISSUER, audience=GRANT.resource)
    with pytest.raises(TokenRejected):
        IssuedTokens(SigningKeys([SEED])).verify(older, issuer=ISSUER, audience=GRANT.resource)


@pytest.mark.parametrize(
    ("issuer", "audience"),
    [
        ("https://gateway.example/t/other", GRANT.resource),
        (ISSUER, "https://gateway.example/t/acme/cats/mcp"),
        (ISSUER, ISSUER),
    ],
)
def test_a_token_is_for_one_issuer_and_one_resource(issuer: str, audience: str) -> None:
    """Ours: the issuer is the tenant's own, the audience the profile's URL (TEN-2, IDN-2)."""
    keys = SigningKeys([SEED])
    with pytest.raises(TokenRejected):
        IssuedTokens(keys).verify(_sign(keys), issuer=issuer, audience=audience)


def test_neither_an_assertion_nor_an_ended_or_incomplete_token_is_one() -> None:
    """Ours: keys of another purpose, another type, no end, no grant, a past end (IDN-2)."""
    keys = SigningKeys([SEED])
    claims = jwt.decode(_sign(keys), options={"verify_signature": False})
    wrong = [
        SigningKeys([b"assertions"]).sign(claims, kind="at+jwt"),
        keys.sign(claims, kind="JWT"),
        keys.sign({**claims, "exp": claims["iat"] - 1}, kind="at+jwt"),
        keys.sign({**claims, "aud": [GRANT.resource, "https://other.example"]}, kind="at+jwt"),
        *(keys.sign({k: v for k, v in claims.items() if k != name}, kind="at+jwt") for name in ("exp", "grant", "idp")),
        "x.y.z",
        "",
    ]
    for text in wrong:
        with pytest.raises(TokenRejected):
            IssuedTokens(keys).verify(text, issuer=ISSUER, audience=GRANT.resource)
