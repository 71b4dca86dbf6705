"""The page of a tenant: people and holders of keys see and use the page; strangers and neighbours do not."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape

import httpx

from gateway.domain.tenancy.client_setup import CLIENTS, ClientTarget, client_lines
from tests.support.authorization import Application, register
from tests.support.chromium import Browser
from tests.support.gateway import RunningGateway
from tests.support.issuer import add_provider
from tests.support.serving import http_client

PAGE = "/t/acme/"
HOSTILE = '</bdi><script>alert(1)</script>"><img src=x onerror=alert(1)>'


def shown(page: httpx.Response) -> str:
    """The text of a page as a person reads it."""
    assert page.status_code == 200, page.text
    return unescape(page.text)


def form_of(page: httpx.Response, action: str) -> dict[str, str]:
    """The hidden fields of the first form that is sent to a path."""
    found = re.search(rf'<form method="post" action="{re.escape(action)}">(.*?)</form>', page.text, re.DOTALL)
    assert found, page.text
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', found[1]))


@asynccontextmanager
async def person(application: Application, name: str, slug: str = "acme") -> AsyncGenerator[Application]:
    """Another person, in a browser of the person's own, who has allowed an application of the tenant."""
    client = await register(application.gateway, slug)
    async with http_client(timeout=30) as http:
        other = Application(
            application.gateway, application.provider, client["id"], http, slug=slug, claims={"sub": name}
        )
        await other.tokens()
        yield other


@asynccontextmanager
async def browser_of(gateway: RunningGateway) -> AsyncGenerator[httpx.AsyncClient]:
    """A browser without a session; its forms are of pages of the gateway."""
    async with http_client(base_url=gateway.url, headers={"origin": gateway.url}, timeout=30) as http:
        yield http


async def page_of(application: Application, path: str = "") -> httpx.Response:
    """The page as the person's browser gets it."""
    return await application.http.get(f"{application.issuer}/{path}")


async def revoke(application: Application, **fields: str) -> httpx.Response:
    """The response to the form that revokes a consent; `origin` is the page that sends it."""
    headers = {"origin": fields.pop("origin", application.gateway.url)}
    return await application.http.post(f"{application.issuer}/consents", data=fields, headers=headers)


async def consents(gateway: RunningGateway, slug: str = "acme") -> dict[str, str]:
    """The ids of stored consents by subject."""
    found = (await gateway.admin.get(f"/tenants/{slug}/consents")).json()["items"]
    return {consent["subject"]: consent["id"] for consent in found}


async def test_a_person_connects_clients_and_revokes_one(application: Application) -> None:
    """Ours: the page has the line of every client; a revoked one is refused, and the trail names the person (IDN-2)."""
    gateway = application.gateway
    await gateway.admin.put("/tenants/acme/profiles/cats", json={"description": "Cats only"})
    token = (await application.tokens())["access_token"]
    assert await application.status(token) == 200
    page, cats = await page_of(application), await page_of(application, "?profile=cats")

    for target, text in (
        (ClientTarget(name="acme", url=f"{gateway.url}/t/acme/mcp"), shown(page)),
        (ClientTarget(name="acme-cats", url=f"{gateway.url}/t/acme/cats/mcp"), shown(cats)),
    ):
        for name, line in client_lines(target):
            assert f'<th scope="row">{name}</th>' in text
            assert f"<pre>{line}</pre>" in text
    assert all(client.name in shown(page) for client in CLIENTS)
    for known in ("corp:ada", "Cats only", "Reports", "client.example", "Sign out"):
        assert known in shown(page)
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; form-action 'self'")
    assert (page.headers["cache-control"], page.headers["x-frame-options"]) == ("no-store", "DENY")

    done = await revoke(application, **form_of(page, f"{PAGE}consents"))
    assert (done.status_code, done.headers["location"]) == (303, f"{PAGE}?revoked=1#consents")
    after = shown(await page_of(application, "?revoked=1"))
    assert "The client is revoked" in after
    assert "Reports" not in after
    assert await application.status(token) == 401
    entries = (await gateway.admin.get("/tenants/acme/audit")).json()["items"]
    assert [entry["principal"] for entry in entries if entry["action"] == "consent.revoke"] == ["user:corp:ada"]

    signed_out = form_of(page, f"{PAGE}sign-out")
    headers = {"origin": gateway.url}
    assert (await application.http.post(f"{application.issuer}/sign-out", data=signed_out, headers=headers)).is_success
    assert "Sign in with your account" in shown(await page_of(application))


