"""Accounts of users at an upstream: connected once, used for their own calls only, refreshed, disconnected."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from tests.integration.upstream.live.sdk_server import running_sdk_server
from tests.support.accounts import PUBLIC, AccountServer, UserBrowser
from tests.support.chromium import Browser
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalProvider, add_issuer, new_issuer
from tests.support.provider import CLIENT_ID, CLIENT_SECRET, Visitor, running_provider
from tests.support.replicas import until
from tests.support.servers import TestServers
from tests.support.stand import Stand, running_stand
from tests.support.upstream import RecordingUpstream

SCHEMA = {"type": "object", "properties": {"as": {"type": "string"}}, "required": ["as"]}
TENANTS, USERS = ("acme", "globex"), ("ada", "bob")


@dataclass(slots=True)
class Tracker:
    """Two tenants on two replicas, an API, and its authorization server, with two users of each tenant."""

    replicas: tuple[RunningGateway, RunningGateway]
    api: RecordingUpstream
    server: AccountServer
    keys: dict[tuple[str, str], str]

    @property
    def gateway(self) -> RunningGateway:
        return self.replicas[0]

    async def call(
        self, tenant: str = "acme", user: str = "ada", tool: str = "tool_tracker", *, replica: int = 0, **caps: Any
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": {"as": f"{tenant}.{user}"}}
        if caps:
            params["_meta"] = {"io.modelcontextprotocol/clientCapabilities": caps}
        key = self.keys[tenant, user]
        answer: dict[str, Any] = (await self.replicas[replica].rpc(tenant, key, "tools/call", params)).json()
        return answer

    async def link(self, tenant: str = "acme", user: str = "ada") -> str:
        """The link in the result of a call."""
        result = (await self.call(tenant, user))["result"]
        assert result["isError"] is True
        found = re.search(r"http://127\.0\.0\.1:9/\S+", str(result["content"]))
        assert found is not None, result
        return found[0]

    async def browser(self, tenant: str = "acme", user: str = "ada", *, replica: int = 0) -> UserBrowser:
        """A browser in which the user is signed in."""
        browser = UserBrowser.at(self.replicas[replica])
        signed_in = await browser.sign_in(self.keys[tenant, user], tenant)
        assert signed_in.status_code == 303, signed_in.text
        return browser

    async def connect(self, tenant: str = "acme", user: str = "ada") -> UserBrowser:
        """Connect the account of a user."""
        browser = await self.browser(tenant, user)
        done = await browser.connect(await self.link(tenant, user), self.server, f"{tenant}.{user}", tenant=tenant)
        assert "is connected" in done.text, done.text
        return browser

    async def actions(self, tenant: str = "acme") -> list[tuple[str, str]]:
        """The entries of accounts in the trail, the oldest first."""
        found = (await self.gateway.admin.get(f"/tenants/{tenant}/audit?limit=200")).json()["items"]
        own = [(one["action"], one["outcome"]) for one in found if one["action"].startswith("account.")]
        return own[::-1]


@pytest.fixture(scope="module")
async def common_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """The first replica of these tests, with a public URL."""
    async with running_stand(servers, public_url=PUBLIC) as stand:
        yield stand


@pytest.fixture(scope="module")
async def second(common_stand: Stand) -> AsyncGenerator[RunningGateway]:
    """The second replica of these tests."""
    allowed = [upstream.authority for upstream in common_stand.upstreams]
    database, redis_url = common_stand.database, common_stand.redis_url
    async with running_gateway(database.app_url, redis_url, egress_allow=allowed, public_url=PUBLIC) as gateway:
        yield gateway


@pytest.fixture
async def tracker(stand: Stand, second: RunningGateway) -> Tracker:
    """The tenants; `acme` has a credential of accounts, and a declared and an imported tool that use it."""
    api, server = stand.upstreams
    made = AccountServer(server)
    made.start()
    keys = dict[tuple[str, str], str]()
    for tenant in TENANTS:
        await stand.gateway.create_tenant(tenant)
        keys |= {(tenant, user): await stand.gateway.create_key(tenant, "mcp", subject=user) for user in USERS}
    await declare(stand.gateway, "acme", api, server)
    return Tracker((stand.gateway, second), api, made, keys)


async def declare(gateway: RunningGateway, tenant: str, api: RecordingUpstream, server: RecordingUpstream) -> None:
    """A credential of accounts, a declared tool and an imported one."""
    body = {"name": "tracker", "kind": "user", "place": "bearer", "origins": [api.url], "scopes": ["read"]}
    body |= {"server": server.url, "client_id": "gateway-client", "value": "s3cret-of-the-client"}
    made = await gateway.admin.post(f"/tenants/{tenant}/credentials", json=body)
    assert made.status_code == 201, made.text
    assert made.json()["status"]["redirect_uri"] == f"{PUBLIC}/t/{tenant}/connect/tracker/callback"
    handler = {"kind": "http", "method": "GET", "url": f"{api.url}/tool/{{{{ as }}}}", "credential": "tracker"}
    definition = {"name": "tool_tracker", "description": "-", "inputSchema": SCHEMA}
    made = await gateway.admin.post(f"/tenants/{tenant}/tools", json={"definition": definition, "handler": handler})
    assert made.status_code == 201, made.text
    parameter = {"name": "as", "in": "path", "required": True, "schema": {"type": "string"}}
    operation = {"operationId": "op_tracker", "parameters": [parameter], "responses": {"200": {"description": "ok"}}}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": api.url}],
        "paths": {"/op/{as}": {"get": operation}},
        "components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
        "security": [{"bearer": []}],
    }
    await gateway.import_document(tenant, document, credentials={"bearer": {"credential": "tracker"}})


async def test_a_client_that_opens_pages_is_sent_to_the_account_and_continues(tracker: Tracker) -> None:
    """MCP: URL-mode elicitation in 2026-07-28, error -32042 in sessions, a link for all others (TEN-4)."""
    browser = await tracker.browser()
    opened: list[str] = []

    async def open_page(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        opened.append(params.url)
        if len(opened) > 1:
            await browser.connect(params.url, tracker.server, "acme.ada")
        return ElicitResult(action="accept")

    key = tracker.keys["acme", "ada"]
    async with tracker.gateway.client("acme", key, "2026-07-28", elicitation_callback=open_page) as client:
        ignored = await client.call_tool("tool_tracker", {"as": "acme.ada"})
        assert (ignored.is_error, opened[0] in str(ignored.content)) == (True, True)
        assert not (await client.call_tool("tool_tracker", {"as": "acme.ada"})).is_error
    assert len(opened) == 2
    assert re.fullmatch(re.escape(f"{PUBLIC}/t/acme/connect/tracker/account?for=") + "[0-9a-f]{32}", opened[0])
    plain = await tracker.call(user="bob", tool="op_tracker", elicitation={"form": {}})
    assert plain["result"]["isError"] is True


async def test_people_who_cannot_sign_in_at_the_gateway_get_no_link(tracker: Tracker) -> None:
    """Ours: the page would be a dead end for the token of an issuer without `sign_in`; the result states it (IDN-3)."""
    issuer = new_issuer(tracker.api)
    await add_issuer(tracker.gateway, "acme", issuer)
    tracker.keys["acme", "ada"] = issuer.token(f"{PUBLIC}/t/acme/mcp")
    refused = (await tracker.call(elicitation={"url": {}}))["result"]
    assert refused["isError"] is True
    assert "People of the issuer 'corp' cannot connect one" in str(refused["content"])
    assert f"{PUBLIC}/t/acme/connect" not in str(refused)

    provider = LocalProvider(issuer)
    provider.publish()
    changed = await tracker.gateway.admin.patch("/tenants/acme/issuers/corp", json={"sign_in": provider.client})
    assert changed.status_code == 200, changed.text
    assert (await tracker.link()).startswith(f"{PUBLIC}/t/acme/connect/tracker/account")


async def test_a_session_gets_the_error_with_the_page(tracker: Tracker) -> None:
    """MCP 2025-11-25: URLElicitationRequired for clients that open pages; others read the link (TEN-4)."""
    found: list[dict[str, Any]] = []
    offers: tuple[dict[str, Any], ...] = ({"elicitation": {"url": {}}}, {})
    for caps in offers:
        hello = {"protocolVersion": "2025-11-25", "capabilities": caps, "clientInfo": {"name": "t", "version": "1"}}
        headers = {"accept": "application/json, text/event-stream"}
        headers["authorization"] = f"Bearer {tracker.keys['acme', 'ada']}"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        opened = await tracker.gateway.http.post("/t/acme/mcp", json=message, headers=headers)
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        params = {"name": "op_tracker", "arguments": {"as": "x"}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        found.append((await tracker.gateway.http.post("/t/acme/mcp", json=message, headers=headers)).json())
    error, plain = found
    assert error["error"]["code"] == -32042
    [page] = error["error"]["data"]["elicitations"]
    assert page["mode"] == "url"
    assert page["elicitationId"]
    assert page["url"] in str(plain["result"]["content"])
    assert plain["result"]["isError"] is True


async def test_an_approval_is_kept_until_its_call_has_an_account(tracker: Tracker) -> None:
    """Ours: a run that stops for a missing account uses up no approval; one that sent a request does (SAF-3, TEN-4)."""
    admin = tracker.gateway.admin
    (await admin.patch("/tenants/acme/policy", json={"safe": "approve"})).raise_for_status()

    async def approve() -> None:
        await tracker.call()
        [asked] = (await admin.get("/tenants/acme/approvals?state=pending")).json()["items"]
        (await admin.post(f"/tenants/acme/approvals/{asked['id']}/approve", json={})).raise_for_status()

    await approve()
    await tracker.connect()  # a call without the account leads to the page
    done = (await tracker.call(replica=1))["result"]
    assert (done["isError"], len(tracker.api.seen)) == (False, 1), done

    tracker.api.status = 401
    refused: dict[str, Any] = {}
    for _ in range(2):  # after the first, the token is refreshed
        await approve()
        refused = (await tracker.call())["result"]
    states = [each["state"] for each in (await admin.get("/tenants/acme/approvals")).json()["items"]]
    assert (refused["isError"], len(tracker.api.seen)) == (True, 3), refused
    assert "accepts the tokens of your account" in str(refused["content"])
    assert states == ["done", "done", "done"]


async def test_tokens_are_refreshed_once_by_all_replicas(tracker: Tracker) -> None:
    """Ours: a refresh token counts once, so calls on two replicas share one refresh; a refusal is refreshed (TEN-4)."""
    tracker.server.life_s = 0
    await tracker.connect()
    tracker.server.life_s = 3600
    asked = len(tracker.server.asked)
    results = await asyncio.gather(*(tracker.call(replica=number % 2) for number in range(8)))
    assert not any(one["result"].get("isError") for one in results), results
    assert len(tracker.server.asked) == asked + 1

    tracker.api.status = 401
    refused = (await tracker.call())["result"]
    assert refused["isError"] is True
    assert "accepts the tokens of your account" in str(refused["content"])
    assert len(tracker.server.asked) == asked + 2
    assert "connect again" not in str(refused)
    tracker.api.status = 200
    assert not (await tracker.call())["result"].get("isError")
    tokens = {seen.header("authorization") for seen in tracker.api.seen}
    assert len(tokens) == 2


async def test_an_account_token_for_the_gateway_reaches_no_upstream(tracker: Tracker) -> None:
    """MCP: a server that issues tokens for the gateway gives an upstream none, at first or by a refresh (TEN-4)."""
    browser, link = await tracker.browser(), await tracker.link()
    tracker.server.returned = jwt.encode({"aud": [f"{PUBLIC}/t/globex/mcp"]}, "k" * 32)
    await browser.connect(link, tracker.server, "acme.ada")
    for tool in ("tool_tracker", "op_tracker"):
        assert "no upstream may receive" in str((await tracker.call(tool=tool))["result"]["content"])
    assert tracker.api.seen == []

    tracker.server.returned = ""
    await tracker.connect(user="bob")
    tracker.server.returned = jwt.encode({"aud": f"{PUBLIC}/admin/v1/tenants/acme"}, "k" * 32)
    tracker.api.status = 401
    assert "no upstream may receive" in str((await tracker.call(user="bob"))["result"]["content"])
    assert [seen.header("authorization") for seen in tracker.api.seen] == ["Bearer acme.bob.access.2"]


async def test_an_account_that_the_server_no_more_refreshes_is_connected_again(tracker: Tracker) -> None:
    """Ours: invalid_grant ends the account with an entry; other failures leave it (TEN-4)."""
    tracker.server.life_s = 0
    await tracker.connect()
    tracker.server.error = "temporarily_unavailable"
    failed = (await tracker.call())["result"]
    assert "temporarily_unavailable" in str(failed["content"])
    tracker.server.error = "invalid_grant"
    link = await tracker.link()
    [account] = (await tracker.gateway.admin.get("/tenants/acme/accounts?state=refused")).json()["items"]
    assert account["subject"] == "ada"
    tracker.server.error, tracker.server.life_s = "", 3600
    browser = await tracker.browser()
    assert "to be connected again" in (await browser.open(link)).text
    await browser.connect(link, tracker.server, "acme.ada")
    assert not (await tracker.call())["result"].get("isError")
    expected = [("account.connect", "ok"), ("account.refresh", "upstream.token_refused"), ("account.connect", "ok")]
    assert await tracker.actions() == expected


async def test_the_user_and_the_admin_disconnect_an_account(tracker: Tracker) -> None:
    """Ours: tokens are deleted here, and revoked at the server (RFC 7009); calls need a new account (TEN-4)."""
    browser = await tracker.connect()
    page = await browser.open("/t/acme/connect/tracker/account")
    token = re.search(r'name="token" value="([0-9a-f]+)"', page.text)
    assert token is not None
    gone = await browser.http.post("/t/acme/connect/tracker/disconnect", data={"token": token[1]})
    assert gone.status_code == 303
    assert len(tracker.server.revoked) == 1
    assert (await tracker.gateway.admin.get("/tenants/acme/accounts")).json()["items"] == []
    await tracker.connect(user="bob")
    [account] = (await tracker.gateway.admin.get("/tenants/acme/accounts")).json()["items"]
    assert (await tracker.gateway.admin.get(f"/tenants/globex/accounts/{account['id']}")).status_code == 404
    assert (await tracker.gateway.admin.delete(f"/tenants/acme/accounts/{account['id']}")).status_code == 204
    assert [".refresh." in token for token in tracker.server.revoked] == [True, True]


async def test_the_page_of_the_tenant_shows_accounts_and_disconnects_them(tracker: Tracker) -> None:
    """Ours: the page that shows how to connect clients has the user's own accounts, each with its end (IDN-3)."""
    ada, bob = await tracker.connect(), await tracker.browser(user="bob")
    shown, other = await ada.open("/t/acme/"), await bob.open("/t/acme/")
    row = r'<a href="/t/acme/connect/tracker/account">tracker</a></th>\s*<td><bdi>[^<]*</bdi></td><td>(\w+ ?\w*)'
    assert re.findall(row, shown.text) == ["connected"]
    assert re.findall(row, other.text) == ["not connected"]
    form = r'action="(/t/acme/connect/tracker/disconnect)">\s*<input type="hidden" name="token" value="([0-9a-f]+)"'
    assert re.findall(form, other.text) == []
    [(action, token)] = re.findall(form, shown.text)
    assert (await bob.http.post(action, data={"token": token})).status_code == 403
    assert (await ada.http.post(action, data={"token": token})).status_code == 303
    assert re.findall(row, (await ada.open("/t/acme/")).text) == ["not connected"]
    assert len(tracker.server.revoked) == 1
    assert (await tracker.gateway.admin.get("/tenants/acme/accounts")).json()["items"] == []


