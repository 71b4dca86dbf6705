"""Every route of the admin API, requested without permission: no key, other tenants, keys without the scope."""

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import httpx
import pytest

from gateway.admin.routes.index import ENDPOINTS
from gateway.domain.tenancy.keys import mint_key
from tests.support.accounts import connect_account
from tests.support.authorization import BACK, Application
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, LocalProvider, add_issuer, add_provider, new_issuer
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource, tool
from tests.support.servers import TestServers
from tests.support.serving import http_client
from tests.support.upstream import recording_upstream

URL = "https://pets.example"
OWNERS = {"a": "pets", "b": "zoo"}
"""Prefix of the names of each tenant's objects."""
TOYS = {"get": {"operationId": "list_toys", "responses": {"200": {"description": "ok"}}}}
PROPOSED = {"document": {**pets(URL), "paths": {**pets(URL)["paths"], "/toys": TOYS}}}
RULES = {"include": [{"names": ["x*"]}]}
GUARDRAIL = {"check": "secrets", "phases": ["call"], "action": "log"}
SINK = {"kind": "https", "target": URL, "enabled": False}
CLIENT: dict[str, Any] = {"name": "Reports", "redirect_uris": [BACK]}
ISSUER: dict[str, Any] = {"url": f"{URL}/new", "rules": [{}], "enabled": False}
SECRET = {"place": "bearer", "value": "planted", "origins": [URL]}
UPLOAD = ("PUT", "/tenants/{t}/documents/{digest}")
"""A document is named by its own bytes, so that there is none of another tenant to replace."""
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/tenants"): {"slug": "third"},
    ("PUT", "/tenants/{t}"): {"slug": "a", "name": "Taken over"},
    ("PATCH", "/tenants/{t}"): {"name": "Taken over"},
    ("POST", "/tenants/{t}/keys"): {"name": "k", "scopes": ["admin"]},
    ("PATCH", "/tenants/{t}/keys/{id}"): {"name": "k"},
    ("PUT", "/tenants/{t}/keys/{id}"): {"name": "k", "scopes": ["mcp"]},
    ("POST", "/tenants/{t}/issuers"): {"name": "new", **ISSUER},
    ("PUT", "/tenants/{t}/issuers/{name}"): {**ISSUER, "url": URL, "max_lifetime_s": 60},
    ("PATCH", "/tenants/{t}/issuers/{name}"): {"max_lifetime_s": 60},
    ("POST", "/tenants/{t}/clients"): CLIENT,
    ("PUT", "/tenants/{t}/clients/{id}"): {"name": "Taken over", "redirect_uris": ["https://evil.example/callback"]},
    ("PATCH", "/tenants/{t}/clients/{id}"): {"name": "Taken over"},
    ("PATCH", "/tenants/{t}/overrides/{name}"): {"title": "Taken over"},
    ("POST", "/tenants/{t}/sources"): {"name": "new", "document": pets(URL), "prefix": "new"},
    ("PUT", "/tenants/{t}/sources/{name}"): {"document": pets(URL)},
    ("PUT", "/tenants/{t}/sources/{name}/document"): pets(URL),
    ("POST", "/tenants/{t}/sources/{name}/proposal"): PROPOSED,
    UPLOAD: pets(URL),
    ("PATCH", "/tenants/{t}/sources/{name}"): {"base_url": "https://evil.example"},
    ("PUT", "/tenants/{t}/ceilings"): {"burst": 1},
    ("PATCH", "/tenants/{t}/ceilings"): {"burst": 2},
    ("PUT", "/tenants/{t}/policy"): {"moderate": "deny"},
    ("PATCH", "/tenants/{t}/policy"): {"moderate": "confirm"},
    ("PUT", "/tenants/{t}/access"): {"default": "deny"},
    ("PATCH", "/tenants/{t}/access"): {"default": "allow"},
    ("PUT", "/tenants/{t}/egress"): {"allow": ["10.0.0.5:8443"]},
    ("PATCH", "/tenants/{t}/egress"): {"allow": ["10.0.0.5:8443"]},
    ("POST", "/tenants/{t}/profiles"): {"name": "new", **RULES},
    ("PUT", "/tenants/{t}/profiles/{name}"): RULES,
    ("PATCH", "/tenants/{t}/profiles/{name}"): RULES,
    ("POST", "/tenants/{t}/credentials"): {"name": "new", **SECRET},
    ("PUT", "/tenants/{t}/credentials/{name}"): SECRET,
    ("PATCH", "/tenants/{t}/credentials/{name}"): SECRET,
    ("POST", "/tenants/{t}/webhooks"): {"name": "new"},
    ("POST", "/tenants/{t}/webhook-endpoints"): {"name": "new", "url": URL, "kinds": ["approval.requested"]},
    ("PUT", "/tenants/{t}/webhooks/{name}"): {},
    ("PUT", "/tenants/{t}/webhook-endpoints/{name}"): {"url": URL},
    ("PATCH", "/tenants/{t}/webhook-endpoints/{name}"): {"description": "Taken over"},
    ("POST", "/tenants/{t}/live-sources"): {"name": "new", "kind": "agent"},
    ("PUT", "/tenants/{t}/live-sources/{name}"): {"kind": "agent"},
    ("PATCH", "/tenants/{t}/live-sources/{name}"): {"accepts_changes": True},
    ("POST", "/tenants/{t}/live-sources/{name}/accept"): {},
    ("PATCH", "/tenants/{t}/watches/{id}"): {"interval_s": 7},
    ("POST", "/tenants/{t}/audit-sinks"): {"name": "new", **SINK},
    ("PUT", "/tenants/{t}/audit-sinks/{name}"): SINK,
    ("PATCH", "/tenants/{t}/audit-sinks/{name}"): {"enabled": False},
    ("PUT", "/tenants/{t}/audit/retention"): {"days": 999},
    ("PATCH", "/tenants/{t}/audit/retention"): {"days": 998},
    ("POST", "/tenants/{t}/tools/{name}/try"): {"arguments": {}},
    ("POST", "/tenants/{t}/tools/{name}/explain"): {"arguments": {}},
    ("POST", "/tenants/{t}/guardrails"): {"name": "new", **GUARDRAIL},
    ("PUT", "/tenants/{t}/guardrails/{name}"): GUARDRAIL,
    ("PATCH", "/tenants/{t}/guardrails/{name}"): {"enabled": False},
    ("POST", "/tenants/{t}/prompts/{name}/try"): {"arguments": {}},
    ("POST", "/tenants/{t}/approvals/{id}/approve"): {},
    ("POST", "/tenants/{t}/approvals/{id}/deny"): {},
}
"""A valid body for every route that has one; those of primitives are made by `_sent`."""
_OF_AUDITORS = tuple(
    f"/audit{rest}" for rest in ("", "/explain", "/verify", "/export", "/tail", "/export-keys", "/retention")
)
NOUNS = ("tools", "prompts", "resources", "resource-templates")
_NAMES = {**dict.fromkeys((*NOUNS, "overrides"), "{owner}_{called}"), "live-sources": "{owner}_live"}
"""The names of objects by noun, where they are not the owner's."""
BY_URI = ("resources", "resource-templates")
ROUTES = [(route.method, route.path) for route in ENDPOINTS]
NAMED_BY_URI = [
    *((method, f"/tenants/{{t}}/{noun}") for method in ("PUT", "PATCH", "DELETE") for noun in BY_URI),
    ("POST", "/tenants/{t}/resources/updated"),
    ("POST", "/tenants/{t}/resources/try"),
]
ABOUT_ONE = [*(route for route in ROUTES if route[1].count("{") == 2 and route != UPLOAD), *NAMED_BY_URI]
OF_TENANT = [(method, path) for method, path in ROUTES if "{t}" in path]


