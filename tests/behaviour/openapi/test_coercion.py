"""Arguments as models spell them, on every way to a handler: each arrives as the value that was meant."""

import json
from typing import Any

import pytest

from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.primitives import add, tool

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
ANSWER = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}


def _query(name: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, **more}


def _body(schema: dict[str, Any], media_type: str = "application/json") -> dict[str, Any]:
    return {"required": True, "content": {media_type: {"schema": schema}}}


def _document(url: str) -> dict[str, Any]:
    made = {
        "fields": {"type": "object"},
        "tags": {"type": "array", "items": TEXT},
        "count": INTEGER,
        "at": {"type": "string", "format": "date-time"},
        "maybe": {"type": "integer", "nullable": True},
    }
    unique = {"type": "array", "uniqueItems": True, "items": {"type": "string", "nullable": True}}
    parameters = [
        _query("limit", INTEGER),
        _query("on", {"type": "boolean"}),
        _query("ids", {"type": "array", "items": INTEGER}),
        _query("unique", unique),
    ]
    number = {"name": "n", "in": "path", "required": True, "schema": {"type": "integer", "format": "int64"}}
    form = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}, "n": INTEGER}}
    operations: dict[str, dict[str, Any]] = {
        "/i": {
            "operationId": "mk",
            "parameters": parameters,
            "requestBody": _body({"type": "object", "properties": made}),
        },
        "/raw": {
            "operationId": "raw",
            "requestBody": _body({"type": "string", "format": "binary"}, "application/octet-stream"),
        },
        "/form": {"operationId": "form", "requestBody": _body(form, "multipart/form-data")},
    }
    paths: dict[str, Any] = {path: {"post": {**node, "responses": ANSWER}} for path, node in operations.items()}
    paths["/items/{n}"] = {"get": {"operationId": "item", "parameters": [number], "responses": ANSWER}}
    paths["/none"] = {"get": {"operationId": "none", "responses": ANSWER}}
    paths["/locked"] = {
        "get": {
            "operationId": "locked",
            "parameters": [_query("limit", INTEGER)],
            "responses": ANSWER,
            "security": [{"key": []}],
        }
    }
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Spelled", "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {"securitySchemes": schemes},
    }


SENT: list[tuple[str, dict[str, Any], str, bytes | None]] = [
    ("mk", {"body": '{"fields":{}}'}, "/i", b'{"fields":{}}'),
    ("mk", {"body": {"tags": '["a"]'}}, "/i", b'{"tags":["a"]}'),
    ("mk", {"body": {"tags": "a"}}, "/i", b'{"tags":["a"]}'),
    ("mk", {"limit": "5", "body": {}}, "/i?limit=5", b"{}"),
    ("mk", {"on": "true", "body": "{}"}, "/i?on=true", b"{}"),
    ("mk", {"ids": "[1,2]", "body": {}}, "/i?ids=1&ids=2", b"{}"),
    ("mk", {"ids": 1, "body": {}}, "/i?ids=1", b"{}"),
    ("mk", {"unique": ["x", None], "limit": None, "body": {}}, "/i?unique=x", b"{}"),
    ("mk", {"body": {"count": None, "maybe": None}}, "/i", b'{"maybe":null}'),
    ("mk", {"body": {"at": "2026-03-04T05:06:07"}}, "/i", b'{"at":"2026-03-04T05:06:07"}'),
    ("mk", {"body": {"count": "9007199254740993"}}, "/i", b'{"count":9007199254740993}'),
    ("item", {"n": 4611686018427387905}, "/items/4611686018427387905", b""),
    ("item", {"n": "4611686018427387905"}, "/items/4611686018427387905", b""),
    ("none", {"random_string": "x"}, "/none", b""),
    ("raw", {"body": "JVBERi0xLjQ="}, "/raw", b"%PDF-1.4"),
    ("raw", {"body": {"base64": "JVBERi0xLjQ"}}, "/raw", b"%PDF-1.4"),
    ("raw", {"body": {"base64": "data:application/pdf;base64,JVBERi0xLjQ="}}, "/raw", b"%PDF-1.4"),
]


async def test_every_spelling_of_the_list_is_sent_as_the_value(bench: OpenAPIBench) -> None:
    """Ours: one reading is read: JSON text, numbers, booleans, one for a list, null, dummy, files (CLN-2, OAS-2)."""
    await bench.import_document(_document(bench.upstream.url))
    for name, arguments, target, body in SENT:
        result = await bench.call(name, arguments)
        assert not result["isError"], (arguments, result)
        [(_, seen)] = bench.seen()
        assert (seen.target, seen.body) == (target, body), arguments
    await bench.call("form", {"body": {"file": "data:image/png;base64,QQ", "n": "7"}})
    [(_, form)] = bench.seen()
    assert b"Content-Type: image/png\r\n\r\nA\r\n" in form.body
    assert b"\r\n\r\n7\r\n" in form.body


async def test_an_int64_is_listed_as_integer_with_its_other_spelling(bench: OpenAPIBench) -> None:
    """Ours: clients that cannot write integers beyond 2^53 read how to send them (CLN-2, OAS-4)."""
    await bench.import_document(_document(bench.upstream.url))
    listed = (await bench.tools())["item"]["inputSchema"]["properties"]["n"]

    assert listed["type"] == "integer"
    assert "as text beyond 2^53" in listed["description"].lower()