async def test_other_terms_of_a_credential_end_its_accounts(tracker: Tracker) -> None:
    """Ours: an admin who sends the credential elsewhere gets no tokens that were given for the first place (TEN-4)."""
    await tracker.connect()
    terms = {"kind": "user", "place": "bearer", "scopes": ["read"], "client_id": "gateway-client"}
    terms |= {"server": tracker.server.upstream.url, "value": "s3cret-of-the-client"}
    same = {**terms, "origins": [tracker.api.url]}
    path = "/tenants/acme/credentials/tracker"
    assert (await tracker.gateway.admin.put(path, json=same)).status_code == 200
    assert not (await tracker.call())["result"].get("isError")
    other = {**terms, "origins": [tracker.api.url, "https://evil.example"]}
    assert (await tracker.gateway.admin.put(path, json=other)).status_code == 200
    assert "not connected one yet" in str((await tracker.call(replica=1))["result"]["content"])
    assert (await tracker.gateway.admin.get("/tenants/acme/accounts")).json()["items"] == []
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("/parameters", {"parameters": {"state": "mine"}}),
        ("/server", {"token_url": "https://login.example/token"}),
        ("/authorization_url", {"server": None}),
        ("/token_url", {"server": None, "authorization_url": "https://a.example", "token_url": "http://a.example"}),
        ("/client_id", {"client_id": None}),
        ("/audience", {"audience": "https://a.example"}),
        ("/place", {"place": "query", "field": "token"}),
    ]
    for pointer, members in wrong:
        body = {name: found for name, found in {**same, **members}.items() if found is not None}
        refused = await tracker.gateway.admin.put(path, json=body)
        assert refused.status_code == 400, (members, refused.text)
        assert refused.json()["errors"][0]["pointer"] == pointer, members


