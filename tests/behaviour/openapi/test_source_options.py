"""Selection and listing of a source's operations, through a real gateway and over REST."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import httpx
import msgspec
import orjson
import pytest

from gateway.openapi.query.tools import NAMES
from tests.behaviour.openapi.conftest import SLUG, Desk
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


async def change(desk: Desk, name: str, **fields: object) -> dict[str, Any]:
    """The source after a change, with its report."""
    wanted = {"allow_removals": True, **fields}
    answer = await desk.gateway.admin.patch(f"/tenants/{SLUG}/sources/{name}", json=wanted)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def import_library(desk: Desk, **more: object) -> dict[str, Any]:
    """The report of the library as source `books`."""
    url = desk.upstream.url
    return await desk.gateway.import_document(
        SLUG, library(url), name="books", base_url=url, credentials={"key": "secret"}, **more
    )


def chosen(report: Mapping[str, Any]) -> set[str]:
    """The identities of the operations that became tools."""
    return {f"{item['method']} {item['path']}" for item in report["operations"] if item["tool"] is not None}


async def test_a_choice_is_kept_through_imports_and_changes(desk: Desk) -> None:
    """Ours: an excluded operation is reported and not listed; the selection survives a new document (OAS-3)."""
    report = await import_library(desk, include=[{"methods": ["GET"]}], exclude=[{"paths": ["/shelves*"]}])
    listed = set(await desk.tools())
    shown = (await desk.gateway.admin.get(f"/tenants/{SLUG}/sources/books")).json()

    assert chosen(report) == {"GET /books", "GET /books/{bookId}"}
    assert listed == {"listBooks", "getBook"}
    assert sum(report["counts"].values()) == len(report["operations"]) == 5
    assert report["counts"]["skipped"] == 3
    everything: dict[str, list[str]] = {"operation_ids": [], "methods": [], "paths": [], "tags": []}
    assert shown["include"] == [{**everything, "methods": ["GET"]}]
    assert shown["exclude"] == [{**everything, "paths": ["/shelves*"]}]

    again = await change(desk, "books", document=library(desk.upstream.url))
    assert chosen(again["report"]) == chosen(report)
    assert not any(
        again["changes"][name] for name in ("added", "removed", "renamed", "changed", "document", "findings")
    )
    widened = await change(desk, "books", include=[], exclude=[{"operation_ids": ["getBook"]}])
    assert chosen(widened["report"]) == {"GET /books", "POST /books", "DELETE /books/{bookId}", "GET /shelves"}
    assert {item["path"] for item in widened["changes"]["removed"]} == {"/books/{bookId}"}
    assert len(widened["changes"]["added"]) == 3
    assert "listBooks" in await desk.tools()

    body = {"document": library(desk.upstream.url), "base_url": desk.upstream.url}
    kept = await desk.gateway.admin.put(f"/tenants/{SLUG}/sources/books", json=body)
    assert (kept.status_code, kept.json()["errors"][0]["pointer"]) == (409, "/exclude/0")
    replaced = await desk.gateway.admin.put(f"/tenants/{SLUG}/sources/books?replace=true", json=body)
    assert len(chosen(replaced.json()["report"])) == 5
    assert replaced.json()["exclude"] == []


async def test_a_put_of_what_get_returned_changes_nothing(desk: Desk) -> None:
    """Ours: neither a version nor an entry; also with the same document, and never for another source (ADM-1)."""
    await import_library(desk, exclude=[{"paths": ["/shelves*"]}], timeout_s=5)
    admin, path = desk.gateway.admin, f"/tenants/{SLUG}/sources/books"
    shown = await admin.get(path)
    revision = (await admin.get(f"/tenants/{SLUG}")).headers["etag"]

    body = {name: value for name, value in shown.json().items() if name != "url"}
    for again in (shown.json(), {**body, "document": library(desk.upstream.url)}):
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


async def test_the_query_tools_see_only_what_is_chosen(desk: Desk) -> None:
    """Ours: an excluded operation can be neither found nor called through them (OAS-5)."""
    await import_library(desk, expose="query", exclude=[{"operation_ids": ["listBooks"]}])

    found = await desk.call("list_endpoints", {})
    assert "/books" not in {item["path"] for item in found["structuredContent"]["endpoints"] if item["method"] == "GET"}
    called = await desk.call("call_endpoint", {"operation": "GET /books", "arguments": {}})
    assert called["isError"] is True
    assert not desk.upstream.seen
    await change(desk, "books", exclude=[])
    assert not (await desk.call("call_endpoint", {"operation": "GET /books", "arguments": {}}))["isError"]


@pytest.mark.parametrize("wrong", WRONG)
async def test_rules_of_another_form_are_refused(desk: Desk, wrong: Mapping[str, object]) -> None:
    """Ours: a misspelt rule chooses nothing unseen (OAS-1)."""
    body = {"name": "books", "document": library(), **wrong}
    answer = await desk.gateway.admin.post(f"/tenants/{SLUG}/sources", json=body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"][0]["pointer"].startswith(f"/{next(iter(wrong))}")


async def test_a_dry_run_says_what_would_change_and_changes_nothing(desk: Desk) -> None:
    """Ours: the report of the update, and the tools it adds, removes, renames and changes (OAS-3)."""
    first = await import_library(desk)
    before = await desk.tools()
    fresh = library(desk.upstream.url)
    del fresh["paths"]["/books"]["post"]
    fresh["paths"]["/books"]["get"]["summary"] = "Another summary"
    fresh["paths"]["/authors"] = {"get": {"operationId": "listAuthors"}}

    path = f"/tenants/{SLUG}/sources/books"
    body = {"document": fresh, "base_url": desk.upstream.url, "dry_run": True}
    tried = (await desk.gateway.admin.put(path, json=body)).json()
    renamed = (await desk.gateway.admin.patch(path, json={"prefix": "my", "dry_run": True})).json()

    assert [(item["method"], item["path"], item["tool"]) for item in tried["changes"]["added"]] == [
        ("GET", "/authors", "listAuthors")
    ]
    assert [item["tool"] for item in tried["changes"]["removed"]] == ["addBook"]
    assert [item["tool"] for item in tried["changes"]["changed"]] == ["listBooks"]
    assert tried["changes"]["renamed"] == []
    assert tried["report"]["dearest"][0]["bytes"] >= tried["report"]["dearest"][-1]["bytes"] > 0
    assert ("listBooks", "my_listBooks") in {(item["was"], item["tool"]) for item in renamed["changes"]["renamed"]}
    assert len(renamed["changes"]["renamed"]) == 5
    assert await desk.tools() == before
    assert (await desk.gateway.admin.get(f"{path}/report")).json() == first


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
async def test_an_answer_is_held_to_what_its_tool_lists(desk: Desk, mode: Mode) -> None:
    """MCP: the SDK's client takes what conforms; what does not is an error result with the body as text, and no
    failure of the protocol (TDF-5)."""
    url = desk.upstream.url
    await desk.gateway.import_document(SLUG, answering(url), name="pets", output_schemas=True)
    async with desk.gateway.client(SLUG, desk.key, mode) as client:
        [tool] = (await client.list_tools()).tools
        good: list[Any] = []
        results: list[Any] = []
        loose = (201, b'{"at":"2026-03-04T05:06:07.123456","id":null,"kind":null,"more":1}')
        whole = (200, b'{"id":1,"name":"Z\\u00eb","price":0.07,"kind":"AB"}')
        for desk.upstream.status, desk.upstream.body in (whole, loose, (204, b""), (200, b"")):
            good.append(await client.call_tool("pet", {}))
        desk.upstream.status = 201
        for body, kind in (
            (b'{"id":"one","name":"Rex"}', "application/json"),
            (b"[1]", "application/json"),
            (b"null", "application/json"),
            (b"no json", "application/json"),
            (b"just text", "text/plain"),
        ):
            desk.upstream.body, desk.upstream.content_type = body, kind
            results.append(await client.call_tool("pet", {}))
        desk.upstream.status, desk.upstream.body = 404, b'{"id":1}'
        missing = await client.call_tool("pet", {})

    assert tool.output_schema is not None
    assert tool.output_schema["properties"]["at"] == {"type": ["string", "null"]}
    assert not any(word in orjson.dumps(tool.output_schema).decode() for word in ("pattern", "format", "required"))
    assert [result.is_error for result in good] == [False] * 4
    assert [result.structured_content for result in good] == [orjson.loads(whole[1]), orjson.loads(loose[1]), {}, {}]
    assert all(result.is_error and result.structured_content is None for result in results)
    said = ['{"id":"one","name":"Rex"}', "[1]", "null", "no json", "just text"]
    assert [result.content[1].text for result in results] == said
    told = [result.content[0].text for result in results]
    assert all(text.startswith("the upstream answered 201: the call was done; ") for text in told)
    assert "/id: " in told[0]
    assert missing.is_error is True
    assert "HTTP 404" in missing.content[0].model_dump()["text"]


async def test_a_stricter_level_of_the_document_is_what_policy_judges(desk: Desk) -> None:
    """Ours: an operation that its author marks as dangerous is refused as such, whatever its method, with the reason
    (SAF-1, SAF-2).
    """
    changes = {"name": "wipe", "safety": "dangerous"}
    found = document({"/wipe": {"get": {"operationId": "get_wipe", "x-mcp": changes}}})
    await desk.gateway.import_document(SLUG, found, name="pets", base_url=desk.upstream.url)
    assert not (await desk.call("wipe", {}))["isError"]
    (await desk.gateway.admin.patch(f"/tenants/{SLUG}/policy", json={"dangerous": "deny"})).raise_for_status()

    refused = await desk.call("wipe", {})
    shown = (await desk.gateway.admin.get(f"/tenants/{SLUG}/tools/wipe")).json()

    assert refused["isError"] is True
    assert len(desk.upstream.seen) == 1
    assert shown["status"]["safety"] == "dangerous"
    assert shown["status"]["safety_reasons"] == ["its document declares this level"]
    assert shown["definition"]["annotations"]["readOnlyHint"] is False


async def test_output_schemas_are_asked_for_by_source(desk: Desk) -> None:
    """Ours: off unless wanted, kept through changes, and gone again when not (TDF-5)."""
    await desk.gateway.import_document(SLUG, answering(desk.upstream.url), name="pets")
    assert "outputSchema" not in (await desk.tools())["pet"]
    changed = await change(desk, "pets", output_schemas=True)
    assert [item["tool"] for item in changed["changes"]["changed"]] == ["pet"]
    assert (await change(desk, "pets", base_url=desk.upstream.url))["output_schemas"] is True
    assert (await desk.tools())["pet"]["outputSchema"]["type"] == "object"
    assert (await change(desk, "pets", output_schemas=False))["output_schemas"] is False
    assert "outputSchema" not in (await desk.tools())["pet"]
    desk.upstream.body = b'{"id":"one"}'
    assert (await desk.call("pet", {}))["structuredContent"] == {"id": "one"}


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
async def test_the_price_of_a_list_is_what_clients_are_served(desk: Desk, name: str) -> None:
    """Ours: the reported bytes are those on the wire, in both eras, also where operations are only queried (OAS-3)."""
    session = await open_session(desk.gateway, SLUG, desk.key)
    given = real_or_odd(name)
    report = await desk.gateway.import_document(SLUG, given, name="real", base_url="https://api.example.com")
    reports = {"tools": report, "both": None, "query": None}
    found: dict[str, tuple[int, int]] = {}
    for expose, known in reports.items():
        priced = known or (await change(desk, "real", expose=expose))["report"]
        modern = await served(lambda page: desk.gateway.rpc(SLUG, desk.key, "tools/list", page))
        legacy = await served(lambda page: session.send("tools/list", page))
        found[expose] = (modern, legacy)
        assert found[expose] == (priced["tools_list_bytes"], priced["tools_list_bytes"]), expose
        assert priced["estimated_tokens"] == round(modern / 4)
        assert len(priced["dearest"]) == (7 if expose == "query" else 10)
        operations = sum(one["tool"] is not None for one in priced["operations"])
        assert priced["tools_listed"] == {"tools": operations, "both": operations + 7, "query": 7}[expose]
    assert found["both"] > max(found["tools"], found["query"])
    assert set(await desk.tools()) == set(NAMES)
