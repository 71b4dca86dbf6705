"""Absent objects and wrong requests: the protocol's own errors, of the right era."""

from typing import Any

import pytest

from tests.behaviour.primitives.conftest import Tenant
from tests.support.handshake import open_session
from tests.support.primitives import NAMED, prompt, static_tool, template, text_prompt, text_resource, tool

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
eras = pytest.mark.parametrize("revision", [HANDSHAKE, "2025-06-18", MODERN])


async def _ask(tenant: Tenant, revision: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The JSON-RPC answer, at the replica that did not store what is asked for."""
    if revision == MODERN:
        answer: dict[str, Any] = await tenant.rpc(method, params)
        return answer
    session = await open_session(tenant.replicas.b.gateway, tenant.slug, tenant.key, version=revision)
    return await session.rpc(method, params)


@eras
async def test_an_unknown_tool_is_an_invalid_parameter(tenant: Tenant, revision: str) -> None:
    """MCP: an unknown tool is a protocol error, not a result (CAL-3)."""
    error = (await _ask(tenant, revision, "tools/call", {"name": "missing", "arguments": {}}))["error"]

    assert (error["code"], error["message"]) == (-32602, "Tool not found: missing")
    assert error["data"]["code"] == "not_found"
    assert error["data"]["correlation_id"]


@eras
@pytest.mark.parametrize("uri", ["docs://missing", "no uri at all", "gateway+result://nothing"])
async def test_an_unknown_resource_has_its_uri_in_the_error(tenant: Tenant, revision: str, uri: str) -> None:
    """MCP: -32002 before 2026-07-28, -32602 from then on, both with `data.uri` (CAL-3)."""
    error = (await _ask(tenant, revision, "resources/read", {"uri": uri}))["error"]

    assert error["code"] == (-32602 if revision == MODERN else -32002)
    assert error["data"]["uri"] == uri


@eras
async def test_an_unknown_prompt_is_an_invalid_parameter(tenant: Tenant, revision: str) -> None:
    """MCP: -32602 (CAL-3)."""
    error = (await _ask(tenant, revision, "prompts/get", {"name": "missing"}))["error"]

    assert (error["code"], error["message"]) == (-32602, "Prompt not found: missing")


@eras
async def test_all_missing_arguments_of_a_prompt_are_named(tenant: Tenant, revision: str) -> None:
    """Ours: one error names every missing member (PRM-1)."""
    arguments = [{"name": "code", "required": True}, {"name": "tone", "required": True}, {"name": "more"}]
    await tenant.add("prompts", prompt("review", {"kind": "template", "text": "{{ code }}"}, arguments=arguments))

    error = (await _ask(tenant, revision, "prompts/get", {"name": "review", "arguments": {}}))["error"]

    assert error["code"] == -32602
    assert "code" in error["message"]
    assert "tone" in error["message"]
    assert "more" not in error["message"]


@eras
async def test_a_prompt_without_required_arguments_needs_none(tenant: Tenant, revision: str) -> None:
    """MCP: `arguments` may be absent (PRM-1)."""
    await tenant.add("prompts", text_prompt("greet", "hello"))

    forms: tuple[dict[str, Any], ...] = ({"name": "greet"}, {"name": "greet", "arguments": {}})
    for params in forms:
        result = (await _ask(tenant, revision, "prompts/get", params))["result"]
        assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "hello"}}]


@eras
@pytest.mark.parametrize(
    "ref",
    [
        {"type": "ref/prompt", "name": "missing"},
        {"type": "ref/resource", "uri": "missing://{id}"},
        {"type": "ref/other", "name": "x"},
    ],
)
async def test_a_reference_that_names_nothing_is_an_invalid_parameter(
    tenant: Tenant, revision: str, ref: dict[str, str]
) -> None:
    """MCP: a completed argument must exist (PRM-3)."""
    params = {"ref": ref, "argument": {"name": "a", "value": ""}}

    assert (await _ask(tenant, revision, "completion/complete", params))["error"]["code"] == -32602


@eras
async def test_a_completion_without_values_is_empty(tenant: Tenant, revision: str) -> None:
    """MCP: a completion without values is a completion (PRM-3)."""
    await tenant.add("resources", text_resource("docs://readme"))
    rows = template("rows://{id}", {"kind": "template", "text": "x"}, mimeType="text/plain")
    await tenant.add("resource-templates", rows)
    for uri, name in (("docs://readme", "a"), ("rows://{id}", "id")):
        params = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": ""}}
        completion = (await _ask(tenant, revision, "completion/complete", params))["result"]["completion"]
        assert completion["values"] == []
        assert not completion.get("hasMore")


@eras
async def test_wrong_arguments_are_a_result_with_the_place(tenant: Tenant, revision: str) -> None:
    """MCP: the model should read what was wrong with its arguments (CAL-2)."""
    await tenant.add("tools", tool("fill", {"kind": "template", "text": "{{ name }}"}, schema=NAMED))

    result = (await _ask(tenant, revision, "tools/call", {"name": "fill", "arguments": {"name": 7}}))["result"]

    assert result["isError"] is True
    assert "/name" in result["content"][0]["text"]


async def test_results_of_2026_07_28_have_cache_hints(tenant: Tenant) -> None:
    """MCP: complete results of lists and reads have `ttlMs` and `cacheScope`; ours is private always (SRV-1)."""
    await tenant.add("tools", static_tool("say"))
    await tenant.add("resources", text_resource("docs://readme"))
    asked: list[tuple[str, dict[str, Any]]] = [
        ("server/discover", {}),
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("prompts/list", {}),
        ("resources/read", {"uri": "docs://readme"}),
    ]
    for method, params in asked:
        result = (await tenant.rpc(method, params))["result"]
        assert result["resultType"] == "complete", method
        assert result["ttlMs"] >= 0, method
        assert result["cacheScope"] == "private", method
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "gateway", method


async def test_older_revisions_get_none_of_that(tenant: Tenant) -> None:
    """MCP: members that a revision does not have are not sent to its clients (SRV-1)."""
    await tenant.add("resources", text_resource("docs://readme"))
    session = await open_session(tenant.replicas.b.gateway, tenant.slug, tenant.key)
    for method, params in (("resources/list", {}), ("resources/read", {"uri": "docs://readme"}), ("prompts/list", {})):
        result = (await session.rpc(method, params))["result"]
        assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & result.keys(), method
