"""Attacks on codes and tokens of the authorization server: replay, injection, confusion of audiences, reuse."""

import asyncio
from dataclasses import replace
from typing import Any

import jwt
import pytest

from gateway.catalog.identity import grants as catalog_grants
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.identity.issued_tokens import TOKEN_PURPOSE
from gateway.store.encryption import EnvelopeCipher
from gateway.upstream.auth.assertions import AssertionSigner
from gateway.upstream.auth.signing_keys import SigningKeys
from tests.support.authorization import Application, register
from tests.support.gateway import SECRET_KEY, RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.servers import TestDatabase, execute
from tests.support.stand import Stand


async def _grants(gateway: RunningGateway, slug: str = "acme") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await gateway.admin.get(f"/tenants/{slug}/grants")).json()["items"]
    return found


async def _trail(gateway: RunningGateway, action: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await gateway.admin.get("/tenants/acme/audit")).json()["items"]
    return [entry for entry in found if entry["action"] == action]


async def test_the_way_to_a_token_is_open(application: Application) -> None:
    """Ours: the attacks below differ from a working request in one respect only (IDN-2)."""
    found = await application.tokens()

    assert await application.status(found["access_token"]) == 200
    claims = jwt.decode(found["access_token"], options={"verify_signature": False})
    # the SDK for Python starts a sign-in, instead of a refresh, when a token is refused before its stated end
    assert (found["expires_in"], claims["exp"] - claims["iat"]) == (890, 900)
    [grant] = await _grants(application.gateway)
    assert (grant["subject"], grant["state"], grant["profile"]) == ("corp:ada", "active", "default")
    for action in ("consent.give", "grant.create"):
        [entry] = await _trail(application.gateway, action)
        assert entry["principal"] == "user:corp:ada"


async def test_a_token_has_the_scopes_that_the_provider_granted(application: Application) -> None:
    """RFC 6749 §3.3, §5.1: without a request they are all that rules name; no request brings another one (IDN-2)."""
    admin, path, provider = application.gateway.admin, "/tenants/acme/issuers/corp", application.provider
    sign_in = {**provider.client, "scopes": ["openid", "tools"]}
    await admin.patch(path, json={"rules": [{"scope": "tools"}, {"scope": "write"}], "sign_in": sign_in})
    provider.answer["scope"] = "openid tools"
    found = await application.tokens()
    assert (found["scope"], await application.status(found["access_token"])) == ("tools", 200)

    asked = await application.tokens(scope="tools write")
    assert asked["scope"] == "tools"
    other = await application.open(scope="write")
    assert (other.status_code, "No rule of the issuer admits you" in other.text) == (403, True)

    rule = {"effect": "deny", "who": ["people"], "unless": ["scope:corp:tools", "scope:corp:write"]}
    (await admin.patch("/tenants/acme/access", json={"rules": [rule]})).raise_for_status()
    everyone: dict[str, str] = {}
    await admin.patch(path, json={"rules": [everyone]})
    metadata = (await application.gateway.http.get("/.well-known/oauth-authorization-server/t/acme")).json()
    assert metadata["scopes_supported"] == ["tools", "write"]
    for requested in (None, "tools write"):
        assert (await application.tokens(scope=requested))["scope"] == "tools"  # those of access rules too

    (await admin.patch("/tenants/acme/access", json={"rules": []})).raise_for_status()
    await admin.patch(path, json={"rules": [{"scope": "write"}, {}]})
    again = await application.refresh(asked["refresh_token"])
    assert (again.status_code, again.json().get("scope")) == (200, None)
    assert await application.status(again.json()["access_token"]) == 200


