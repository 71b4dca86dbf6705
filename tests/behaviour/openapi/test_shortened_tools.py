"""Tools that are too large for a list: what clients see, how calls are validated, and where the rest is."""

from typing import Any

import pytest

from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.grammars import search_api
from tests.support.openapi import document

BODY: dict[str, Any] = {"query": {}, "size": 1}
DEEP: dict[str, Any] = {"member_0_1": {"member_1_1": {"member_4_1": {"member_13_1": {"boost": 11}}}}}


@pytest.fixture
async def searching(bench: OpenAPIBench) -> OpenAPIBench:
    """The tenant with one search of a large grammar, and a plain operation beside it."""
    await bench.import_document({**search_api(searches=1, plain=1), "servers": [{"url": bench.upstream.url}]})
    return bench


async def details(bench: OpenAPIBench, **arguments: Any) -> dict[str, Any]:
    """Answer of the tool for details."""
    return await bench.call("get_endpoint_details", arguments)


async def test_calls_are_validated_against_the_full_schema(searching: OpenAPIBench) -> None:
    """Ours: a list shows less than a call is checked against (OAS-9)."""
    tools = await searching.tools()
    listed = tools["search_0"]

    assert set(tools) == {"search_0", "plain_0", "get_endpoint_details"}
    assert "get_endpoint_details" in listed["description"]
    fine = await searching.call("search_0", {"index": "a", "body": BODY})
    assert not fine.get("isError")
    assert len(searching.seen()) == 1
    refused = await searching.call("search_0", {"index": "a", "body": {**BODY, "query": DEEP}})
    assert refused["isError"]
    assert "/body/query/member_0_1/member_1_1/member_4_1/member_13_1/boost" in refused["content"][0]["text"]
    assert searching.seen() == []


async def test_the_details_of_a_shortened_tool_are_its_full_input(searching: OpenAPIBench) -> None:
    """Ours: one call returns the omitted parts of the list one by one (OAS-9)."""
    found = await details(searching, operation="search_0", pointer="/inputSchema/$defs/Node13/properties/boost")
    missing = await details(searching, operation="plain_0")

    assert found["structuredContent"]["value"] == {"type": "number", "maximum": 10}
    assert found["structuredContent"]["operation"] == "POST /{index}/search0"
    assert missing["isError"]


async def test_a_pinned_argument_is_neither_listed_nor_validated_in_a_shortened_tool(searching: OpenAPIBench) -> None:
    """Ours: the full schema lacks it, as the listed one does (OAS-6, OAS-9)."""
    gateway = searching.gateway
    pinned = await gateway.admin.patch(f"/tenants/{SLUG}/tools/search_0", json={"pinned": {"index": "all"}})
    pinned.raise_for_status()
    sent = await searching.call("search_0", {"body": BODY})
    refused = await searching.call("search_0", {"index": "other", "body": BODY})
    shown = await details(searching, operation="search_0", pointer="/inputSchema/required")

    assert not sent.get("isError"), sent
    assert searching.seen()[0][1].target == "/all/search0"
    assert refused["isError"]
    assert shown["structuredContent"]["value"] == ["body"]


async def test_the_details_are_found_under_the_name_and_beside_the_description_of_an_override(
    searching: OpenAPIBench,
) -> None:
    """Ours: a tool that an override renames or describes still leads to its full arguments (OAS-6, OAS-9)."""
    changes = {"name": "find", "description": "Mine."}
    changed = await searching.gateway.admin.patch(f"/tenants/{SLUG}/tools/search_0", json=changes)
    changed.raise_for_status()
    words, _, note = (await searching.tools())["find"]["description"].partition("\n\n")
    found = await details(searching, operation=note.split('operation "')[1].split('"')[0], pointer="/inputSchema")

    assert words == "Mine."
    assert found["structuredContent"]["operation"] == "POST /{index}/search0"


async def test_a_profile_shows_details_of_its_own_tools_only(searching: OpenAPIBench) -> None:
    """Ours: a profile that names a shortened tool has the tool that it refers to, and no more (TEN-3, OAS-9)."""
    gateway = searching.gateway
    for name, tool in (("one", "search_0"), ("two", "plain_0")):
        shown = {"name": name, "include": [{"names": [tool]}]}
        made = await gateway.admin.post(f"/tenants/{SLUG}/profiles", json=shown)
        assert made.status_code == 201, made.text
    key = await gateway.create_key(SLUG)
    seen: dict[str, set[str]] = {}
    for name in ("one", "two"):
        answer = await gateway.rpc(f"{SLUG}/{name}", key, "tools/list", {})
        seen[name] = {tool["name"] for tool in answer.json()["result"]["tools"]}

    assert seen == {"one": {"search_0", "get_endpoint_details"}, "two": {"plain_0"}}


async def test_other_query_tools_do_not_show_listed_operations(searching: OpenAPIBench) -> None:
    """Ours: a source that is exposed as tools stays out of searches and of `call_endpoint` (OAS-5, OAS-9)."""
    pets = {**document({"/pets": {"get": {"operationId": "pets"}}}), "servers": [{"url": searching.upstream.url}]}
    await searching.gateway.import_document(SLUG, pets, name="pets", expose="query")
    listed = await searching.call("list_endpoints", {})
    called = await searching.call("call_endpoint", {"operation": "search_0", "arguments": {"index": "a", "body": BODY}})
    found = await details(searching, operation="search_0")

    assert [item["operation"] for item in listed["structuredContent"]["endpoints"]] == ["GET /pets"]
    assert called["isError"]
    assert found["structuredContent"]["tool"] == "search_0"


async def test_pages_end_by_bytes(bench: OpenAPIBench) -> None:
    """Ours: a page of large tools has fewer of them, and all of them are reached (OAS-9)."""
    await bench.import_document({**search_api(searches=60, plain=40), "servers": [{"url": bench.upstream.url}]})
    names: list[str] = []
    cursor: str | None = None
    pages = 0
    while cursor is not None or not pages:
        answer = await bench.gateway.rpc(SLUG, bench.key, "tools/list", {"cursor": cursor} if cursor else {})
        assert len(answer.content) <= 100 * 4_096 + 4_096  # `running_gateway` sets 100 tools for a page
        names += [tool["name"] for tool in answer.json()["result"]["tools"]]
        cursor, pages = answer.json()["result"].get("nextCursor"), pages + 1

    assert pages > 2
    assert len(names) == len(set(names)) == 101
