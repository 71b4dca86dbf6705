"""Attacks on the consent of a person: forged requests and forms, open redirects, framing, other people's sessions."""

from typing import Any

import pytest

from gateway.catalog.identity import consents as catalog_consents
from tests.support.authorization import CHALLENGE, Application, fields_of, query_of, register
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.serving import http_client
from tests.support.stand import Stand

NATIVE = "http://127.0.0.1:4711/callback"


async def _grants(gateway: RunningGateway) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await gateway.admin.get("/tenants/acme/grants")).json()["items"]
    return found


async def _self_registered(application: Application, *redirect_uris: str, **more: Any) -> dict[str, Any]:
    body = {"client_name": "Self", "redirect_uris": redirect_uris or [application.redirect_uri], **more}
    answer = await application.gateway.http.post("/t/acme/oauth/register", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_person_is_asked_before_any_code_exists(application: Application) -> None:
    """MCP: consent is asked of each person, for each client, host and resource, and once only (IDN-2)."""
    page = await application.open()
    assert page.status_code == 200
    for shown in ("Reports", "corp:ada", "acme", "client.example", application.resource, "default"):
        assert shown in page.text
    refused = query_of(await application.decide(page, "deny"))
    assert refused == {"error": "access_denied", "state": "state of the client", "iss": application.issuer}

    allowed = query_of(await application.decide(await application.open()))
    assert allowed.keys() == {"code", "state", "iss"}
    assert allowed["iss"] == application.issuer
    assert (await application.open()).is_redirect

    await application.gateway.admin.put("/tenants/acme/profiles/cats", json={"description": "Cats"})
    assert (await application.open(resource=f"{application.issuer}/cats/mcp")).status_code == 200
    application.claims = {"sub": "bob"}
    application.http.cookies.clear()
    assert "corp:bob" in (await application.open()).text


LEADING_ELSEWHERE: list[dict[str, str | None]] = [
    {"redirect_uri": "https://evil.example/callback"},
    {"redirect_uri": "https://client.example/callback/../evil"},
    {"redirect_uri": "https://client.example/callback?next=https://evil.example"},
    {"redirect_uri": "https://client.example@evil.example/callback"},
    {"redirect_uri": "https://CLIENT.example/callback"},
    {"redirect_uri": None},
    {"client_id": "cli_00000000000000000000"},
    {"client_id": "https://127.0.0.1/client.json"},
    {"client_id": "nul\0"},
    {"client_id": None},
]


async def test_an_unknown_client_or_redirect_uri_leads_nowhere(application: Application) -> None:
    """RFC 9700 §4.11: the authorization endpoint is no open redirector (IDN-2)."""
    for more in LEADING_ELSEWHERE:
        answer = await application.authorize(**more)

        assert answer.status_code == 400, more
        assert "location" not in answer.headers
        assert "evil.example" not in answer.text


WEAKENED: list[tuple[dict[str, str | None], str]] = [
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "code id_token"}, "unsupported_response_type"),
    ({"state": "x" * 1001}, "invalid_request"),
    ({"state": "line\nfeed"}, "invalid_request"),
    ({"resource": "https://evil.example/t/acme/mcp"}, "invalid_target"),
    ({"resource": "{origin}/t/other/mcp"}, "invalid_target"),
    ({"resource": "{origin}/t/acme"}, "invalid_target"),
    ({"resource": "{origin}/admin/v1"}, "invalid_target"),
    ({"resource": "{origin}/admin/v1/tenants/acme"}, "invalid_target"),
    ({"resource": "x"}, "invalid_target"),
]


async def test_a_request_that_is_weaker_than_it_has_to_be_is_refused(application: Application) -> None:
    """OAuth 2.1 §4.1.1, RFC 8707: PKCE and the resource cannot be left out or weakened, only codes exist (IDN-2)."""
    for more, error in WEAKENED:
        sent = {name: value and value.replace("{origin}", application.gateway.url) for name, value in more.items()}
        answer = await application.authorize(**sent)

        assert answer.headers["location"].startswith(f"{application.redirect_uri}?"), more
        assert (query_of(answer)["error"], query_of(answer)["iss"]) == (error, application.issuer), more


async def test_an_error_leads_to_a_client_that_registered_itself_by_a_link_only(application: Application) -> None:
    """RFC 9700 §4.11.2: an attacker's client does not make the gateway redirect people without their will (IDN-2)."""
    client = await _self_registered(application, "https://evil.example/phish")

    answer = await application.authorize(
        client_id=client["client_id"], redirect_uri="https://evil.example/phish", code_challenge="x"
    )

    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert 'href="https://evil.example/phish?error=invalid_request' in answer.text


async def test_a_parameter_that_comes_twice_is_refused(application: Application) -> None:
    """RFC 6749 §3.1: of two redirect URIs, no part of the gateway takes the other one (IDN-2)."""
    path = f"/t/acme/oauth/authorize?client_id={application.client_id}&response_type=code&code_challenge={CHALLENGE}"
    uris = "&redirect_uri=https://client.example/callback&redirect_uri=https://evil.example"

    assert (await application.gateway.http.get(f"{path}{uris}")).status_code == 400


