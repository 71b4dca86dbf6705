"""Lists of the admin API that are searched, filtered and ordered, and what a hostile tenant tries with them."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.support.authorization import BACK, Application, register
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource
from tests.support.serving import http_client
from tests.support.upstream import RecordingUpstream

URL = "https://pets.example"
NAMES = ("e_five", "A.one", "c-three", "B%two", "d")
PLAIN = ("e5", "a1", "c3", "b2", "d4")
TEXT = {"kind": "template", "text": "x", "mimeType": "text/plain"}


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await gateway.create_tenant("acme")
    return gateway


@pytest.fixture
async def application(acme: RunningGateway, upstream: RecordingUpstream) -> AsyncGenerator[Application]:
    """An application of the tenant, whose person is `corp:ada`; other applications register themselves."""
    provider = LocalProvider(new_issuer(upstream))
    await add_provider(acme, "acme", provider, sign_in={**provider.client, "registration": True})
    async with http_client(timeout=30) as http:
        yield Application(acme, provider, (await register(acme, name=NAMES[0]))["id"], http)


REQUIRED: dict[str, dict[str, Any]] = {
    "live-sources": {"kind": "agent"},
    "webhook-endpoints": {"url": URL, "kinds": ["approval.requested"]},
    "credentials": {"place": "bearer", "value": "v", "origins": [URL]},
    "issuers": {"rules": [{}], "enabled": False},
    "guardrails": {"check": "secrets", "phases": ["call"], "action": "log"},
    "audit-sinks": {"kind": "https", "target": URL, "enabled": False},
}
"""Members that nouns need beside a name."""


async def _fill(gateway: RunningGateway, noun: str) -> list[str]:
    """Five items of a noun, and what addresses or names each, in the order they were made."""
    bodies: list[dict[str, Any]]
    match noun:
        case "keys":
            bodies = [{"name": name, "scopes": ["mcp"]} for name in NAMES]
        case "clients":
            bodies = [{"name": name, "redirect_uris": [BACK]} for name in NAMES]
        case "tools":
            bodies = [static_tool(name) for name in PLAIN]
        case "prompts":
            bodies = [text_prompt(name) for name in PLAIN]
        case "resources":
            bodies = [text_resource(f"docs://{name}") for name in PLAIN]
        case "resource-templates":
            bodies = [template(f"docs://{name}/{{id}}", TEXT) for name in PLAIN]
        case "sources":
            bodies = [{"name": name, "document": pets(URL), "prefix": f"{name}_"} for name in PLAIN]
        case "watches":
            for name in PLAIN:
                await add(gateway, "acme", "resources", text_resource(f"docs://{name}"))
            bodies = [{"uri": f"docs://{name}", "url": f"{URL}/{name}"} for name in PLAIN]
        case _:
            bodies = [{"name": name, **REQUIRED.get(noun, {}), **_own(noun, name)} for name in PLAIN]
    return [_named(await add(gateway, "acme", noun, body)) for body in bodies]


def _own(noun: str, name: str) -> dict[str, Any]:
    """Members that no two items of a noun may share."""
    return {"url": f"{URL}/{name}"} if noun == "issuers" else {}


def _named(item: dict[str, Any]) -> str:
    return str(item.get("uri") or item.get("uri_template") or item.get("client_name") or item["name"])


async def _walk(gateway: RunningGateway, noun: str, **query: Any) -> list[dict[str, Any]]:
    """Every item of a list, in parts of three."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await gateway.admin.get(f"/tenants/acme/{noun}", params={"limit": 3, **query, **cursor})
        assert answer.status_code == 200, answer.text
        found += answer.json()["items"]
        if answer.json()["next_cursor"] is None:
            return found
        assert len(answer.json()["items"]) == 3
        cursor = {"cursor": answer.json()["next_cursor"]}


NOUNS = {
    "keys": ("name", "created_at"),
    "sources": ("name", "created_at"),
    "tools": ("name",),
    "resources": ("uri", "created_at"),
    "resource-templates": ("uri", "created_at"),
    "prompts": ("name", "created_at"),
    "profiles": ("name",),
    "credentials": ("name", "created_at"),
    "webhooks": ("name", "created_at"),
    "webhook-endpoints": ("name", "created_at"),
    "issuers": ("name", "created_at"),
    "guardrails": ("name", "created_at"),
    "watches": ("uri", "created_at"),
    "audit-sinks": ("name", "created_at"),
    "live-sources": ("name", "created_at"),
    "clients": ("name", "created_at"),
}


