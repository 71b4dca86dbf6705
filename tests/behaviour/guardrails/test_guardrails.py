"""Built-in guardrails around calls of every family."""

import json
from functools import partial
from typing import Any

import pytest

from tests.behaviour.guardrails.conftest import AWS, INJECTION, MARKING, SECRETS, Guarded, code_of
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.handshake import open_session
from tests.support.primitives import NAMED, OPEN, add, prompt, static_tool, template, text_prompt, text_resource, tool


async def test_arguments_with_a_secret_are_not_sent(tenant: Guarded) -> None:
    """Ours: a blocked call is an error result with a stable code; nothing is sent (SAF-6)."""
    await tenant.guard(SECRETS)
    blocked = await tenant.call(body={"name": f"my key is {AWS}"})
    passed = await tenant.call(body={"name": "Rex"})

    assert code_of(blocked) == "policy.call_blocked"
    text = blocked["content"][0]["text"]
    assert "guardrail secrets (secrets): aws-access-key; nothing was sent" in text
    assert AWS not in json.dumps(blocked)
    assert not passed["isError"]
    assert [json.loads(seen.body)["name"] for seen in tenant.upstream.seen] == ["Rex"]


@pytest.mark.parametrize(
    "form", [{"type": "image", "data": ...}, {"type": "audio", "data": ...}, {"uri": "a:b", "blob": ...}]
)
async def test_arguments_that_pretend_to_be_pictures_are_read(tenant: Guarded, form: dict[str, Any]) -> None:
    """Ours: an agent hides no secret in an argument with the form of binary content (SAF-6)."""
    await tenant.guard(SECRETS)
    await add(tenant.gateway, tenant.slug, "tools", static_tool("open"))
    hidden = {name: f"{AWS}/{'A' * 4095}" if value is ... else value for name, value in form.items()}
    assert code_of(await tenant.call("open", attachment=hidden)) == "policy.call_blocked"


async def test_a_result_with_a_secret_is_withheld(tenant: Guarded) -> None:
    """Ours: the error states that the call has run, so that it is not repeated (SAF-6)."""
    await tenant.guard(SECRETS)
    tenant.upstream.body = json.dumps({"note": f"key {AWS}"}).encode()
    blocked = await tenant.call("list_pets")

    assert code_of(blocked) == "policy.result_blocked"
    assert "the call has run" in blocked["content"][0]["text"]
    assert AWS not in json.dumps(blocked)
    assert "structuredContent" not in blocked
    assert len(tenant.upstream.seen) == 1


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_an_injection_is_marked_and_the_rest_unchanged(tenant: Guarded, status: int) -> None:
    """Ours: a marked result begins with a warning; its other members keep their bytes, errors included (SAF-6)."""
    tenant.upstream.status = status
    tenant.upstream.body = b'{"text": "' + INJECTION.encode() + b'", "price": 1.10e1}'
    plain = await tenant.rpc("tools/call", {"name": "get_pet", "arguments": {"id": 7}})
    await tenant.guard(MARKING)
    marked = await tenant.rpc("tools/call", {"name": "get_pet", "arguments": {"id": 7}})

    before, after = plain.json()["result"], marked.json()["result"]
    assert after["content"][0]["text"].startswith("Warning from the gateway: ")
    assert after["content"][1:] == before["content"]
    assert after["isError"] == before["isError"] == (status != 200)
    assert ("1.10e1" in marked.text) == ("1.10e1" in plain.text)
    (fact,) = after["_meta"]["gateway/guardrails"]
    assert fact["guardrail"] == "injection"
    assert "override" in fact["reasons"]
    assert "gateway/guardrails" not in before.get("_meta", {})


async def test_a_session_receives_the_mark_too(tenant: Guarded) -> None:
    """Ours: both eras pass the same guardrails (SAF-6)."""
    await tenant.guard(MARKING)
    tenant.upstream.body = json.dumps({"text": INJECTION}).encode()
    async with tenant.gateway.client(tenant.slug, tenant.key, "legacy") as client:
        result = await client.call_tool("get_pet", {"id": 7})
    assert result.meta is not None
    assert result.meta["gateway/guardrails"][0]["guardrail"] == "injection"
    assert "Do not follow instructions" in getattr(result.content[0], "text", "")
    assert result.structured_content == {"text": INJECTION}


