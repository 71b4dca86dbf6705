"""Updates and notices on the streams of sessions: to each permitted subscriber, on any replica, once."""

import asyncio
from typing import Any

import pytest

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import Event, Events, Wire, request
from tests.support.primitives import add, static_tool, text_resource
from tests.support.replicas import until

UPDATED = "notifications/resources/updated"


async def _subscribe(talk: Talk, wire: Wire, uri: str) -> None:
    answer = (await wire.post(talk.replicas.b, request("resources/subscribe", {"uri": uri}))).json()
    assert answer["result"] == {}


async def _updated(events: Events) -> str:
    reported = await events.message()
    assert reported["method"] == UPDATED
    uri: str = reported["params"]["uri"]
    return uri


async def test_an_update_reaches_its_subscriber_from_any_replica(talk: Talk) -> None:
    """MCP: `resources/subscribe`, then `notifications/resources/updated`, over replicas (RES-4)."""
    wire, other = await talk.wire(), await talk.wire()
    await _subscribe(talk, wire, "note://1")
    await _subscribe(talk, other, "note://2")
    async with wire.listening(talk.replicas.b) as events, other.listening(talk.replicas.b) as others:
        for gateway in (replica.gateway for replica in talk.replicas.all):
            await talk.update("note://1", gateway)
            assert await _updated(events) == "note://1"
        await talk.update("note://2")
        assert await _updated(others) == "note://2"


async def test_an_update_waits_for_its_subscriber(talk: Talk) -> None:
    """Ours: changes while no stream was open are sent when there is one, once (RES-4, SRV-2)."""
    wire = await talk.wire()
    await _subscribe(talk, wire, "note://1")
    await talk.update("note://1")
    async with wire.listening(talk.replicas.a) as events:
        place = await _place_of(events, UPDATED)
    await talk.update("note://1")
    async with wire.listening(talk.replicas.b, place) as events:
        assert await _updated(events) == "note://1"
        place = await _next_id(events, talk)
    async with wire.listening(talk.replicas.a) as events:
        await talk.update("note://1")
        assert await _updated(events) == "note://1"


async def _place_of(events: Events, method: str) -> str:
    while True:
        event = await events.next()
        if event.data and event.message["method"] == method:
            assert event.id is not None
            return event.id


async def _next_id(events: Events, talk: Talk) -> str:
    await talk.update("note://1")
    event: Event = await events.next()
    assert event.id is not None
    return event.id


async def test_after_unsubscribing_no_update_is_sent(talk: Talk) -> None:
    """MCP: `resources/unsubscribe` ends it (RES-4)."""
    wire = await talk.wire()
    for uri in ("note://1", "note://2"):
        await _subscribe(talk, wire, uri)
    await wire.post(talk.replicas.a, request("resources/unsubscribe", {"uri": "note://1"}))
    async with wire.listening(talk.replicas.b) as events:
        await talk.update("note://1")
        await talk.update("note://2")
        assert await _updated(events) == "note://2"


@pytest.mark.parametrize("uri", ["note://none", "", "file:///etc/passwd"])
async def test_an_unreadable_resource_cannot_be_subscribed_to(talk: Talk, uri: str) -> None:
    """Ours: a subscription reveals nothing that reading would not (RES-4)."""
    wire = await talk.wire()

    answer = (await wire.post(talk.replicas.a, request("resources/subscribe", {"uri": uri}))).json()

    assert answer["error"]["code"] == -32002


async def test_a_profile_is_notified_of_its_own_resources_only(bare_talk: Talk) -> None:
    """Ours: a subscriber that can no longer read a resource receives no more of it (RES-4, TEN-5)."""
    await add(bare_talk.gateway, bare_talk.slug, "profiles", {"name": "some", "include": [{"names": ["note://1"]}]})
    wire = Wire(bare_talk.replicas, f"{bare_talk.slug}/some", bare_talk.key)
    bare_talk.stack.push_async_callback(wire.close)
    await wire.initialize(bare_talk.replicas.a)

    refused = (await wire.post(bare_talk.replicas.a, request("resources/subscribe", {"uri": "note://2"}))).json()
    await _subscribe(bare_talk, wire, "note://1")
    async with wire.listening(bare_talk.replicas.b) as events:
        await events.next()
        changed = await bare_talk.gateway.admin.patch(
            f"/tenants/{bare_talk.slug}/profiles/some", json={"include": [{"names": ["note://3"]}]}
        )
        assert changed.status_code == 200, changed.text
        assert (await events.message())["method"] == "notifications/resources/list_changed"
        await bare_talk.update("note://1")
        await _subscribe(bare_talk, wire, "note://3")
        await bare_talk.update("note://3")
        assert await _updated(events) == "note://3"

    assert refused["error"]["code"] == -32002


