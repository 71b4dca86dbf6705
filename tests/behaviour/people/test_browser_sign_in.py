"""Sign-in of people in a browser, at a provider that knows the gateway as its client."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, new_issuer
from tests.support.provider import CLIENT_ID, CLIENT_SECRET, Provider, Visitor, running_provider
from tests.support.serving import http_client
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream


@pytest.fixture(scope="module")
async def provider(common_stand: Stand) -> AsyncGenerator[Provider]:
    """A provider at which the gateway is the only client."""
    base = common_stand.gateway.url
    places = [f"{base}/t/{slug}/sign-in/{name}/callback" for slug in ("acme", "globex") for name in ("corp", "lab")]
    async with running_provider(places) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Office:
    """A tenant whose people sign in at the provider."""

    gateway: RunningGateway
    provider: Provider

    @property
    def page(self) -> str:
        return f"{self.gateway.url}/t/acme/sign-in"

    def visitor(self, name: str) -> Visitor:
        """A person who stops at the page that shows who is signed in."""
        return Visitor(name, until=self.page)

    async def add(self, slug: str = "acme", name: str = "corp", **more: Any) -> httpx.Response:
        """Store the gateway's client at the provider."""
        await self.gateway.admin.put(f"/tenants/{slug}/egress", json={"allow": [self.provider.authority]})
        body: dict[str, Any] = {
            "name": name,
            "url": self.provider.url,
            "rules": [{}],
            "sign_in": {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET},
            **more,
        }
        return await self.gateway.admin.post(f"/tenants/{slug}/issuers", json=body)


@pytest.fixture
async def office(gateway: RunningGateway, provider: Provider) -> Office:
    """The tenant `acme` with the provider as its issuer `corp`."""
    await gateway.create_tenant("acme")
    made = Office(gateway, provider)
    answer = await made.add()
    assert answer.status_code == 201, answer.text
    return made


async def test_a_person_signs_in_and_out(office: Office) -> None:
    """Ours: the provider names the person, who has a session until sign-out; the trail has the sign-in (IDN-2)."""
    out, headers = f"{office.gateway.url}/t/acme/sign-out", {"origin": office.gateway.url}
    async with office.visitor("ada") as ada:
        assert await ada.go(office.page) == office.page
        shown = await ada.http.get(office.page)
        assert "corp:ada" in shown.text
        token = shown.text.partition('name="token" value="')[2].partition('"')[0]
        kept = httpx.Cookies(ada.http.cookies)
        assert (await ada.http.post(out, data={"token": token})).status_code == 403
        assert (await ada.http.post(out, data={"token": "0" * 64}, headers=headers)).status_code == 403
        assert (await ada.http.post(out, data={"token": token}, headers=headers)).status_code == 200
        assert (await ada.http.get(office.page)).is_redirect
    async with http_client(cookies=kept) as copied:
        assert (await copied.get(office.page)).is_redirect, "a copy of the cookie has ended, too"

    [person] = (await office.gateway.admin.get("/tenants/acme/people")).json()["items"]
    assert person["subject"] == "corp:ada"
    entries = (await office.gateway.admin.get("/tenants/acme/audit")).json()["items"]
    assert [entry["principal"] for entry in entries if entry["action"] == "sign-in"] == ["user:corp:ada"]