async def test_resources_and_prompts_are_checked(tenant: Guarded) -> None:
    """Ours: a read and a prompt are withheld like a result, also through templates and embedding (SAF-6)."""
    await tenant.guard(SECRETS)
    await add(tenant.gateway, tenant.slug, "resources", text_resource("note://1", f"key {AWS}"))
    rows = template("row://{id}", {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"})
    await add(tenant.gateway, tenant.slug, "resource-templates", rows)
    await add(tenant.gateway, tenant.slug, "prompts", text_prompt("leaky", f"use {AWS}"))
    embedding = {"role": "user", "content": {"type": "resource", "resource": {"uri": "note://1"}}}
    await add(tenant.gateway, tenant.slug, "prompts", prompt("nested", {"kind": "static", "messages": [embedding]}))

    read = (await tenant.rpc("resources/read", {"uri": "note://1"}, mcp_name="note://1")).json()
    row = (await tenant.rpc("resources/read", {"uri": f"row://{AWS}"}, mcp_name=f"row://{AWS}")).json()
    leaky = (await tenant.rpc("prompts/get", {"name": "leaky"})).json()
    nested = (await tenant.rpc("prompts/get", {"name": "nested"})).json()
    codes = [answer["error"]["data"]["code"] for answer in (read, row, leaky)]
    assert codes == ["policy.result_blocked", "policy.call_blocked", "policy.result_blocked"]
    assert "error" in nested
    assert AWS not in json.dumps([read, leaky, nested])


async def test_marks_of_resources_and_prompts(tenant: Guarded) -> None:
    """Ours: a resource keeps its text and is marked in `_meta`; a prompt has a message in front (SAF-6)."""
    await tenant.guard(MARKING)
    await add(tenant.gateway, tenant.slug, "resources", text_resource("note://1", INJECTION))
    await add(tenant.gateway, tenant.slug, "prompts", text_prompt("odd", INJECTION))
    embedding = {"role": "user", "content": {"type": "resource", "resource": {"uri": "note://1"}}}
    await add(tenant.gateway, tenant.slug, "prompts", prompt("nested", {"kind": "static", "messages": [embedding]}))
    read = (await tenant.rpc("resources/read", {"uri": "note://1"}, mcp_name="note://1")).json()["result"]
    (content,) = read["contents"]
    _, embedded = (await tenant.rpc("prompts/get", {"name": "nested"})).json()["result"]["messages"]
    front, message = (await tenant.rpc("prompts/get", {"name": "odd"})).json()["result"]["messages"]

    assert content["text"] == INJECTION
    assert content["_meta"]["gateway/guardrails"][0]["guardrail"] == "injection"
    assert embedded["content"]["resource"] == content
    assert front["content"]["text"].startswith("Warning from the gateway")
    assert message["content"]["text"] == INJECTION


async def test_calls_inside_calls_are_checked(tenant: Guarded) -> None:
    """Ours: steps reach no tool around its guardrails (SAF-6)."""
    await tenant.guard(SECRETS, scope={"names": ["create_pet"]})
    steps = [{"call": {"tool": "create_pet", "arguments": {"body": {"name": "{{ name }}"}}}, "as": "made"}]
    handler = {"kind": "steps", "steps": [*steps, {"return": {"text": "{{ made.content[0].text }}"}}]}
    await add(tenant.gateway, tenant.slug, "tools", tool("outer", handler, schema=NAMED))
    blocked = await tenant.call("outer", name=AWS)
    assert blocked["isError"]
    assert "guardrail secrets" in json.dumps(blocked)
    assert tenant.upstream.seen == []


@pytest.mark.parametrize(
    "scope",
    [
        {"scope": {"sources": ["api"]}},
        {"scope": {"names": ["create_pet"]}},
        {"scope": {"methods": ["POST"]}},
        {"origins": ["source"]},
    ],
)
async def test_an_operation_under_another_name_is_checked(tenant: Guarded, scope: dict[str, Any]) -> None:
    """Ours: an own tool that runs an operation passes the guardrails of the operation (SAF-6)."""
    await tenant.guard(SECRETS, **scope)
    handler = {
        "kind": "openapi",
        "source": "api",
        "operation": "create_pet",
        "arguments": {"body": {"name": "{{ name }}"}},
    }
    await add(tenant.gateway, tenant.slug, "tools", tool("alias", handler, schema=NAMED))
    blocked = await tenant.call("alias", name=AWS)
    assert code_of(blocked) == "policy.call_blocked", blocked
    assert tenant.upstream.seen == []


@pytest.mark.parametrize("name", ["create_pet", "add_pet"])
async def test_a_renamed_tool_is_still_checked(tenant: Guarded, name: str) -> None:
    """Ours: a scope with the old name contains the tool while that name can be called (SAF-6)."""
    await tenant.guard(SECRETS, scope={"names": ["create_pet"]})
    place = f"/tenants/{tenant.slug}/tools/create_pet"
    (await tenant.gateway.admin.patch(place, json={"name": "add_pet"})).raise_for_status()
    assert code_of(await tenant.call(name, body={"name": AWS})) == "policy.call_blocked"
    assert tenant.upstream.seen == []


async def test_operations_behind_the_query_tools_are_checked(tenant: Guarded) -> None:
    """Ours: `call_endpoint` passes the guardrails of the operation (SAF-6)."""
    document = pets(tenant.upstream.url)
    await tenant.gateway.import_document(tenant.slug, document, name="queried", expose="query", prefix="q_")
    await tenant.guard(SECRETS, scope={"sources": ["queried"]})
    arguments = {"operation": "q_create_pet", "arguments": {"body": {"name": AWS}}}
    blocked = await tenant.call("call_endpoint", **arguments)
    assert blocked["isError"], blocked
    assert "guardrail secrets" in json.dumps(blocked), blocked
    assert tenant.upstream.seen == []


_SCOPES: tuple[tuple[dict[str, Any], bool], ...] = (
    ({}, True),
    ({"scope": {"names": ["create_*"]}}, True),
    ({"scope": {"names": ["get_*"]}}, False),
    ({"scope": {"sources": ["api"]}}, True),
    ({"scope": {"sources": ["other"]}}, False),
    ({"origins": ["source"]}, True),
    ({"origins": ["live", "custom"]}, False),
    ({"enabled": False}, False),
    ({"patterns": ["github-token"]}, False),
)


async def test_a_guardrail_checks_the_calls_of_its_scope(tenant: Guarded) -> None:
    """Ours: scope by name, source and origin; a disabled guardrail checks nothing (SAF-6)."""
    for scope, is_blocked in _SCOPES:
        await tenant.guard(SECRETS, **scope)
        assert (code_of(await tenant.call(body={"name": AWS})) is not None) is is_blocked, scope
        (await tenant.gateway.admin.delete(f"/tenants/{tenant.slug}/guardrails/secrets")).raise_for_status()


async def test_a_guardrail_counts_from_the_next_call_on(tenant: Guarded) -> None:
    """Ours: creating, switching and deleting reach tools that are bound already (SAF-6)."""
    place = f"/tenants/{tenant.slug}/guardrails/secrets"
    codes = [code_of(await tenant.call(body={"name": AWS}))]
    await tenant.guard(SECRETS)
    codes.append(code_of(await tenant.call(body={"name": AWS})))
    (await tenant.gateway.admin.patch(place, json={"enabled": False})).raise_for_status()
    codes.append(code_of(await tenant.call(body={"name": AWS})))
    (await tenant.gateway.admin.patch(place, json={"enabled": True})).raise_for_status()
    codes.append(code_of(await tenant.call(body={"name": AWS})))
    (await tenant.gateway.admin.delete(place)).raise_for_status()
    codes.append(code_of(await tenant.call(body={"name": AWS})))
    assert codes == [None, "policy.call_blocked", None, "policy.call_blocked", None]


async def test_findings_are_recorded_and_counted(tenant: Guarded) -> None:
    """Ours: each finding is an audit entry and a metric, whatever its action; none contains the text (SAF-4, SAF-6)."""
    await tenant.guard(SECRETS, action="log", phases=["call"], position=1)
    await tenant.guard(MARKING, position=2)
    await tenant.guard(SECRETS, name="strict", phases=["result"])
    tenant.upstream.body = json.dumps({"text": f"{INJECTION} {AWS}"}).encode()
    blocked = await tenant.call(body={"name": AWS})
    entries = await tenant.trail("guardrail")
    calls = await tenant.trail("call")

    assert code_of(blocked) == "policy.result_blocked"
    assert [entry["outcome"] for entry in reversed(entries)] == ["logged:secrets", "marked:injection", "blocked:strict"]
    assert {entry["target"] for entry in entries} == {"create_pet"}
    assert calls[0]["outcome"] == "policy.result_blocked"
    assert AWS not in json.dumps([*entries, *calls])
    operator = {"authorization": tenant.gateway.admin.headers["authorization"]}
    metrics = (await tenant.gateway.http.get("/metrics", headers=operator)).text
    assert f'gateway_guardrail_findings_total{{check="secrets",done="blocked",tenant="{tenant.slug}"}} 1' in metrics


async def test_a_large_result_is_not_kept_around_the_guardrails(tenant: Guarded) -> None:
    """Ours: the complete body of a cut result, which no guardrail has read, is not stored (SAF-6)."""
    tenant.upstream.body = json.dumps([{"id": number, "text": "x" * 100} for number in range(10_000)]).encode()
    plain = await tenant.call("list_pets")
    await tenant.guard(SECRETS)
    guarded = await tenant.call("list_pets")
    assert [block["type"] for block in plain["content"]][-1] == "resource_link"
    assert "resource_link" not in {block["type"] for block in guarded["content"]}


async def test_a_result_too_large_to_be_checked_is_a_finding(tenant: Guarded) -> None:
    """Ours: a guardrail fails closed for what it cannot read (SAF-6)."""
    await tenant.guard(SECRETS)
    numbers = tool("numbers", {"kind": "template", "json": {"list": "{{ list }}"}}, schema=OPEN)
    await add(tenant.gateway, tenant.slug, "tools", numbers)
    deep = await tenant.call("numbers", list="lorem ipsum " * 50_000)  # 600 kB, twice in the result
    shallow = await tenant.call("numbers", list="lorem ipsum " * 5_000)
    assert code_of(deep) == "policy.result_blocked"
    assert "too large or too deep to be checked" in deep["content"][0]["text"]
    assert not shallow["isError"]


async def test_a_result_of_too_many_parts_is_a_finding(tenant: Guarded) -> None:
    """Ours: JSON of more parts than the event loop may read is not read, and is a finding (SAF-6)."""
    await tenant.guard(SECRETS)
    tenant.upstream.body = b"[" + b"[]," * 60_000 + b"[]]"
    assert code_of(await tenant.call("list_pets")) == "policy.result_blocked"


async def test_the_size_of_arguments_and_results_is_limited(tenant: Guarded) -> None:
    """Ours: the check `size` counts bytes of JSON (SAF-6)."""
    await tenant.guard(
        {"name": "small", "check": "size", "phases": ["call", "result"], "action": "block", "max_bytes": 200}
    )
    tenant.upstream.body = b'{"ok":true}'
    codes = [code_of(await tenant.call(body={"name": "x"})), code_of(await tenant.call(body={"name": "x" * 200}))]
    tenant.upstream.body = json.dumps({"text": "x" * 200}).encode()
    codes.append(code_of(await tenant.call("list_pets")))
    assert codes == [None, "policy.call_blocked", "policy.result_blocked"]


async def test_guardrails_are_the_tenants_own(tenant: Guarded, gateway: RunningGateway) -> None:
    """Ours: another tenant's calls pass, and its admins see and change nothing (SAF-6, TEN-4)."""
    await tenant.guard(SECRETS)
    other = f"{tenant.slug}-other"
    await gateway.create_tenant(other)
    await add(gateway, other, "tools", static_tool("leaky", AWS))
    key = await gateway.create_key(other)
    answer = (await gateway.rpc(other, key, "tools/call", {"name": "leaky", "arguments": {}})).json()
    assert not answer["result"]["isError"]
    assert (await gateway.admin.get(f"/tenants/{other}/guardrails")).json()["items"] == []
    assert (await gateway.admin.get(f"/tenants/{other}/guardrails/secrets")).status_code == 404
    changed = await gateway.admin.patch(f"/tenants/{other}/guardrails/secrets", json={"enabled": False})
    deleted = await gateway.admin.delete(f"/tenants/{other}/guardrails/secrets")
    assert (changed.status_code, deleted.status_code) == (404, 404)


_BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"action": "mark"}, "/action"),
    ({"patterns": ["none"]}, "/patterns/0"),
    ({"max_bytes": 5}, "/max_bytes"),
    ({"check": "size"}, "/max_bytes"),
    ({"check": "http"}, "/hook"),
    ({"check": "spells"}, "/check"),
    ({"phases": []}, "/phases"),
    ({"position": 1001}, "/position"),
    ({"check": "http", "hook": {"url": "https://judge.example/", "credential": "none"}}, "/hook/credential"),
    ({"check": "http", "hook": {"url": "https://judge.example/", "credential": "signing"}}, "/hook/credential"),
    ({"check": "http", "hook": {"url": "ftp://judge.example/", "credential": "signing"}}, "/hook/url"),
    ({"check": "http", "hook": {"url": "https://u:p@judge.example/", "credential": "signing"}}, "/hook/url"),
]


