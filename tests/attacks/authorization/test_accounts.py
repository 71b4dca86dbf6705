"""Attacks on accounts of users: links, browsers, codes and keys of others, mix-up, and what comes out of the stores."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.store.database.connection import connect_owner
from tests.behaviour.people.test_accounts import Tracker, common_stand, second, tracker
from tests.support.accounts import PUBLIC, AccountServer, UserBrowser
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.servers import TestDatabase
from tests.support.upstream import recording_upstream

__all__ = ["common_stand", "second", "tracker"]


async def _state(tracker: Tracker, tenant: str = "acme") -> set[str]:
    found = (await tracker.gateway.admin.get(f"/tenants/{tenant}/accounts")).json()["items"]
    return {one["subject"] for one in found}


async def test_a_link_opened_by_another_user_connects_nothing(tracker: Tracker) -> None:
    """MCP: the person who opens the page has to be the one who called (TEN-4)."""
    link = await tracker.link()
    colleague = await (await tracker.browser(user="bob")).open(link)
    assert (colleague.status_code, "made for another user" in colleague.text) == (403, True)
    assert "/begin" not in colleague.text
    stranger = await (await tracker.browser("globex")).open(link)
    anonymous = await UserBrowser.at(tracker.gateway).open(link)
    missing = await UserBrowser.at(tracker.gateway).open(link.replace("acme", "none"))
    for page in (stranger, anonymous, missing):
        assert (page.status_code, "/begin" not in page.text) == (200, True)
    assert anonymous.text == missing.text.replace("none", "acme")
    assert stranger.text == anonymous.text
    foreign = await UserBrowser.at(tracker.gateway).sign_in(tracker.keys["globex", "ada"], "acme")
    assert (foreign.status_code, "not valid" in foreign.text) == (401, True)
    admin = await tracker.gateway.create_key("acme", "admin")
    assert (await UserBrowser.at(tracker.gateway).sign_in(admin)).status_code == 403
    assert await _state(tracker) == set()


async def test_a_code_counts_for_the_browser_and_user_that_began(tracker: Tracker) -> None:
    """RFC 9700 §4.5, §4.7: no other browser, user or state connects, and none twice (TEN-4)."""
    ada = await tracker.browser()
    location = await ada.begin(await tracker.link())
    answer = tracker.server.permit(location, "mallory")
    bob = await tracker.browser(user="bob")
    assert (await bob.come_back(answer)).status_code == 400
    assert (await UserBrowser.at(tracker.gateway).come_back(answer)).status_code == 400
    assert (await ada.come_back({**answer, "state": answer["state"][:-1] + "x"})).status_code == 400
    assert (await ada.come_back({**answer, "state": ""})).status_code == 400
    # the browser of the victim, in which another user has signed in meanwhile
    await ada.sign_in(tracker.keys["acme", "bob"])
    assert (await ada.come_back(answer)).status_code == 400
    assert tracker.server.asked == []
    assert await _state(tracker) == set()
    await ada.sign_in(tracker.keys["acme", "ada"])
    kept = dict(ada.http.cookies)
    assert (await ada.come_back(answer)).status_code == 200
    for name, value in kept.items():
        ada.http.cookies.set(name, value)
    again = tracker.server.permit(location, "mallory")
    assert (await ada.come_back(again)).status_code == 400
    assert len(tracker.server.asked) == 1


async def test_a_response_of_another_server_is_not_taken(tracker: Tracker) -> None:
    """RFC 9700 §4.4, mix-up: each credential has its own redirect URI, and `iss` has to be its server's (TEN-4)."""
    admin = tracker.gateway.admin
    async with recording_upstream() as other:
        (await admin.put("/tenants/acme/egress", json={"allow": [other.authority]})).raise_for_status()
        evil = AccountServer(other)
        evil.start(authorization_response_iss_parameter_supported=True)
        body = {"name": "evil", "kind": "user", "place": "bearer", "origins": [tracker.api.url]}
        body |= {"server": other.url, "client_id": "gateway-client", "value": "s3cret-of-the-client"}
        assert (await admin.post("/tenants/acme/credentials", json=body)).status_code == 201
        ada = await tracker.browser()
        location = await ada.begin("/t/acme/connect/evil/account")
        answer = evil.permit(location, "ada")
        assert (await ada.come_back(answer, "tracker")).status_code == 400
        assert (await ada.come_back(answer, "evil")).status_code == 502
        wrong = {**answer, "iss": tracker.server.upstream.url}
        assert (await ada.come_back(wrong, "evil")).status_code == 502
        assert (evil.asked, tracker.server.asked) == ([], [])
        assert (await ada.come_back({**answer, "iss": other.url}, "evil")).status_code == 200
        honest = tracker.server.permit(await ada.begin("/t/acme/connect/tracker/account"), "ada")
        assert (await ada.come_back({**honest, "iss": other.url})).status_code == 502
    assert tracker.server.asked == []


