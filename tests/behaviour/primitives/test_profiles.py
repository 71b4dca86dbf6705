"""Profiles: a selection at a URL of its own, for keys that are bound to it and for keys that are not."""

from typing import Any

import msgspec
import pytest

from tests.behaviour.primitives.conftest import Tenant
from tests.behaviour.primitives.test_kinds import era
from tests.support.documents import many, pets
from tests.support.gateway import ACCEPT
from tests.support.primitives import add_profile, static_tool, text_prompt, text_resource, tool
from tests.support.replicas import Mode, tool_names, until


async def _profile(tenant: Tenant, name: str, **rules: Any) -> None:
    await add_profile(tenant.replicas.a.gateway, tenant.slug, name, **rules)


async def _key(tenant: Tenant, **more: object) -> str:
    return await tenant.replicas.a.gateway.create_key(tenant.slug, **more)


async def _status(tenant: Tenant, place: str, key: str) -> int:
    async with tenant.replicas.http(key) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        return (await http.post(f"/t/{place}/mcp", json=body, headers={"accept": ACCEPT})).status_code


@era
async def test_a_profile_shows_and_runs_its_selection(tenant: Tenant, era: Mode) -> None:
    """Ours: by name, source, tag, method, safety and family, at the profile's own URL (CAP-1)."""
    await tenant.replicas.a.gateway.import_document(tenant.slug, pets(tenant.upstream.url))
    await tenant.add("tools", static_tool("say"))
    await tenant.add("resources", text_resource("docs://readme"))
    await _profile(tenant, "reads", include=[{"methods": ["GET"]}])
    await _profile(tenant, "own", include=[{"families": ["tool"], "safety": ["safe"]}], exclude=[{"sources": ["api"]}])

    async with tenant.replicas.client(f"{tenant.slug}/reads", tenant.key, era) as client:
        assert await tool_names(client) == ["get_pet", "list_pets"]
        assert not (await client.call_tool("get_pet", {"id": 7})).is_error
        assert client.server_capabilities is not None
        assert client.server_capabilities.resources is None
    async with tenant.replicas.client(f"{tenant.slug}/own", tenant.key, era) as client:
        assert await tool_names(client) == ["days_between", "say", "weekday_of"]


class _Listed(msgspec.Struct):
    """A list of tools, each as it was written."""

    tools: list[msgspec.Raw]


class _Answer(msgspec.Struct):
    """The answer that holds it."""

    result: _Listed


async def test_the_bytes_of_a_profile_are_those_that_are_served(tenant: Tenant) -> None:
    """Ours: the reported cost of a profile's list is the size that a client reads, numbers with an exponent included
    (CAP-1).
    """
    numbers = {"type": "number", "minimum": 1e-5, "maximum": 1e22, "multipleOf": 1e-7, "description": "é 1e-7"}
    schema = {"type": "object", "properties": {"n": numbers}}
    await tenant.add("tools", tool("counts", {"kind": "template", "text": "{{ n }}"}, schema=schema))
    gateway = tenant.replicas.a.gateway

    listed = await gateway.rpc(tenant.slug, tenant.key, "tools/list")
    tools = msgspec.json.decode(listed.content, type=_Answer).result.tools
    [profile] = (await gateway.admin.get(f"/tenants/{tenant.slug}/profiles")).json()["items"]

    served = b'{"tools":[' + b",".join(bytes(each) for each in tools) + b"]}"
    assert profile["status"]["tools_list_bytes"] == len(served)
    assert b"1e-05" in served


async def test_primitives_outside_a_profile_are_unknown(tenant: Tenant) -> None:
    """Ours: a tool outside the profile is an unknown tool, a resource an unknown resource (CAL-3, CAP-1)."""
    await tenant.add("tools", static_tool("say"))
    await tenant.add("tools", static_tool("shout"))
    await tenant.add("resources", text_resource("docs://open"))
    await tenant.add("resources", text_resource("docs://closed"))
    await tenant.add("prompts", text_prompt("greet"))
    await _profile(tenant, "quiet", include=[{"names": ["say", "docs://open"]}])

    called = await tenant.rpc("tools/call", {"name": "shout", "arguments": {}}, profile="quiet")
    read = await tenant.rpc("resources/read", {"uri": "docs://closed"}, profile="quiet")
    got = await tenant.rpc("prompts/get", {"name": "greet"}, profile="quiet")

    assert (called["error"]["code"], called["error"]["message"]) == (-32602, "Tool not found: shout")
    assert (read["error"]["code"], read["error"]["data"]["uri"]) == (-32602, "docs://closed")
    assert got["error"]["code"] == -32601