async def test_an_account_of_a_certified_server_is_connected_and_refreshed(tracker: Tracker) -> None:
    """OAuth 2.1, RFC 8414, RFC 9207: npm oidc-provider, by its metadata, with consent and rotation (IDN-3)."""
    admin, callback = tracker.gateway.admin, f"{PUBLIC}/t/acme/connect/lab/callback"
    async with running_provider([callback]) as provider, Visitor("ada", until=callback) as visitor:
        (await admin.put("/tenants/acme/egress", json={"allow": [provider.authority]})).raise_for_status()
        body = {"name": "lab", "kind": "user", "place": "bearer", "origins": [tracker.api.url], "server": provider.url}
        body |= {"client_id": CLIENT_ID, "value": CLIENT_SECRET, "scopes": ["openid", "offline_access"]}
        made = await admin.post("/tenants/acme/credentials", json={**body, "parameters": {"prompt": "consent"}})
        assert made.status_code == 201, made.text
        handler = {"kind": "http", "method": "GET", "url": f"{tracker.api.url}/lab/{{{{ as }}}}", "credential": "lab"}
        definition = {"name": "tool_lab", "description": "-", "inputSchema": SCHEMA}
        await admin.post("/tenants/acme/tools", json={"definition": definition, "handler": handler})
        browser = await tracker.browser()
        back = await visitor.go(await browser.begin("/t/acme/connect/lab/account"))
        answer = dict(parse_qsl(urlsplit(back).query))
        assert answer["iss"] == provider.url
        assert (await browser.come_back(answer, "lab")).status_code == 200
        assert not (await tracker.call(tool="tool_lab"))["result"].get("isError")
        tracker.api.status = 401
        await tracker.call(tool="tool_lab")
        tracker.api.status = 200
        assert not (await tracker.call(tool="tool_lab"))["result"].get("isError")
        values = [seen.header("authorization") for seen in tracker.api.seen]
        assert (len(values), len(set(values)), values[1] == values[0]) == (4, 2, True)
        [account] = (await admin.get("/tenants/acme/accounts?credential=lab")).json()["items"]
        assert account["scopes"] == ["offline_access", "openid"]
        assert (await admin.delete(f"/tenants/acme/accounts/{account['id']}")).status_code == 204


