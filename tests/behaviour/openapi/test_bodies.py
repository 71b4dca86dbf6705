"""Bodies of every kind through a real gateway: what the caller gives, and what a server parses."""

import json
from base64 import b64encode
from typing import Any

from tests.behaviour.openapi.conftest import OpenAPIBench
from tests.support.fidelity import Part, parse_parts

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"


def document(url: str) -> dict[str, Any]:
    """One operation for each kind of body."""
    upload = {
        "type": "object",
        "properties": {
            "meta": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    pet = {
        "type": "object",
        "xml": {"name": "pet"},
        "properties": {
            "id": {"type": "integer", "xml": {"attribute": True}},
            "names": {"type": "array", "items": {"type": "string", "xml": {"name": "name"}}, "xml": {"wrapped": True}},
        },
    }
    patches = ["application/merge-patch+json", "application/json-patch+json"]
    bodies: dict[str, dict[str, Any]] = {
        "upload": {"multipart/form-data": {"schema": upload}},
        "xml": {"application/xml": {"schema": pet}},
        "lines": {"application/x-ndjson": {"schema": {"type": "object"}}},
        "patch": {item: {"schema": {}} for item in patches},
        "either": {"application/json": {"schema": {"type": "object"}}, "multipart/form-data": {"schema": upload}},
        "picture": {"image/png": {}, "image/jpeg": {}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bodies", "version": "1"},
        "servers": [{"url": url}],
        "paths": {
            f"/{name}": {"post": {"operationId": name, "requestBody": {"required": True, "content": content}}}
            for name, content in bodies.items()
        },
    }


def file(content: bytes = PNG, **members: str) -> dict[str, str]:
    """A file argument."""
    return {"base64": b64encode(content).decode(), **members}


async def sent(bench: OpenAPIBench, name: str, body: object, **arguments: object) -> tuple[bytes, str]:
    """Body and content type of the request that a call makes."""
    result = await bench.call(name, {"body": body, **arguments})
    assert result.get("isError") is not True, result
    [(_, seen)] = bench.seen()
    return seen.body, seen.header("content-type") or ""


async def test_bodies_of_every_kind_reach_the_upstream(bench: OpenAPIBench) -> None:
    """OpenAPI: multipart with JSON, files and lists; XML; lines; several types, chosen where it matters (OAS-2)."""
    report = await bench.import_document(document(bench.upstream.url))
    assert report["counts"] == {"ok": 6, "degraded": 0, "skipped": 0}

    value = {"meta": {"a": 1}, "files": [file(filename="a.png", content_type="image/png"), file()], "tags": ["x", "y"]}
    assert parse_parts(*await sent(bench, "upload", value)) == [
        Part("meta", None, "application/json", b'{"a":1}'),
        Part("files", "a.png", "image/png", PNG),
        Part("files", "files", "application/octet-stream", PNG),
        Part("tags", None, None, b"x"),
        Part("tags", None, None, b"y"),
    ]
    assert await sent(bench, "xml", {"id": 7, "names": ["a&b", "c"]}) == (
        b'<pet id="7"><names><name>a&amp;b</name><name>c</name></names></pet>',
        "application/xml",
    )
    assert await sent(bench, "lines", [{"a": 1}, {"b": 2}]) == (b'{"a":1}\n{"b":2}\n', "application/x-ndjson")
    assert await sent(bench, "patch", {"a": None}) == (b'{"a":null}', "application/merge-patch+json")
    operations = [{"op": "remove", "path": "/a"}]
    as_patch = await sent(bench, "patch", operations, content_type="application/json-patch+json")
    assert as_patch == (json.dumps(operations, separators=(",", ":")).encode(), "application/json-patch+json")
    assert await sent(bench, "either", {"k": 1}) == (b'{"k":1}', "application/json")
    body, content_type = await sent(bench, "either", {"files": [file()]}, content_type="multipart/form-data")
    assert parse_parts(body, content_type) == [Part("files", "files", "application/octet-stream", PNG)]
    assert await sent(bench, "picture", file(content_type="image/jpeg")) == (PNG, "image/jpeg")
    assert await sent(bench, "picture", file()) == (PNG, "image/png")


async def test_a_file_that_is_none_sends_nothing(bench: OpenAPIBench) -> None:
    """Ours: a value that cannot be written is an error that names the argument (CAL-2)."""
    await bench.import_document(document(bench.upstream.url))
    result = await bench.call("upload", {"body": {"files": [{"base64": "no base64!"}]}})

    assert result["isError"] is True
    assert "/body" in result["content"][0]["text"]
    assert bench.seen() == []
