"""A client that may no longer read a resource receives no more of it: in both eras, on the replica without the
event.
"""

from contextlib import nullcontext
from typing import Any, cast
from urllib.parse import quote

import anyio
import pytest

from tests.behaviour.updates.conftest import Era, Notes, eras
from tests.support.primitives import add
from tests.support.replicas import commanding, until
from tests.support.servers import TestServers, execute


def _stored(servers: TestServers, session: str) -> list[bytes]:
    """Content of a session in Redis."""
    with commanding(servers.urls.redis_url) as command:
        return cast(list[bytes], command("KEYS", f"*{session}*"))


async def _ends(notes: Notes, servers: TestServers, client: Any) -> None:
    """Wait until the client's stream has ended, and nothing of its session is in Redis."""
    with notes.replicas.b.hurrying():
        assert await client.rest() == []
    if not client.wire.session:
        return

    async def is_gone() -> bool:
        return not _stored(servers, client.wire.session)

    await until(is_gone, seconds=30, pause=0.1)


@eras
@pytest.mark.parametrize("is_received", [True, False])
async def test_a_revoked_key_gets_no_more_updates(
    notes: Notes, servers: TestServers, era: Era, is_received: bool
) -> None:
    """Ours: its streams and subscriptions end, also where the event about the key is lost (RES-4, RES-6, TEN-2)."""
    key = await notes.gateway.create_key(notes.slug)
    async with notes.following(era, "note://1", key=key) as client, notes.following(era, "note://1") as other:
        with nullcontext() if is_received else notes.replicas.a.muted():
            path = f"/tenants/{notes.slug}/keys/key_{key.split('_')[2]}/revoke"
            (await notes.gateway.admin.post(path)).raise_for_status()
        await _ends(notes, servers, client)
        await notes.touch("note://1")
        assert await other.next() == "resources/updated note://1"


@eras
async def test_an_expired_key_gets_no_more_updates(notes: Notes, servers: TestServers, era: Era) -> None:
    """Ours: no event reports that a key has expired; a check finds it, and its subscriptions end (RES-4, RES-6,
    TEN-2).
    """
    key = await notes.gateway.create_key(notes.slug)
    async with notes.following(era, "note://1", key=key) as client, notes.following(era, "note://1") as other:
        expired = f"update keys set expires_at = now() where id = 'key_{key.split('_')[2]}'"
        await execute(notes.database.superuser_url, expired)
        await _ends(notes, servers, client)
        await notes.touch("note://1")
        assert await other.next() == "resources/updated note://1"


@eras
async def test_a_profile_that_loses_a_resource_gets_no_more_updates_of_it(notes: Notes, era: Era) -> None:
    """Ours: a resource that a profile no longer shows is not notified there, and still is elsewhere (RES-4, TEN-5)."""
    await add(notes.gateway, notes.slug, "profiles", {"name": "some", "include": [{"names": ["note://*"]}]})
    async with (
        notes.following(era, "note://1", "note://2", profile="some") as client,
        notes.following(era, "note://1", "note://2") as other,
    ):
        body = {"include": [{"names": ["note://2"]}]}
        path = f"/tenants/{notes.slug}/profiles/some"
        (await notes.gateway.admin.patch(path, json=body)).raise_for_status()
        await notes.touch("note://1", "note://2")
        notified = {await client.next(), await client.next()}
        elsewhere = [await other.next(), await other.next()]

    assert notified == {"resources/list_changed", "resources/updated note://2"}
    assert elsewhere == ["resources/updated note://1", "resources/updated note://2"]


@eras
async def test_a_profile_that_is_gone_shows_nothing(notes: Notes, era: Era) -> None:
    """Ours: with its profile a client loses sight of everything (RES-4, TEN-5)."""
    await add(notes.gateway, notes.slug, "profiles", {"name": "some", "include": [{"names": ["note://*"]}]})
    async with (
        notes.following(era, "note://1", profile="some") as client,
        notes.following(era, "note://1") as other,
    ):
        (await notes.gateway.admin.delete(f"/tenants/{notes.slug}/profiles/some")).raise_for_status()
        await notes.touch("note://1")
        assert await other.next() == "resources/updated note://1"
        assert await client.next() == "resources/list_changed"
        await notes.touch("note://1")
        assert await other.next() == "resources/updated note://1"
        with anyio.move_on_after(0.5) as waited:
            await client.next()

    assert waited.cancelled_caught


@eras
async def test_a_deleted_resource_has_no_more_updates(notes: Notes, era: Era) -> None:
    """Ours: an absent resource has not changed; other subscriptions stay (RES-4, RES-5)."""
    async with notes.following(era, "note://1", "note://2") as client:
        path = f"/tenants/{notes.slug}/resources"
        found = (await notes.gateway.admin.get(f"{path}?uri={quote('note://1', safe='')}")).json()["items"]
        (await notes.gateway.admin.delete(f"{path}/{found[0]['id']}")).raise_for_status()
        refused = await notes.gateway.admin.post(f"{path}/updated", json={"uri": "note://1"})
        await notes.touch("note://2")
        notified = {await client.next(), await client.next()}

    assert refused.status_code == 404
    assert notified == {"resources/list_changed", "resources/updated note://2"}