def _uri(noun: str, owner: str) -> str:
    """Address of a resource or template of this owner."""
    return f"docs://{owner}/{{id}}" if noun == "resource-templates" else f"docs://{owner}"


def _primitive(noun: str, owner: str) -> dict[str, Any]:
    """A primitive of this owner's own."""
    match noun:
        case "tools":
            return static_tool(f"{owner}_own")
        case "prompts":
            return text_prompt(f"{owner}_own")
        case "resources":
            return text_resource(_uri(noun, owner))
        case _:
            return template(_uri(noun, owner), {"kind": "template", "text": "x", "mimeType": "text/plain"})


def _sent(route: tuple[str, str], owner: str) -> dict[str, Any] | None:
    """The body of a request that speaks of this owner's object."""
    method, path = route
    if path.endswith("/resources/updated"):
        return {"uri": _uri("resources", owner)}
    if route == ("POST", "/tenants/{t}/watches"):
        return {"uri": f"docs://{owner}/new", "url": URL}
    if route == ("PUT", "/tenants/{t}/watches/{id}"):
        return {"uri": _uri("resources", owner), "url": URL}
    noun = path.split("/")[3] if path.count("/") > 2 else ""
    if noun == "overrides" and method in {"POST", "PUT"}:
        named = {"name": "new", "operation": "GET /pets"} if method == "POST" else {"operation": "GET /pets/{id}"}
        return {"source": owner, "title": "Taken over", **named}
    if noun not in NOUNS or route in BODIES:
        return BODIES.get(route)
    match method, path.rpartition("/")[2]:
        case "PUT", _:
            return _primitive(noun, owner)
        case "PATCH", _:
            return {"safety": "dangerous"}
        case "POST", last if last in {noun, "validate"}:
            return _primitive(noun, "new")
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Two:
    """Tenants with a key, a source and primitives each, and who asks for the first."""

    gateway: RunningGateway
    ids: dict[tuple[str, str], str]
    """The objects that are asked about by their ids, by noun and slug."""
    tenants: dict[str, str]
    """The id of each tenant, by slug."""
    keys: dict[str, str]
    """Keys of the first tenant by their scope."""

    async def ask(self, route: tuple[str, str], slug: str, target: str, key: str | None, **more: str) -> httpx.Response:
        """One request of this route, about this tenant and its object of this owner."""
        method, path = route
        owner = {"missing": "none", "a": "pets"}.get(target, "zoo")
        noun = path.split("/")[3] if path.count("/") > 2 else ""
        called = "chosen" if "/override" in path else "own"
        known = self.ids.get((noun, target), "key_00000000000000000000")
        asked = path.format(
            t=slug,
            id="1" if "/versions/" in path else known,
            digest=self.ids.get(("documents", target), "0" * 64),
            name=_NAMES.get(noun, "{owner}").format(owner=owner, called=called),
        )
        by_uri = route in NAMED_BY_URI and not path.endswith("/updated")
        params = {"uri": _uri(noun, owner)} if by_uri else {}
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        headers |= {} if key is None else {"authorization": f"Bearer {key}"}
        sent = _sent(route, owner)
        return await self.gateway.http.request(method, f"/admin/v1{asked}", json=sent, params=params, headers=headers)

    async def trail(self, slug: str) -> list[dict[str, Any]]:
        """Changed objects of a tenant."""
        items: list[dict[str, Any]] = (await self.gateway.admin.get(f"/tenants/{slug}/audit?limit=200")).json()["items"]
        return [item for item in items if "rule" not in item["detail"]]  # refusals are written meanwhile