async def test_forms_links_and_targets_of_others_do_nothing(tracker: Tracker) -> None:
    """Ours: no page of another site begins or ends a connection, and the sign-in leads to the tenant only (IDN-3)."""
    ada = await tracker.connect()
    assert (await ada.http.get("/t/acme/connect/tracker/begin")).status_code == 403
    assert (await ada.http.get("/t/acme/connect/tracker/begin?token=0")).status_code == 403
    gone = "/t/acme/connect/tracker/disconnect"
    assert (await ada.http.post(gone, data={"token": "0"})).status_code == 403
    page = await ada.open("/t/acme/connect/tracker/account")
    token = re.search(r'name="token" value="([0-9a-f]+)"', page.text)
    assert token is not None
    crossed = await ada.http.post(gone, data={"token": token[1]}, headers={"origin": "https://evil.example"})
    assert crossed.status_code == 403
    for target in ("https://evil.example", "//evil.example", "/t/globex/connect", "/t/acme/../globex"):
        refused = await ada.sign_in(tracker.keys["acme", "ada"], target=target)
        assert refused.status_code == 400, target
    for _ in range(5):
        await ada.begin("/t/acme/connect/tracker/account")
    assert len([name for name in ada.http.cookies if name.startswith("gateway-account-")]) == 3
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert await _state(tracker) == {"ada"}


async def test_a_key_with_the_subject_of_another_one_has_no_account(tracker: Tracker) -> None:
    """Ours: a subject is its creator's choice, so an account belongs to one key or person, and ends with it (TEN-4)."""
    await tracker.connect()
    twin = await tracker.gateway.create_key("acme", "mcp", subject="ada")
    tracker.keys["acme", "twin"] = twin
    assert "not connected one yet" in str((await tracker.call(user="twin"))["result"])
    [account] = (await tracker.gateway.admin.get("/tenants/acme/accounts")).json()["items"]
    revoked = await tracker.gateway.admin.post(f"/tenants/acme/keys/{account['owner']}/revoke")
    assert revoked.status_code == 200
    assert await _state(tracker) == set()


async def test_people_connect_after_their_sign_in_and_lose_it_with_their_admission(tracker: Tracker) -> None:
    """Ours: a denied person neither opens the page nor calls; accounts end with their issuer (TEN-4)."""
    admin = tracker.gateway.admin
    async with recording_upstream() as server:
        (await admin.put("/tenants/acme/egress", json={"allow": [server.authority]})).raise_for_status()
        provider = LocalProvider(new_issuer(server))
        await add_provider(tracker.gateway, "acme", provider, audiences=["https://api.example"])
        tracker.keys["acme", "person"] = provider.issuer.token("https://api.example", sub="eve")
        browser = UserBrowser.at(tracker.gateway)
        link = await tracker.link(user="person")
        page = await browser.open(link)
        signs_in = re.search(r'href="(/t/acme/sign-in\?[^"]*)"', page.text)
        assert signs_in is not None
        begun = await browser.http.get(signs_in[1])
        asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.headers["location"]).query).items()}
        provider.publish(asked["nonce"], sub="eve")
        back = {"code": "code", "state": asked["state"]}
        arrived = await browser.http.get("/t/acme/sign-in/corp/callback", params=back)
        assert arrived.headers["location"] == link.removeprefix(PUBLIC)
        assert (await browser.connect(link, tracker.server, "acme.eve")).status_code == 200
        result = (await tracker.call(user="person"))["result"]
        assert not result.get("isError"), result
        assert (tracker.api.seen[-1].header("authorization") or "").startswith("Bearer acme.eve.access.")
        own = (await browser.open("/t/acme/")).text
        assert ("corp:eve" in own, "connected, since" in own, "/tracker/disconnect" in own) == (True, True, True)
        [person] = (await admin.get("/tenants/acme/people")).json()["items"]
        (await admin.post(f"/tenants/acme/people/{person['id']}/deny")).raise_for_status()
        assert "Sign in" in (await browser.open(link)).text
        assert "result" not in await tracker.call(user="person")
        assert await _state(tracker) == {"corp:eve"}
        assert (await admin.delete("/tenants/acme/issuers/corp")).status_code == 204
        assert await _state(tracker) == set()


async def test_tokens_of_accounts_come_out_nowhere(
    tracker: Tracker, database: TestDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: not in tables, Redis, the trail, lists, pages or logs (SEC-4)."""
    browser = await tracker.connect()
    await tracker.call()
    connection = await connect_owner(database.superuser_url)
    rows = await connection.fetch("select * from accounts")
    await connection.close()
    assert len(rows) == 1
    shown = [str([dict(row) for row in rows]), (await browser.open("/t/acme/connect")).text]
    paths = ("accounts", "audit?limit=200", "credentials")
    shown += [(await tracker.gateway.admin.get(f"/tenants/acme/{path}")).text for path in paths]
    shown.append("".join(capsys.readouterr()))
    assert not [text for text in shown if re.search(r"acme\.ada\.(access|refresh)|s3cret-of", text)]
