"""Selection and listing of a source's operations, through a real gateway and over REST."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import httpx
import msgspec
import orjson
import pytest

from gateway.openapi.query.tools import NAMES
from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.handshake import open_session
from tests.support.openapi import document
from tests.support.queries import library
from tests.support.specs import load_spec

Mode = Literal["legacy", "auto"]
ERAS: tuple[Mode, ...] = ("legacy", "auto")
LISTED = ("petstore-v3.yaml", "notion-31.json", "slack-web-v2.json")
"""Documents of every version and both formats."""
NUMBERS = {
    "type": "number",
    "minimum": 0.00001,
    "maximum": 1e22,
    "multipleOf": 1.5e-7,
    "description": "0.00001 é\u2028",
}
"""Numbers that are written in several ways."""

WRONG: list[dict[str, object]] = [
    {"include": None},
    {"include": [{"path": ["/x"]}]},
    {"include": [{"paths": "/x"}]},
    {"exclude": [{"methods": ["G T"]}]},
    {"exclude": [{"tags": [""]}]},
    {"include": [{}] * 101},
    {"output_schemas": "yes"},
]


async def change(bench: OpenAPIBench, name: str, **fields: object) -> dict[str, Any]:
    """The source after a change, with its report."""
    wanted = {"allow_removals": True, **fields}
    answer = await bench.gateway.admin.patch(f"/tenants/{SLUG}/sources/{name}", json=wanted)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def import_library(bench: OpenAPIBench, **more: object) -> dict[str, Any]:
    """The report of the library as source `books`."""
    url = bench.upstream.url
    return await bench.gateway.import_document(
        SLUG, library(url), name="books", base_url=url, credentials={"key": "secret"}, **more
    )


def chosen(report: Mapping[str, Any]) -> set[str]:
    """The identities of the operations that became tools."""
    return {f"{item['method']} {item['path']}" for item in report["operations"] if item["tool"] is not None}


async def test_a_choice_is_kept_through_imports_and_changes(bench: OpenAPIBench) -> None:
    """Ours: an excluded operation is reported and not listed; the selection survives a new document (OAS-3)."""
    report = await import_library(bench, include=[{"methods": ["GET"]}], exclude=[{"paths": ["/shelves*"]}])
    listed = set(await bench.tools())
    shown = (await bench.gateway.admin.get(f"/tenants/{SLUG}/sources/books")).json()

    assert chosen(report) == {"GET /books", "GET /books/{bookId}"}
    assert listed == {"listBooks", "getBook"}
    assert sum(report["counts"].values()) == len(report["operations"]) == 5
    assert report["counts"]["skipped"] == 3
    everything: dict[str, list[str]] = {"operation_ids": [], "methods": [], "paths": [], "tags": []}
    assert shown["include"] == [{**everything, "methods": ["GET"]}]
    assert shown["exclude"] == [{**everything, "paths": ["/shelves*"]}]

    again = await change(bench, "books", document=library(bench.upstream.url))
    assert chosen(again["report"]) == chosen(report)
    assert not any(
        again["changes"][name] for name in ("added", "removed", "renamed", "changed", "document", "findings")
    )
    widened = await change(bench, "books", include=[], exclude=[{"operation_ids": ["getBook"]}])
    assert chosen(widened["report"]) == {"GET /books", "POST /books", "DELETE /books/{bookId}", "GET /shelves"}
    assert {item["path"] for item in widened["changes"]["removed"]} == {"/books/{bookId}"}
    assert len(widened["changes"]["added"]) == 3
    assert "listBooks" in await bench.tools()

    body = {"document": library(bench.upstream.url), "base_url": bench.upstream.url}
    kept = await bench.gateway.admin.put(f"/tenants/{SLUG}/sources/books", json=body)
    assert (kept.status_code, kept.json()["errors"][0]["pointer"]) == (409, "/exclude/0")
    replaced = await bench.gateway.admin.put(f"/tenants/{SLUG}/sources/books?replace=true", json=body)
    assert len(chosen(replaced.json()["report"])) == 5
    assert replaced.json()["exclude"] == []


async def test_a_put_of_a_returned_source_changes_nothing(bench: OpenAPIBench) -> None:
    """Ours: neither a version nor an entry; also with the same document, and never for another source (ADM-1)."""
    await import_library(bench, exclude=[{"paths": ["/shelves*"]}], timeout_s=5)
    admin, path = bench.gateway.admin, f"/tenants/{SLUG}/sources/books"
    shown = await admin.get(path)
    revision = (await admin.get(f"/tenants/{SLUG}")).headers["etag"]

    body = {name: value for name, value in shown.json().items() if name != "url"}
    for again in (shown.json(), {**body, "document": library(bench.upstream.url)}):
        same = await admin.put(path, json=again)
        assert (same.status_code, same.headers["etag"]) == (200, shown.headers["etag"])
        assert same.json()["changes"]["removed"] == []
    assert (await admin.get(f"/tenants/{SLUG}")).headers["etag"] == revision
    for member in ("id", "name"):
        refused = await admin.put(path, json={**shown.json(), member: "other"})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, f"/{member}")
    changed = await admin.put(path, json={**shown.json(), "timeout_s": 6})
    assert (changed.status_code, changed.json()["timeout_s"]) == (200, 6)
    assert (await admin.put(f"/tenants/{SLUG}/sources/new", json={"prefix": "n"})).status_code == 400


async def test_the_query_tools_see_only_selected_operations(bench: OpenAPIBench) -> None:
    """Ours: an excluded operation can be neither found nor called through them (OAS-5)."""
    await import_library(bench, expose="query", exclude=[{"operation_ids": ["listBooks"]}])

    found = await bench.call("list_endpoints", {})
    assert "/books" not in {item["path"] for item in found["structuredContent"]["endpoints"] if item["method"] == "GET"}
    called = await bench.call("call_endpoint", {"operation": "GET /books", "arguments": {}})
    assert called["isError"] is True
    assert not bench.upstream.seen
    await change(bench, "books", exclude=[])
    assert not (await bench.call("call_endpoint", {"operation": "GET /books", "arguments": {}}))["isError"]


@pytest.mark.parametrize("wrong", WRONG)
async def test_rules_of_another_form_are_refused(bench: OpenAPIBench, wrong: Mapping[str, object]) -> None:
    """Ours: a misspelt rule chooses nothing unseen (OAS-1)."""
    body = {"name": "books", "document": library(), **wrong}
    answer = await bench.gateway.admin.post(f"/tenants/{SLUG}/sources", json=body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"][0]["pointer"].startswith(f"/{next(iter(wrong))}")


async def test_a_dry_run_shows_the_changes_and_stores_nothing(bench: OpenAPIBench) -> None:
    """Ours: the report of the update, and the tools it adds, removes, renames and changes (OAS-3)."""
    first = await import_library(bench)
    before = await bench.tools()
    fresh = library(bench.upstream.url)
    del fresh["paths"]["/books"]["post"]
    fresh["paths"]["/books"]["get"]["summary"] = "Another summary"
    fresh["paths"]["/authors"] = {"get": {"operationId": "listAuthors"}}

    path = f"/tenants/{SLUG}/sources/books"
    body = {"document": fresh, "base_url": bench.upstream.url, "dry_run": True}
    tried = (await bench.gateway.admin.put(path, json=body)).json()
    renamed = (await bench.gateway.admin.patch(path, json={"prefix": "my", "dry_run": True})).json()

    assert [(item["method"], item["path"], item["tool"]) for item in tried["changes"]["added"]] == [
        ("GET", "/authors", "listAuthors")
    ]
    assert [item["tool"] for item in tried["changes"]["removed"]] == ["addBook"]
    assert [item["tool"] for item in tried["changes"]["changed"]] == ["listBooks"]
    assert tried["changes"]["renamed"] == []
    assert tried["report"]["dearest"][0]["bytes"] >= tried["report"]["dearest"][-1]["bytes"] > 0
    assert ("listBooks", "my_listBooks") in {(item["was"], item["tool"]) for item in renamed["changes"]["renamed"]}
    assert len(renamed["changes"]["renamed"]) == 5
    assert await bench.tools() == before
    assert (await bench.gateway.admin.get(f"{path}/report")).json() == first


def answering(url: str) -> dict[str, Any]:
    """A document with one operation that describes its response."""
    answer = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "id": {"type": "integer"},
            "name": {"type": "string", "pattern": r"^\p{L}+$"},
            "price": {"type": "number", "multipleOf": 0.01},
            "kind": {"oneOf": [{"type": "string", "pattern": r"^\p{Lu}+$"}, {"type": "string", "maxLength": 3}]},
        },
    }
    content = {"application/json": {"schema": answer}}
    found = document(
        {"/pet": {"get": {"operationId": "pet", "responses": {"200": {"description": "", "content": content}}}}}
    )
    return {**found, "servers": [{"url": url}]}


@pytest.mark.parametrize("mode", ERAS)
async def test_an_answer_is_checked_against_the_listed_schema(bench: OpenAPIBench, mode: Mode) -> None:
    """MCP: the SDK's client takes what conforms; what does not is an error result with the body as text, and no
    failure of the protocol (TDF-5)."""
    url = bench.upstream.url
    await bench.gateway.import_document(SLUG, answering(url), name="pets", output_schemas=True)
    async with bench.gateway.client(SLUG, bench.key, mode) as client:
        [tool] = (await client.list_tools()).tools
        good: list[Any] = []
        results: list[Any] = []
        loose = (201, b'{"at":"2026-03-04T05:06:07.123456","id":null,"kind":null,"more":1}')
        whole = (200, b'{"id":1,"name":"Z\\u00eb","price":0.07,"kind":"AB"}')
        for bench.upstream.status, bench.upstream.body in (whole, loose, (204, b""), (200, b"")):
            good.append(await client.call_tool("pet", {}))
        bench.upstream.status = 201
        for body, kind in (
            (b'{"id":"one","name":"Rex"}', "application/json"),
            (b"[1]", "application/json"),
            (b"null", "application/json"),
            (b"no json", "application/json"),
            (b"just text", "text/plain"),
        ):
            bench.upstream.body, bench.upstream.content_type = body, kind
            results.append(await client.call_tool("pet", {}))
        bench.upstream.status, bench.upstream.body = 404, b'{"id":1}'
        missing = await client.call_tool("pet", {})

    assert tool.output_schema is not None
    assert tool.output_schema["properties"]["at"] == {"type": ["string", "null"]}
    assert not any(word in orjson.dumps(tool.output_schema).decode() for word in ("pattern", "format", "required"))
    assert [result.is_error for result in good] == [False] * 4
    assert [result.structured_content for result in good] == [orjson.loads(whole[1]), orjson.loads(loose[1]), {}, {}]
    assert all(result.is_error and result.structured_content is None for result in results)
    reported = ['{"id":"one","name":"Rex"}', "[1]", "null", "no json", "just text"]
    assert [result.content[1].text for result in results] == reported
    notified = [result.content[0].text for result in results]
    assert all(text.startswith("the upstream answered 201: the call was done; ") for text in notified)
    assert "/id: " in notified[0]
    assert missing.is_error is True
    assert "HTTP 404" in missing.content[0].model_dump()["text"]


async def test_a_stricter_level_of_the_document_is_judged_by_policy(bench: OpenAPIBench) -> None:
    """Ours: an operation that its author marks as dangerous is refused as such, whatever its method, with the reason
    (SAF-1, SAF-2).
    """
    changes = {"name": "wipe", "safety": "dangerous"}
    found = document({"/wipe": {"get": {"operationId": "get_wipe", "x-mcp": changes}}})
    await bench.gateway.import_document(SLUG, found, name="pets", base_url=bench.upstream.url)
    assert not (await bench.call("wipe", {}))["isError"]
    (await bench.gateway.admin.patch(f"/tenants/{SLUG}/policy", json={"dangerous": "deny"})).raise_for_status()

    refused = await bench.call("wipe", {})
    shown = (await bench.gateway.admin.get(f"/tenants/{SLUG}/tools/wipe")).json()

    assert refused["isError"] is True
    assert len(bench.upstream.seen) == 1
    assert shown["status"]["safety"] == "dangerous"
    assert shown["status"]["safety_reasons"] == ["its document declares this level"]
    assert shown["definition"]["annotations"]["readOnlyHint"] is False


async def test_output_schemas_are_enabled_by_source(bench: OpenAPIBench) -> None:
    """Ours: off unless wanted, kept through changes, and gone again when not (TDF-5)."""
    await bench.gateway.import_document(SLUG, answering(bench.upstream.url), name="pets")
    assert "outputSchema" not in (await bench.tools())["pet"]
    changed = await change(bench, "pets", output_schemas=True)
    assert [item["tool"] for item in changed["changes"]["changed"]] == ["pet"]
    assert (await change(bench, "pets", base_url=bench.upstream.url))["output_schemas"] is True
    assert (await bench.tools())["pet"]["outputSchema"]["type"] == "object"
    assert (await change(bench, "pets", output_schemas=False))["output_schemas"] is False
    assert "outputSchema" not in (await bench.tools())["pet"]
    bench.upstream.body = b'{"id":"one"}'
    assert (await bench.call("pet", {}))["structuredContent"] == {"id": "one"}


class Listed(msgspec.Struct):
    """One page of tools, each as it was written."""

    tools: list[msgspec.Raw]
    next_cursor: str | None = msgspec.field(default=None, name="nextCursor")


class Page(msgspec.Struct):
    """The answer that holds a page."""

    result: Listed


async def served(ask: Callable[[dict[str, Any]], Awaitable[httpx.Response]]) -> int:
    """Number of bytes of all pages of tools, put on one page without their envelopes."""
    tools: list[bytes] = []
    cursor: dict[str, Any] = {}
    while True:
        page = msgspec.json.decode((await ask(cursor)).content, type=Page).result
        tools += [bytes(tool) for tool in page.tools]
        if page.next_cursor is None:
            return len(b'{"tools":[' + b",".join(tools) + b"]}")
        cursor = {"cursor": page.next_cursor}


def real_or_odd(name: str) -> object:
    """A real document, or one with odd numbers in eleven tools."""
    if name != "numbers":
        return load_spec(name).decode()
    query = {"parameters": [{"name": "q", "in": "query", "schema": NUMBERS}]}
    return document({f"/{number}": {"get": query} for number in range(11)})


@pytest.mark.parametrize("name", [*LISTED, "numbers"])
async def test_the_price_of_a_list_equals_the_served_bytes(bench: OpenAPIBench, name: str) -> None:
    """Ours: the reported bytes are those on the wire, in both eras, also where operations are only queried (OAS-3)."""
    session = await open_session(bench.gateway, SLUG, bench.key)
    given = real_or_odd(name)
    report = await bench.gateway.import_document(SLUG, given, name="real", base_url="https://api.example.com")
    reports = {"tools": report, "both": None, "query": None}
    found: dict[str, tuple[int, int]] = {}
    for expose, known in reports.items():
        priced = known or (await change(bench, "real", expose=expose))["report"]
        modern = await served(lambda page: bench.gateway.rpc(SLUG, bench.key, "tools/list", page))
        legacy = await served(lambda page: session.send("tools/list", page))
        found[expose] = (modern, legacy)
        assert found[expose] == (priced["tools_list_bytes"], priced["tools_list_bytes"]), expose
        assert priced["estimated_tokens"] == round(modern / 4)
        assert len(priced["dearest"]) == (7 if expose == "query" else 10)
        operations = sum(one["tool"] is not None for one in priced["operations"])
        assert priced["tools_listed"] == {"tools": operations, "both": operations + 7, "query": 7}[expose]
    assert found["both"] > max(found["tools"], found["query"])
    assert set(await bench.tools()) == set(NAMES)
