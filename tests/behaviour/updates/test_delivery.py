"""How updates reach sessions of the handshake era."""

from tests.behaviour.updates.conftest import Notes
from tests.support.events import Wire, request

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
