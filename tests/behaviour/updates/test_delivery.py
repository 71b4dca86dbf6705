"""How updates reach whoever follows: each once, in their order, whatever was said of them while nobody took them."""

from tests.behaviour.updates.conftest import Era, Notes, eras
from tests.support.events import Wire, request
from tests.support.primitives import add, text_resource

UPDATED = "notifications/resources/updated"


async def test_what_changed_often_while_nobody_listened_is_told_once(notes: Notes) -> None:
    """Ours: an update says that a resource is another one by now, however often it changed (RES-4)."""
    wire = Wire(notes.replicas, notes.slug, notes.key)
    await wire.initialize(notes.replicas.a)
    for uri in ("note://1", "row://7"):
        answer = await wire.post(notes.replicas.b, request("resources/subscribe", {"uri": uri}))
        assert answer.json()["result"] == {}
    for uri in ("note://1", "row://7", "note://1", "note://1", "row://8", "row://7"):
        body = {"uri": uri}
        (await notes.gateway.admin.post(f"/tenants/{notes.slug}/resources/updated", json=body)).raise_for_status()

    async with wire.listening(notes.replicas.b) as events:
        told = [(await events.message())["params"]["uri"] for _ in range(2)]
        await notes.gateway.admin.post(f"/tenants/{notes.slug}/resources/updated", json={"uri": "row://7"})
        told.append((await events.message())["params"]["uri"])
    await wire.close()

    assert told == ["note://1", "row://7", "row://7"]


async def test_what_changed_often_while_its_replica_slept_is_told_once(notes: Notes) -> None:
    """Ours: several updates that wait for one stream are one, and different ones keep their order (RES-4)."""
    async with notes.following("handshake", "note://1", "row://7") as client:
        notes.replicas.b.pause()
        await notes.touch("row://7", "note://1", "row://7", "note://1", "note://2", "row://7")
        notes.replicas.b.resume()
        told = [await client.next(), await client.next()]
        await notes.touch("note://1")
        told.append(await client.next())

    assert told == [f"{UPDATED[14:]} {uri}" for uri in ("row://7", "note://1", "note://1")]


@eras
async def test_different_resources_are_told_in_their_order(notes: Notes, era: Era) -> None:
    """Ours: what changed first is told first (RES-4)."""
    uris = [f"row://{number}" for number in (5, 3, 9, 1)]
    async with notes.following(era, *sorted(uris)) as client:
        await notes.touch(*uris)
        told = [await client.next() for _ in uris]

    assert told == [f"resources/updated {uri}" for uri in uris]


@eras
async def test_a_resource_in_a_templates_place_is_another_one(notes: Notes, era: Era) -> None:
    """Ours: what is stored or deleted at a URI changes what is read there, so whoever follows is told (RES-5)."""
    place = f"/tenants/{notes.slug}/resources"
    told = {"resources/list_changed", "resources/updated row://7"}
    async with notes.following(era, "row://7") as client:
        stored = await add(notes.gateway, notes.slug, "resources", text_resource("row://7"))
        assert {await client.next(), await client.next()} == told
        (await notes.gateway.admin.delete(f"{place}/{stored['id']}")).raise_for_status()
        assert {await client.next(), await client.next()} == told