@asynccontextmanager
async def _running(servers: TestServers, owners: Mapping[str, str] = OWNERS) -> AsyncGenerator[Two]:
    """A gateway with these tenants; everything they have is called differently."""
    redis_url = servers.own_redis()
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, redis_url, egress_allow=[upstream.authority]) as gateway,
        ):
            two = await _furnished(gateway, owners)
            for slug in two.tenants:
                issuer = new_issuer(upstream)
                two.ids["people", slug] = await _sign_in(gateway, slug, issuer)
                two.ids.update(await _permit(gateway, slug, LocalProvider(issuer)))
            await connect_account(database.app_url, redis_url, upstream, *two.tenants)
            for slug in two.tenants:
                two.ids["accounts", slug] = await _first(gateway, slug, "accounts")
            yield two


@pytest.fixture(scope="module")
async def two(servers: TestServers) -> AsyncGenerator[Two]:
    """For all tests whose callers may change nothing."""
    async with _running(servers) as two:
        yield two


@pytest.fixture
async def own(servers: TestServers) -> AsyncGenerator[Two]:
    """The first tenant alone, for the test in which it may."""
    async with _running(servers, {"a": OWNERS["a"]}) as two:
        yield two


async def _sign_in(gateway: RunningGateway, slug: str, issuer: LocalIssuer) -> str:
    """The id of a person who signed in."""
    await add_issuer(gateway, slug, issuer, name=f"{slug}-login")
    answer = await gateway.rpc(slug, issuer.token(f"{gateway.url}/t/{slug}/mcp"), "tools/list")
    assert answer.status_code == 200, answer.text
    return await _first(gateway, slug, "people")


async def _first(gateway: RunningGateway, slug: str, noun: str) -> str:
    """The id of the first object of a list."""
    found: str = (await gateway.admin.get(f"/tenants/{slug}/{noun}")).json()["items"][0]["id"]
    return found


