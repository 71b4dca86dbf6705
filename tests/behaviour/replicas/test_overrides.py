"""Overrides stored at one replica: the other shows and obeys them, to clients of both eras."""

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult

from tests.behaviour.replicas.conftest import Acme
from tests.support.replicas import Mode, tool_names, until

NOTIFIED_S = 5
"""An event is there within a second; the machine may be busy."""
ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")


async def _set(acme: Acme, tool: str, **wanted: object) -> None:
    answer = await acme.replicas.a.gateway.admin.patch(f"/tenants/{acme.slug}/tools/{tool}", json=wanted)
    assert answer.status_code == 200, answer.text


async def _schema(client: Client, name: str) -> dict[str, Any]:
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    return listed[name].input_schema if name in listed else {}


async def _call(client: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
    return await client.call_tool(name, arguments)


@pytest.mark.parametrize("mode", ERAS)
async def test_the_other_replica_lists_and_sends_pinned_arguments(acme: Acme, mode: Mode) -> None:
    """Ours: an open client sees the argument go, and the upstream gets its value (OAS-6, REG-1)."""
    async with acme.replicas.client(acme.slug, acme.key, mode, to=acme.replicas.b) as client:
        assert set((await _schema(client, "get_pet"))["properties"]) == {"id", "verbose"}
        await _set(acme, "get_pet", pinned={"verbose": True}, title="Find")

        async def is_gone() -> bool:
            return set((await _schema(client, "get_pet"))["properties"]) == {"id"}

        await until(is_gone, seconds=NOTIFIED_S)
        acme.upstream.seen.clear()
        assert not (await _call(client, "get_pet", {"id": 7})).is_error
        assert (await _call(client, "get_pet", {"id": 7, "verbose": False})).is_error
        assert [seen.target for seen in acme.upstream.seen] == ["/v1/pets/7?verbose=true"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_tool_is_renamed_under_an_open_client(acme: Acme, mode: Mode) -> None:
    """Ours: the new name is listed at the other replica, both can be called, and neither is two tools (OAS-6)."""
    async with acme.replicas.client(acme.slug, acme.key, mode, to=acme.replicas.b) as client:
        assert "get_pet" in await tool_names(client)
        await _set(acme, "get_pet", name="find_pet")

        async def is_renamed() -> bool:
            return await tool_names(client) == ["create_pet", "delete_pet", "find_pet", "list_pets"]

        await until(is_renamed, seconds=NOTIFIED_S)
        acme.upstream.seen.clear()
        for name in ("find_pet", "get_pet"):
            assert not (await _call(client, name, {"id": 1})).is_error
        assert [seen.target for seen in acme.upstream.seen] == ["/v1/pets/1", "/v1/pets/1"]
        await _set(acme, "find_pet", hidden=True)

        async def is_hidden() -> bool:
            return await tool_names(client) == ["create_pet", "delete_pet", "list_pets"]

        await until(is_hidden, seconds=NOTIFIED_S)


async def test_one_of_two_simultaneous_requests_gets_a_name(acme: Acme) -> None:
    """Ours: at two replicas at the same moment, the second one gets an error that names the owner (OAS-6)."""
    statuses: list[int] = []

    async def rename(tool: str, number: int) -> None:
        admin = acme.replicas.all[number].gateway.admin
        answer = await admin.patch(f"/tenants/{acme.slug}/tools/{tool}", json={"name": "wanted"})
        statuses.append(answer.status_code)
        if answer.status_code == 409:
            assert answer.json()["conflicts"] == [{"name": "wanted", "owner": "source:api"}]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rename, "get_pet", 0)
        tasks.start_soon(rename, "list_pets", 1)
    assert sorted(statuses) == [200, 409]


async def test_of_two_changes_of_one_tool_none_is_lost(acme: Acme) -> None:
    """Ours: both apply, or the second has to read again; never one over the other (OAS-6)."""
    done: list[str] = []

    async def change(number: int, member: str) -> None:
        admin = acme.replicas.all[number].gateway.admin
        answer = await admin.patch(f"/tenants/{acme.slug}/tools/get_pet", json={member: "x"})
        assert answer.status_code in {200, 409}, answer.text
        if answer.status_code == 200:
            done.append(member)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(change, 0, "title")
        tasks.start_soon(change, 1, "description")
    shown = await acme.replicas.a.gateway.admin.get(f"/tenants/{acme.slug}/tools/get_pet")
    assert done
    assert {name for name in ("title", "description") if shown.json()["status"]["override"][name] == "x"} == set(done)
