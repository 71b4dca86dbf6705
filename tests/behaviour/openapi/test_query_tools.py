"""The query tools through a real gateway: listed, asked, paged, and what `call_endpoint` may do."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.behaviour.openapi.conftest import SLUG, Desk
from tests.support.primitives import add, static_tool, tool
from tests.support.queries import library

TOOLS = {
    "get_api_info",
    "list_endpoints",
    "search_endpoints",
    "get_endpoint_details",
    "list_schemas",
    "get_schema_details",
}


async def expose(desk: Desk, expose: str = "query", name: str = "books", **more: object) -> None:
    """The library as a source that the query tools show."""
    credentials = {"key": "secret"}
    url = desk.upstream.url
    await desk.gateway.import_document(
        SLUG, library(url), name=name, expose=expose, credentials=credentials, base_url=url, **more
    )


async def ask(desk: Desk, tool: str, /, **arguments: object) -> dict[str, Any]:
    """The structured answer of a query tool, which is its text too."""
    result = await desk.call(tool, arguments)
    assert not result.get("isError"), result
    found: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == found
    assert "\n  " in result["content"][0]["text"]
    return found


async def test_query_tools_are_listed_where_a_source_asks_for_them(desk: Desk) -> None:
    """Ours: six tools that describe and one that calls, listed once, instead of the operations or beside them
    (OAS-5).
    """
    assert not await desk.tools()
    await expose(desk)
    queried = await desk.tools()
    await expose(desk, "both", "more", prefix="more")
    both = await desk.tools()

    assert set(queried) == {*TOOLS, "call_endpoint"}
    assert set(both) == {*queried, "more_listBooks", "more_addBook", "more_getBook", "more_removeBook"} | {
        name for name in both if name.startswith("more_get_shelves")
    }
    assert all(queried[name]["outputSchema"]["type"] == "object" for name in TOOLS)
    shown = (await desk.gateway.admin.get(f"/tenants/{SLUG}/tools/list_endpoints")).json()
    assert shown["status"]["origin"] == "builtin"
    for source in ("books", "more"):
        changed = await desk.gateway.admin.patch(f"/tenants/{SLUG}/sources/{source}", json={"expose": "tools"})
        assert changed.status_code == 200, changed.text
    assert TOOLS.isdisjoint(await desk.tools())


async def test_an_api_is_explored_and_called(desk: Desk) -> None:
    """Ours: from the overview to the call, every answer leads to the next question (OAS-5)."""
    await expose(desk)
    assert (await ask(desk, "get_api_info"))["totalEndpoints"] == 5
    [found, *_] = (await ask(desk, "search_endpoints", query="book list", limit=1))["results"]
    details = await ask(desk, "get_endpoint_details", path=found["path"], method=found["method"].lower())
    assert set(details["inputSchema"]["properties"]) == {"page"}
    schemas = await ask(desk, "list_schemas")
    assert [schema["name"] for schema in schemas["schemas"]] == ["Author", "Book", "Country", "Failure", "Shelf"]
    assert (await ask(desk, "get_schema_details", name="Book"))["dependencies"] == ["Author", "Country"]

    desk.upstream.body = b'{"title": "Emma"}'
    called = await desk.call("call_endpoint", {"operation": "GET /books", "arguments": {"page": 3}})

    assert called["structuredContent"] == {"title": "Emma"}
    [(_, seen)] = desk.seen()
    assert seen.target == "/books?page=3"
    assert seen.header("x-key") == "secret"


async def test_cursors_lead_on_and_are_good_for_one_list(desk: Desk) -> None:
    """Ours: pages join, and a cursor of one question is refused in another (OAS-5)."""
    await expose(desk)
    paths: list[str] = []
    cursor: dict[str, object] = {}
    for _ in range(3):
        page = await ask(desk, "list_endpoints", limit=2, **cursor)
        paths += [f"{item['method']} {item['path']}" for item in page["endpoints"]]
        if "nextCursor" in page:
            cursor = {"cursor": page["nextCursor"]}

    assert len(paths) == len(set(paths)) == 5
    for arguments in ({"limit": 2, "method": "GET", **cursor}, {"cursor": "AAAA"}):
        refused = await desk.call("list_endpoints", arguments)
        assert refused["isError"]
        assert "cursor" in refused["content"][0]["text"]


async def test_a_wrong_name_is_an_error_with_neighbours(desk: Desk) -> None:
    """Ours: not found is a result that a model can act on, never a protocol error (OAS-5)."""
    await expose(desk)
    for name, arguments, near in (
        ("get_endpoint_details", {"path": "/book", "method": "GET"}, "GET /books"),
        ("get_schema_details", {"name": "Bok"}, "Book"),
        ("call_endpoint", {"operation": "listBook"}, "listBooks"),
        ("list_endpoints", {"source": "book"}, "books"),
    ):
        refused = await desk.call(name, arguments)
        assert refused["isError"]
        assert near in json.loads(refused["content"][0]["text"])["suggestions"]
    wrong = await desk.call("call_endpoint", {"operation": "getBook", "arguments": {}})
    assert wrong["isError"]
    assert "bookId" in wrong["content"][0]["text"]
    assert not desk.seen()


async def trail(desk: Desk, tool: str) -> list[str]:
    """Outcomes of calls of a tool, by the audit trail."""
    entries = await desk.gateway.admin.get(f"/tenants/{SLUG}/audit", params={"tool": tool, "limit": 100})
    return [entry["outcome"] for entry in entries.json()["items"]]


async def test_a_called_endpoint_passes_the_gates_of_its_tool(desk: Desk) -> None:
    """Ours: policy judges what is called, not who calls it, and the trail names the operation's tool (OAS-5)."""
    await expose(desk)
    denied = {"moderate": "deny", "dangerous": "deny"}
    (await desk.gateway.admin.patch(f"/tenants/{SLUG}/policy", json=denied)).raise_for_status()

    calls: Mapping[str, dict[str, object]] = {"addBook": {"body": {"title": "x"}}, "removeBook": {"bookId": "1"}}
    for operation, arguments in calls.items():
        refused = await desk.call("call_endpoint", {"operation": operation, "arguments": arguments})
        assert refused["isError"]
        assert "policy" in refused["content"][0]["text"]
    assert not desk.seen()
    assert not (await desk.call("call_endpoint", {"operation": "listBooks"})).get("isError")
    assert await trail(desk, "addBook") == ["policy.denied"]
    assert await trail(desk, "listBooks") == ["ok"]


