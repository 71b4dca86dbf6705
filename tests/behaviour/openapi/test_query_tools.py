"""The query tools through a real gateway: listed, asked, paged, and what `call_endpoint` may do."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
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


async def expose(bench: OpenAPIBench, expose: str = "query", name: str = "books", **more: object) -> None:
    """The library as a source that the query tools show."""
    credentials = {"key": "secret"}
    url = bench.upstream.url
    await bench.gateway.import_document(
        SLUG, library(url), name=name, expose=expose, credentials=credentials, base_url=url, **more
    )


async def ask(bench: OpenAPIBench, tool: str, /, **arguments: object) -> dict[str, Any]:
    """The structured answer of a query tool, which is its text too."""
    result = await bench.call(tool, arguments)
    assert not result.get("isError"), result
    found: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == found
    assert "\n  " in result["content"][0]["text"]
    return found


async def test_query_tools_are_listed_by_the_exposure_of_a_source(bench: OpenAPIBench) -> None:
    """Ours: six tools that describe and one that calls, listed once, instead of the operations or beside them
    (OAS-5).
    """
    assert not await bench.tools()
    await expose(bench)
    queried = await bench.tools()
    await expose(bench, "both", "more", prefix="more")
    both = await bench.tools()

    assert set(queried) == {*TOOLS, "call_endpoint"}
    assert set(both) == {*queried, "more_listBooks", "more_addBook", "more_getBook", "more_removeBook"} | {
        name for name in both if name.startswith("more_get_shelves")
    }
    assert all(queried[name]["outputSchema"]["type"] == "object" for name in TOOLS)
    shown = (await bench.gateway.admin.get(f"/tenants/{SLUG}/tools/list_endpoints")).json()
    assert shown["status"]["origin"] == "builtin"
    for source in ("books", "more"):
        changed = await bench.gateway.admin.patch(f"/tenants/{SLUG}/sources/{source}", json={"expose": "tools"})
        assert changed.status_code == 200, changed.text
    assert TOOLS.isdisjoint(await bench.tools())


async def test_an_api_is_explored_and_called(bench: OpenAPIBench) -> None:
    """Ours: from the overview to the call, every answer leads to the next question (OAS-5)."""
    await expose(bench)
    assert (await ask(bench, "get_api_info"))["totalEndpoints"] == 5
    [found, *_] = (await ask(bench, "search_endpoints", query="book list", limit=1))["results"]
    details = await ask(bench, "get_endpoint_details", path=found["path"], method=found["method"].lower())
    assert set(details["inputSchema"]["properties"]) == {"page"}
    schemas = await ask(bench, "list_schemas")
    assert [schema["name"] for schema in schemas["schemas"]] == ["Author", "Book", "Country", "Failure", "Shelf"]
    assert (await ask(bench, "get_schema_details", name="Book"))["dependencies"] == ["Author", "Country"]

    bench.upstream.body = b'{"title": "Emma"}'
    called = await bench.call("call_endpoint", {"operation": "GET /books", "arguments": {"page": 3}})

    assert called["structuredContent"] == {"title": "Emma"}
    [(_, seen)] = bench.seen()
    assert seen.target == "/books?page=3"
    assert seen.header("x-key") == "secret"


async def test_cursors_lead_on_and_are_good_for_one_list(bench: OpenAPIBench) -> None:
    """Ours: pages join, and a cursor of one question is refused in another (OAS-5)."""
    await expose(bench)
    paths: list[str] = []
    cursor: dict[str, object] = {}
    for _ in range(3):
        page = await ask(bench, "list_endpoints", limit=2, **cursor)
        paths += [f"{item['method']} {item['path']}" for item in page["endpoints"]]
        if "nextCursor" in page:
            cursor = {"cursor": page["nextCursor"]}

    assert len(paths) == len(set(paths)) == 5
    for arguments in ({"limit": 2, "method": "GET", **cursor}, {"cursor": "AAAA"}):
        refused = await bench.call("list_endpoints", arguments)
        assert refused["isError"]
        assert "cursor" in refused["content"][0]["text"]


async def test_a_wrong_name_is_an_error_with_suggestions(bench: OpenAPIBench) -> None:
    """Ours: not found is a result that a model can act on, never a protocol error (OAS-5)."""
    await expose(bench)
    for name, arguments, near in (
        ("get_endpoint_details", {"path": "/book", "method": "GET"}, "GET /books"),
        ("get_schema_details", {"name": "Bok"}, "Book"),
        ("call_endpoint", {"operation": "listBook"}, "listBooks"),
        ("list_endpoints", {"source": "book"}, "books"),
    ):
        refused = await bench.call(name, arguments)
        assert refused["isError"]
        assert near in json.loads(refused["content"][0]["text"])["suggestions"]
    wrong = await bench.call("call_endpoint", {"operation": "getBook", "arguments": {}})
    assert wrong["isError"]
    assert "bookId" in wrong["content"][0]["text"]
    assert not bench.seen()


async def trail(bench: OpenAPIBench, tool: str) -> list[str]:
    """Outcomes of calls of a tool, by the audit trail."""
    entries = await bench.gateway.admin.get(f"/tenants/{SLUG}/audit", params={"tool": tool, "limit": 100})
    return [entry["outcome"] for entry in entries.json()["items"]]


async def test_a_called_endpoint_passes_the_gates_of_its_tool(bench: OpenAPIBench) -> None:
    """Ours: policy judges what is called, not who calls it, and the trail names the operation's tool (OAS-5)."""
    await expose(bench)
    denied = {"moderate": "deny", "dangerous": "deny"}
    (await bench.gateway.admin.patch(f"/tenants/{SLUG}/policy", json=denied)).raise_for_status()

    calls: Mapping[str, dict[str, object]] = {"addBook": {"body": {"title": "x"}}, "removeBook": {"bookId": "1"}}
    for operation, arguments in calls.items():
        refused = await bench.call("call_endpoint", {"operation": operation, "arguments": arguments})
        assert refused["isError"]
        assert "policy" in refused["content"][0]["text"]
    assert not bench.seen()
    assert not (await bench.call("call_endpoint", {"operation": "listBooks"})).get("isError")
    assert await trail(bench, "addBook") == ["policy.denied"]
    assert await trail(bench, "listBooks") == ["ok"]


