"""Large results through a real gateway: summaries, and reads of every part."""

import asyncio
import json
from typing import Any, Literal

import pytest

from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.documents import many
from tests.support.primitives import add, tool
from tests.support.tasks import TaskClient

Mode = Literal["legacy", "auto"]
ERAS: tuple[Mode, ...] = ("legacy", "auto")
BRIEF = f"{SLUG}/brief"
DOCUMENT = {
    "items": [{"id": number, "name": f"n{number}", "a/b~c": [number] * 3} for number in range(1000)],
    "long": "é\n" * 10_000,
    "": {"0": 1.10, "n": 12345678901234567890123},
    "total": 1000,
}


@pytest.fixture
async def one(bench: OpenAPIBench) -> OpenAPIBench:
    """With one operation, `op_0000`, and a profile that summarises more than 4 kB."""
    await bench.import_document(many(bench.upstream.url, 1))
    profile = {"summary_threshold": 4096}
    (await bench.gateway.admin.put(f"/tenants/{SLUG}/profiles/brief", json=profile)).raise_for_status()
    return bench


async def _read(client: Any, uri: str, **arguments: object) -> dict[str, Any]:
    found = await client.call_tool("read_result", {"result": uri, **arguments})
    assert not found.is_error, found
    assert json.loads(found.content[0].model_dump()["text"]) == found.structured_content
    assert len(found.content[0].model_dump()["text"]) <= 4096
    page: dict[str, Any] = found.structured_content
    return page


async def _whole(client: Any, uri: str, pointer: str = "") -> Any:
    """Reassemble the value at the pointer from pages."""
    values: list[Any] = []
    offset: int | None = 0
    kind = ""
    while offset is not None:
        page = await _read(client, uri, pointer=pointer, offset=offset)
        kind = page["kind"]
        found = page["value"]
        for one in page.get("omitted", ()):
            found = {one["pointer"].rpartition("/")[2]: await _whole(client, uri, one["pointer"])} | found
        values.append(found)
        offset = page.get("next_offset")
    if kind == "text":
        return "".join(values)
    if kind == "array":
        return [item for page in values for item in page]
    return {name: value for page in values for name, value in page.items()} if kind == "object" else values[0]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_summary_leads_to_every_part(one: OpenAPIBench, mode: Mode) -> None:
    """Ours: a large result is an outline and its start; its pages are the document again (OAS-10)."""
    one.upstream.body = json.dumps(DOCUMENT).encode()
    async with one.gateway.client(BRIEF, one.key, mode) as client:
        found = await client.call_tool("op_0000", {})
        [text, link] = [block.model_dump() for block in found.content]
        again = await _whole(client, link["uri"])

    assert found.structured_content is None
    assert len(text["text"]) < 4096
    assert "/items: array of 1,000" in text["text"]
    assert again == DOCUMENT


async def _call(
    bench: OpenAPIBench, name: str, arguments: dict[str, Any], path: str = BRIEF, key: str = ""
) -> dict[str, Any]:
    answer = await bench.gateway.rpc(path, key or bench.key, "tools/call", {"name": name, "arguments": arguments})
    found: dict[str, Any] = answer.json()
    result: dict[str, Any] = found.get("result", found)
    return result


async def _summary_uri(bench: OpenAPIBench, name: str = "op_0000", arguments: dict[str, Any] | None = None) -> str:
    bench.upstream.body = json.dumps([{"id": number} for number in range(1000)]).encode()
    found = await _call(bench, name, arguments or {})
    uris = [block["uri"] for block in found.get("content", ()) if block["type"] == "resource_link"]
    assert len(uris) == 1, found
    return str(uris[0])


async def _can_read(bench: OpenAPIBench, uri: str, path: str = BRIEF, key: str = "") -> tuple[bool, bool]:
    """True for the tool, and for the resource."""
    by_tool = await _call(bench, "read_result", {"result": uri}, path, key)
    by_uri = await bench.gateway.rpc(path, key or bench.key, "resources/read", {"uri": uri}, mcp_name=uri)
    return by_tool.get("isError") is False, "result" in by_uri.json()


async def test_a_profile_lists_the_tool_that_reads_parts(one: OpenAPIBench) -> None:
    """Ours: tool and template are listed where the profile summarises, and nowhere else (OAS-10)."""
    listed: dict[str, list[dict[str, Any]]] = {}
    for path in (SLUG, BRIEF):
        tools = (await one.gateway.rpc(path, one.key, "tools/list", {})).json()["result"]["tools"]
        listed[path] = tools
    rules = {"rules": [{"effect": "deny", "who": ["keys"], "what": {"names": ["read_result"]}}]}
    (await one.gateway.admin.patch(f"/tenants/{SLUG}/access", json=rules)).raise_for_status()
    denied = (await one.gateway.rpc(BRIEF, one.key, "tools/list", {})).json()["result"]["tools"]
    templates = (await one.gateway.rpc(BRIEF, one.key, "resources/templates/list", {})).json()["result"]
    shown = (await one.gateway.admin.get(f"/tenants/{SLUG}/profiles/brief")).json()
    asked = {"arguments": {}, "as": {"profile": "brief"}}
    explained = (await one.gateway.admin.post(f"/tenants/{SLUG}/tools/op_0000/explain", json=asked)).json()
    refused = await one.gateway.admin.put(f"/tenants/{SLUG}/profiles/other", json={"summary_threshold": 100})

    assert [tool["name"] for tool in listed[SLUG]] == ["op_0000"]
    assert [tool["name"] for tool in listed[BRIEF]] == ["op_0000", "read_result"]
    assert [tool["name"] for tool in denied] == ["op_0000"]
    assert templates["resourceTemplates"][0]["uriTemplate"].startswith("gateway+result://{result}{?pointer,")
    assert (shown["summary_threshold"], shown["status"]["counts"]["tools"]) == (4096, 2)
    assert explained["summary_threshold"] == 4096
    assert refused.status_code == 400