async def test_a_remote_server_gets_the_account_of_each_caller(tracker: Tracker) -> None:
    """Ours: calls of a federated server act with the caller's account, and have the link without one (TEN-4, DYN-5)."""
    admin = tracker.gateway.admin
    async with running_sdk_server() as server:
        authority = f"127.0.0.1:{server.port}"
        (await admin.put("/tenants/acme/egress", json={"allow": [authority]})).raise_for_status()
        terms = {"kind": "user", "place": "bearer", "scopes": ["read"], "client_id": "gateway-client"}
        terms |= {"server": tracker.server.upstream.url, "value": "s3cret-of-the-client"}
        body = {**terms, "origins": [tracker.api.url, f"http://{authority}"]}
        (await admin.put("/tenants/acme/credentials/tracker", json=body)).raise_for_status()
        live = {"name": "wiki", "kind": "mcp", "settings": {"url": server.url}, "prefix": "wiki_"}
        refused = await admin.post("/tenants/acme/live-sources", json={**live, "credential": "tracker"})
        assert (refused.status_code, "names the caller" in refused.text) == (422, True)
        live["caller_credential"] = "tracker"
        assert (await admin.post("/tenants/acme/live-sources", json=live)).status_code == 201

        async def is_listed() -> bool:
            found = (await tracker.gateway.rpc("acme", tracker.keys["acme", "ada"], "tools/list")).json()
            return "wiki_whoami" in {one["name"] for one in found["result"]["tools"]}

        await until(is_listed, seconds=30)
        await tracker.connect()
        link = (await tracker.call(user="bob", tool="wiki_whoami"))["result"]
        assert (link["isError"], "/connect/tracker/account?for=" in str(link["content"])) == (True, True), link
        found = (await tracker.call(tool="wiki_whoami"))["result"]
        assert found["content"][0]["text"] == "acme.ada", found