async def test_the_request_at_the_provider_is_bound_to_the_browser(office: Office) -> None:
    """RFC 9700 §2.1: PKCE with S256, a state and a nonce of this sign-in, and a redirect URI of this issuer (IDN-2)."""
    async with http_client() as browser:
        first, second = [await browser.get(office.page) for _ in range(2)]
    asked = parse_qs(urlsplit(first.headers["location"]).query)

    assert first.headers["location"].startswith(office.provider.url)
    assert asked["redirect_uri"] == [f"{office.gateway.url}/t/acme/sign-in/corp/callback"]
    assert (asked["response_type"], asked["code_challenge_method"], asked["scope"]) == (["code"], ["S256"], ["openid"])
    other = parse_qs(urlsplit(second.headers["location"]).query)
    assert all(asked[name] != other[name] for name in ("state", "nonce", "code_challenge"))
    cookie = first.headers["set-cookie"]
    for attribute in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"):
        assert attribute in cookie
    assert asked["state"][0] not in cookie
    assert first.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("client", "more", "reason"),
    [
        ({"client_secret": None}, {}, "secret"),
        ({"scopes": ["email"]}, {}, "openid"),
        ({"parameters": {"redirect_uri": "https://evil.example"}}, {}, "redirect_uri"),
        ({"parameters": {"request_uri": "https://evil.example"}}, {}, "request_uri"),
        ({}, {"audiences": [CLIENT_ID]}, "audiences"),
        ({}, {"url": "http://10.0.0.1"}, "https"),
    ],
)
async def test_a_client_that_cannot_work_is_refused(
    office: Office, client: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    """Ours: a fault of the gateway's client is found when it is stored, and one that weakens tokens, too (IDN-2)."""
    await office.gateway.admin.delete("/tenants/acme/issuers/corp")
    given = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, **client}
    sign_in = {name: value for name, value in given.items() if value is not None}

    answer = await office.add(sign_in=sign_in, **more)

    assert answer.status_code == 400, answer.text
    assert reason in answer.json()["detail"]


async def test_endpoints_of_a_provider_need_tls(office: Office, upstream: RecordingUpstream) -> None:
    """Ours: metadata that names a plain endpoint is refused, so codes and secrets are sent over TLS (IDN-2)."""
    local = LocalProvider(new_issuer(upstream))
    for endpoint in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint"):
        local.answer = {endpoint: "http://login.example/x"}
        local.publish()
        body: dict[str, Any] = {"name": "plain", "url": local.issuer.url, "rules": [{}], "sign_in": local.client}
        answer = await office.gateway.admin.post("/tenants/acme/issuers", json=body)
        assert (answer.status_code, "https" in answer.json()["detail"]) == (400, True)


async def test_the_client_is_shown_without_its_secret_and_keeps_it(office: Office) -> None:
    """Ours: the redirect URI to register is shown; a change keeps the secret, another client needs its own (IDN-2)."""
    path = "/tenants/acme/issuers/corp"
    whole = (await office.gateway.admin.get(path)).json()
    shown = whole["sign_in"]
    before, same = await office.gateway.admin.get(path), await office.gateway.admin.put(path, json=whole)
    assert (same.status_code, same.headers["etag"]) == (200, before.headers["etag"]), same.text
    replaced = await office.gateway.admin.put(path, json={**whole, "sign_in": {"client_id": "another"}})
    assert (replaced.status_code, (await office.gateway.admin.get(path)).json()) == (422, whole)
    other = await office.gateway.admin.patch(path, json={"sign_in": {"client_id": "another"}})
    kept = await office.gateway.admin.patch(
        path, json={"sign_in": {"client_id": CLIENT_ID, "scopes": ["openid", "offline_access"]}}
    )

    assert whole["status"]["redirect_uri"] == "/t/acme/sign-in/corp/callback"
    assert (shown["client_secret_reference"], CLIENT_SECRET in str(shown)) == (None, False)
    assert (other.status_code, kept.status_code) == (422, 200)
    async with office.visitor("ada") as ada:
        await ada.go(office.page)
        assert "corp:ada" in (await ada.http.get(office.page)).text
    assert (await office.gateway.admin.patch(path, json={"sign_in": None})).json()["sign_in"] is None
    assert (await office.gateway.http.get("/t/acme/sign-in")).status_code == 404


async def test_of_several_providers_the_person_chooses_one(office: Office) -> None:
    """Ours: with two issuers a page offers both, and the choice is the one that signs in (IDN-2)."""
    async with office.visitor("ada") as ada:
        await office.gateway.admin.delete("/tenants/acme/issuers/corp")
        assert (await office.add(name="lab")).status_code == 201
        client = {"client_id": "a", "client_secret": "b"}
        off: dict[str, Any] = {"name": "off", "url": "https://off.example", "rules": [{}], "enabled": False}
        made = await office.gateway.admin.post("/tenants/acme/issuers", json={**off, "sign_in": client})
        assert made.status_code == 201, made.text
        assert (await ada.http.get(office.page)).is_redirect, "one that is disabled is no choice"
        await ada.go(f"{office.page}?issuer=lab")
        assert "lab:ada" in (await ada.http.get(office.page)).text