async def test_a_person_sees_the_profiles_that_a_rule_admits(application: Application) -> None:
    """Ours: profiles that no rule admits the person to have no line and no page (IDN-2)."""
    for name in ("cats", "dogs"):
        await application.gateway.admin.put(f"/tenants/acme/profiles/{name}", json={"description": name.upper()})
    changed = await application.gateway.admin.patch(
        "/tenants/acme/issuers/corp", json={"rules": [{"profiles": ["cats"]}]}
    )
    assert changed.is_success, changed.text
    await application.tokens(resource=f"{application.gateway.url}/t/acme/cats/mcp")

    page = shown(await page_of(application))

    assert "/t/acme/cats/mcp" in page
    assert "DOGS" not in page
    assert "All primitives" not in page
    for name in ("dogs", "default", "missing"):
        assert (await page_of(application, f"?profile={name}")).status_code == 404


async def test_unknown_visitors_see_the_same_sign_in_for_every_tenant(application: Application) -> None:
    """Ours: no response to a stranger reveals whether a tenant exists (IDN-2)."""
    gateway = application.gateway
    await gateway.create_tenant("bare")
    await gateway.create_tenant("globex")
    foreign = await gateway.create_key("globex")
    seen: dict[str, list[tuple[int, str, dict[str, str]]]] = {}
    async with browser_of(gateway) as stranger:
        for slug in ("acme", "bare", "missing"):
            path, junk = f"/t/{slug}/", {"cookie": f"gateway-person-{slug}=junk; gateway-key=junk"}
            answers = [
                await stranger.get(path),
                await stranger.get(path, headers=junk),
                await stranger.get(f"{path}?profile=secret&revoked=1"),
                *[await stranger.post(path, data={"key": key}) for key in (foreign, "wrong", "")],
                await stranger.post(f"{path}consents", data={"consent": "cns_00000000000000000000"}),
                await stranger.post(f"{path}key/sign-out", data={"token": "0"}),
            ]
            assert all("set-cookie" not in answer.headers for answer in answers)
            varying = {"date", "content-length", "x-correlation-id", "x-request-id"}
            seen[slug] = [
                (
                    answer.status_code,
                    answer.text.replace(slug, "SLUG"),
                    {name: text.replace(slug, "SLUG") for name, text in answer.headers.items() if name not in varying},
                )
                for answer in answers
            ]
        assert [status for status, _, _ in seen["acme"]] == [200, 200, 200, 401, 401, 401, 403, 303]
        for slug in ("bare", "missing"):  # the link of each sign-in page leads back to its key form
            link = re.findall(r'href="(/t/[^"]*/sign-in[^"]*)"', (await stranger.get(f"/t/{slug}/")).text)[0]
            ended = await stranger.get(unescape(link))
            assert (ended.status_code, f'href="/t/{slug}/"' in ended.text) == (404, True)
        for slug in ("a%22b", "%3Cb%3E", "a%00b", "A" * 64, "a" * 64):
            assert (await stranger.get(f"/t/{slug}/")).status_code == 404, slug

    assert seen["acme"] == seen["missing"]
    assert seen["acme"] == seen["bare"]