async def test_a_profile_bounds_what_is_queried_and_called(desk: Desk) -> None:
    """Ours: an operation that a profile excludes is neither described nor called through the query tools (OAS-5,
    TEN-1).
    """
    await expose(desk)
    admin = desk.gateway.admin
    profile = {"name": "reader", "exclude": [{"methods": ["POST", "DELETE"]}, {"names": ["getBook"]}]}
    made = await admin.post(f"/tenants/{SLUG}/profiles", json=profile)
    assert made.status_code == 201, made.text
    desk.key = await desk.gateway.create_key(SLUG, "mcp", profile="reader")

    async def call(name: str, **arguments: object) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        answer = await desk.gateway.rpc(f"{SLUG}/reader", desk.key, "tools/call", params)
        result: dict[str, Any] = answer.json()["result"]
        return result

    listed = (await call("list_endpoints"))["structuredContent"]["endpoints"]
    assert [item["path"] for item in listed] == ["/books", "/shelves"]
    for operation in ("removeBook", "addBook", "GET /books/{bookId}"):
        assert (await call("call_endpoint", operation=operation, arguments={"bookId": "1"}))["isError"]
    assert (await call("get_endpoint_details", path="/books", method="POST"))["isError"]
    assert not desk.seen()


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ({"include": [{"methods": ["GET"]}]}, 7),
        ({"include": [{"sources": ["books"]}], "exclude": [{"methods": ["POST", "DELETE"]}]}, 7),
        ({"include": [{"sources": ["books"], "methods": ["GET"]}], "exclude": [{"names": ["call_endpoint"]}]}, 6),
        ({"include": [{"sources": ["other"]}]}, 0),
        ({"include": [{"families": ["resource"]}]}, 0),
    ],
)
async def test_a_profile_of_operations_that_are_not_listed_shows_what_reaches_them(
    desk: Desk, rules: dict[str, Any], shown: int
) -> None:
    """Ours: an include rule of methods or sources is about operations, and the query tools come with them (OAS-5)."""
    await expose(desk)
    made = await desk.gateway.admin.post(f"/tenants/{SLUG}/profiles", json={"name": "some", **rules})
    assert made.status_code == 201, made.text
    key = await desk.gateway.create_key(SLUG, "mcp", profile="some")

    answer = await desk.gateway.rpc(f"{SLUG}/some", key, "tools/list", {})
    names = [tool["name"] for tool in answer.json()["result"]["tools"]]
    priced = (await desk.gateway.admin.get(f"/tenants/{SLUG}/profiles/some")).json()

    assert len(names) == shown
    assert priced["status"]["counts"]["tools"] == shown
    if shown:
        params: dict[str, Any] = {"name": "list_endpoints", "arguments": {}}
        listed = (await desk.gateway.rpc(f"{SLUG}/some", key, "tools/call", params)).json()["result"]
        assert {item["method"] for item in listed["structuredContent"]["endpoints"]} == {"GET"}