async def test_a_code_works_once_and_its_second_use_revokes_its_tokens(application: Application) -> None:
    """RFC 6749 §4.1.2: a stolen code is of no use, and the tokens of both holders end (IDN-2)."""
    code = await application.code()
    first = (await application.redeem(code)).json()
    second = await application.redeem(code)

    assert (second.status_code, second.json()["error"]) == (400, "invalid_grant")
    assert await application.status(first["access_token"]) == 401
    assert (await application.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    [entry] = await _trail(application.gateway, "grant.end")
    assert entry["detail"]["reason"] == "code used twice"


async def test_a_code_is_of_its_client_its_redirect_uri_and_its_verifier(application: Application) -> None:
    """OAuth 2.1 §4.1.3: an injected code brings nothing, whatever of the request is the attacker's own (IDN-2)."""
    other = await register(application.gateway, name="Other")
    attempts: list[dict[str, Any]] = [
        {"client_id": other["id"]},
        {"redirect_uri": "https://client.example/other"},
        {"redirect_uri": "HTTPS://client.example/callback"},
        {"code_verifier": "w" * 43},
        {"code_verifier": None},
        {"resource": f"{application.issuer}/other/mcp"},
    ]
    refused: list[tuple[int, str]] = []
    for attempt in attempts:
        answer = await application.redeem(await application.code(), **attempt)
        refused.append((answer.status_code, answer.json()["error"]))

    kinds = ("grant", "grant", "grant", "grant", "request", "target")
    assert refused == [(400, f"invalid_{kind}") for kind in kinds]
    assert [grant["used_at"] for grant in await _grants(application.gateway)] == [None] * 5


async def test_a_code_that_is_guessed_ended_or_revoked_brings_nothing(
    application: Application, database: TestDatabase
) -> None:
    """Ours: the id of a grant is no secret; a code ends after a minute, and with its grant (IDN-2)."""
    code = await application.code()
    guessed = await application.redeem(f"{code.partition('.')[0]}.{'A' * 43}")
    assert guessed.json()["error"] == "invalid_grant"

    await execute(database.superuser_url, "update grants set code_ends_at = now() - interval '1 second'")
    assert (await application.redeem(code)).json()["error"] == "invalid_grant"

    code = await application.code()
    [consent] = (await application.gateway.admin.get("/tenants/acme/consents")).json()["items"]
    await application.gateway.admin.delete(f"/tenants/acme/consents/{consent['id']}")
    assert (await application.redeem(code)).json()["error"] == "invalid_grant"


async def test_a_token_is_for_one_tenant_and_one_profile(application: Application) -> None:
    """RFC 8707: a token for one URL is none at another profile, tenant, or door (TEN-2, IDN-2)."""
    gateway = application.gateway
    await gateway.create_tenant("other")
    await gateway.admin.put("/tenants/acme/profiles/cats", json={"description": "Cats"})
    of_tenant = (await application.tokens())["access_token"]
    of_profile = (await application.tokens(resource=f"{application.issuer}/cats/mcp"))["access_token"]

    places = ("acme", "acme/cats", "acme/default", "other")
    assert [await application.status(of_tenant, place) for place in places] == [200, 401, 401, 401]
    assert [await application.status(of_profile, place) for place in places] == [401, 200, 401, 401]
    assert (await gateway.http.get("/admin/v1/tenants", headers={"authorization": f"Bearer {of_tenant}"})).is_error


async def test_a_refresh_token_is_replaced_and_its_reuse_ends_the_grant(
    application: Application, database: TestDatabase
) -> None:
    """RFC 9700 §4.14.2: of two holders of a refresh token, both lose it, and the trail records it (IDN-2)."""
    first = await application.tokens()
    second = (await application.refresh(first["refresh_token"])).json()
    assert second["refresh_token"] != first["refresh_token"]

    retried = (await application.refresh(first["refresh_token"])).json()
    assert retried["refresh_token"] == second["refresh_token"]  # the response may have been lost

    third = (await application.refresh(second["refresh_token"])).json()
    reused = await application.refresh(first["refresh_token"])
    assert (reused.status_code, reused.json()["error"]) == (400, "invalid_grant")
    for held in (first, second, third):
        assert (await application.refresh(held["refresh_token"])).json()["error"] == "invalid_grant"
        assert await application.status(held["access_token"]) == 401
    [entry] = await _trail(application.gateway, "grant.end")
    assert entry["detail"]["reason"] == "refresh token used twice"

    late = await application.tokens()
    await application.refresh(late["refresh_token"])
    await execute(database.superuser_url, "update grants set rotated_at = now() - interval '11 seconds'")
    assert (await application.refresh(late["refresh_token"])).json()["error"] == "invalid_grant"
    assert [grant["state"] for grant in await _grants(application.gateway)] == ["revoked", "revoked"]


async def test_a_refresh_token_ends_with_its_grant_and_a_guess_ends_nothing(
    application: Application, database: TestDatabase
) -> None:
    """Ours: idle and absolute ends, revocation, and another client's request; a guess revokes nothing (IDN-2)."""
    first = await application.tokens()
    second = (await application.refresh(first["refresh_token"])).json()["refresh_token"]
    grant, _, secret = second.split(".")
    other = await register(application.gateway, name="Other")
    guesses = [f"{grant}.{'A' * 22}.{secret}", f"{grant}.{'A' * 22}.{'A' * 43}", "x"]
    refused = [await application.refresh(guess) for guess in guesses]
    refused += [await application.refresh(second, client_id=other["id"])]
    refused += [await application.refresh(second, resource=f"{application.issuer}/other/mcp")]
    assert [answer.json()["error"] for answer in refused] == ["invalid_grant"] * 4 + ["invalid_target"]

    await execute(database.superuser_url, "update grants set idle_ends_at = now() - interval '1 second'")
    assert (await application.refresh(second)).json()["error"] == "invalid_grant"
    await execute(database.superuser_url, "update grants set idle_ends_at = ends_at, rotated_at = now()")
    third = (await application.refresh(second)).json()
    assert "access_token" in third

    await application.gateway.admin.post(f"/tenants/acme/grants/{grant}/revoke")
    for held in (second, third["refresh_token"]):  # the former one is within its seconds of a retry
        assert (await application.refresh(held)).json()["error"] == "invalid_grant"


async def test_requests_at_the_same_moment_bring_one_set_of_tokens(application: Application) -> None:
    """Ours: of several redemptions of a code one succeeds, and the grant ends; refreshes agree on one token (IDN-2)."""
    held = (await application.tokens())["refresh_token"]
    refreshed = await asyncio.gather(*(application.refresh(held) for _ in range(5)))
    assert {answer.status_code for answer in refreshed} == {200}
    assert len({answer.json()["refresh_token"] for answer in refreshed}) == 1

    code = await application.code()
    redeemed = await asyncio.gather(*(application.redeem(code) for _ in range(5)))
    won = [answer for answer in redeemed if answer.status_code == 200]
    assert len(won) <= 1
    for answer in won:
        assert await application.status(answer.json()["access_token"]) == 401
    assert sorted(grant["state"] for grant in await _grants(application.gateway)) == ["active", "revoked"]


async def test_denied_and_not_admitted_people_get_no_more_tokens(application: Application, stand: Stand) -> None:
    """Ours: a refresh is refused when the person is denied, the rules or the issuer are changed (TEN-2, IDN-2)."""
    admin, held = application.gateway.admin, (await application.tokens())["refresh_token"]
    [person] = (await admin.get("/tenants/acme/people")).json()["items"]
    steps: list[tuple[str, str, Any, str, Any]] = [
        ("POST", f"people/{person['id']}/deny", None, f"people/{person['id']}/allow", None),
        ("PATCH", "issuers/corp", {"rules": [{"group": "none"}]}, "issuers/corp", {"rules": [{}]}),
    ]
    for method, path, body, back, undone in steps:
        await admin.request(method, f"/tenants/acme/{path}", json=body)
        assert (await application.refresh(held)).json()["error"] == "invalid_grant", path
        await admin.request(method, f"/tenants/acme/{back}", json=undone)
        held = (await application.refresh(held)).json()["refresh_token"]

    second = LocalProvider(new_issuer(stand.upstreams[1]))
    await add_provider(application.gateway, "acme", second, name="second")
    access = (await application.refresh(held)).json()["access_token"]
    await admin.patch("/tenants/acme/issuers/corp", json={"enabled": False})
    assert (await application.refresh(held)).json()["error"] == "invalid_grant"
    assert await application.status(access) == 401


async def test_a_token_that_another_purpose_signed_or_an_issuer_lost_is_refused(
    application: Application, database: TestDatabase
) -> None:
    """Ours: no unsigned, changed or foreign token is one of the gateway; neither is one whose grant is gone (IDN-2)."""
    token = (await application.tokens())["access_token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    header, payload, signature = token.split(".")
    forged = [
        jwt.encode(claims, "", algorithm="none"),
        jwt.encode(claims, "secret-of-the-attacker-with-enough-bytes", algorithm="HS256", headers={"typ": "at+jwt"}),
        f"{header}.{payload}.{'A' * len(signature)}",
        application.provider.issuer.token(application.resource, iss=application.issuer),
    ]
    assert [await application.status(each) for each in forged] == [401] * len(forged)
    assert await application.status(token) == 200
    other = (await application.tokens())["access_token"]
    await execute(database.superuser_url, "delete from grants")
    assert await application.status(other) == 401


async def test_no_assertion_is_an_access_token_and_no_access_token_an_assertion(application: Application) -> None:
    """Ours: the keys of both have a purpose; what a key of the other one signed is refused on either side (IDN-2)."""
    token = (await application.tokens())["access_token"]
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    cipher = EnvelopeCipher([SECRET_KEY])
    issued, asserting = (SigningKeys(cipher.derive_all(purpose)) for purpose in (TOKEN_PURPOSE, "assertions"))
    assert await application.status(issued.sign(claims, kind="at+jwt")) == 200  # so only the key differs below

    published = jwt.PyJWKSet.from_dict((await application.gateway.http.get("/.well-known/jwks.json")).json())
    assertion = asserting.sign(claims, kind="at+jwt")
    kids = [jwt.get_unverified_header(each)["kid"] for each in (token, assertion)]
    own: dict[str, Any] = {"audience": claims["aud"], "issuer": claims["iss"], "algorithms": ["ES256"]}
    assert jwt.decode(assertion, published[kids[1]], **own) == claims
    for key in published.keys:
        with pytest.raises(jwt.InvalidSignatureError):
            jwt.decode(token, key, **own)
    with pytest.raises(KeyError):
        published[kids[0]]

    signer = AssertionSigner(cipher.derive_all, public_url="https://gateway.example")
    principal = Principal(
        tenant=TenantId("t"), slug="acme", key=KeyId(claims["grant"]), subject="corp:ada", scopes=frozenset({Scope.MCP})
    )
    header, payload, signature = assertion.split(".")
    borrowed = token.split(".")[0]  # the id of the other key
    presented = [
        assertion,
        asserting.sign(claims, kind="JWT"),
        issued.sign(claims, kind="JWT"),
        f"{borrowed}.{payload}.{signature}",
        f"{header}.{token.partition('.')[2]}",
        signer.sign(principal, audience=application.resource, action=("tool", "x")),
    ]
    assert [await application.status(each) for each in presented] == [401] * len(presented)
    assert await application.status(token) == 200


async def test_a_revoked_grant_is_refused_at_once_where_it_was_revoked(application: Application) -> None:
    """Ours: the client's own revocation, and the administrator's, end the access token as well (RFC 7009, IDN-2)."""
    gateway = application.gateway
    first, second, third = [await application.tokens() for _ in range(3)]
    assert [await application.status(each["access_token"]) for each in (first, second, third)] == [200] * 3

    other = await register(gateway, name="Other")
    for client, token in ((other["id"], first["access_token"]), (other["id"], first["refresh_token"])):
        await gateway.http.post("/t/acme/oauth/revoke", data={"client_id": client, "token": token})
    assert await application.status(first["access_token"]) == 200
    for held in (first["access_token"], second["refresh_token"], "x"):
        sent = {"client_id": application.client_id, "token": held}
        answer = await gateway.http.post("/t/acme/oauth/revoke", data=sent)
        assert (answer.status_code, answer.content) == (200, b"")
    [left] = [grant for grant in await _grants(gateway) if grant["state"] == "active"]
    await gateway.admin.post(f"/tenants/acme/grants/{left['id']}/revoke")

    assert [await application.status(each["access_token"]) for each in (first, second, third)] == [401] * 3


async def test_a_further_grant_ends_the_oldest(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a person has a bounded number of grants (ISO-6, IDN-2)."""
    monkeypatch.setattr(catalog_grants, "MAX_GRANTS", 2)
    for _ in range(3):
        await application.tokens()

    assert sorted(grant["state"] for grant in await _grants(application.gateway)) == ["active", "active", "revoked"]


async def test_a_sign_in_counts_for_a_bounded_time(application: Application, database: TestDatabase) -> None:
    """Ours: the provider is queried again; an unknown grant ends at once, and an unanswered query ends it later
    (IDN-2).
    """
    answer, upstream = application.provider.answer, application.provider.issuer.upstream
    alone = (await application.tokens())["refresh_token"]
    await execute(database.superuser_url, "update sign_ins set checked_at = now() - interval '13 hours'")
    assert (await application.refresh(alone)).json()["error"] == "invalid_grant"

    answer["refresh_token"] = "refresh-of-the-provider"
    await application.follow(await application.http.get(f"{application.issuer}/sign-in?again=1"))
    held = (await application.tokens())["refresh_token"]
    await execute(database.superuser_url, "update sign_ins set checked_at = now() - interval '2 hours'")
    upstream.status = 503
    assert (await application.refresh(held)).json()["error"] == "temporarily_unavailable"
    await execute(database.superuser_url, "update sign_ins set checked_at = now() - interval '10 minutes'")
    held = (await application.refresh(held)).json()["refresh_token"]

    upstream.status = 400
    upstream.body = b'{"error":"invalid_grant"}'
    assert (await application.refresh(held)).json()["error"] == "invalid_grant"
    [ended] = [grant for grant in await _grants(application.gateway) if grant["state"] == "revoked"]
    assert "refused its refresh token" in ended["revoked_for"]


async def test_a_provider_that_repeats_no_claims_is_believed_for_a_bounded_time(
    application: Application, database: TestDatabase
) -> None:
    """OpenID Connect Core §12.2: refreshes without an ID token renew no sign-in; `max_unchecked_s` ends it (IDN-2)."""
    application.provider.answer["refresh_token"] = "refresh-of-the-provider"
    held = (await application.tokens())["refresh_token"]
    application.provider.answer["id_token"] = None
    application.provider.publish()
    for age, status in (("11 hours", 200), ("13 hours", 400)):
        await execute(database.superuser_url, f"update sign_ins set checked_at = now() - interval '{age}'")
        answer = await application.refresh(held)
        assert answer.status_code == status, answer.text
        held = answer.json().get("refresh_token")


async def test_a_key_that_is_not_published_yet_ends_no_sign_in(
    application: Application, database: TestDatabase
) -> None:
    """Ours: an ID token of an unknown key is checked later; the provider's new refresh token is stored (IDN-2)."""
    provider = application.provider
    provider.answer["refresh_token"] = "first"
    held = (await application.tokens())["refresh_token"]
    await execute(database.superuser_url, "update sign_ins set checked_at = now() - interval '10 minutes'")
    provider.answer["refresh_token"] = "second"
    provider.issuer.keys["new"] = provider.issuer.keys["rsa"]
    for sent in ("first", "second"):
        provider.publish(kid="new")
        provider.issuer.upstream.seen.clear()
        answer = await application.refresh(held)
        assert answer.status_code == 200, answer.text
        held = answer.json()["refresh_token"]
        assert f"refresh_token={sent}".encode() in b"".join(seen.body for seen in provider.issuer.upstream.seen)


async def test_a_redirect_uri_that_is_no_url_is_refused_with_a_reason(application: Application) -> None:
    """RFC 6749 §5.2: at the token endpoint from any client, and for a registered host that cannot exist (IDN-2)."""
    undecodable = "https://xn--nthropic-2ig.example/callback"
    code = await application.code()
    for uri in ("::", "\0", undecodable):
        refused = await application.redeem(code, redirect_uri=uri)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request"), refused.text

    client = await register(application.gateway, redirect_uris=[undecodable])
    answer = await replace(application, client_id=client["id"], redirect_uri=undecodable).authorize()
    assert (answer.status_code, "names a host that cannot exist" in answer.text) == (400, True), answer.text
