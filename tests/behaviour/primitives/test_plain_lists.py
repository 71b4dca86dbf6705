"""Lists by the short way and by the long way are the same lists: an unknown member in `_meta` goes the long way."""

from typing import Any

import httpx
import pytest

from gateway.protocol.fast_path import is_candidate
from tests.behaviour.primitives.conftest import Tenant
from tests.support.documents import many
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.handshake import Session, open_session
from tests.support.primitives import prompt, resource, static_tool, template, text_resource, tool

ODD = {"example.com/odd": 1}
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/schema",
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 9007199254740991, "default": None, "x-own": {"a": [None]}}},
    "$defs": {"x": {"$anchor": "x", "const": 1.5}},
    "additionalProperties": False,
    "if": {"required": ["n"]},
    "then": {},
    "else": {"not": {}},
    "allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#x"}],
    "default": {},
}
HAND = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]


async def _fill(tenant: Tenant) -> None:
    """Something of every family, with members that not every revision has."""
    icons = [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}]
    adorned = {"title": "Ünï “quoted”", "icons": icons, "_meta": {"example.com/a": {"b": None}}}
    text = {"kind": "template", "text": "x"}
    await tenant.add("tools", tool("adorned", text, schema=SCHEMA, definition=adorned))
    array: dict[str, Any] = {"outputSchema": {"type": "array", "items": {}}}
    plain: dict[str, Any] = {"outputSchema": {"type": "object", "properties": {}}}
    await tenant.add("tools", tool("listing", {"kind": "template", "json": []}, definition=array))
    await tenant.add("tools", tool("object", {"kind": "template", "json": {}}, definition=plain))
    await tenant.add("resources", resource("docs://adorned", text, mimeType="text/plain", **adorned))
    await tenant.add("resource-templates", template("rows://{id}", text, mimeType="text/plain", **adorned))
    await tenant.add("prompts", prompt("adorned", text, **adorned, arguments=[{"name": "a", "title": "A"}]))


async def _modern(tenant: Tenant, method: str, params: dict[str, Any], *, headers: dict[str, str]) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params}
    sent = {"authorization": f"Bearer {tenant.key}", "accept": ACCEPT, "mcp-protocol-version": MODERN}
    return await tenant.replicas.b.gateway.http.post(f"/t/{tenant.slug}/mcp", json=body, headers={**sent, **headers})


async def _both(
    tenant: Tenant, session: Session | None, method: str, params: dict[str, Any]
) -> tuple[httpx.Response, httpx.Response]:
    """The answers of the short and of the long way."""
    if session is None:
        named = {"mcp-method": method}
        short = await _modern(tenant, method, {**params, "_meta": META}, headers=named)
        return short, await _modern(tenant, method, {**params, "_meta": {**META, **ODD}}, headers=named)
    return await session.send(method, params), await session.send(method, {**params, "_meta": ODD})


def _comparable(answer: httpx.Response) -> tuple[object, ...]:
    text = answer.text.replace(answer.headers["x-request-id"], "ID")
    value: Any = httpx.Response(200, content=text).json()
    return answer.status_code, answer.headers["content-type"], value


@pytest.mark.parametrize("revision", [None, *HAND])
async def test_both_ways_list_the_same(tenant: Tenant, revision: str | None) -> None:
    """Ours: finished bytes equal the SDK's response, in every revision and to the last member (SRV-1)."""
    await _fill(tenant)
    session = None
    if revision is not None:
        session = await open_session(tenant.replicas.b.gateway, tenant.slug, tenant.key, version=revision)
    for method in LISTS:
        for _ in range(2):  # the second time the bytes are there already
            short, long = await _both(tenant, session, method, {})
            assert _comparable(short) == _comparable(long), method
            assert short.status_code == 200


@pytest.mark.parametrize("revision", [None, *HAND])
async def test_a_schema_is_listed_in_the_form_that_clients_take(tenant: Tenant, revision: str | None) -> None:
    """Ours: the stored schema keeps each keyword; the listed one keeps them all if its author named 2020-12 (TDF-2)."""
    listed_schema = {name: SCHEMA[name] for name in ("type", "properties", "default")}
    unnamed = {name: value for name, value in SCHEMA.items() if name != "$schema"}
    await tenant.add("tools", tool("adorned", {"kind": "template", "text": "x"}, schema=SCHEMA))
    await tenant.add("tools", tool("plain", {"kind": "template", "text": "x"}, schema=unnamed))
    session = None
    if revision is not None:
        session = await open_session(tenant.replicas.b.gateway, tenant.slug, tenant.key, version=revision)
    for answer in await _both(tenant, session, "tools/list", {}):
        listed = {each["name"]: each for each in answer.json()["result"]["tools"]}
        assert listed["plain"]["inputSchema"] == listed_schema
        assert listed["adorned"]["inputSchema"] == SCHEMA
    stored = await tenant.replicas.a.gateway.admin.get(f"/tenants/{tenant.slug}/tools/plain")
    assert stored.json()["definition"]["inputSchema"] == unnamed


