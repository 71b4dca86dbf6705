"""Attacks on the sign-in in a browser: mix-up, replay, other browsers' states, open redirects, tokens of others."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import pytest

from gateway.store.database.connection import connect_owner
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.servers import TestDatabase, TestServers, dump, execute
from tests.support.serving import http_client
from tests.support.stand import Stand, common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream, recording_upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]


@dataclass(slots=True)
class Browser:
    """A browser at the pages of one tenant."""

    gateway: RunningGateway
    http: httpx.AsyncClient
    provider: LocalProvider
    slug: str = "acme"

    async def begin(self, **query: str) -> dict[str, str]:
        """Begin a sign-in; return the parameters that the provider gets."""
        answer = await self.http.get(f"/t/{self.slug}/sign-in", params=query)
        assert answer.status_code == 303, answer.text
        found = parse_qs(urlsplit(answer.headers["location"]).query)
        return {name: values[0] for name, values in found.items()}

    async def come_back(self, asked: dict[str, str], issuer: str = "corp", **more: str | None) -> httpx.Response:
        """Come back from the provider with a code."""
        sent = {"code": "code", "state": asked["state"], **more}
        query = urlencode({name: value for name, value in sent.items() if value is not None})
        return await self.http.get(f"/t/{self.slug}/sign-in/{issuer}/callback?{query}")

    async def sign_in(self, **claims: Any) -> httpx.Response:
        """A whole sign-in, in which the provider returns these claims."""
        asked = await self.begin(issuer="corp")
        self.provider.publish(**{"nonce": asked["nonce"], **claims})
        return await self.come_back(asked)

    async def person(self) -> str | None:
        """The signed-in person, as the page shows it."""
        answer = await self.http.get(f"/t/{self.slug}/sign-in")
        return answer.text.partition("<bdi>")[2].partition("</bdi>")[0] or None


def _open(gateway: RunningGateway) -> httpx.AsyncClient:
    return http_client(base_url=gateway.url, timeout=30)


@pytest.fixture
async def browser(gateway: RunningGateway, upstream: RecordingUpstream) -> AsyncGenerator[Browser]:
    """A browser, and the tenant `acme` with the provider `corp`."""
    await gateway.create_tenant("acme")
    provider = LocalProvider(new_issuer(upstream))
    await add_provider(gateway, "acme", provider)
    async with _open(gateway) as http:
        yield Browser(gateway, http, provider)


async def _people(gateway: RunningGateway) -> list[str]:
    return [person["subject"] for person in (await gateway.admin.get("/tenants/acme/people")).json()["items"]]


async def test_the_way_in_is_open(browser: Browser) -> None:
    """Ours: the attacks below differ from a working request in one respect only (IDN-2)."""
    answer = await browser.sign_in()

    assert (answer.status_code, answer.headers["location"]) == (303, "/t/acme/sign-in")
    assert await browser.person() == "corp:ada"


FORGED: dict[str, dict[str, Any]] = {
    "a nonce of another sign-in": {"nonce": "other"},
    "no nonce": {"nonce": None},
    "for another client": {"audience": "another-client"},
    "for several clients": {"audience": ["gateway", "another-client"]},
    "for several clients, another presents it": {"audience": ["gateway", "other"], "azp": "other"},
    "another party": {"azp": "another-client"},
    "for another client, of this party": {"audience": "another-client", "azp": "gateway"},
    "of another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": 1},
    "without a subject": {"sub": None},
    "a subject with a line break": {"sub": "ada\nroot"},
}


@pytest.mark.parametrize("kind", FORGED)
async def test_an_id_token_of_another_sign_in_is_refused(browser: Browser, kind: str) -> None:
    """OpenID Connect Core §3.1.3.7: injected, foreign and stale ID tokens are refused (IDN-2)."""
    answer = await browser.sign_in(**FORGED[kind])

    assert answer.status_code == 502
    assert await browser.person() is None
    assert await _people(browser.gateway) == []


async def test_an_access_token_is_no_id_token(browser: Browser) -> None:
    """RFC 9068 §2.1: a token with the type of access tokens is none, whatever its claims are (IDN-2)."""
    asked, issuer = await browser.begin(), browser.provider.issuer
    claims, headers = issuer.claims("gateway", nonce=asked["nonce"]), {"kid": "rsa", "typ": "at+jwt"}
    browser.provider.answer["id_token"] = jwt.encode(claims, issuer.keys["rsa"], algorithm="RS256", headers=headers)
    browser.provider.publish()

    assert (await browser.come_back(asked)).status_code == 502
    assert await browser.person() is None


async def test_a_state_is_of_one_browser_and_works_once(browser: Browser) -> None:
    """RFC 9700 §4.7: a state of another browser, a made-up one and a used one end at an error page (IDN-2)."""
    asked = await browser.begin()
    browser.provider.publish(asked["nonce"])
    cookies = httpx.Cookies(browser.http.cookies)
    async with _open(browser.gateway) as other:
        victim = Browser(browser.gateway, other, browser.provider)
        assert (await victim.come_back(asked)).status_code == 400
        own = await victim.begin()
        assert (await victim.come_back({"state": own["state"][:-1] + "x"})).status_code == 400
        assert (await victim.come_back({"state": ""})).status_code == 400
        assert await victim.person() is None
    fetched = len(browser.provider.issuer.upstream.seen)
    assert (await browser.come_back(asked)).status_code == 303
    async with http_client(base_url=browser.gateway.url, cookies=cookies) as copy:
        again = await Browser(browser.gateway, copy, browser.provider).come_back(asked)

    assert again.status_code == 400
    assert len(browser.provider.issuer.upstream.seen) > fetched
    assert await _people(browser.gateway) == ["corp:ada"]


async def test_a_response_of_another_provider_is_not_taken(browser: Browser) -> None:
    """RFC 9700 §4.4, mix-up: issuer, path and state have to be of the provider at which the sign-in began (IDN-2)."""
    async with recording_upstream() as server:
        evil = LocalProvider(new_issuer(server))
        await browser.gateway.admin.put("/tenants/acme/egress", json={"allow": [server.authority]})
        await add_provider(browser.gateway, "acme", evil, name="evil")
        asked = await browser.begin(issuer="evil")
        browser.provider.publish(asked["nonce"])
        server.seen.clear()
        browser.provider.issuer.upstream.seen.clear()
        answers = [
            await browser.come_back(asked, "corp"),
            await browser.come_back(asked, "evil", iss=browser.provider.issuer.url),
            await browser.come_back(await browser.begin(issuer="corp"), "corp", iss=server.url),
        ]

    assert [answer.status_code for answer in answers] == [400, 502, 502]
    assert server.seen == [], "the code of one provider does not reach another one"
    assert browser.provider.issuer.upstream.seen == []
    assert await browser.person() is None


async def test_a_provider_that_names_itself_has_to(browser: Browser) -> None:
    """RFC 9207 §2.4: where the metadata promises `iss`, a response without it is refused (IDN-2)."""
    await browser.gateway.admin.delete("/tenants/acme/issuers/corp")
    browser.provider.answer["authorization_response_iss_parameter_supported"] = True
    await add_provider(browser.gateway, "acme", browser.provider)
    asked = await browser.begin()
    browser.provider.publish(asked["nonce"])

    assert (await browser.come_back(asked)).status_code == 502
    asked = await browser.begin()
    browser.provider.publish(asked["nonce"])
    assert (await browser.come_back(asked, iss=browser.provider.issuer.url)).status_code == 303


ELSEWHERE = (
    "https://evil.example/",
    "//evil.example/t/acme/",
    "/\\evil.example",
    "/t/acme/\\evil.example",
    "/t/globex/sign-in",
    "/t/acme/../../approvals",
    "/t/acme/%0d%0aset-cookie:x",
    "/t/acme/\r\nx",
    "javascript:alert(1)",
    "/t/acme",
    "/approvals",
    "",
)


@pytest.mark.parametrize("target", ELSEWHERE)
async def test_a_sign_in_leads_to_pages_of_its_tenant_only(browser: Browser, target: str) -> None:
    """RFC 9700 §4.11: no open redirect, before and after the sign-in (IDN-2)."""
    path = f"/t/acme/sign-in?{urlencode({'next': target})}"
    before = await browser.http.get(path)
    assert (await browser.sign_in()).status_code == 303
    after = await browser.http.get(path)

    if target:
        assert before.status_code == after.status_code == 400
    else:
        assert (before.status_code, after.status_code) == (303, 200)
    assert "location" not in after.headers


async def test_not_admitted_and_denied_people_get_no_session(browser: Browser) -> None:
    """Ours: the issuer's rules decide as for tokens; a denial ends sessions and refuses the next sign-in (IDN-2)."""
    rules = {"rules": [{"group": "keepers"}]}
    assert (await browser.gateway.admin.patch("/tenants/acme/issuers/corp", json=rules)).status_code == 200
    outside = await browser.sign_in(groups=["cleaners"])
    assert (outside.status_code, await _people(browser.gateway)) == (403, [])
    inside = await browser.sign_in(groups=["keepers"])
    assert inside.status_code == 303
    assert await browser.person() == "corp:ada"
    [person] = (await browser.gateway.admin.get("/tenants/acme/people")).json()["items"]

    await browser.gateway.admin.post(f"/tenants/acme/people/{person['id']}/deny")

    assert await browser.person() is None
    assert (await browser.sign_in(groups=["keepers"])).status_code == 403
    await browser.gateway.admin.post(f"/tenants/acme/people/{person['id']}/allow")
    assert await browser.person() is None, "a session from before the denial does not come back"
    assert (await browser.sign_in(groups=["keepers"])).status_code == 303
    await browser.gateway.admin.patch("/tenants/acme/issuers/corp", json={"rules": [{"group": "others"}]})
    assert await browser.person() is None