async def _permit(gateway: RunningGateway, slug: str, provider: LocalProvider) -> dict[tuple[str, str], str]:
    """The ids of a client, and of what a person permitted another one."""
    await gateway.admin.delete(f"/tenants/{slug}/issuers/{slug}-login")
    await add_provider(gateway, slug, provider, name=f"{slug}-login")
    client = await add(gateway, slug, "clients", {**CLIENT, "confidential": True})
    async with http_client(timeout=30) as http:
        await Application(gateway, provider, client["id"], http, slug=slug, secret=client["secret"]).tokens()
    ids = {("clients", slug): str((await add(gateway, slug, "clients", CLIENT | {"confidential": True}))["id"])}
    for noun in ("consents", "grants", "people"):
        ids[noun, slug] = await _first(gateway, slug, noun)
    return ids


async def _furnished(gateway: RunningGateway, owners: Mapping[str, str]) -> Two:
    ids: dict[tuple[str, str], str] = {}
    tenants: dict[str, str] = {}
    for slug, source in owners.items():
        await gateway.create_tenant(slug)
        tenants[slug] = (await gateway.admin.get(f"/tenants/{slug}")).json()["id"]
        made = await gateway.admin.post(f"/tenants/{slug}/keys", json={"name": "k", "scopes": ["mcp"]})
        ids["keys", slug] = made.json()["id"]
        document = {**pets(URL), "x-owner": source}  # the digest of each is another one
        await gateway.import_document(slug, document, name=source, prefix=source)
        proposed = await gateway.admin.post(f"/tenants/{slug}/sources/{source}/proposal", json=PROPOSED)
        assert proposed.status_code == 200, proposed.text
        tool = f"/tenants/{slug}/tools/{source}_get_pet"
        overridden = await gateway.admin.patch(tool, json={"name": f"{source}_chosen"})
        [version] = (await gateway.admin.get(f"/tenants/{slug}/sources/{source}/versions")).json()["items"]
        ids["documents", slug] = version["digest"]
        ids["sources", slug] = overridden.json()["status"]["override"]["id"]
        await add(gateway, slug, "profiles", {"name": source})
        await add(gateway, slug, "credentials", {"name": source, **SECRET})
        await add(gateway, slug, "webhooks", {"name": source})
        await add(gateway, slug, "issuers", {"name": source, **ISSUER, "url": URL})
        await add(gateway, slug, "webhook-endpoints", {"name": source, "url": URL, "kinds": ["approval.requested"]})
        tested = await gateway.admin.post(f"/tenants/{slug}/webhook-endpoints/{source}/test")
        ids["webhook-endpoints", slug] = tested.json()["id"]
        await add(gateway, slug, "guardrails", {"name": source, **GUARDRAIL})
        await add(gateway, slug, "audit-sinks", {"name": source, **SINK})
        await add(gateway, slug, "live-sources", {"name": f"{source}_live", "kind": "agent"})
        for noun in NOUNS:
            ids[noun, slug] = (await add(gateway, slug, noun, _primitive(noun, source)))["id"]
        watched = {"uri": _uri("resources", source), "url": URL, "interval_s": 86_400}
        ids["watches", slug] = (await add(gateway, slug, "watches", watched))["id"]
        ids["approvals", slug] = await _request_approval(gateway, slug, source, 1)
    keys = {scope: await gateway.create_key("a", scope) for scope in ("mcp", "approve", "audit", "provide")}
    keys["admin"] = await gateway.create_key("a", "admin", "approve")
    return Two(gateway, ids, tenants, keys)


async def _request_approval(
    gateway: RunningGateway, slug: str, source: str, number: int, *, keeps: bool = False
) -> str:
    """The id of a pending approval, which a change of the policy ends; with `keeps`, the policy stays."""
    params = {"name": f"{source}_delete_pet", "arguments": {"id": number}}
    await gateway.admin.patch(f"/tenants/{slug}/policy", json={"dangerous": "approve"})
    answer = (await gateway.rpc(slug, await gateway.create_key(slug), "tools/call", params)).json()
    if not keeps:
        await gateway.admin.patch(f"/tenants/{slug}/policy", json={"dangerous": "allow"})
    found: str = answer["result"]["_meta"]["gateway/approval"]["id"]
    return found


def _shape(answer: httpx.Response) -> object:
    """Compared parts of a response: status, headers but for times and ids, and the problem without its own id."""
    body = {name: value for name, value in answer.json().items() if name != "correlation_id"}
    return answer.status_code, answer.headers.get("content-type"), answer.headers.get("allow"), body