@pytest.mark.parametrize("revision", [None, "2025-11-25"])
async def test_both_ways_turn_the_same_pages(tenant: Tenant, revision: str | None) -> None:
    """Ours: cursors of the one way are cursors of the other, and what is none is refused alike (RES-3)."""
    await tenant.replicas.a.gateway.import_document(tenant.slug, many(tenant.upstream.url, 120))
    session = None
    if revision is not None:
        session = await open_session(tenant.replicas.b.gateway, tenant.slug, tenant.key, version=revision)
    first, _ = await _both(tenant, session, "tools/list", {})
    for cursor in (first.json()["result"]["nextCursor"], "made up", "", 7, None):
        short, long = await _both(tenant, session, "tools/list", {"cursor": cursor})
        assert _comparable(short) == _comparable(long), cursor


@pytest.mark.parametrize("revision", [None, "2025-11-25"])
async def test_both_paths_refuse_undeclared_lists(tenant: Tenant, revision: str | None) -> None:
    """Ours: a family that is not declared has no list, whichever way (CAP-1)."""
    profile = {"name": "tools", "include": [{"families": ["tool"]}]}
    answer = await tenant.replicas.a.gateway.admin.post(f"/tenants/{tenant.slug}/profiles", json=profile)
    answer.raise_for_status()
    narrow = Tenant(tenant.replicas, tenant.upstream, tenant.key, f"{tenant.slug}/tools")
    session = None
    if revision is not None:
        session = await open_session(tenant.replicas.b.gateway, narrow.slug, tenant.key, version=revision)
    for method in LISTS[1:]:
        short, long = await _both(narrow, session, method, {})
        assert _comparable(short) == _comparable(long), method
        assert short.json()["error"]["code"] == -32601


async def test_a_change_is_in_the_very_next_list(tenant: Tenant) -> None:
    """Ours: finished bytes belong to one revision of the catalog and are never shown of another (CON-1)."""
    for number in range(3):
        await tenant.add("tools", static_tool(f"say_{number}"))
        await tenant.add("resources", text_resource(f"docs://{number}"))
        listed = (await tenant.replicas.a.gateway.rpc(tenant.slug, tenant.key, "tools/list")).json()
        read = (await tenant.replicas.a.gateway.rpc(tenant.slug, tenant.key, "resources/list")).json()
        assert f"say_{number}" in {each["name"] for each in listed["result"]["tools"]}
        assert f"docs://{number}" in {each["uri"] for each in read["result"]["resources"]}


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-method": "tools/call"},
        {"mcp-method": "prompts/list"},
        {},
        {"mcp-method": "tools/list", "mcp-protocol-version": "2099-01-01"},
    ],
)
async def test_headers_that_disagree_with_a_list_are_refused(tenant: Tenant, headers: dict[str, str]) -> None:
    """MCP: the mirrored headers are compared with the body, on each path of a request (SRV-1)."""
    answer = await _modern(tenant, "tools/list", {"_meta": META}, headers=headers)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in {-32020, -32022}


def test_only_the_plainest_lists_are_recognised() -> None:
    """Ours: whatever the short way does not know to the last member goes the long way (CAL-1)."""
    plain: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    odd: tuple[dict[str, Any], ...] = (
        {"jsonrpc": "1.0"},
        {"id": None},
        {"method": "server/discover"},
        {"method": ["tools/list"]},
        {"params": []},
        {"params": None},
        {"params": {"cursor": 1}},
        {"params": {"cursor": None}},
        {"params": {"name": "t"}},
        {"more": 1},
    )

    assert all(is_candidate({**plain, "method": method}) for method in LISTS)
    assert is_candidate({**plain, "params": {"cursor": "c"}})
    assert not any(is_candidate({**plain, **change}) for change in odd)
