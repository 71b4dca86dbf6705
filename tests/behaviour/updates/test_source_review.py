"""Clients of a source that is refreshed: they keep what they have until a person activates a proposal."""

import asyncio
import json
from typing import Any

import anyio

from tests.behaviour.updates.conftest import NOTES, Era, Notes, eras
from tests.support.documents import pets
from tests.support.primitives import add

PATH = "/tenants/{slug}/sources/pets"


async def _tools(notes: Notes) -> set[str]:
    answer = await notes.replicas.b.gateway.rpc(notes.slug, notes.key, "tools/list", {})
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


async def _post(notes: Notes, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await notes.gateway.admin.post(PATH.format(slug=notes.slug) + path, json=body or {})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


@eras
async def test_clients_keep_the_active_version_until_an_activation(notes: Notes, era: Era) -> None:
    """Ours: a proposal is sent to no client; activation and rollback reach the other replica's at once (OAS-6)."""
    document = pets(notes.upstream.url)
    served = {"/openapi.json": json.dumps(document).encode()}
    notes.upstream.respond = lambda seen: served.get(seen.target, b'{"ok":true}')
    await add(notes.gateway, notes.slug, "sources", {"name": "pets", "url": f"{notes.upstream.url}/openapi.json"})
    del document["paths"]["/pets"]["get"]
    document["paths"]["/toys"] = {"get": {"operationId": "list_toys", "responses": {"200": {"description": "ok"}}}}
    before = await _tools(notes)
    async with notes.following(era, NOTES[0]) as notified:
        served["/openapi.json"] = json.dumps(document).encode()
        proposal = (await _post(notes, "/refresh"))["proposal"]
        await notes.touch(NOTES[0])
        assert await notified.next() == f"resources/updated {NOTES[0]}"  # and nothing was sent before
        assert await _tools(notes) == before
        notes.upstream.gate = asyncio.Event()
        notes.upstream.arrived.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_call_the_removed, notes)
            await notes.upstream.arrived.wait()
            await _post(notes, f"/versions/{proposal['version']}/activate")
            assert await notified.next() == "tools/list_changed"
            assert await _tools(notes) == before - {"list_pets"} | {"list_toys"}
            notes.upstream.gate.set()
        await _post(notes, "/versions/1/activate")
        assert await notified.next() == "tools/list_changed"
        assert await _tools(notes) == before


async def _call_the_removed(notes: Notes) -> None:
    """A call that runs while its tool is removed ends on the version that it began with."""
    answer = await notes.replicas.b.gateway.rpc(notes.slug, notes.key, "tools/call", {"name": "list_pets"})
    assert answer.json()["result"]["structuredContent"] == {"ok": True}
