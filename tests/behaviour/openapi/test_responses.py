"""Answers of every kind through a real gateway, as results of both eras."""

import json
from base64 import b64decode
from typing import Any, Literal

import pytest

from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.documents import many

Mode = Literal["legacy", "auto"]
ERAS: tuple[Mode, ...] = ("legacy", "auto")


@pytest.fixture
async def one(bench: OpenAPIBench) -> OpenAPIBench:
    """With one operation, `op_0000`."""
    await bench.import_document(many(bench.upstream.url, 1))
    return bench


async def result(bench: OpenAPIBench, status: int, kind: str, body: bytes) -> dict[str, Any]:
    """Result of the call for this response of the upstream."""
    bench.upstream.status, bench.upstream.content_type, bench.upstream.body = status, kind, body
    return await bench.call("op_0000", {})


@pytest.mark.parametrize("mode", ERAS)
async def test_structure_has_the_form_of_its_era(one: OpenAPIBench, mode: Mode) -> None:
    """MCP: objects are structured content in both eras, lists and scalars in the newer one; text always (CAL-1)."""
    found: list[tuple[object, str]] = []
    async with one.gateway.client(SLUG, one.key, mode) as client:
        for body in (b'{"a": [1]}', b"[1, 2]", b"7", b"null"):
            one.upstream.body = body
            answer = await client.call_tool("op_0000", {})
            found.append((answer.structured_content, answer.content[0].model_dump()["text"]))

    is_new = mode == "auto"
    assert found == [
        ({"a": [1]}, '{"a":[1]}'),
        ([1, 2] if is_new else None, "[1,2]"),
        (7 if is_new else None, "7"),
        (None, "null"),
    ]


@pytest.mark.parametrize("mode", ERAS)
async def test_status_and_headers_arrive_in_both_eras(one: OpenAPIBench, mode: Mode) -> None:
    """Ours: a created resource has its location, with its body and without one (OAS-10)."""
    one.upstream.status = 201
    one.upstream.headers = (("Location", "https://user:pw@api.example/pets/7"), ("Set-Cookie", "s=1"))
    async with one.gateway.client(SLUG, one.key, mode) as client:
        full = await client.call_tool("op_0000", {})
        one.upstream.body, one.upstream.content_type = b"", ""
        bare = await client.call_tool("op_0000", {})

    reported = "HTTP 201 Created\nLocation: https://api.example/pets/7"
    assert [block.model_dump()["text"] for block in full.content] == ['{"ok":true}', reported]
    assert [block.model_dump()["text"] for block in bare.content] == [reported]
    for answer in (full, bare):
        assert answer.meta is not None
        shown = answer.meta["gateway/upstream"]
        assert shown == {"status": 201, "headers": {"location": "https://api.example/pets/7"}}


