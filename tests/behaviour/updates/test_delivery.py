"""Delivery of updates to subscribers: each once, in their order, also those from the time before they listened."""

from typing import Any

from tests.behaviour.updates.conftest import ROWS, Era, Notes, eras
from tests.support.events import Wire, request
from tests.support.primitives import add, text_resource

UPDATED = "notifications/resources/updated"


async def test_several_changes_without_a_listener_are_one_update(notes: Notes) -> None:
    """Ours: an update means that a resource differs by now, however often it changed (RES-4)."""
    wire = Wire(notes.replicas, notes.slug, notes.key)
    await wire.initialize(notes.replicas.a)
    for uri in ("note://1", "row://7"):
        answer = await wire.post(notes.replicas.b, request("resources/subscribe", {"uri": uri}))
        assert answer.json()["result"] == {}
    for uri in ("note://1", "row://7", "note://1", "note://1", "row://8", "row://7"):
        body = {"uri": uri}
        (await notes.gateway.admin.post(f"/tenants/{notes.slug}/resources/updated", json=body)).raise_for_status()

    async with wire.listening(notes.replicas.b) as events:
        notified = [(await events.message())["params"]["uri"] for _ in range(2)]
        await notes.gateway.admin.post(f"/tenants/{notes.slug}/resources/updated", json={"uri": "row://7"})
        notified.append((await events.message())["params"]["uri"])
    await wire.close()

    assert notified == ["note://1", "row://7", "row://7"]


async def test_several_changes_during_a_pause_are_one_update(notes: Notes) -> None:
    """Ours: several updates that wait for one stream are one, and different ones keep their order (RES-4)."""
    async with notes.following("handshake", "note://1", "row://7") as client:
        notes.replicas.b.pause()
        await notes.touch("row://7", "note://1", "row://7", "note://1", "note://2", "row://7")
        notes.replicas.b.resume()
        notified = [await client.next(), await client.next()]
        await notes.touch("note://1")
        notified.append(await client.next())

    assert notified == [f"{UPDATED[14:]} {uri}" for uri in ("row://7", "note://1", "note://1")]


@eras
async def test_updates_of_different_resources_keep_their_order(notes: Notes, era: Era) -> None:
    """Ours: changes are sent in their order (RES-4)."""
    uris = [f"row://{number}" for number in (5, 3, 9, 1)]
    async with notes.following(era, *sorted(uris)) as client:
        await notes.touch(*uris)
        notified = [await client.next() for _ in uris]

    assert notified == [f"resources/updated {uri}" for uri in uris]


@eras
async def test_a_resource_in_a_templates_place_is_another_one(notes: Notes, era: Era) -> None:
    """Ours: an object that is stored or deleted at a URI changes the result of reading it, so its subscribers are
    notified (RES-5).
    """
    place = f"/tenants/{notes.slug}/resources"
    notified = {"resources/list_changed", "resources/updated row://7"}
    async with notes.following(era, "row://7") as client:
        stored = await add(notes.gateway, notes.slug, "resources", text_resource("row://7"))
        assert {await client.next(), await client.next()} == notified
        (await notes.gateway.admin.delete(f"{place}/{stored['id']}")).raise_for_status()
        assert {await client.next(), await client.next()} == notified


@eras
async def test_a_resource_that_is_moved_into_a_templates_place_is_another_one(notes: Notes, era: Era) -> None:
    """Ours: subscribers of the present URI of the resource are notified, and so are those of the former one (RES-5)."""
    async with notes.following(era, "note://1", "row://7") as client:
        await _change(notes, "resources", "note://1", {"definition": {"uri": "row://7", "name": "moved"}})
        notified = {await client.next(), await client.next()}

    assert notified == {"resources/list_changed", "resources/updated row://7"}


@eras
async def test_a_changed_template_notifies_of_its_instances(notes: Notes, era: Era) -> None:
    """Ours: each of its subscribed URIs has changed by now, and no other has (RES-5)."""
    other = {"kind": "template", "text": "another row {{ id }}", "mimeType": "text/plain"}
    async with notes.following(era, "row://7", "note://2", "row://8") as client:
        await _change(notes, "resource-templates", ROWS["definition"]["uriTemplate"], {"handler": other})
        notified = [await client.next(), await client.next()]
        await notes.touch("note://2")
        notified.append(await client.next())

    assert notified == [f"resources/updated {uri}" for uri in ("row://7", "row://8", "note://2")]


@eras
async def test_a_template_that_comes_back_notifies_of_its_instances(notes: Notes, era: Era) -> None:
    """Ours: under another name, or away, it makes nothing that could be read; then it does again (RES-4, RES-5)."""
    name, away = ROWS["definition"]["uriTemplate"], "away://{id}"
    listed, notified = "resources/list_changed", "resources/updated row://7"
    async with notes.following(era, "row://7") as client:
        await _change(notes, "resource-templates", name, _called(away))
        assert await client.next() == listed
        await _change(notes, "resource-templates", away, _called(name))
        assert {await client.next(), await client.next()} == {listed, notified}
        (await notes.gateway.admin.delete(await _find(notes, "resource-templates", name))).raise_for_status()
        assert await client.next() == listed
        await add(notes.gateway, notes.slug, "resource-templates", ROWS)
        assert {await client.next(), await client.next()} == {listed, notified}


async def test_instances_of_a_replaced_template_are_notified_later(notes: Notes) -> None:
    """Ours: a change of the template waits in the session like any other update (RES-4, RES-5)."""
    wire = Wire(notes.replicas, notes.slug, notes.key)
    await wire.initialize(notes.replicas.a)
    for uri in ("row://1", "row://2"):
        answer = await wire.post(notes.replicas.b, request("resources/subscribe", {"uri": uri}))
        assert answer.json()["result"] == {}
    await wire.post(notes.replicas.b, request("resources/unsubscribe", {"uri": "row://1"}))
    other = {"kind": "template", "text": "another row", "mimeType": "text/plain"}
    await _change(notes, "resource-templates", ROWS["definition"]["uriTemplate"], {"handler": other})

    async with wire.listening(notes.replicas.b) as events:
        reported = await events.message()
    await wire.close()

    assert (reported["method"], reported["params"]["uri"]) == (UPDATED, "row://2")


def _called(uri_template: str) -> dict[str, Any]:
    return {"definition": ROWS["definition"] | {"uriTemplate": uri_template}}


async def _change(notes: Notes, nouns: str, name: str, wanted: dict[str, Any]) -> None:
    """Revise a primitive at the first replica."""
    answer = await notes.gateway.admin.patch(await _find(notes, nouns, name), json=wanted)
    assert answer.status_code == 200, answer.text


async def _find(notes: Notes, nouns: str, name: str) -> str:
    """Place of the primitive with this name in the admin API."""
    place = f"/tenants/{notes.slug}/{nouns}"
    items = (await notes.gateway.admin.get(place)).json()["items"]
    return next(f"{place}/{each['id']}" for each in items if name in each["definition"].values())