async def test_a_session_is_new_and_of_its_tenant(browser: Browser) -> None:
    """Ours: a sign-in takes over no cookie of before; a session is none at another tenant (IDN-2, ISO-1)."""
    await browser.sign_in()
    first = browser.http.cookies["gateway-person-acme"]
    browser.http.cookies.set("gateway-person-acme", "planted", domain="127.0.0.1", path="/")
    await browser.sign_in(sub="bob")
    await browser.gateway.create_tenant("globex")
    await add_provider(browser.gateway, "globex", browser.provider)

    assert await browser.person() == "corp:bob"
    async with _open(browser.gateway) as other:
        for name in ("gateway-person-globex", "__Host-gateway-person-acme", "gateway-person"):
            other.cookies.set(name, first, domain="127.0.0.1", path="/")
        for slug in ("acme", "globex"):
            assert await Browser(browser.gateway, other, browser.provider, slug).person() is None


async def test_many_begun_sign_ins_fill_no_browser(browser: Browser) -> None:
    """Ours: cookies of unfinished sign-ins are bounded, so no page makes a browser's headers too large."""
    for _ in range(8):
        await browser.begin(next=f"/t/acme/x?{'a' * 1500}")
    kept = [name for name in browser.http.cookies if name.startswith("gateway-sign-in")]

    assert len(kept) <= 3
    answer = await browser.http.get("/t/acme/sign-in", params={"next": f"/t/acme/x?{'a' * 3500}"})
    assert answer.status_code == 400
    asked = await browser.begin()
    browser.provider.publish(asked["nonce"])
    assert (await browser.come_back(asked)).status_code == 303