async def test_a_profile_bounds_query_and_call(bench: OpenAPIBench) -> None:
    """Ours: an operation that a profile excludes is neither described nor called through the query tools (OAS-5,
    TEN-1).
    """
    await expose(bench)
    admin = bench.gateway.admin
    profile = {"name": "reader", "exclude": [{"methods": ["POST", "DELETE"]}, {"names": ["getBook"]}]}
    made = await admin.post(f"/tenants/{SLUG}/profiles", json=profile)
    assert made.status_code == 201, made.text
    bench.key = await bench.gateway.create_key(SLUG, "mcp", profile="reader")

    async def call(name: str, **arguments: object) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        answer = await bench.gateway.rpc(f"{SLUG}/reader", bench.key, "tools/call", params)
        result: dict[str, Any] = answer.json()["result"]
        return result

    listed = (await call("list_endpoints"))["structuredContent"]["endpoints"]
    assert [item["path"] for item in listed] == ["/books", "/shelves"]
    for operation in ("removeBook", "addBook", "GET /books/{bookId}"):
        assert (await call("call_endpoint", operation=operation, arguments={"bookId": "1"}))["isError"]
    assert (await call("get_endpoint_details", path="/books", method="POST"))["isError"]
    assert not bench.seen()


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
async def test_a_profile_of_unlisted_operations_shows_the_query_tools(
    bench: OpenAPIBench, rules: dict[str, Any], shown: int
) -> None:
    """Ours: an include rule of methods or sources is about operations, and the query tools come with them (OAS-5)."""
    await expose(bench)
    made = await bench.gateway.admin.post(f"/tenants/{SLUG}/profiles", json={"name": "some", **rules})
    assert made.status_code == 201, made.text
    key = await bench.gateway.create_key(SLUG, "mcp", profile="some")

    answer = await bench.gateway.rpc(f"{SLUG}/some", key, "tools/list", {})
    names = [tool["name"] for tool in answer.json()["result"]["tools"]]
    priced = (await bench.gateway.admin.get(f"/tenants/{SLUG}/profiles/some")).json()

    assert len(names) == shown
    assert priced["status"]["counts"]["tools"] == shown
    if shown:
        params: dict[str, Any] = {"name": "list_endpoints", "arguments": {}}
        listed = (await bench.gateway.rpc(f"{SLUG}/some", key, "tools/call", params)).json()["result"]
        assert {item["method"] for item in listed["structuredContent"]["endpoints"]} == {"GET"}