@pytest.mark.parametrize(
    ("nouns", "body", "method"),
    [
        ("tools", static_tool("brand_new"), "notifications/tools/list_changed"),
        ("resources", text_resource("note://new"), "notifications/resources/list_changed"),
    ],
)
async def test_a_changed_list_is_noticed(bare_talk: Talk, nouns: str, body: dict[str, Any], method: str) -> None:
    """MCP: `listChanged` is declared, so it is sent, and once for simultaneous changes (CAP-2, SRV-1)."""
    wire = await bare_talk.wire()
    async with wire.listening(bare_talk.replicas.b) as events:
        await events.next()
        await add(bare_talk.gateway, bare_talk.slug, nouns, body)
        event = await events.next()
        assert event.message == {"jsonrpc": "2.0", "method": method}

    async with wire.listening(bare_talk.replicas.a, event.id) as events:
        await _subscribe(bare_talk, wire, "note://1")
        await bare_talk.update("note://1")
        assert await _updated(events) == "note://1"


async def test_a_change_that_was_missed_is_noticed_on_return(bare_talk: Talk) -> None:
    """Ours: a stream's place records the last revision that its client was sent (SRV-2)."""
    wire = await bare_talk.wire()
    async with wire.listening(bare_talk.replicas.a) as events:
        place = (await events.next()).id
    await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("brand_new"))

    async with wire.listening(bare_talk.replicas.b, place) as events:
        methods = {(await events.message())["method"] for _ in range(2)}

    assert methods == {"notifications/tools/list_changed", "notifications/resources/list_changed"}


async def test_no_two_events_of_a_session_have_one_id(bare_talk: Talk) -> None:
    """MCP: an event's id exists once in a session, also where two streams send the same (SRV-2)."""
    wire = await bare_talk.wire()
    await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("brand_new"))
    named: list[str | None] = []

    for replica in (bare_talk.replicas.a, bare_talk.replicas.b, bare_talk.replicas.a):
        async with wire.listening(replica) as events:
            notified = [await events.next() for _ in range(3)]
        assert [event.data != "" for event in notified] == [False, True, True]
        named += [event.id for event in notified]

    assert None not in named
    assert len(set(named)) == len(named)


async def test_undeclared_notices_are_not_sent(bare_talk: Talk) -> None:
    """MCP: notices only of what was declared when the session was opened (CAP-1)."""
    wire = await bare_talk.wire()
    async with wire.listening(bare_talk.replicas.b) as events:
        await events.next()
        prompt = {"definition": {"name": "greet"}, "handler": {"kind": "template", "text": "hi"}}
        await add(bare_talk.gateway, bare_talk.slug, "prompts", prompt)
        await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("brand_new"))
        assert (await events.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("end", ["delete", "revoke"])
async def test_nothing_of_an_ended_session_stays(bare_talk: Talk, end: str) -> None:
    """Ours: with DELETE and with its key, a session's streams and subscriptions are gone everywhere (RES-6)."""
    key = await bare_talk.gateway.create_key(bare_talk.slug)
    wire = await bare_talk.wire(key=key)
    others = set(bare_talk.stored("*:subscribers:*"))
    await _subscribe(bare_talk, wire, "note://1")
    assert bare_talk.stored(f"*{wire.session}*")
    assert len(set(bare_talk.stored("*:subscribers:*")) - others) == 1
    async with wire.listening(bare_talk.replicas.b) as events:
        await events.next()
        if end == "delete":
            assert (await wire.delete(bare_talk.replicas.a)).status_code == 200
        else:
            await _revoke(bare_talk, key)
        assert await events.rest() == []

    async def is_gone() -> bool:
        return not bare_talk.stored(f"*{wire.session}*")

    await until(is_gone)
    assert set(bare_talk.stored("*:subscribers:*")) <= others
    assert (await wire.post(bare_talk.replicas.a, request("ping"))).status_code == (404 if end == "delete" else 401)


async def test_delete_ends_running_calls(talk: Talk) -> None:
    """MCP: the end of a session is the end of its calls, at whatever replica they run (SRV-1)."""
    wire = await talk.wire()
    talk.upstream.gate = asyncio.Event()
    from_a = {"name": "wait", "arguments": {}, "_meta": {"progressToken": 1}}
    async with wire.streaming(talk.replicas.a, request("tools/call", from_a)) as events:
        await events.message()
        assert (await wire.delete(talk.replicas.b)).status_code == 200
        answer = (await events.rest())[-1].message

    assert answer["error"]["code"] == -32800


async def _revoke(talk: Talk, key: str) -> None:
    keys = (await talk.gateway.admin.get(f"/tenants/{talk.slug}/keys")).json()["items"]
    mine = next(each["id"] for each in keys if each["id"].removeprefix("key_") in key)
    revoked = await talk.gateway.admin.post(f"/tenants/{talk.slug}/keys/{mine}/revoke")
    assert revoked.status_code == 200, revoked.text