@pytest.mark.parametrize("mode", ERAS)
async def test_a_profile_sends_structured_content_once(one: OpenAPIBench, mode: Mode) -> None:
    """Ours: the text is a sentence where the profile requires it, and the same JSON elsewhere (OAS-10)."""
    profile = {"structured_once": True}
    (await one.gateway.admin.put(f"/tenants/{SLUG}/profiles/once", json=profile)).raise_for_status()
    one.upstream.body = json.dumps({"items": [{"id": number} for number in range(50)], "total": 50}).encode()
    found: list[tuple[object, str]] = []
    for path in (SLUG, f"{SLUG}/once"):
        async with one.gateway.client(path, one.key, mode) as client:
            answer = await client.call_tool("op_0000", {})
        found.append((answer.structured_content, answer.content[0].model_dump()["text"]))

    asked = {"arguments": {}, "as": {"profile": "once"}}
    explained = (await one.gateway.admin.post(f"/tenants/{SLUG}/tools/op_0000/explain", json=asked)).json()
    assert explained["structured_once"] is True
    [both, once] = found
    assert both[0] == once[0] == json.loads(one.upstream.body)
    assert json.loads(both[1]) == both[0]
    assert once[1].endswith("in structured content: an object with items (array of 50), total (number).")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_profile_gives_tools_fields_to_select(one: OpenAPIBench, mode: Mode) -> None:
    """Ours: parts of a result above the size limit arrive complete; other profiles lack the argument (OAS-10)."""
    profile = {"selects_fields": True}
    (await one.gateway.admin.put(f"/tenants/{SLUG}/profiles/picky", json=profile)).raise_for_status()
    items = [{"id": number, "text": "x" * 500} for number in range(2000)]
    one.upstream.body = json.dumps({"items": items}).encode()
    one.upstream.seen.clear()
    asked = {"_fields": ["/items/*/id", "/nothing"]}
    async with one.gateway.client(f"{SLUG}/picky", one.key, mode) as client:
        [tool] = (await client.list_tools()).tools
        found = await client.call_tool("op_0000", asked)
    explain = {"arguments": asked, "as": {"profile": "picky"}}
    explained = (await one.gateway.admin.post(f"/tenants/{SLUG}/tools/op_0000/explain", json=explain)).json()
    assert (explained["selects_fields"], explained["course"]) == (True, "runs")
    async with one.gateway.client(SLUG, one.key, mode) as client:
        [other] = (await client.list_tools()).tools
        refused = await client.call_tool("op_0000", asked)

    assert found.structured_content == {"items": [{"id": number} for number in range(2000)]}
    assert found.content[1].model_dump()["text"] == "The result has nothing at '/nothing'."
    costs = [
        (await one.gateway.admin.get(f"/tenants/{SLUG}/profiles/{name}")).json()["status"]["tools_list_bytes"]
        for name in ("picky", "default")
    ]
    assert costs[0] > costs[1]
    assert "_fields" in tool.input_schema["properties"]
    assert "_fields" not in other.input_schema["properties"]
    assert refused.is_error
    assert len(one.upstream.seen) == 1
    assert "_fields" not in one.upstream.seen[0].target


async def test_fields_are_selected_behind_call_endpoint(bench: OpenAPIBench) -> None:
    """Ours: a source that lists no tools has the selection in the arguments of its operations (OAS-10)."""
    await bench.import_document(many(bench.upstream.url, 1))
    source = f"/tenants/{SLUG}/sources/api{bench.imported}"
    (await bench.gateway.admin.patch(source, json={"expose": "query"})).raise_for_status()
    profile = {"selects_fields": True}
    (await bench.gateway.admin.put(f"/tenants/{SLUG}/profiles/picky", json=profile)).raise_for_status()
    bench.upstream.body = json.dumps({"items": [{"id": 1, "text": "x"}]}).encode()
    bench.upstream.seen.clear()
    asked = {"operation": "op_0000", "arguments": {"_fields": ["/items/*/id"]}}
    async with bench.gateway.client(f"{SLUG}/picky", bench.key, "auto") as client:
        [tool] = [tool for tool in (await client.list_tools()).tools if tool.name == "call_endpoint"]
        found = await client.call_tool("call_endpoint", asked)
    async with bench.gateway.client(SLUG, bench.key, "auto") as client:
        [other] = [tool for tool in (await client.list_tools()).tools if tool.name == "call_endpoint"]
        refused = await client.call_tool("call_endpoint", asked)

    assert found.structured_content == {"items": [{"id": 1}]}
    assert "_fields" in tool.input_schema["properties"]["arguments"]["properties"]
    assert "properties" not in other.input_schema["properties"]["arguments"]
    assert refused.is_error
    assert len(bench.upstream.seen) == 1
    assert "_fields" not in bench.upstream.seen[0].target


async def test_an_argument_of_this_name_in_a_document_stays_its_own(bench: OpenAPIBench) -> None:
    """Ours: a parameter `_fields` of a document is sent, and the report states that it selects nothing (OAS-10)."""
    document = many(bench.upstream.url, 1)
    [operation] = [node for item in document["paths"].values() for node in item.values()]
    operation["parameters"] = [{"name": "_fields", "in": "query", "schema": {"type": "string"}}]
    report = await bench.import_document(document)
    profile = {"selects_fields": True}
    (await bench.gateway.admin.put(f"/tenants/{SLUG}/profiles/picky", json=profile)).raise_for_status()
    bench.upstream.seen.clear()
    async with bench.gateway.client(f"{SLUG}/picky", bench.key, "auto") as client:
        await client.call_tool("op_0000", {"_fields": "a"})

    assert bench.upstream.seen[0].target.endswith("?_fields=a")
    assert report is None or any("selects no parts" in warning for warning in report["warnings"])