async def test_arguments_without_a_single_reading_are_refused_with_their_place(bench: OpenAPIBench) -> None:
    """Ours: the refusal names path and reason, and nothing is sent (CAL-2, CLN-2)."""
    await bench.import_document(_document(bench.upstream.url))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"limit": "five", "body": {}}, "/limit"),
        ({"body": '{"count":1,"count":2}'}, "/body"),
        ({"body": {"count": "1.5"}}, "/body/count"),
        ({"body": {"tags": [None]}}, "/body/tags/0"),
    ]
    for arguments, pointer in refused:
        result = await bench.call("mk", arguments)
        assert result["isError"]
        assert pointer in result["content"][0]["text"]
    assert bench.seen() == []


async def test_a_missing_credential_is_reported_before_wrong_arguments(bench: OpenAPIBench) -> None:
    """Ours: better arguments would not help a call that lacks its credential (CAL-2)."""
    await bench.import_document(_document(bench.upstream.url))
    secret = {"place": "bearer", "value": "s3cret-token", "origins": [bench.upstream.url]}
    stored = await bench.gateway.admin.post(f"/tenants/{SLUG}/credentials", json={"name": "moved", **secret})
    handler = {"kind": "http", "method": "GET", "url": f"{bench.upstream.url}/own", "credential": "moved"}
    schema = {"type": "object", "properties": {"the limit": INTEGER}}
    await add(bench.gateway, SLUG, "tools", tool("own", handler, schema=schema))
    moved = await bench.gateway.admin.put(
        f"/tenants/{SLUG}/credentials/moved",
        json={**secret, "origins": ["https://api.example.com"]},
        headers={"if-match": stored.headers["etag"]},
    )
    moved.raise_for_status()

    for name, arguments in (("locked", {"limit": "many"}), ("own", {"the_limit": "many"})):
        result = await bench.call(name, arguments)
        assert result["_meta"]["gateway/error"]["code"] == "upstream.credential_missing", name
    asked = await bench.gateway.admin.post(
        f"/tenants/{SLUG}/tools/locked/explain", json={"arguments": {"limit": "many"}}
    )
    assert asked.json()["refusal"]["code"] == "upstream.credential_missing"


INNER = {"tool": "template", "arguments": {"n": "{{ n | append: '' }}", "o": "{{ o | json }}"}}
"""A call that passes a number and an object as texts."""

HANDLERS: dict[str, dict[str, Any]] = {
    "template": {"kind": "template", "json": {"n": "{{ n }}", "o": "{{ o }}"}},
    "steps": {
        "kind": "steps",
        "steps": [{"call": INNER, "as": "r"}, {"return": {"json": "{{ r.structuredContent }}"}}],
    },
}


@pytest.mark.parametrize("kind", HANDLERS)
async def test_own_tools_and_calls_inside_calls_read_the_same(bench: OpenAPIBench, kind: str) -> None:
    """Ours: every kind of tool gets values, also from another tool that passes texts (CLN-2)."""
    schema = {"type": "object", "properties": {"n": INTEGER, "o": {"type": "object"}, "x": TEXT}}
    for name, handler in HANDLERS.items():
        made = tool(name, handler)
        made["definition"]["inputSchema"] = schema
        await add(bench.gateway, SLUG, "tools", made)

    result = await bench.call(kind, {"n": "5", "o": '{"a": [1]}', "x": None})

    assert result["structuredContent"] == {"n": 5, "o": {"a": [1]}}, result


async def test_the_query_tools_and_an_own_request_read_the_same(bench: OpenAPIBench) -> None:
    """Ours: `call_endpoint` with its arguments as JSON text, and an http handler (CLN-2, OAS-5)."""
    await bench.gateway.import_document(SLUG, _document(bench.upstream.url), name="queried", expose="both")
    handler = {"kind": "http", "method": "POST", "url": f"{bench.upstream.url}/own", "body": {"n": "{{ n }}"}}
    made = tool("own", handler)
    made["definition"]["inputSchema"] = {"type": "object", "properties": {"n": INTEGER}}
    await add(bench.gateway, SLUG, "tools", made)

    called = await bench.call("call_endpoint", {"operation": "item", "arguments": '{"n": "7"}', "source": None})
    own = await bench.call("own", {"n": "7"})

    assert not called["isError"], called
    assert not own["isError"], own
    assert [(seen.target, seen.body) for _, seen in bench.seen()] == [("/items/7", b""), ("/own", b'{"n":7}')]


async def test_trials_and_explanations_show_the_value(bench: OpenAPIBench) -> None:
    """Ours: an admin sees what a call sends (CLN-2, SAF-5)."""
    await bench.import_document(_document(bench.upstream.url))
    body = {"arguments": {"limit": "5", "body": '{"count": "7"}'}}
    tried = await bench.gateway.admin.post(f"/tenants/{SLUG}/tools/mk/try", json=body)
    explained = await bench.gateway.admin.post(f"/tenants/{SLUG}/tools/mk/explain", json=body)

    assert tried.json()["request"]["body"] == '{"count":7}'
    assert json.loads(explained.json()["request"]["body"]) == {"count": 7}
    assert explained.json()["request"]["url"].endswith("/i?limit=5")