async def test_a_foreign_tenant_answers_like_a_missing_one(two: Two) -> None:
    """Ours: with an admin key of one tenant, every route of another is what a missing one is: 404 (TEN-1, TEN-5)."""
    before = await two.trail("b")
    for route in OF_TENANT:
        missing = await two.ask(route, "none", "missing", two.keys["admin"])
        assert missing.status_code == 404
        for slug, target in (("b", "a"), ("b", "b"), ("b", "missing"), (two.tenants["b"], "b")):
            assert _shape(await two.ask(route, slug, target, two.keys["admin"])) == _shape(missing), route
    assert await two.trail("b") == before


async def test_a_foreign_object_answers_like_a_missing_one(two: Two) -> None:
    """Ours: an object of another tenant, named under the own one, is what a missing one is: 404 (TEN-1, TEN-5)."""
    before = await two.trail("b")
    for route in ABOUT_ONE:
        replaces = {"if_match": "*"} if route[0] == "PUT" else {}  # alone, it would create what is missing
        missing = await two.ask(route, "a", "missing", two.keys["admin"], **replaces)
        foreign = await two.ask(route, "a", "b", two.keys["admin"], **replaces)
        assert missing.status_code == 404, route
        assert _shape(foreign) == _shape(missing), route
    assert await two.trail("b") == before


async def test_every_route_about_an_object_answers_for_the_own_one(own: Two) -> None:
    """Ours: the same requests go through where the object is the tenant's own, so the refusals mean something."""
    key = await own.gateway.create_key("a", "admin", "mcp")  # what it changes are keys of scope mcp among others
    removals = [route for route in ABOUT_ONE if route[0] == "DELETE"]
    parts = ("/proposal", "/overrides/{name}")
    removals.sort(key=lambda route: route[1].endswith(parts), reverse=True)  # parts before their wholes
    for route in [*(route for route in ABOUT_ONE if route not in removals), *removals]:
        noun = route[1].split("/")[3]
        if route in NAMED_BY_URI and route in removals:  # it was removed by its id before
            await add(own.gateway, "a", noun, _primitive(noun, "pets"))
        if route in removals and route[1].endswith("/override"):  # it was removed under its own path before
            again = {"name": "pets_chosen", "source": "pets", "operation": "GET /pets/{id}"}
            await add(own.gateway, "a", "overrides", again)
        if noun == "approvals" and route[1].endswith(("/approve", "/deny")):  # an activation before ended the first
            number = 2 if route[1].endswith("/approve") else 3
            own.ids[noun, "a"] = await _request_approval(own.gateway, "a", "pets", number, keeps=True)
        answer = await own.ask(route, "a", "a", own.keys["approve"] if noun == "approvals" else key)
        if noun == "approvals":
            await own.gateway.admin.patch("/tenants/a/policy", json={"dangerous": "allow"})
        has_no_url = route[1].endswith("/refresh") and answer.status_code == 409  # a missing source answers 404
        assert answer.is_success or has_no_url, (route, answer.text)


async def test_without_a_good_credential_every_route_is_401(two: Two) -> None:
    """Ours: no, broken or unknown credentials are 401, the same for existing and missing tenants (TEN-2)."""
    real = two.keys["admin"]
    wrong = real[:-1] + ("0" if real[-1] != "0" else "1")
    turns, pairs = cycle(("a", "none", "b")), cycle(((None, wrong), ("x", wrong), (None, mint_key().text)))
    for route in ROUTES:
        for key in next(pairs):
            slugs = (next(turns), "none") if key == wrong else (next(turns),)
            answers = [await two.ask(route, slug, "a", key) for slug in slugs]
            assert {answer.status_code for answer in answers} == {401}, route
            challenge = "Bearer" if key is None else 'Bearer error="invalid_token"'
            metadata = r',? resource_metadata="[^"]*/tenants/[a-z]+"'  # differs by the URL only
            found = {re.sub(metadata, "", answer.headers["www-authenticate"]) for answer in answers}
            assert found == {challenge}, route
            assert len({str(_shape(answer)) for answer in answers}) == 1


async def test_a_key_without_the_scope_may_nothing(two: Two) -> None:
    """Ours: admin is needed for all but the trail, for which `audit` is enough, and approvals (TEN-2)."""
    before = await two.trail("a")
    for route in OF_TENANT:
        for scope in ("mcp", "approve", "audit", "provide"):
            decides = scope == "approve" and "/approvals" in route[1]
            if decides and route[0] == "POST":
                continue
            answer = await two.ask(route, "a", "a", two.keys[scope])
            reads = route[0] == "GET" and route[1].endswith(_OF_AUDITORS)
            may = decides or (scope == "audit" and reads)
            assert answer.status_code == (200 if may else 403), (route, scope)
    assert await two.trail("a") == before