async def test_a_consent_needs_the_form_of_the_page_and_of_the_session(application: Application) -> None:
    """Ours: no other site, session, request or replay of a token makes a person consent (CSRF, IDN-2)."""
    page = await application.open()
    own, other = fields_of(page), fields_of(await application.open(state="another request"))
    url, origin = f"{application.issuer}/oauth/consent", {"origin": application.gateway.url}

    async def post(fields: dict[str, str], headers: dict[str, str]) -> int:
        return (await application.http.post(url, data=fields, headers=headers)).status_code

    sent = {**own, "choice": "allow"}
    assert await post({name: value for name, value in sent.items() if name != "token"}, origin) == 403
    assert await post({**sent, "token": "x"}, origin) == 403
    assert await post({**sent, "token": other["token"]}, origin) == 403
    assert await post({**sent, "request": "x"}, origin) == 400
    assert await post(sent, {"origin": "https://evil.example"}) == 403
    assert await post(own, origin) == 400
    assert await post({**own, "choice": "yes"}, origin) == 400
    async with http_client() as stranger:
        answer = await stranger.post(url, data=sent, headers=origin)
        assert answer.headers["location"].startswith(f"{application.provider.issuer.url}/authorize")
    assert (await application.gateway.admin.get("/tenants/acme/consents")).json()["items"] == []
    assert (await application.decide(page)).is_redirect


async def test_the_page_cannot_be_framed_scripted_or_cached(application: Application) -> None:
    """Ours: no frame around the buttons, no script in the page, no referrer to the client (clickjacking, IDN-2)."""
    headers = (await application.open()).headers

    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "form-action 'self' https://client.example" in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


async def test_a_program_on_the_machine_is_asked_about_each_time(application: Application) -> None:
    """RFC 8252 §8.6: any program can claim a loopback address, so a consent of before is not enough (IDN-2)."""
    client = await _self_registered(application, NATIVE)
    application.client_id, application.redirect_uri = client["client_id"], "http://127.0.0.1:9/callback"

    for _ in range(2):
        page = await application.open()
        assert "a program on this computer (127.0.0.1)" in page.text
        assert "registered itself" in page.text
        assert (await application.decide(page)).is_redirect


async def test_more_scopes_than_before_are_asked_about(application: Application) -> None:
    """Ours: a consent is for its scopes (IDN-2)."""
    rules = [{"scope": "read"}, {"scope": "write"}, {}]
    await application.gateway.admin.patch("/tenants/acme/issuers/corp", json={"rules": rules})
    await application.code(scope="read unknown")

    assert (await application.open(scope="read")).is_redirect
    page = await application.open(scope="read write")
    assert (page.status_code, "read, write" in page.text) == (200, True)


async def test_a_request_is_checked_again_when_the_person_decides(application: Application) -> None:
    """Ours: a client that lost its redirect URI, or a person whom no rule admits, gets no code any more (IDN-2)."""
    admin, page = application.gateway.admin, await application.open()
    own = f"/tenants/acme/clients/{application.client_id}"
    await admin.patch(own, json={"redirect_uris": ["https://client.example/other"]})
    assert (await application.decide(page)).status_code == 400
    await admin.patch(own, json={"redirect_uris": [application.redirect_uri]})

    await admin.put("/tenants/acme/profiles/cats", json={"description": "Cats"})
    await admin.patch("/tenants/acme/issuers/corp", json={"rules": [{"profiles": ["cats"]}]})
    application.http.cookies.clear()
    refused = await application.open()
    assert (refused.status_code, "No rule of the issuer admits you" in refused.text) == (403, True)
    missing = await application.open(resource=f"{application.issuer}/missing/mcp")
    assert (missing.status_code, "no such profile" in missing.text) == (400, True)
    assert await _grants(application.gateway) == []


async def test_a_request_of_one_tenant_is_none_of_another(application: Application, stand: Stand) -> None:
    """Ours: a checked request names its tenant, and so does a form (IDN-2)."""
    await application.gateway.create_tenant("other")
    await add_provider(application.gateway, "other", LocalProvider(new_issuer(stand.upstreams[1])))
    begun = query_of(await application.authorize())["request"]

    page = f"{application.gateway.url}/t/other/oauth/consent"
    assert (await application.http.get(page, params={"request": begun})).status_code == 400
    assert (await application.http.get(page.replace("other", "acme"), params={"request": "x"})).status_code == 400


async def test_a_person_has_few_consents(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a client that registers itself again and again fills no table (ISO-6, IDN-2)."""
    monkeypatch.setattr(catalog_consents, "MAX_CONSENTS", 1)
    await application.code()
    other = await register(application.gateway, name="Other")
    page = await application.open(client_id=other["id"])

    assert (await application.decide(page)).status_code == 429


async def test_the_issuer_of_the_sign_in_is_checked_before_the_consent(application: Application) -> None:
    """RFC 9207: a response of another issuer brings no session, so no code either (mix-up, IDN-2)."""
    begun = (await application.authorize()).headers["location"]
    asked = query_of(await application.http.get(f"{application.gateway.url}{begun}"))
    application.provider.publish(asked["nonce"])
    mixed = {"code": "code", "state": asked["state"], "iss": "https://evil.example"}

    answer = await application.http.get(asked["redirect_uri"], params=mixed)

    assert answer.is_error
    assert await _grants(application.gateway) == []