async def test_pages_cannot_be_framed_and_run_nothing(browser: Browser) -> None:
    """Ours: strict headers on every page and refusal (IDN-2)."""
    await browser.sign_in()
    paths = ("/t/acme/sign-in", "/t/acme/sign-in?next=//evil", "/t/missing/sign-in", "/t/acme/sign-in/corp/callback")
    for answer in [await browser.http.get(path) for path in paths]:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert (answer.headers["x-frame-options"], answer.headers["cache-control"]) == ("DENY", "no-store")


async def test_the_clients_secret_and_the_providers_tokens_come_out_nowhere(browser: Browser, stand: Stand) -> None:
    """Ours: sealed at rest, in no response, page, entry or list (TEN-4)."""
    browser.provider.answer["refresh_token"] = "refresh-of-the-provider"
    await browser.sign_in()
    admin = browser.gateway.admin
    shown = [
        (await admin.get("/tenants/acme/issuers/corp")).text,
        (await admin.get("/tenants/acme/issuers")).text,
        (await admin.get("/tenants/acme/audit")).text,
        (await admin.get("/tenants/acme/people")).text,
        (await browser.http.get("/t/acme/sign-in")).text,
        await dump(stand.database.superuser_url),
    ]

    for secret in ("secret-at-the-provider", "token-of-the-provider", "refresh-of-the-provider"):
        assert not [text for text in shown if secret in text]