async def test_parts_are_read_by_uri_too(one: OpenAPIBench) -> None:
    """Ours: pointer, page and condition in the URI give the page of the tool (OAS-10)."""
    uri = await _summary_uri(one)
    asked = f"{uri}?offset=10&limit=2"
    found = (await one.gateway.rpc(BRIEF, one.key, "resources/read", {"uri": asked}, mcp_name=asked)).json()
    wrong = f"{uri}?pointer=/x"
    refused = (await one.gateway.rpc(BRIEF, one.key, "resources/read", {"uri": wrong}, mcp_name=wrong)).json()
    trail = (await one.gateway.admin.get(f"/tenants/{SLUG}/audit", params={"tool": asked})).json()["items"]

    [content] = found["result"]["contents"]
    page = await _call(one, "read_result", {"result": uri, "offset": 10, "limit": 2})
    assert json.loads(content["text"]) == page["structuredContent"]
    assert page["structuredContent"]["value"] == [{"id": 10}, {"id": 11}]
    assert "error" in refused
    assert [entry["outcome"] for entry in trail] == ["ok"]


async def test_a_result_is_its_callers_alone(one: OpenAPIBench) -> None:
    """Ours: another subject, another profile and an unknown id find nothing (TEN-1)."""
    uri = await _summary_uri(one)
    stranger = await one.gateway.create_key(SLUG)
    same = {"summary_threshold": 4096}
    (await one.gateway.admin.put(f"/tenants/{SLUG}/profiles/twin", json=same)).raise_for_status()

    assert await _can_read(one, uri) == (True, True)
    assert await _can_read(one, uri, key=stranger) == (False, False)
    assert await _can_read(one, uri, f"{SLUG}/twin") == (False, False)
    assert await _can_read(one, uri[:-1] + ("A" if uri[-1] != "A" else "B")) == (False, False)


async def test_rules_that_change_end_results(one: OpenAPIBench) -> None:
    """Ours: a result that a caller received under earlier rules is not read under new ones (TEN-1)."""
    changes: list[tuple[str, dict[str, Any]]] = [
        ("policy", {"rules": [{"tool": "op_0000", "decision": "deny"}]}),
        ("profiles/brief", {"summary_threshold": 4096, "exclude": [{"names": ["op_0000"]}]}),
    ]
    rule = {"effect": "deny", "who": ["keys"], "what": {"names": ["op_0000"]}}
    changes.append(("access", {"rules": [rule]}))
    ends: list[object] = []
    for place, rules in changes:
        uri = await _summary_uri(one)
        before = await _can_read(one, uri)
        any_version = {"if-match": "*"}
        (await one.gateway.admin.put(f"/tenants/{SLUG}/{place}", json=rules, headers=any_version)).raise_for_status()
        ends.append((place, before, await _can_read(one, uri)))
        undo: dict[str, object] = {"summary_threshold": 4096} if "profiles" in place else {"rules": []}
        (await one.gateway.admin.put(f"/tenants/{SLUG}/{place}", json=undo, headers=any_version)).raise_for_status()

    assert ends == [(place, (True, True), (False, False)) for place, _ in changes]


async def test_a_new_guardrail_ends_results(one: OpenAPIBench) -> None:
    """Ours: a result that the guardrail has not seen is not read past it (SAF-6)."""
    uri = await _summary_uri(one)
    before = await _can_read(one, uri)
    secrets = {"name": "secrets", "check": "secrets", "phases": ["result"], "action": "block"}
    await add(one.gateway, SLUG, "guardrails", secrets)

    assert (before, await _can_read(one, uri)) == ((True, True), (False, False))


async def test_handlers_read_whole_results(one: OpenAPIBench) -> None:
    """Ours: a step sees the result of the API; what the client receives is summarised (OAS-10)."""
    steps = [
        {"call": {"tool": "op_0000"}, "as": "found"},
        {"return": {"text": "{{ found.structuredContent[999].id }}"}},
    ]
    await add(one.gateway, SLUG, "tools", tool("last", {"kind": "steps", "steps": steps}))
    await _summary_uri(one)

    assert (await _call(one, "last", {}))["content"] == [{"type": "text", "text": "999"}]