async def test_every_kind_of_answer_has_its_block(one: OpenAPIBench) -> None:
    """MCP: text, image, audio, embedded bytes; an answer without a body has its status (CAL-1)."""
    big = await result(one, 200, "application/hal+json", b'{"n":12345678901234567890123,"f":1.10}')
    text = await result(one, 200, "text/plain; charset=latin-1", b"caf\xe9")
    stream = await result(one, 200, "text/event-stream", b"data: 1\n\ndata: 2\n\n")
    lie = await result(one, 200, "application/json", b"<html>")
    image = await result(one, 200, "image/png", b"\x89PNG\xff")
    pdf = await result(one, 200, "application/pdf", b"%PDF\xff\x00")
    nothing = await result(one, 204, "", b"")

    assert big["content"][0]["text"] == '{"n":12345678901234567890123,"f":1.10}'
    assert big["structuredContent"]["n"] == 12345678901234567890123
    assert text["content"] == [{"type": "text", "text": "café"}]
    assert stream["content"][0]["text"].endswith("data: 2\n\n")
    assert lie["content"] == [{"type": "text", "text": "<html>"}]
    assert (image["content"][0]["type"], b64decode(image["content"][0]["data"])) == ("image", b"\x89PNG\xff")
    assert b64decode(pdf["content"][0]["resource"]["blob"]) == b"%PDF\xff\x00"
    assert nothing["content"] == [{"type": "text", "text": "HTTP 204 No Content"}]
    assert not any(item["isError"] for item in (big, text, stream, lie, image, pdf, nothing))


async def test_every_other_response_is_an_error_result(one: OpenAPIBench) -> None:
    """Ours: status, hint and the beginning of the body, for the model to read; redirects are not followed (OAS-2)."""
    one.upstream.headers = (("Retry-After", "7"),)
    busy = await result(one, 503, "application/problem+json", b'{"title": "busy"}')
    one.upstream.headers = (("Location", f"{one.upstreams[1].url}/elsewhere"),)
    moved = await result(one, 307, "", b"")

    assert busy["isError"] is True
    assert "HTTP 503" in busy["content"][0]["text"]
    assert "Retry-After: 7" in busy["content"][0]["text"]
    assert "busy" in busy["content"][0]["text"]
    assert moved["isError"] is True
    assert "307" in moved["content"][0]["text"]
    assert {number for number, _ in one.seen()} == {1}


async def test_a_large_answer_is_cut_to_whole_elements(one: OpenAPIBench) -> None:
    """Ours: a result has a bound, and the omission is stated (CAL-1)."""
    body = json.dumps({"items": [{"id": number} for number in range(60_000)], "next": "c"}).encode()
    cut = await result(one, 200, "application/json", body)

    assert len(cut["content"][0]["text"]) <= 256 * 1024
    assert json.loads(cut["content"][0]["text"]) == cut["structuredContent"]
    assert cut["structuredContent"]["next"] == "c"
    assert "of 60,000 elements" in cut["content"][1]["text"]


async def test_the_rest_of_a_cut_answer_is_read_by_its_caller_alone(one: OpenAPIBench) -> None:
    """Ours: the link of a cut result leads to all of it, for the principal of the call and for no other (TEN-1)."""
    body = json.dumps([{"id": number} for number in range(60_000)]).encode()
    cut = await result(one, 200, "application/json", body)
    [link] = [block for block in cut["content"] if block["type"] == "resource_link"]
    stranger = await one.gateway.create_key(SLUG)

    mine = await one.gateway.rpc(SLUG, one.key, "resources/read", {"uri": link["uri"]}, mcp_name=link["uri"])
    theirs = await one.gateway.rpc(SLUG, stranger, "resources/read", {"uri": link["uri"]}, mcp_name=link["uri"])

    assert mine.json()["result"]["contents"][0]["text"].encode() == body
    assert "result" not in theirs.json()