@pytest.mark.parametrize("noun", NOUNS)
async def test_a_list_is_searched_and_ordered_in_complete_parts(acme: RunningGateway, noun: str) -> None:
    """Ours: parts of any order and search are complete and repeat nothing; the cursor is of that list alone (ADM-1)."""
    await _check_list(acme, noun, await _fill(acme, noun), NOUNS[noun])


async def test_consents_and_grants_are_searched_and_ordered(application: Application) -> None:
    """Ours: consents and grants, which only people make, are lists like those of other nouns (ADM-1, IDN-2)."""
    for name in NAMES:
        application.client_id = (await register(application.gateway, name=name))["id"]
        await application.tokens()
    for noun in ("consents", "grants"):
        await _check_list(application.gateway, noun, list(NAMES), ("created_at",))


async def _check_list(acme: RunningGateway, noun: str, made: list[str], sorts: tuple[str, ...]) -> None:
    every = {_named(item) for item in await _walk(acme, noun)}
    assert every >= set(made)
    for sort in sorts:
        by = made if sort == "created_at" else sorted(every)
        forward = [_named(item) for item in await _walk(acme, noun, sort=sort)]
        assert ([name for name in forward if name in by], len(forward)) == (by, len(every))
        assert [_named(item) for item in await _walk(acme, noun, sort=f"-{sort}")] == forward[::-1]
    searched = made[1].rpartition("/")[2].upper() if noun != "resource-templates" else "//A1/"
    found = await _walk(acme, noun, search=searched)
    assert made[1] in [_named(item) for item in found]
    assert made[0] not in [_named(item) for item in found]
    assert await _walk(acme, noun, search="nothing of all") == []

    path = f"/tenants/acme/{noun}"
    cursor = (await acme.admin.get(path, params={"limit": 2, "sort": sorts[0]})).json()["next_cursor"]
    for other in ({}, {"sort": f"-{sorts[0]}"}, {"sort": sorts[0], "search": "e"}):
        refused = await acme.admin.get(path, params={**other, "cursor": cursor})
        assert (refused.status_code, refused.json()["code"]) == (400, "input.cursor_invalid")
        assert "same search, filters and sort" in refused.json()["errors"][0]["reason"]


async def test_tenants_are_searched_and_ordered(acme: RunningGateway) -> None:
    """Ours: an operator finds a tenant by slug or name, and the newest of all (ADM-1)."""
    for slug, name in (("zeta", "Ärzte GmbH"), ("beta", "100% Bio"), ("b-eta", "a_b")):
        (await acme.admin.post("/tenants", json={"slug": slug, "name": name})).raise_for_status()

    async def slugs(**query: Any) -> list[str]:
        answer = await acme.admin.get("/tenants", params=query)
        assert answer.status_code == 200, answer.text
        return [item["slug"] for item in answer.json()["items"]]

    made = ["acme", "zeta", "beta", "b-eta"]
    assert await slugs() == await slugs(sort="slug") == sorted(made)
    assert await slugs(sort="-slug") == sorted(made)[::-1]
    assert await slugs(sort="created_at") == made
    assert await slugs(sort="name") == ["beta", "b-eta", "acme", "zeta"]
    assert await slugs(search="äRZTE") == await slugs(search="A\N{COMBINING DIAERESIS}rzte") == ["zeta"]
    assert await slugs(search="%") == ["beta"]
    assert await slugs(search="_") == ["b-eta"]
    first = await acme.admin.get("/tenants", params={"sort": "-created_at", "limit": 3})
    rest = await acme.admin.get("/tenants", params={"sort": "-created_at", "cursor": first.json()["next_cursor"]})
    assert [item["slug"] for item in (*first.json()["items"], *rest.json()["items"])] == made[::-1]


async def test_filters_narrow_each_other(acme: RunningGateway) -> None:
    """Ours: each noun has the filters that its users need (ADM-1)."""
    await acme.import_document("acme", pets(URL), credentials=None)
    await add(acme, "acme", "tools", static_tool("own"))
    await acme.admin.patch("/tenants/acme/tools/own", json={"enabled": False})
    await acme.create_key("acme", "mcp")
    revoked = (await acme.admin.post("/tenants/acme/keys", json={"name": "r", "scopes": ["audit"]})).json()["id"]
    await acme.admin.post(f"/tenants/acme/keys/{revoked}/revoke")

    async def count(noun: str, **query: Any) -> int:
        return len(await _walk(acme, noun, **query))

    tools = await count("tools")
    assert await count("tools", origin="custom") == await count("tools", enabled="false") == 1
    assert await count("tools", source="api") == await count("tools", origin="source") == tools - 1
    assert await count("tools", source="none") == await count("tools", source="api", enabled="false") == 0
    levels = [await count("tools", safety=level) for level in ("safe", "moderate", "dangerous")]
    assert sum(levels) == tools
    assert await count("tools", search="THE TOOL OWN") == 1
    assert await count("keys", state="revoked") == await count("keys", scope="audit") == 1
    assert await count("keys", state="active") == await count("keys", scope="mcp") == 1
    assert await count("keys", state="expired") == await count("keys", scope="mcp", state="revoked") == 0
    assert await count("sources", expose="tools") == 1
    assert await count("sources", expose="query") == 0
    await add(acme, "acme", "resources", text_resource("docs://x"))
    assert await count("resources", uri="docs://x", search="X") == 1
    assert await count("resources", uri="docs://x", search="y") == 0