async def test_the_pages_of_accounts_in_a_browser(browser: Browser, tracker: Tracker) -> None:
    """WCAG 2.2: sign in, connect and disconnect with the keyboard alone, without scripts, light and dark (IDN-3)."""
    link = (await tracker.link()).replace(PUBLIC, tracker.gateway.url)
    await browser.send("Emulation.setScriptExecutionDisabled", value=True)
    await browser.open(link)
    assert ("textbox", "Or with the key that your MCP client uses") in await browser.names()
    passed = await browser.tab_to("INPUT|key")
    assert "Skip to the content" in passed[0]
    await browser.type(tracker.keys["acme", "ada"])
    await browser.press("Enter", loads=True)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await browser.send("Emulation.setEmulatedMedia", features=features)
        await browser.open(link)
        assert "light dark" in await browser.ask("getComputedStyle(document.documentElement).colorScheme")
    names = await browser.names()
    assert {("main", ""), ("heading", "Connect an account")} <= set(names), names
    assert all(name for role, name in names if role in {"button", "link", "textbox", "region", "heading"}), names
    assert await browser.ask("document.scripts.length + document.images.length") == 0
    await browser.tab_to("Connect at")
    await browser.press("Enter", loads=True)
    asked = str(await browser.ask("location.href"))
    assert asked.startswith(f"{tracker.server.upstream.url}/authorize?")
    back = urlencode(tracker.server.permit(asked, "acme.ada"))
    await browser.open(f"{tracker.gateway.url}/t/acme/connect/tracker/callback?{back}")
    assert "Your account is connected" in await browser.text()
    assert ("status", "") in await browser.names()
    assert not (await tracker.call())["result"].get("isError")
    await browser.tab_to("All accounts")
    await browser.press("Enter", loads=True)
    await browser.tab_to("tracker")
    await browser.press("Enter", loads=True)
    await browser.tab_to("Disconnect")
    await browser.press("Enter", loads=True)
    assert "not connected" in await browser.text()
    assert len(tracker.server.revoked) == 1
    await _disconnect_at_the_page_of_the_tenant(browser, tracker)


async def _disconnect_at_the_page_of_the_tenant(browser: Browser, tracker: Tracker) -> None:
    """Connect the account again elsewhere; the person sees it on the tenant's page, light and dark, and ends it."""
    await (await tracker.browser()).connect("/t/acme/connect/tracker/account", tracker.server, "acme.ada")
    shades: set[str] = set()
    for scheme in ("dark", "light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await browser.send("Emulation.setEmulatedMedia", features=features)
        await browser.open(f"{tracker.gateway.url}/t/acme/")
        shades.add(await browser.ask("getComputedStyle(document.body).color"))
        assert "connected, since" in await browser.text()
    names = await browser.names()
    assert {("region", "Your accounts at other services"), ("button", "Disconnect tracker")} <= set(names), names
    assert len(shades) == 2
    assert all(name for role, name in names if role in {"button", "link", "textbox", "region", "heading"}), names
    await browser.tab_to("Disconnect")
    await browser.press("Enter", loads=True)
    assert "not connected" in await browser.text()
    assert len(tracker.server.revoked) == 2
    await browser.open(f"{tracker.gateway.url}/t/acme/")
    assert "not connected" in await browser.text()
    assert ("button", "Disconnect tracker") not in await browser.names()
