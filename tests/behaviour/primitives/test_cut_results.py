"""A result too large to be sent whole can be read whole, by its principal and by no other."""

import json
from typing import Any

import pytest

from tests.behaviour.primitives.conftest import Tenant
from tests.behaviour.primitives.test_kinds import era
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.handshake import open_session
from tests.support.replicas import Mode

ROWS = [{"id": number, "text": "x" * 100} for number in range(10_000)]


async def _link(tenant: Tenant, era: Mode, profile: str = "") -> str:
    """Location of the rest of a large answer, as the first replica sent it to a client."""
    await tenant.replicas.a.gateway.import_document(tenant.slug, pets(tenant.upstream.url))
    tenant.upstream.body = json.dumps(ROWS).encode()
    async with tenant.replicas.client(f"{tenant.slug}{profile}", tenant.key, era, to=tenant.replicas.a) as client:
        result = await client.call_tool("list_pets")
    (link,) = [str(block.uri) for block in result.content if block.type == "resource_link"]
    assert not result.is_error
    return link


async def _read(gateway: RunningGateway, place: str, key: str, uri: str) -> Any:
    return (await gateway.rpc(place, key, "resources/read", {"uri": uri}, mcp_name=uri)).json()


@era
async def test_the_whole_of_a_cut_result_is_read_at_another_replica(tenant: Tenant, era: Mode) -> None:
    """Ours: the link of a cut result leads to all of it, byte for byte (CAL-1, RES-1)."""
    link = await _link(tenant, era)

    async with tenant.replicas.client(tenant.slug, tenant.key, era, to=tenant.replicas.b) as client:
        (whole,) = (await client.read_resource(link)).contents

    assert json.loads(getattr(whole, "text", "null")) == ROWS
    assert whole.mime_type == "application/json"


async def test_a_cut_result_is_its_callers_alone(tenant: Tenant, slugs: Any) -> None:
    """Ours: not another key's of the tenant, not another tenant's: to them nothing is there (TEN-5)."""
    link = await _link(tenant, "2026-07-28")
    gateway = tenant.replicas.b.gateway
    foreign = next(slugs)
    await gateway.create_tenant(foreign)
    others = [(tenant.slug, await gateway.create_key(tenant.slug)), (foreign, await gateway.create_key(foreign))]
    for slug, key in others:
        refused = await _read(gateway, slug, key, link)
        unknown = await _read(gateway, slug, key, link[:-1] + ("x" if link[-1] != "x" else "y"))
        assert refused["error"]["code"] == unknown["error"]["code"] == -32602
        assert refused["error"]["message"] == unknown["error"]["message"]
    assert "result" in await _read(gateway, tenant.slug, tenant.key, link)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_profile_without_resources_reads_it_too(tenant: Tenant, revision: str) -> None:
    """Ours: the result of a call can be read in the profile of the call, and nothing is declared for it (CAP-1)."""
    profile = {"name": "tools", "include": [{"families": ["tool"]}]}
    path = f"/tenants/{tenant.slug}/profiles"
    (await tenant.replicas.a.gateway.admin.post(path, json=profile)).raise_for_status()
    place, gateway = f"{tenant.slug}/tools", tenant.replicas.b.gateway
    link = await _link(tenant, "2026-07-28", "/tools")
    if revision == "2026-07-28":
        read = await _read(gateway, place, tenant.key, link)
        listed = (await gateway.rpc(place, tenant.key, "resources/list")).json()
    else:
        session = await open_session(gateway, place, tenant.key, version=revision)
        read, listed = await session.rpc("resources/read", {"uri": link}), await session.rpc("resources/list")

    assert json.loads(read["result"]["contents"][0]["text"]) == ROWS
    assert listed["error"]["code"] == -32601


async def test_reading_it_is_counted_and_recorded_like_any_call(tenant: Tenant) -> None:
    """Ours: no read goes past the limits and the trail (TEN-3, SAF-4)."""
    link = await _link(tenant, "2026-07-28")
    await _read(tenant.replicas.b.gateway, tenant.slug, tenant.key, link)
    entries = (await tenant.replicas.a.gateway.admin.get(f"/tenants/{tenant.slug}/audit?limit=5")).json()["items"]

    assert link in json.dumps(entries)