async def test_filters_find_what_one_person_permitted_one_client(application: Application) -> None:
    """Ours: clients by kind; consents and grants by person and client; grants by state (ADM-1, IDN-2)."""
    acme, registered = application.gateway, application.client_id
    sent = {"redirect_uris": [BACK], "client_name": "Self"}
    dynamic = (await acme.http.post("/t/acme/oauth/register", json=sent)).json()["client_id"]
    await application.tokens()
    await application.tokens()
    application.client_id, application.claims = dynamic, {"sub": "bob"}
    application.http.cookies.clear()
    await application.tokens()

    async def found(noun: str, **query: str) -> list[str]:
        return sorted(str(item.get("client_id") or item["id"]) for item in await _walk(acme, noun, **query))

    assert await found("clients", kind="dynamic") == await found("clients", search="SELF") == [dynamic]
    assert await found("clients", kind="registered", search=BACK) == [registered]
    for noun, count in (("consents", 1), ("grants", 2)):
        of_ada = [registered] * count
        assert await found(noun, subject="corp:ada") == await found(noun, client=registered) == of_ada
        assert (
            await found(noun, search="CORP:BOB") == await found(noun, subject="corp:bob", client=dynamic) == [dynamic]
        )
        assert await found(noun, subject="corp:ada", client=dynamic) == await found(noun, subject="ada") == []
    [grant] = await _walk(acme, "grants", client=dynamic)
    await acme.admin.post(f"/tenants/acme/grants/{grant['id']}/revoke")
    assert await found("grants", state="revoked") == [dynamic]
    assert await found("grants", state="active") == [registered] * 2
    assert await found("grants", state="ended") == await found("grants", state="active", client=dynamic) == []


async def test_no_character_of_a_search_is_special(acme: RunningGateway) -> None:
    """Ours: a search finds what has exactly this text, so wildcards and quotes are characters (ADM-1)."""
    special = ("%", "_", "\\", "'", "8%", "%' or 1=1 --", "*", ".")
    names = {searched: f"with {searched} in it" for searched in special}
    for name in ("plain", *names.values()):
        await acme.admin.post("/tenants/acme/keys", json={"name": name, "scopes": ["mcp"], "subject": "s"})
    for searched in special:
        found = {item["name"] for item in await _walk(acme, "keys", search=searched)}
        assert found == {name for name in names.values() if searched in name}


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "digest"},
        {"sort": "--name"},
        {"sort": "name,created_at"},
        {"sort": ""},
        {"search": ""},
        {"search": "x" * 201},
        {"search": "a\x00b"},
        {"scope": "all"},
        {"state": "REVOKED"},
        {"profile": "x" * 201},
        {"digest": "x"},
    ],
)
async def test_unknown_parameters_of_lists_are_refused_by_name(acme: RunningGateway, query: dict[str, str]) -> None:
    """Ours: an unknown order, filter or value is 400 and names the parameter (ADM-1)."""
    refused = await acme.admin.get("/tenants/acme/keys", params=query)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"] == f"?{next(iter(query))}"


async def test_a_cursor_of_a_search_opens_nothing_of_another_tenant(acme: RunningGateway) -> None:
    """Ours: a cursor holds for one tenant also where list, search and order are the same (ADM-1, TEN-1)."""
    await acme.create_tenant("other")
    query: dict[str, str | int] = {"search": "t", "sort": "-created_at", "limit": 1}
    for slug in ("acme", "other"):
        for _ in range(2):
            await acme.create_key(slug)
    cursor = (await acme.admin.get("/tenants/acme/keys", params=query)).json()["next_cursor"]
    assert (await acme.admin.get("/tenants/acme/keys", params={**query, "cursor": cursor})).status_code == 200
    refused = await acme.admin.get("/tenants/other/keys", params={**query, "cursor": cursor})
    assert (refused.status_code, refused.json()["code"]) == (400, "input.cursor_invalid")