@pytest.mark.parametrize(
    "route",
    [
        ("GET", "/tenants"),
        ("POST", "/tenants"),
        ("PUT", "/tenants/{t}"),
        ("PATCH", "/tenants/{t}"),
        ("DELETE", "/tenants/{t}"),
        ("PUT", "/tenants/{t}/egress"),
        ("PATCH", "/tenants/{t}/egress"),
        ("PUT", "/tenants/{t}/ceilings"),
        ("PATCH", "/tenants/{t}/ceilings"),
    ],
    ids=" ".join,
)
async def test_tenants_are_the_operators(two: Two, route: tuple[str, str]) -> None:
    """Ours: no key of a tenant lists, makes, renames, bounds or removes tenants, its own included (TEN-1, ISO-3).

    Nor does it permit itself a private upstream (ISO-5).
    """
    assert (await two.ask(route, "a", "a", two.keys["admin"])).status_code == 403
    assert [item["slug"] for item in (await two.gateway.admin.get("/tenants")).json()["items"]] == ["a", "b"]
    assert (await two.gateway.admin.get("/tenants/a/egress")).json() == {"allow": []}


async def test_a_tenant_admin_may_everything_of_its_own(two: Two) -> None:
    """Ours: an admin key reads and changes its own tenant, by slug and by id (TEN-1)."""
    admin = two.keys["admin"]
    for slug in ("a", two.tenants["a"]):
        for route in OF_TENANT:
            if route[0] == "GET":
                assert (await two.ask(route, slug, "a", admin)).status_code == 200, route


async def test_lists_of_one_tenant_hold_nothing_of_another(two: Two) -> None:
    """Ours: no list of one tenant names a key, source, primitive or entry of the other (TEN-1)."""
    for noun in ("keys", "sources", *NOUNS, "profiles", "credentials", "live-sources", "audit"):
        items = (await two.ask(("GET", f"/tenants/{{t}}/{noun}"), "a", "a", two.keys["admin"])).json()["items"]
        # a refused request has its path, in which the caller named the other tenant
        text = json.dumps([item for item in items if item.get("action") != "request"])
        assert two.ids["keys", "b"] not in text
        assert "zoo" not in text
        assert two.tenants["b"] not in text


@pytest.mark.parametrize("noun", BY_URI)
async def test_a_foreign_uri_finds_nothing(two: Two, noun: str) -> None:
    """Ours: a list that is asked for the URI of another tenant's resource is empty, as for one that is not (TEN-1)."""
    headers = {"authorization": f"Bearer {two.keys['admin']}"}
    for owner, count in (("pets", 1), ("zoo", 0), ("none", 0)):
        params = {"uri": _uri(noun, owner)}
        answer = await two.gateway.http.get(f"/admin/v1/tenants/a/{noun}", params=params, headers=headers)
        assert len(answer.json()["items"]) == count


async def test_a_handler_names_nothing_of_another_tenant(two: Two) -> None:
    """Ours: tools, operations and credentials of another tenant are what missing ones are to a handler (TEN-1)."""
    headers = {"authorization": f"Bearer {two.keys['admin']}"}

    async def reported(owner: str) -> list[object]:
        """Responses to handlers that name objects of this owner."""
        url = {"kind": "http", "method": "GET", "url": URL}
        handlers: list[dict[str, Any]] = [
            {"kind": "steps", "steps": [{"call": {"tool": f"{owner}_own"}}]},
            {"kind": "openapi", "source": owner, "operation": "list_pets", "arguments": {}},
            {**url, "credential": owner},
        ]
        answers = [
            await two.gateway.http.post("/admin/v1/tenants/a/tools", json=tool("new", handler), headers=headers)
            for handler in handlers
        ]
        assert {answer.status_code for answer in answers} == {422}
        return [[fault["reason"].replace(owner, "?") for fault in answer.json()["errors"]] for answer in answers]

    assert await reported("zoo") == await reported("none")


async def test_a_cursor_of_one_tenant_opens_no_list_of_another(two: Two) -> None:
    """Ours: cursors are bound to their tenant (TEN-5)."""
    cursor = (await two.gateway.admin.get("/tenants/b/tools?limit=1")).json()["next_cursor"]
    headers = {"authorization": f"Bearer {two.keys['admin']}"}
    answer = await two.gateway.http.get("/admin/v1/tenants/a/tools", params={"cursor": cursor}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "input.cursor_invalid")
