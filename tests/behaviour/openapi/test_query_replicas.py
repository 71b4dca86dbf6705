"""The query tools as the SDK's client sees them, of both eras, each request at the next of two replicas."""

import gzip
import itertools
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import pytest
from mcp import Client

from tests.support.documents import many
from tests.support.pair import running_pair
from tests.support.primitives import add
from tests.support.queries import library
from tests.support.replicas import Mode, Replicas
from tests.support.servers import TestServers
from tests.support.specs import specs_dir
from tests.support.upstream import RecordingUpstream, recording_upstream

ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")
eras = pytest.mark.parametrize("mode", ERAS)


@dataclass(frozen=True, slots=True)
class Reading:
    """A tenant with two sources, and the replicas that show them."""

    replicas: Replicas
    upstream: RecordingUpstream
    slug: str
    key: str


@pytest.fixture(scope="module")
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture(scope="module")
async def replicas(
    servers: TestServers, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Replicas]:
    """Two gateway processes over one database and one Redis."""
    async with running_pair(servers, upstream, tmp_path_factory.mktemp("replicas")) as started:
        yield started


@pytest.fixture(scope="module")
def slugs() -> Iterator[str]:
    """Names that no other test has taken."""
    return (f"reading-{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
async def common_reading(replicas: Replicas, upstream: RecordingUpstream, slugs: Iterator[str]) -> Reading:
    """A tenant with the library and a second one, made at the first replica, for tests that change nothing of it."""
    return await _create_reading(replicas, upstream, next(slugs))


@pytest.fixture
def reading(common_reading: Reading) -> Reading:
    """That tenant, before anything was asked."""
    common_reading.upstream.seen.clear()
    common_reading.replicas.turns.clear()
    return common_reading


@pytest.fixture
async def own_reading(replicas: Replicas, upstream: RecordingUpstream, slugs: Iterator[str]) -> Reading:
    """Such a tenant of this test alone."""
    return await _create_reading(replicas, upstream, next(slugs))


async def _create_reading(replicas: Replicas, upstream: RecordingUpstream, slug: str) -> Reading:
    gateway = replicas.a.gateway
    await gateway.create_tenant(slug)
    for name in ("books", "more"):
        document = library(upstream.url)
        if name == "more":
            document["paths"] = {f"/films/{n}": {"get": {"operationId": f"film{n}", "responses": {}}} for n in range(7)}
        credentials = {"key": "secret"}
        await gateway.import_document(
            slug, document, name=name, expose="query", base_url=upstream.url, credentials=credentials
        )
    return Reading(replicas, upstream, slug, await gateway.create_key(slug))


async def ask(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The structured answer, which is the text too; the SDK has held it to the listed schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    text: Any = result.content[0]
    found: dict[str, Any] | None = result.structured_content
    assert found is not None
    assert json.loads(text.text) == found
    return found


async def refusal(client: Client, tool: str, /, **arguments: Any) -> str:
    """Text of an error result."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    text: Any = result.content[0]
    reported: str = text.text
    return reported


async def pages(client: Client, tool: str, items: str, /, **arguments: Any) -> list[dict[str, Any]]:
    """Every page of a list, one after the other."""
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = await ask(client, tool, **arguments, **more)
        assert len(page[items]) <= arguments["limit"]
        found += page[items]
        if "nextCursor" not in page:
            assert len(found) == page["total"]
            return found
        more = {"cursor": page["nextCursor"]}


@eras
async def test_pages_of_different_replicas_join(reading: Reading, mode: Mode) -> None:
    """Ours: a cursor of one replica is good at the other, for endpoints, hits and schemas of all sources (OAS-5)."""
    async with reading.replicas.client(reading.slug, reading.key, mode) as client:
        endpoints = await pages(client, "list_endpoints", "endpoints", limit=2)
        hits = await pages(client, "search_endpoints", "results", query="film book", limit=2)
        schemas = await pages(client, "list_schemas", "schemas", limit=3)

    names = [f"{item['source']} {item['method']} {item['path']}" for item in endpoints]
    assert len(names) == len(set(names)) == 12
    assert names[5:] == [f"more GET /films/{number}" for number in range(7)]
    assert len(hits) == 11
    assert [hit["relevance"] for hit in hits] == sorted((hit["relevance"] for hit in hits), reverse=True)
    assert [item["source"] for item in schemas] == ["books"] * 5 + ["more"] * 5
    assert {name for name, method in reading.replicas.turns if method == "POST"} == {"a", "b"}


@eras
async def test_a_cursor_is_bound_to_tenant_tool_and_question(
    reading: Reading, mode: Mode, slugs: Iterator[str]
) -> None:
    """Ours: of another tenant, tool or question, or changed by one letter, a cursor is refused (OAS-5, RES-3)."""
    other, gateway = next(slugs), reading.replicas.b.gateway
    await gateway.create_tenant(other)
    for name in ("books", "more"):
        await gateway.import_document(other, library(reading.upstream.url), name=name, prefix=name, expose="query")
    async with (
        reading.replicas.client(reading.slug, reading.key, mode) as client,
        reading.replicas.client(other, await gateway.create_key(other), mode) as stranger,
    ):
        cursor: str = (await ask(client, "list_endpoints", limit=2))["nextCursor"]
        for who, tool, arguments in (
            (stranger, "list_endpoints", {}),
            (client, "list_schemas", {}),
            (client, "list_endpoints", {"method": "GET"}),
            (client, "list_endpoints", {"source": "more"}),
            (client, "search_endpoints", {"query": "book"}),
        ):
            assert "cursor" in await refusal(who, tool, cursor=cursor, **arguments)
        swapped = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
        for mangled in (swapped, cursor[1:], cursor + cursor, "é" * 20, "0", "../../x"):
            assert "cursor" in await refusal(client, "list_endpoints", cursor=mangled)
        assert (await ask(client, "list_endpoints", cursor=cursor, limit=500))["offset"] == 2


@eras
async def test_several_sources_are_one_library(reading: Reading, mode: Mode) -> None:
    """Ours: without `source` all are searched; a thing is found where only one has it, else the error names both
    (OAS-5).
    """
    async with reading.replicas.client(reading.slug, reading.key, mode) as client:
        about = await ask(client, "get_api_info")
        details = await ask(client, "get_endpoint_details", path="/films/3", method="get")
        ambiguous = json.loads(await refusal(client, "get_schema_details", name="Book"))
        named = await ask(client, "get_schema_details", name="Book", source="more")
        called = await client.call_tool("call_endpoint", {"operation": "film3"})

    assert [(item["source"], item["totalEndpoints"]) for item in about["sources"]] == [("books", 5), ("more", 7)]
    assert details["source"] == "more"
    assert ambiguous["suggestions"] == ["books", "more"]
    assert (named["source"], named["usedBy"]) == ("more", [])
    assert not called.is_error
    assert [seen.target for seen in reading.upstream.seen] == ["/films/3"]


@eras
async def test_wrong_arguments_of_query_tools_are_named(reading: Reading, mode: Mode) -> None:
    """Ours: wrong, huge and unknown arguments are error results that name the argument; numbers may be 2.0 (OAS-5)."""
    async with reading.replicas.client(reading.slug, reading.key, mode) as client:
        for tool, arguments, reported in (
            ("search_endpoints", {"query": "x" * 10_000}, "/query"),
            ("search_endpoints", {"query": "x", "searchIn": "everywhere"}, "/searchIn"),
            ("search_endpoints", {}, "query"),
            ("list_endpoints", {"limit": 0}, "/limit"),
            ("list_endpoints", {"limit": 501}, "/limit"),
            ("list_endpoints", {"offset": -1}, "/offset"),
            ("list_endpoints", {"spec_path": "/etc/passwd"}, "spec_path"),
            ("get_schema_details", {"name": "Book", "depth": 10**9}, "/depth"),
            ("get_endpoint_details", {"path": "/books"}, "method"),
            ("list_endpoints", {"source": "nowhere"}, "Source not found"),
            ("call_endpoint", {"operation": "listBooks", "arguments": "page=1"}, "/arguments"),
        ):
            assert reported in await refusal(client, tool, **arguments), (tool, reported)
        page = await ask(client, "list_endpoints", limit=2.0, offset=1.0, source=None)
        beyond = await ask(client, "list_endpoints", offset=1_000_000)

    assert (len(page["endpoints"]), page["offset"]) == (2, 1)
    assert (beyond["endpoints"], beyond["total"]) == ([], 12)
    assert reading.upstream.seen == []


async def test_structured_content_matches_the_listed_schema(own_reading: Reading) -> None:
    """MCP: every answer fits the output schema that the same client was listed, of real documents too (OAS-5)."""
    gateway = own_reading.replicas.a.gateway
    url = own_reading.upstream.url
    for name in ("petstore-v3.yaml", "slack-web-v2.json", "notion-31.json"):
        text = gzip.decompress((specs_dir() / f"{name}.gz").read_bytes()).decode()
        document: Any = json.loads(text) if name.endswith("json") else text
        await gateway.import_document(own_reading.slug, document, name=name[:4], expose="query", base_url=url)
    async with own_reading.replicas.client(own_reading.slug, own_reading.key) as client:
        listed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        asked: list[tuple[str, dict[str, Any]]] = [("get_api_info", {}), ("search_endpoints", {"query": "user list"})]
        for source in ("pets", "slac", "noti"):
            endpoints = (await ask(client, "list_endpoints", source=source, limit=4))["endpoints"]
            schemas = (await ask(client, "list_schemas", source=source, limit=4))["schemas"]
            asked += [("list_endpoints", {"source": source}), ("list_schemas", {"source": source})]
            asked += [
                ("get_endpoint_details", {"source": source, "path": item["path"], "method": item["method"], "depth": 1})
                for item in endpoints
            ]
            asked += [("get_schema_details", {"source": source, "name": item["name"]}) for item in schemas]
        for tool, arguments in asked:
            answer = await ask(client, tool, **arguments)
            schema = listed[tool]
            assert schema is not None
            assert jsonschema_rs.is_valid(schema, answer), (tool, arguments)


@eras
async def test_forms_of_results_are_those_of_every_replica(own_reading: Reading, mode: Mode) -> None:
    """Ours: fields, results sent once, and parts of a result that the other replica stored (OAS-10, TEN-1)."""
    gateway = own_reading.replicas.a.gateway
    document = many(own_reading.upstream.url, 1)
    await gateway.import_document(own_reading.slug, document, name="many")
    forms = {"name": "forms", "summary_threshold": 16_384, "structured_once": True, "selects_fields": True}
    await add(gateway, own_reading.slug, "profiles", forms)
    items = [{"id": number, "x": "y" * 20} for number in range(1000)]
    own_reading.upstream.body = json.dumps({"items": items}).encode()
    path, replicas = f"{own_reading.slug}/forms", own_reading.replicas
    stranger = await gateway.create_key(own_reading.slug)
    async with (
        replicas.client(path, own_reading.key, mode, to=replicas.a) as one,
        replicas.client(path, own_reading.key, mode, to=replicas.b) as other,
        replicas.client(path, stranger, mode, to=replicas.b) as third,
    ):
        selected = [await client.call_tool("op_0000", {"_fields": ["/items/*/id"]}) for client in (one, other)]
        uri = (await one.call_tool("op_0000", {})).content[1].model_dump()["uri"]
        asked = {"result": uri, "pointer": "/items", "offset": 998}
        page = await other.call_tool("read_result", asked)
        foreign = await third.call_tool("read_result", asked)

    for result in selected:
        assert result.structured_content == {"items": [{"id": number} for number in range(1000)]}
        assert "in structured content: an object with items (array of 1,000)" in result.content[0].model_dump()["text"]
    assert page.structured_content is not None
    assert page.structured_content["value"] == items[998:]
    assert foreign.is_error