async def test_clients_that_have_to_register_are_marked_where_they_cannot(application: Application) -> None:
    """Ours: the page offers no line that fails without what the administrator has to do (IDN-2)."""
    await application.tokens()
    mark, path = "needs registration, which is not permitted", "/tenants/acme/issuers/corp"
    assert mark not in shown(await page_of(application))

    client = {**application.provider.client, "registration": False}
    application.provider.publish()
    changed = await application.gateway.admin.patch(path, json={"sign_in": client})
    assert changed.status_code == 200, changed.text
    await application.tokens()
    page = shown(await page_of(application))
    rows = {row.partition("<")[0]: mark in row for row in page.split('<tr><th scope="row">')}
    registering = {each.name for each in CLIENTS if each.registers}
    assert {name for name, is_marked in rows.items() if is_marked} == registering
    assert registering == {"Cursor", "Codex", "Gemini CLI", "Goose", "Neovim"}
    assert "gateway --tenant acme issuer update corp --registration" in page


async def test_the_holder_of_a_key_sees_the_profile_of_the_key(gateway: RunningGateway) -> None:
    """Ours: a key signs in at its tenant and sees its profile, until the sign-out or its revocation (IDN-2)."""
    for slug in ("acme", "globex"):
        await gateway.create_tenant(slug)
    for name in ("cats", "dogs"):
        await gateway.admin.put(f"/tenants/acme/profiles/{name}", json={"description": name.upper()})
    key = await gateway.create_key("acme", profile="cats", subject="Bot")
    async with browser_of(gateway) as holder:
        without = await gateway.create_key("acme", "approve")
        assert (await holder.post(PAGE, data={"key": without})).status_code == 403
        assert (
            await holder.post(PAGE, data={"key": key}, headers={"origin": "https://evil.example"})
        ).status_code == 403
        entered = await holder.post(PAGE, data={"key": key})
        assert (entered.status_code, entered.headers["location"]) == (303, PAGE)
        assert key not in entered.text + str(entered.headers)
        page = await holder.get(PAGE)
        target = ClientTarget(name="acme-cats", url=f"{gateway.url}/t/acme/cats/mcp", key="YOUR-KEY")
        assert all(f"<pre>{line}</pre>" in shown(page) for _, line in client_lines(target))
        assert "Bot" in shown(page)
        assert "DOGS" not in shown(page)
        assert "Clients you allowed" not in shown(page)
        assert (await holder.get(f"{PAGE}?profile=dogs")).status_code == 404
        assert "Sign in with your account" in shown(await holder.get("/t/globex/")), "the session is of one tenant"

        out, kept = f"{PAGE}key/sign-out", dict(holder.cookies)
        assert (await holder.post(out, data={"token": "0" * 64})).status_code == 403
        assert (await holder.post(out, data=form_of(page, out))).status_code == 303
        for cookies in (dict(holder.cookies), kept):
            again = await gateway.http.get(PAGE, headers={"cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())})
            assert "Sign in with your account" in shown(again)

        await holder.post(PAGE, data={"key": key})
        [stored] = [one for one in (await gateway.admin.get("/tenants/acme/keys")).json()["items"] if one["profile"]]
        await gateway.admin.delete(f"/tenants/acme/keys/{stored['id']}")
        assert "Sign in with your account" in shown(await holder.get(PAGE))


async def test_a_consent_is_revoked_by_its_own_person_only(application: Application) -> None:
    """Ours: no other person, tenant, session or site revokes a consent, even with its id (IDN-2)."""
    gateway, action = application.gateway, f"{PAGE}consents"
    await application.tokens()
    await gateway.create_tenant("globex")
    await add_provider(gateway, "globex", application.provider)
    async with person(application, "bob") as bob, person(application, "ada", "globex") as abroad:
        stored = await consents(gateway)
        assert stored.keys() == {"corp:ada", "corp:bob"}
        own, theirs = form_of(await page_of(application), action), form_of(await page_of(bob), action)
        assert (own["consent"], theirs["consent"]) == (stored["corp:ada"], stored["corp:bob"])
        foreign = form_of(await page_of(abroad), "/t/globex/consents")
        sign_out = form_of(await page_of(application), f"{PAGE}sign-out")
        refused = {
            "of another person": await revoke(bob, **theirs | {"consent": own["consent"]}),
            "of another tenant": await revoke(abroad, **foreign | {"consent": own["consent"]}),
            "of no form": await revoke(application, consent=own["consent"]),
            "of another session": await revoke(application, **own | {"token": theirs["token"]}),
            "of another purpose": await revoke(application, **own | {"token": sign_out["token"]}),
            "of another site": await revoke(application, **own, origin="https://evil.example"),
            "of no consent": await revoke(application, **own | {"consent": "cns_\0"}),
        }
        statuses = {name: answer.status_code for name, answer in refused.items()}
        key = await gateway.create_key("acme", subject="corp:ada")
        async with browser_of(gateway) as holder:
            await holder.post(PAGE, data={"key": key})
            assert (await holder.post(action, data=own)).status_code == 403
        assert await consents(gateway) == stored
        assert len(await consents(gateway, "globex")) == 1

    assert statuses == {
        "of another person": 404,
        "of another tenant": 404,
        "of no form": 403,
        "of another session": 403,
        "of another purpose": 403,
        "of another site": 403,
        "of no consent": 404,
    }


async def test_the_page_in_a_browser(browser: Browser, application: Application) -> None:
    """WCAG 2.2: the keyboard alone is enough, every element has a name, and hostile names do nothing (IDN-2)."""
    gateway = application.gateway
    changed = await gateway.admin.put("/tenants/acme/profiles/cats", json={"description": HOSTILE})
    assert changed.is_success, changed.text
    key = await gateway.create_key("acme", subject=HOSTILE)
    page = gateway.url + PAGE
    await browser.send("Emulation.setScriptExecutionDisabled", value=True)
    await browser.open(page)
    names = await browser.names()
    assert ("link", "Sign in with your account") in names
    passed = await browser.tab_to("INPUT|key")
    assert "Skip to the content" in passed[0]
    await browser.type(key)
    await browser.press("Enter", loads=True)
    assert HOSTILE in await browser.text()
    await browser.tab_to("cats")
    await browser.press("Enter", loads=True)
    assert f"{page}cats/mcp" in await browser.text()
    await browser.tab_to("Sign out")
    await browser.press("Enter", loads=True)
    assert "Sign in with your account" in await browser.text()

    application.client_id = (await register(gateway, name=HOSTILE))["id"]
    await application.tokens()
    for cookie in application.http.cookies.jar:
        await browser.send("Network.setCookie", name=cookie.name, value=cookie.value or "", url=gateway.url)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await browser.send("Emulation.setEmulatedMedia", features=features)
        await browser.open(page)
        assert await browser.ask(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        assert "light dark" in await browser.ask("getComputedStyle(document.documentElement).colorScheme")
    names = await browser.names()
    for expected in [
        ("main", ""),
        ("heading", "Connect a client"),
        ("region", "Profiles"),
        ("region", "Clients"),
        ("region", "Your accounts at other services"),
        ("region", "Clients you allowed"),
        ("rowheader", "Claude Code"),
        ("button", f"Revoke {HOSTILE}"),
        ("button", "Sign out"),
    ]:
        assert expected in names, names
    assert all(name for role, name in names if role in {"button", "link", "textbox", "region", "heading", "table"})
    assert await browser.ask("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])") == [1, 2, 2, 2, 2]
    assert await browser.ask("document.scripts.length + document.images.length") == 0
    assert await browser.ask("document.forms.length") == 2
    await browser.tab_to("Revoke")
    await browser.press("Enter", loads=True)
    assert "The client is revoked" in await browser.text()
    assert ("status", "") in await browser.names()
    assert await consents(gateway) == {}