async def test_keys_and_profiles(tenant: Tenant) -> None:
    """Ours: a bound key has its own URL and no other, an unbound one may name any that there is (TEN-1)."""
    await _profile(tenant, "reads", include=[{"methods": ["GET"]}])
    bound = await _key(tenant, profile="reads")
    slug = tenant.slug

    assert await _status(tenant, slug, tenant.key) == 400  # known, but no session was named
    assert await _status(tenant, f"{slug}/default", tenant.key) == 400
    assert await _status(tenant, f"{slug}/reads", tenant.key) == 400
    assert await _status(tenant, f"{slug}/missing", tenant.key) == 404
    assert await _status(tenant, f"{slug}/reads", bound) == 400
    assert await _status(tenant, slug, bound) == 404
    assert await _status(tenant, f"{slug}/default", bound) == 404
    assert await _status(tenant, f"{slug}/missing", bound) == 404


async def test_a_missing_profile_looks_like_a_missing_tenant(tenant: Tenant) -> None:
    """Ours: no response shows which names exist (TEN-5)."""
    async with tenant.replicas.http(tenant.key) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answers = [
            await http.post(f"/t/{place}/mcp", json=body, headers={"accept": ACCEPT})
            for place in (f"{tenant.slug}/missing", "no-such-tenant", "no-such-tenant/missing")
        ]
    bodies = [answer.json() for answer in answers]
    for body in bodies:
        body["error"]["data"].pop("correlation_id")

    assert {answer.status_code for answer in answers} == {404}
    assert bodies[0] == bodies[1] == bodies[2]


async def test_a_session_belongs_to_the_profile_it_was_opened_at(tenant: Tenant) -> None:
    """Ours: a session id is worth nothing at another of the tenant's URLs (TEN-1)."""
    await _profile(tenant, "reads", include=[{"methods": ["GET"]}])
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with tenant.replicas.http(tenant.key) as http:
        opened = await http.post(
            f"/t/{tenant.slug}/reads/mcp",
            json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
            headers={"accept": ACCEPT},
        )
        session = {"accept": ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        own = await http.post(f"/t/{tenant.slug}/reads/mcp", json=ping, headers=session)
        other = await http.post(f"/t/{tenant.slug}/mcp", json=ping, headers=session)

    assert (own.status_code, other.status_code) == (200, 404)


@era
async def test_a_changed_profile_reaches_open_clients(tenant: Tenant, era: Mode) -> None:
    """Ours: rules that change change what is listed at once, on every replica (PRG-3)."""
    await tenant.add("tools", static_tool("say"))
    await tenant.add("tools", static_tool("shout"))
    await _profile(tenant, "some", include=[{"names": ["say"]}])

    async with tenant.replicas.client(f"{tenant.slug}/some", tenant.key, era, to=tenant.replicas.b) as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["say"]
        path = f"/tenants/{tenant.slug}/profiles/some"
        changed = await tenant.replicas.a.gateway.admin.patch(path, json={"include": [{"names": ["s*"]}]})
        changed.raise_for_status()

        async def shows_both() -> bool:
            listed = await client.list_tools(cache_mode="refresh")
            return [each.name for each in listed.tools] == ["say", "shout"]

        await until(shows_both)


async def test_cursors_belong_to_tenant_profile_and_list(tenant: Tenant) -> None:
    """Ours: a cursor shown elsewhere is -32602, and what follows it is what followed it (RES-3)."""
    await tenant.replicas.a.gateway.import_document(tenant.slug, many(tenant.upstream.url, 150))
    await _profile(tenant, "all", include=[{"families": ["tool"]}])
    first = (await tenant.rpc("tools/list"))["result"]
    cursor = first["nextCursor"]
    second = (await tenant.rpc("tools/list", {"cursor": cursor}))["result"]
    elsewhere = [
        await tenant.rpc("tools/list", {"cursor": cursor}, profile="all"),
        await tenant.rpc("resources/list", {"cursor": cursor}),
        await tenant.rpc("tools/list", {"cursor": cursor[:-2]}),
        await tenant.rpc("tools/list", {"cursor": "made up"}),
    ]
    names = [tool["name"] for tool in first["tools"] + second["tools"]]

    assert names == sorted(set(names))
    assert len(names) == 152
    assert "nextCursor" not in second
    assert [answer["error"]["code"] for answer in elsewhere] == [-32602] * 4


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
async def test_a_cursor_of_another_tenant_is_refused(tenant: Tenant, method: str, slugs: Any) -> None:
    """Ours: no list of a tenant can be entered with what another was given (RES-3, TEN-5)."""
    gateway = tenant.replicas.a.gateway
    slug = next(slugs)
    await gateway.create_tenant(slug)
    key = await gateway.create_key(slug)
    await gateway.import_document(slug, many(tenant.upstream.url, 150))
    theirs = (await gateway.rpc(slug, key, "tools/list")).json()["result"]["nextCursor"]

    refused = await tenant.rpc(method, {"cursor": theirs})

    assert refused["error"]["code"] == -32602
    assert refused["error"]["data"]["code"] == "input.cursor_invalid"