async def test_tenants_see_their_own_documents_alone(bench: OpenAPIBench) -> None:
    """Ours: the same name of a source in two tenants is two sources (OAS-5, TEN-1)."""
    await expose(bench)
    await bench.gateway.create_tenant("other")
    key = await bench.gateway.create_key("other")
    document = library(bench.upstream.url)
    document["info"]["title"] = "Theirs"
    document["paths"] = {"/secret": {"get": {"operationId": "secret", "responses": {}}}}
    await bench.gateway.import_document("other", document, name="books", expose="query")

    params: dict[str, Any] = {"name": "get_api_info", "arguments": {}}
    theirs = (await bench.gateway.rpc("other", key, "tools/call", params)).json()["result"]["structuredContent"]

    assert (theirs["title"], theirs["totalEndpoints"]) == ("Theirs", 1)
    assert (await ask(bench, "get_api_info"))["title"] == "Library"
    assert (await bench.call("call_endpoint", {"operation": "secret"}))["isError"]


async def test_a_new_document_is_searched_next(bench: OpenAPIBench) -> None:
    """Ours: the tools speak of the version that is active (OAS-5)."""
    await expose(bench)
    assert (await ask(bench, "get_api_info"))["version"] == "2"
    document = library(bench.upstream.url)
    document["info"]["version"] = "3"
    put = await bench.gateway.admin.put(
        f"/tenants/{SLUG}/sources/books", json={"document": document, "expose": "query"}
    )
    assert put.status_code == 200, put.text

    assert (await ask(bench, "get_api_info"))["version"] == "3"


async def test_own_tools_are_found_and_called_beside_an_exposed_api(bench: OpenAPIBench) -> None:
    """Ours: a search finds the tools of the caller's list, under their listed names, and none beyond (OAS-5, TEN-3)."""
    await expose(bench)
    handler = {"kind": "template", "text": "sunny"}
    weather = tool("weather.today", handler, definition={"description": "Tells the forecast of a city."})
    await add(bench.gateway, SLUG, "tools", weather)
    small = {"name": "small", "exclude": [{"names": ["weather*"]}]}
    await add(bench.gateway, SLUG, "profiles", small)

    [hit] = (await ask(bench, "search_endpoints", query="what is the forecast for a city?"))["results"]
    assert (hit["operation"], hit["tool"], hit["source"]) == ("TOOL weather.today", "weather_today", "own tools")
    for name in ("weather_today", "weather.today", "TOOL weather.today"):
        assert (await ask(bench, "get_endpoint_details", operation=name))["tool"] == "weather_today"
        called = await bench.call("call_endpoint", {"operation": name, "arguments": {}})
        assert called["content"][0]["text"] == "sunny"
    listed = (await ask(bench, "list_endpoints"))["endpoints"]
    assert {item["method"] for item in listed} == {"GET", "POST", "DELETE"}
    hidden = await _call(bench, "small", "search_endpoints", {"query": "forecast"})
    assert hidden["structuredContent"]["total"] == 0
    refused = await _call(bench, "small", "call_endpoint", {"operation": "TOOL weather.today"})
    assert refused["isError"]


async def test_a_profile_that_names_the_search_finds_its_listed_tools(bench: OpenAPIBench) -> None:
    """Ours: without an exposed source, all tools that the profile lists are searched (OAS-5, TEN-3)."""
    await expose(bench, "tools")
    await add(bench.gateway, SLUG, "tools", static_tool("shelf_of_mine"))
    rules = [{"names": ["search_endpoints", "*Book*"]}]
    await add(
        bench.gateway, SLUG, "profiles", {"name": "found", "include": rules, "exclude": [{"names": ["removeBook"]}]}
    )
    await add(bench.gateway, SLUG, "profiles", {"name": "any", "include": [{"names": ["*"]}]})
    without = [{"names": ["search_endpoints"]}]
    await add(bench.gateway, SLUG, "profiles", {"name": "none", "include": rules, "exclude": without})

    hits = (await _call(bench, "found", "search_endpoints", {"query": "book shelf"}))["structuredContent"]["results"]
    assert {hit["tool"] for hit in hits} == {"listBooks", "addBook", "getBook"}
    for profile in ("any", "none"):
        answer = await bench.gateway.rpc(f"{SLUG}/{profile}", bench.key, "tools/list", {})
        assert "search_endpoints" not in {each["name"] for each in answer.json()["result"]["tools"]}


async def _call(bench: OpenAPIBench, profile: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a call at the URL of a profile."""
    params = {"name": name, "arguments": arguments}
    answer = await bench.gateway.rpc(f"{SLUG}/{profile}", bench.key, "tools/call", params)
    result: dict[str, Any] = answer.json()["result"]
    return result
