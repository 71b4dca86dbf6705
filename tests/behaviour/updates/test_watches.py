"""URLs that the gateway looks at by itself."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.behaviour.updates.conftest import INTERVAL_S, Notes, received
from tests.support.primitives import add
from tests.support.replicas import until


async def _state(notes: Notes, watch: dict[str, Any]) -> dict[str, Any]:
    shown = await notes.gateway.admin.get(f"/tenants/{notes.slug}/watches/{watch['id']}")
    state: dict[str, Any] = shown.json()["status"]
    return state


async def _until(notes: Notes, claim: Callable[[], Awaitable[bool]]) -> None:
    """Let the time pass in which the next look is due, and wait for what comes of it."""
    await notes.pass_time(INTERVAL_S + 1)
    with notes.replicas.a.hurrying(), notes.replicas.b.hurrying():
        await until(claim, seconds=30)


async def _looked(notes: Notes, watch: dict[str, Any]) -> None:
    async def has_looked() -> bool:
        return bool(notes.upstream.seen) and (await _state(notes, watch))["checked_at"] is not None

    await _until(notes, has_looked)


async def _failed(notes: Notes, watch: dict[str, Any]) -> None:
    async def has_failed() -> bool:
        return bool((await _state(notes, watch))["failures"])

    await _until(notes, has_failed)


async def test_the_polled_content_is_notified(notes: Notes) -> None:
    """Ours: subscribers receive a change that was not reported, from the replica that polled (RES-5)."""
    notes.upstream.headers = (("ETag", '"1"'),)
    watch = await notes.watch("note://1")
    await _looked(notes, watch)
    async with notes.notified("note://1") as at_b, notes.notified("note://1", at=notes.replicas.a) as at_a:
        notes.upstream.body, notes.upstream.headers = b"two", (("ETag", '"2"'),)
        await notes.pass_time(INTERVAL_S + 1)
        with notes.replicas.a.hurrying(), notes.replicas.b.hurrying():
            assert [await received(at_b, seconds=20), await received(at_a)] == ["note://1", "note://1"]

    async def is_noted() -> bool:
        return (await _state(notes, watch))["changed_at"] is not None

    await until(is_noted)  # the look is noted after its update was published
    state = await _state(notes, watch)
    assert state["changed_at"] == state["checked_at"]
    assert notes.upstream.seen[0].header("if-none-match") is None
    assert notes.upstream.seen[1].header("if-none-match") == '"1"'
    assert len(notes.upstream.seen) == 2  # two replicas, and each look was made by one of them


async def test_a_failing_look_is_shown_and_no_update(notes: Notes) -> None:
    """Ours: the admin sees why a watch sees nothing; followers are not bothered (RES-5)."""
    notes.upstream.status = 500
    watch = await notes.watch("note://1")

    await _failed(notes, watch)
    state = await _state(notes, watch)
    assert (state["fault"], state["changed_at"]) == ("the URL responded with status 500", None)


async def test_a_stored_credential_is_sent_with_polls(notes: Notes) -> None:
    """Ours: to its own origin, and it cannot be deleted under the watch (RES-5, TEN-4)."""
    secret = {"name": "token", "place": "bearer", "value": "s3cr3t-word", "origins": [notes.upstream.url]}
    await add(notes.gateway, notes.slug, "credentials", secret)
    watch = await notes.watch("note://1", credential="token")
    await _looked(notes, watch)
    refused = await notes.gateway.admin.delete(f"/tenants/{notes.slug}/credentials/token")

    assert notes.upstream.seen[0].header("authorization") == "Bearer s3cr3t-word"
    assert refused.status_code == 409
    assert "watch note://1" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"uri": "note://none"}, "/uri"),
        ({"credential": "none"}, "/credential"),
        ({"url": "https://elsewhere.example/", "credential": "token"}, "/credential"),
        ({"interval_s": 4}, "/interval_s"),
        ({"url": "ftp://example.com/"}, "/url"),
        ({"url": "https://user:password@example.com/"}, "/url"),
    ],
)
async def test_an_impossible_watch_is_refused(notes: Notes, body: dict[str, Any], pointer: str) -> None:
    """Ours: a clear answer that points into the body (RES-5)."""
    secret = {"name": "token", "place": "bearer", "value": "s3cr3t-word", "origins": [notes.upstream.url]}
    await add(notes.gateway, notes.slug, "credentials", secret)
    sent = {"uri": "note://1", "url": notes.upstream.url, **body}
    refused = await notes.gateway.admin.post(f"/tenants/{notes.slug}/watches", json=sent)

    assert refused.status_code in {400, 422}
    assert refused.json()["errors"][0]["pointer"] == pointer


async def test_a_private_address_is_not_looked_at(notes: Notes) -> None:
    """Ours: looks leave by the one door (RES-5)."""
    watch = await notes.watch("note://1", url="http://169.254.169.254/latest/meta-data")

    await _failed(notes, watch)


async def test_a_policy_of_origins_holds_for_looks(notes: Notes) -> None:
    """Ours: URLs that handlers may not request, watches may not poll, from the next poll on (RES-5)."""
    place = f"/tenants/{notes.slug}/policy"
    watch = await notes.watch("note://1")
    await _looked(notes, watch)
    (await notes.gateway.admin.put(place, json={"http_origins": ["https://a.example"]})).raise_for_status()

    await _failed(notes, watch)
    again = await notes.gateway.admin.post(
        f"/tenants/{notes.slug}/watches", json={"uri": "note://2", "url": notes.upstream.url}
    )
    assert (len(notes.upstream.seen), again.status_code) == (1, 422)


async def test_a_watch_is_changed_found_and_deleted(notes: Notes) -> None:
    """Ours: one watch of a resource; another URL starts from the beginning (RES-5)."""
    watch = await notes.watch("note://1")
    await _looked(notes, watch)
    admin, places = notes.gateway.admin, f"/tenants/{notes.slug}/watches"
    clash = await admin.post(places, json={"uri": "note://1", "url": notes.upstream.url})
    found = (await admin.get(places, params={"uri": "note://1"})).json()["items"]
    changed = await admin.patch(f"{places}/{watch['id']}", json={"url": f"{notes.upstream.url}/other"})
    (await admin.delete(f"{places}/{watch['id']}")).raise_for_status()

    assert clash.status_code == 409
    assert [one["id"] for one in found] == [watch["id"]]
    assert (changed.status_code, changed.json()["status"]["checked_at"]) == (200, None)
    assert (await admin.get(f"{places}/{watch['id']}")).status_code == 404


async def test_a_killed_replicas_looks_are_made_by_the_other(notes: Notes) -> None:
    """Ours: no look belongs to a replica for longer than it lives (RES-5, SRV-3)."""
    watch = await notes.watch("note://1")
    await _looked(notes, watch)
    async with notes.notified("note://1", at=notes.replicas.a) as updates:
        notes.replicas.b.kill()
        notes.upstream.body = b"two"
        await notes.pass_time(INTERVAL_S + 1)
        with notes.replicas.a.hurrying():
            assert await received(updates, seconds=30) == "note://1"