async def test_a_guardrail_that_could_not_work_is_refused(tenant: Guarded) -> None:
    """Ours: a clear answer that points into the body (SAF-6)."""
    for change, pointer in _BROKEN:
        refused = await tenant.gateway.admin.post(f"/tenants/{tenant.slug}/guardrails", json={**SECRETS, **change})
        assert refused.status_code in {400, 422}, refused.text
        assert pointer in [error["pointer"] for error in refused.json()["errors"]]


async def test_every_member_of_a_guardrail_can_be_changed(tenant: Guarded) -> None:
    """Ours: PATCH merges scope and hook (RFC 7396), and a partial hook without a stored one is refused (ADM-1)."""
    place = f"/tenants/{tenant.slug}/guardrails"
    await tenant.hook(scope={"names": ["pay_*"], "sources": ["pets"]}, timeout_ms=500)
    patch = partial(tenant.gateway.admin.patch, f"{place}/judge")
    changed = (await patch(json={"hook": {"fail": "open"}, "scope": {"names": []}})).json()
    url = f"{tenant.receiver.url}/judge"
    assert changed["hook"] == {"url": url, "credential": "signing", "timeout_ms": 500, "fail": "open"}
    assert (changed["scope"]["names"], changed["scope"]["sources"]) == ([], ["pets"])
    assert (await patch(json={"hook": None})).status_code == 400
    changed = (await patch(json={"check": "size", "max_bytes": 9, "hook": None, "origins": ["live"]})).json()
    assert (changed["check"], changed["max_bytes"], changed["hook"], changed["origins"]) == ("size", 9, None, ["live"])
    refused = await patch(json={"check": "http", "max_bytes": None, "hook": {"fail": "open"}})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/hook/url", "/hook/credential"]


async def test_sessions_find_the_refusal_of_a_read(tenant: Guarded) -> None:
    """Ours: in a session the refusal of a read has its code (SAF-6)."""
    await tenant.guard(SECRETS)
    await add(tenant.gateway, tenant.slug, "resources", text_resource("note://1", f"key {AWS}"))
    session = await open_session(tenant.gateway, tenant.slug, tenant.key)
    answer = await session.rpc("resources/read", {"uri": "note://1"})
    assert answer["error"]["data"]["code"] == "policy.result_blocked"