async def test_tenants_see_their_own_documents_alone(desk: Desk) -> None:
    """Ours: the same name of a source in two tenants is two sources (OAS-5, TEN-1)."""
    await expose(desk)
    await desk.gateway.create_tenant("other")
    key = await desk.gateway.create_key("other")
    document = library(desk.upstream.url)
    document["info"]["title"] = "Theirs"
    document["paths"] = {"/secret": {"get": {"operationId": "secret", "responses": {}}}}
    await desk.gateway.import_document("other", document, name="books", expose="query")

    params: dict[str, Any] = {"name": "get_api_info", "arguments": {}}
    theirs = (await desk.gateway.rpc("other", key, "tools/call", params)).json()["result"]["structuredContent"]

    assert (theirs["title"], theirs["totalEndpoints"]) == ("Theirs", 1)
    assert (await ask(desk, "get_api_info"))["title"] == "Library"
    assert (await desk.call("call_endpoint", {"operation": "secret"}))["isError"]


async def test_a_new_document_is_what_is_told_next(desk: Desk) -> None:
    """Ours: the tools speak of the version that is active (OAS-5)."""
    await expose(desk)
    assert (await ask(desk, "get_api_info"))["version"] == "2"
    document = library(desk.upstream.url)
    document["info"]["version"] = "3"
    put = await desk.gateway.admin.put(f"/tenants/{SLUG}/sources/books", json={"document": document, "expose": "query"})
    assert put.status_code == 200, put.text

    assert (await ask(desk, "get_api_info"))["version"] == "3"


async def test_own_tools_are_found_and_called_beside_an_exposed_api(desk: Desk) -> None:
    """Ours: a search finds the tools of the caller's list, under their listed names, and none beyond (OAS-5, TEN-3)."""
    await expose(desk)
    handler = {"kind": "template", "text": "sunny"}
    weather = tool("weather.today", handler, definition={"description": "Tells the forecast of a city."})
    await add(desk.gateway, SLUG, "tools", weather)
    small = {"name": "small", "exclude": [{"names": ["weather*"]}]}
    await add(desk.gateway, SLUG, "profiles", small)

    [hit] = (await ask(desk, "search_endpoints", query="what is the forecast for a city?"))["results"]
    assert (hit["operation"], hit["tool"], hit["source"]) == ("TOOL weather.today", "weather_today", "own tools")
    for name in ("weather_today", "weather.today", "TOOL weather.today"):
        assert (await ask(desk, "get_endpoint_details", operation=name))["tool"] == "weather_today"
        called = await desk.call("call_endpoint", {"operation": name, "arguments": {}})
        assert called["content"][0]["text"] == "sunny"
    listed = (await ask(desk, "list_endpoints"))["endpoints"]
    assert {item["method"] for item in listed} == {"GET", "POST", "DELETE"}
    hidden = await _call(desk, "small", "search_endpoints", {"query": "forecast"})
    assert hidden["structuredContent"]["total"] == 0
    refused = await _call(desk, "small", "call_endpoint", {"operation": "TOOL weather.today"})
    assert refused["isError"]


async def test_a_profile_that_names_the_search_finds_what_it_lists(desk: Desk) -> None:
    """Ours: without an exposed source, all tools that the profile lists are searched (OAS-5, TEN-3)."""
    await expose(desk, "tools")
    await add(desk.gateway, SLUG, "tools", static_tool("shelf_of_mine"))
    rules = [{"names": ["search_endpoints", "*Book*"]}]
    await add(
        desk.gateway, SLUG, "profiles", {"name": "found", "include": rules, "exclude": [{"names": ["removeBook"]}]}
    )
    await add(desk.gateway, SLUG, "profiles", {"name": "any", "include": [{"names": ["*"]}]})
    without = [{"names": ["search_endpoints"]}]
    await add(desk.gateway, SLUG, "profiles", {"name": "none", "include": rules, "exclude": without})

    hits = (await _call(desk, "found", "search_endpoints", {"query": "book shelf"}))["structuredContent"]["results"]
    assert {hit["tool"] for hit in hits} == {"listBooks", "addBook", "getBook"}
    for profile in ("any", "none"):
        answer = await desk.gateway.rpc(f"{SLUG}/{profile}", desk.key, "tools/list", {})
        assert "search_endpoints" not in {each["name"] for each in answer.json()["result"]["tools"]}


async def _call(desk: Desk, profile: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a call at the URL of a profile."""
    params = {"name": name, "arguments": arguments}
    answer = await desk.gateway.rpc(f"{SLUG}/{profile}", desk.key, "tools/call", params)
    result: dict[str, Any] = answer.json()["result"]
    return result