async def test_the_operation_of_a_query_tool_is_summarised(bench: OpenAPIBench) -> None:
    """Ours: `call_endpoint` gives the summary of its operation, of the whole result (OAS-5, OAS-10)."""
    await bench.gateway.import_document(SLUG, many(bench.upstream.url, 1), name="queried", expose="query")
    profile = {"summary_threshold": 4096}
    (await bench.gateway.admin.put(f"/tenants/{SLUG}/profiles/brief", json=profile)).raise_for_status()
    bench.upstream.body = json.dumps([{"id": number} for number in range(60_000)]).encode()
    found = await _call(bench, "call_endpoint", {"operation": "op_0000"})
    [uri] = [block["uri"] for block in found["content"] if block["type"] == "resource_link"]

    page = await _call(bench, "read_result", {"result": uri, "offset": 59_999})
    assert page["structuredContent"]["value"] == [{"id": 59_999}]


async def test_an_output_schema_holds_for_the_whole(bench: OpenAPIBench) -> None:
    """Ours: no structure is promised where results are summarised; what the schema refuses stays an error (TDF-5)."""
    document = many(bench.upstream.url, 1)
    item = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": item}}, "required": ["items"]}
    [answer] = [node["get"]["responses"]["200"] for node in document["paths"].values()]
    answer["content"] = {"application/json": {"schema": schema}}
    await bench.gateway.import_document(SLUG, document, output_schemas=True)
    await add(bench.gateway, SLUG, "profiles", {"name": "brief", "summary_threshold": 4096})
    listed = {path: (await bench.gateway.rpc(path, bench.key, "tools/list", {})).text for path in (SLUG, BRIEF)}
    found: list[dict[str, Any]] = []
    for count in (1000, 60_000):
        for last in ({"id": 2}, {"id": "x"}):
            bench.upstream.body = json.dumps({"items": [{"id": 1}] * count + [last]}).encode()
            found.append(await _call(bench, "op_0000", {}))

    assert "outputSchema" in listed[SLUG]
    assert "outputSchema" not in listed[BRIEF]
    assert [one["isError"] for one in found] == [False, True] * 2
    assert [found[index]["_meta"]["gateway/error"]["code"] for index in (1, 3)] == ["call.output_invalid"] * 2
    assert all("structuredContent" not in one for one in found)
    for start in (b"", b"{"):  # JSON by its type alone
        bench.upstream.body = start + b"\x01" * 2_000_000
        refused = await _call(bench, "op_0000", {})
        assert refused["_meta"]["gateway/error"]["code"] == "call.output_invalid"
        assert len(json.dumps(refused)) < 300_000


async def _two_forms(bench: OpenAPIBench) -> tuple[str, bytes]:
    """A profile that sends selected fields once and summarises what is still large, and an answer for both."""
    forms = {"name": "forms", "summary_threshold": 16_384, "structured_once": True, "selects_fields": True}
    await add(bench.gateway, SLUG, "profiles", forms)
    return f"{SLUG}/forms", json.dumps([{"id": number, "x": "y" * 20} for number in range(1000)]).encode()


def _forms_of(selected: dict[str, Any], whole: dict[str, Any]) -> None:
    """Check the result of a call with `_fields`, and of one without."""
    assert selected["structuredContent"] == [{"id": number} for number in range(1000)]
    assert "in structured content: an array of 1,000" in selected["content"][0]["text"]
    assert "whole: array of 1,000" in whole["content"][0]["text"]
    assert whole["content"][1]["type"] == "resource_link"


async def test_approved_calls_have_the_forms_of_the_profile(one: OpenAPIBench) -> None:
    """Ours: a result after an approval is selected, sent once or summarised like any other (OAS-10)."""
    path, body = await _two_forms(one)
    one.upstream.body = body
    (await one.gateway.admin.patch(f"/tenants/{SLUG}/policy", json={"safe": "approve"})).raise_for_status()
    person = {"authorization": f"Bearer {await one.gateway.create_key(SLUG, 'approve')}"}
    found: list[dict[str, Any]] = []
    for arguments in ({"_fields": ["/*/id"]}, {}):
        asked = await _call(one, "op_0000", dict(arguments), path)
        approval = f"/tenants/{SLUG}/approvals/{asked['_meta']['gateway/approval']['id']}/approve"
        (await one.gateway.http.post(f"/admin/v1{approval}", json={}, headers=person)).raise_for_status()
        found.append(await _call(one, "op_0000", dict(arguments), path))

    _forms_of(*found)


async def test_tasks_have_the_forms_of_the_profile(one: OpenAPIBench) -> None:
    """Ours: the result of a task is selected, sent once or summarised like that of a call (OAS-10, SAF-7)."""
    path, one.upstream.body = await _two_forms(one)
    client = TaskClient(one.gateway, path, one.key)
    found: list[dict[str, Any]] = []
    for arguments in ({"_fields": ["/*/id"]}, {}):
        one.upstream.gate = asyncio.Event()
        task = await client.start("op_0000", **arguments)
        one.upstream.gate.set()
        found.append((await client.wait(task))["result"])

    _forms_of(*found)
    uri = found[1]["content"][1]["uri"]
    assert (await _call(one, "read_result", {"result": uri, "offset": 999}, path))["structuredContent"]["total"] == 1000