async def test_a_parameter_that_comes_twice_is_refused(browser: Browser) -> None:
    """RFC 6749 §3.1: two states or codes are not one of them (IDN-2)."""
    asked = await browser.begin()
    browser.provider.publish(asked["nonce"])
    path = f"/t/acme/sign-in/corp/callback?code=code&state=other&state={asked['state']}"

    assert (await browser.http.get(path)).status_code == 400
    assert await browser.person() is None


async def test_claims_that_lost_their_groups_end_the_session(browser: Browser, database: TestDatabase) -> None:
    """Ours: a session is admitted by the rules at each request, with the claims of the last check (IDN-2)."""
    await browser.gateway.admin.patch("/tenants/acme/issuers/corp", json={"rules": [{"group": "keepers"}]})
    await browser.sign_in(groups=["keepers"])
    assert await browser.person() == "corp:ada"

    await execute(database.superuser_url, "update sign_ins set groups = '{}'")

    assert await browser.person() is None


async def test_groups_come_from_userinfo_of_the_same_person(browser: Browser) -> None:
    """OpenID Connect Core §5.3.2: UserInfo of another subject is used for no one (IDN-2)."""
    await browser.gateway.admin.delete("/tenants/acme/issuers/corp")
    url, answer = browser.provider.issuer.url, browser.provider.answer
    answer |= {"userinfo_endpoint": f"{url}/userinfo", "groups": ["keepers"], "sub": "bob"}
    await add_provider(browser.gateway, "acme", browser.provider, rules=[{"group": "keepers"}])

    other = await browser.sign_in()
    answer["sub"] = "ada"
    same = await browser.sign_in()

    assert (other.status_code, same.status_code) == (502, 303)
    [person] = await _people(browser.gateway)
    assert person == "corp:ada"


async def test_groups_that_userinfo_does_not_give_are_not_known(browser: Browser, database: TestDatabase) -> None:
    """Ours: access rules about groups count without an admission rule about them; in doubt, strictly (IDN-4)."""
    await browser.gateway.admin.delete("/tenants/acme/issuers/corp")
    url, answer = browser.provider.issuer.url, browser.provider.answer
    answer |= {"userinfo_endpoint": f"{url}/userinfo", "groups": ["keepers"], "sub": "bob"}
    await add_provider(browser.gateway, "acme", browser.provider)
    check = "select groups::text, has_all_groups from sign_ins order by created_at"

    assert (await browser.sign_in()).status_code == 303
    answer["sub"] = "ada"
    assert (await browser.sign_in()).status_code == 303

    connection = await connect_owner(database.superuser_url)
    try:
        rows = [tuple(row.values()) for row in await connection.fetch(check)]
    finally:
        await connection.close()
    assert rows == [("{}", False), ("{keepers}", True)]


async def test_floods_of_sign_ins_are_limited_by_address_and_tenant(servers: TestServers) -> None:
    """Ours: pages without a credential have a rate for each address, and one for each tenant (ISO-6)."""
    with servers.database() as own:
        async with (
            recording_upstream() as server,
            running_gateway(
                own.app_url,
                servers.empty_redis(),
                auth_failure_rate=0.1,
                egress_allow=[server.authority],
                trusted_proxies=["127.0.0.1"],
            ) as running,
        ):
            await running.create_tenant("acme")
            await add_provider(running, "acme", LocalProvider(new_issuer(server)))

            async def begin(address: str) -> int:
                headers = {"x-forwarded-for": address}
                return (await running.http.get("/t/acme/sign-in", headers=headers)).status_code

            of_one = [await begin("192.0.2.1") for _ in range(4)]
            of_many = [await begin(f"198.51.100.{number}") for number in range(25)]

    assert (of_one[0], of_one[-1]) == (303, 429)
    assert (of_many[0], of_many[-1]) == (303, 429)


async def test_looking_for_tenants_by_their_pages_counts_as_failures(servers: TestServers) -> None:
    """Ours: pages of made-up tenants are slowed down like guessed keys (ISO-6)."""
    with servers.database() as own:
        async with running_gateway(own.app_url, servers.empty_redis(), auth_failure_rate=0.1) as running:
            for index in range(2):
                assert (await running.http.get(f"/t/made-up-{index}/sign-in")).status_code == 404
            refused = await running.rpc("acme", "wrong", "tools/list")

    assert refused.status_code == 429
