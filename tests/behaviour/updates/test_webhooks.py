"""Webhooks by which a tenant's own systems report changed resources."""

import json
import time
from typing import Any, cast

import anyio

from gateway.catalog.updates.signatures import new_secret, sign
from tests.behaviour.updates.conftest import Notes, received
from tests.support.documents import pets
from tests.support.primitives import add
from tests.support.replicas import until
from tests.support.servers import execute, fetch_value


async def test_a_signed_delivery_reaches_every_subscriber(notes: Notes) -> None:
    """Ours: a delivery to one replica reaches the other, also for a template's instance (RES-5)."""
    hook = await notes.webhook()
    async with notes.notified("note://1", "row://7") as updates:
        one = await notes.deliver(hook, {"uri": "note://1", "type": "changed"})
        both = await notes.deliver(hook, {"uris": ["row://7", "note://2"]})
        assert [await received(updates), await received(updates)] == ["note://1", "row://7"]

    assert (one.status_code, both.status_code) == (202, 202), (one.text, both.text)


async def test_a_delivery_counts_once(notes: Notes) -> None:
    """Ours: however often it comes and at whatever replica, it is one event (RES-5)."""
    hook = await notes.webhook()
    statuses: list[int] = []

    async def deliver(number: int) -> None:
        to = notes.replicas.all[number % 2]
        answer = await notes.deliver(hook, {"uri": "note://1"}, delivery="msg_same", to=to)
        statuses.append(answer.status_code)

    async with notes.notified("note://1", "note://2") as updates:
        for _ in range(4):
            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(deliver, number)
        await notes.deliver(hook, {"uri": "note://2"})
        assert [await received(updates), await received(updates)] == ["note://1", "note://2"]

    assert sorted(statuses) == [202] + [409] * 19


async def test_a_delivery_makes_the_gateway_look_at_a_source(notes: Notes) -> None:
    """Ours: a deployment is proposed at the report of a pipeline, from either replica (OAS-6)."""
    document = pets("https://pets.example")
    notes.upstream.body = json.dumps(document).encode()
    await add(notes.gateway, notes.slug, "sources", {"name": "pets", "url": f"{notes.upstream.url}/openapi.json"})
    del document["paths"]["/pets"]["post"]
    notes.upstream.body = json.dumps(document).encode()
    hook, path = await notes.webhook(), f"/tenants/{notes.slug}/sources/pets/proposal"
    taken = [await notes.deliver(hook, {"source": "pets"}), await notes.deliver(hook, {"sources": ["pets"]})]
    missing = await notes.deliver(hook, {"sources": ["pets", "none"]})
    unclear = await notes.deliver(hook, {"source": "pets", "sources": ["pets"]})

    async def is_proposed() -> bool:
        return (await notes.gateway.admin.get(path)).status_code == 200

    notes.upstream.seen.clear()
    await execute(notes.database.superuser_url, "update due_work set due_at = now() where kind = 'source_refresh'")
    with notes.replicas.a.hurrying(), notes.replicas.b.hurrying():
        await until(is_proposed, seconds=30)

    assert [each.status_code for each in (*taken, missing, unclear)] == [202, 202, 422, 400]
    assert [error["pointer"] for error in missing.json()["errors"]] == ["/sources/1"]
    assert len(notes.upstream.seen) == 1


async def test_a_replayed_report_causes_no_fetch(notes: Notes) -> None:
    """Ours: copies of a report, old ones and those of another tenant reach no source; new ones wait (OAS-6, TEN-5)."""
    other = f"{notes.slug}-other"
    await notes.gateway.create_tenant(other)
    theirs = await add(notes.gateway, other, "webhooks", {"name": "cms"})
    notes.upstream.body = json.dumps(pets("https://pets.example")).encode()
    await add(notes.gateway, notes.slug, "sources", {"name": "pets", "url": f"{notes.upstream.url}/openapi.json"})
    hook, raw, at = await notes.webhook(), b'{"source":"pets"}', int(time.time())
    copied = sign(hook["secret"], delivery="msg_1", at=str(at), body=raw)
    of_source = "kind = 'source_refresh' and tenant_id = (select id from tenants where slug = $1)"

    async def seconds_until_due() -> float | None:
        query = f"select extract(epoch from due_at - now())::float from due_work where {of_source}"
        return cast("float | None", await fetch_value(notes.database.superuser_url, query, notes.slug))

    async def replay() -> list[int]:
        statuses: list[int] = []

        async def send(number: int) -> None:
            to, copy = notes.replicas.all[number % 2], {"delivery": "msg_1", "at": at, "signature": copied}
            statuses.append((await notes.deliver(hook, raw, to=to, **copy)).status_code)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(send, number)
        return sorted(statuses)

    async def is_done() -> bool:
        return await seconds_until_due() is None

    assert await replay() == [202] + [409] * 19
    for changed in ({"delivery": "msg_2", "signature": copied, "at": at}, {"skew": -310}, {"signature": "v1,AAAA"}):
        assert (await notes.deliver(hook, raw, **changed)).status_code == 400
    assert (await notes.deliver(theirs, raw, path=hook["status"]["path"])).status_code == 400
    assert (await notes.deliver(theirs, raw)).status_code == 422
    assert (await seconds_until_due() or 0) > 200, "the import has read the URL just now"
    notes.upstream.seen.clear()
    await execute(notes.database.superuser_url, "update due_work set due_at = now() where kind = 'source_refresh'")
    with notes.replicas.a.hurrying(), notes.replicas.b.hurrying():
        await until(is_done, seconds=30)
    assert await replay() == [409] * 20
    assert await is_done()
    for _ in range(3):
        assert (await notes.deliver(hook, raw)).status_code == 202

    assert (await seconds_until_due() or 0) > 200
    assert len(notes.upstream.seen) == 1


async def test_deliveries_that_come_together_are_all_taken(notes: Notes) -> None:
    """Ours: a system that reports many changes at once need not send them again (RES-5)."""
    hook = await notes.webhook()
    statuses: list[int] = []

    async def deliver(number: int) -> None:
        answer = await notes.deliver(hook, {"uri": f"row://{number}"}, delivery=f"msg_{number}")
        statuses.append(answer.status_code)

    async with anyio.create_task_group() as tasks:
        for number in range(16):
            tasks.start_soon(deliver, number)

    assert statuses == [202] * 16


_NOT_SIGNED: tuple[dict[str, Any], ...] = (
    {"signature": "v1,AAAA"},
    {"signature": "nothing"},
    {"skew": -310},
    {"skew": 700},
    {"at": "soon"},
    {"at": "²³"},
    {"delivery": "x" * 300},
    {"delivery": "é"},
    {"without": "webhook-id"},
    {"without": "webhook-timestamp"},
    {"without": "webhook-signature"},
)


async def test_an_invalid_signature_is_refused(notes: Notes) -> None:
    """Ours: wrong, old or unsigned deliveries notify no client (RES-5)."""
    hook = await notes.webhook()
    async with notes.notified("note://1", "note://2") as updates:
        for more in _NOT_SIGNED:
            refused = await notes.deliver(hook, {"uri": "note://1"}, **more)
            assert (refused.status_code, refused.json()["code"]) == (400, "input.invalid"), more
        assert (await notes.deliver(hook, {"uri": "note://2"})).status_code == 202
        assert await received(updates) == "note://2"


async def test_another_tenants_signature_is_refused(notes: Notes) -> None:
    """Ours: a webhook takes what its own secret has signed, under its own tenant alone (RES-5, TEN-5)."""
    other = f"{notes.slug}-other"
    await notes.gateway.create_tenant(other)
    theirs = (await notes.gateway.admin.post(f"/tenants/{other}/webhooks", json={"name": "cms"})).json()
    hook = await notes.webhook()
    async with notes.notified("note://1", "note://2") as updates:
        refused = [
            await notes.deliver(theirs, {"uri": "note://1"}, path=hook["status"]["path"]),
            await notes.deliver(hook, {"uri": "note://1"}, path=hook["status"]["path"].replace(notes.slug, other)),
            await notes.deliver(hook, {"uri": "note://1"}, path=f"/t/{notes.slug}/hooks/{theirs['id']}"),
            await notes.deliver(hook, {"uri": "note://1"}, path=f"/t/nobody/hooks/{hook['id']}"),
            await notes.deliver(theirs, {"uri": "note://1"}),
        ]
        await notes.deliver(hook, {"uri": "note://2"})
        assert await received(updates) == "note://2"

    assert [answer.status_code for answer in refused] == [400, 404, 404, 404, 422]


async def test_a_rotated_webhook_takes_both_secrets(notes: Notes) -> None:
    """Ours: while senders change over, the old and the new secret are good, and no older one (RES-5)."""
    hook = await notes.webhook()
    place = f"/tenants/{notes.slug}/webhooks/cms/rotate"
    first = (await notes.gateway.admin.post(place)).json()["secret"]
    second = (await notes.gateway.admin.post(place)).json()["secret"]
    secrets = (hook["secret"], first, second)
    statuses = [(await notes.deliver({**hook, "secret": each}, {"uri": "note://1"})).status_code for each in secrets]
    shown = await notes.gateway.admin.get(f"/tenants/{notes.slug}/webhooks/cms")

    assert statuses == [400, 202, 202]
    assert "secret" not in shown.json()
    assert shown.json()["status"]["old_secret_until"] is not None
    (await notes.gateway.admin.delete(f"/tenants/{notes.slug}/webhooks/cms")).raise_for_status()
    assert (await notes.deliver({**hook, "secret": secrets[-1]}, {"uri": "note://1"})).status_code == 404


_SAYING_NOTHING: tuple[tuple[object, int, str | None], ...] = (
    (b"", 400, ""),
    (b"[]", 400, ""),
    (b"{}", 400, ""),
    ({"uri": "note://1", "uris": ["note://1"]}, 400, ""),
    ({"uri": 7}, 400, "/uri"),
    ({"uris": []}, 400, "/uris"),
    ({"uris": ["note://1", ""]}, 400, "/uris/1"),
    ({"uris": ["note://1"] * 101}, 400, "/uris"),
    ({"uri": "note://none"}, 422, "/uri"),
    ({"uris": ["note://1", "note://none"]}, 422, "/uris/1"),
    (json.dumps({"uri": "note://1", "x": "y" * 70_000}).encode(), 413, None),
)


async def test_an_empty_delivery_is_refused_and_may_come_again(notes: Notes) -> None:
    """Ours: a clear answer that points into the body; all of its resources are notified, or none (RES-5)."""
    hook = await notes.webhook()
    async with notes.notified("note://1", "note://2") as updates:
        for number, (body, status, pointer) in enumerate(_SAYING_NOTHING):
            refused = await notes.deliver(hook, body, delivery=f"msg_{number}")
            assert refused.status_code == status, refused.text
            if pointer is not None:
                assert refused.json()["errors"][0]["pointer"] == pointer
            assert (await notes.deliver(hook, {"uri": "note://2"}, delivery=f"msg_{number}")).status_code == 202
            assert await received(updates) == "note://2"


async def test_only_post_is_taken(notes: Notes) -> None:
    """Ours: a webhook's URL shows nothing (RES-5)."""
    hook = await notes.webhook()
    answer = await notes.gateway.http.get(hook["status"]["path"])

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_without_redis_a_delivery_may_come_again(notes: Notes) -> None:
    """Ours: a delivery that could not reach every subscriber is refused (RES-5, SRV-4)."""
    hook = await notes.webhook()
    with notes.replicas.a.muted():
        away = await notes.deliver(hook, {"uri": "note://1"}, delivery="msg_1")
    async with notes.notified("note://1") as updates:
        again = await notes.deliver(hook, {"uri": "note://1"}, delivery="msg_1")
        assert await received(updates) == "note://1"

    assert (away.status_code, again.status_code) == (503, 202)
    assert int(away.headers["retry-after"]) >= 1


def test_the_signature_is_over_all_of_it() -> None:
    """Standard Webhooks: id, time and body (RES-5)."""
    secret = new_secret()
    parts = {"delivery": "a", "at": "1", "body": b"x"}
    made = {sign(secret, **{**parts, **one}) for one in ({}, {"delivery": "b"}, {"at": "2"}, {"body": b"y"})}  # type: ignore[arg-type]  # the values fit their names
    assert len(made) == 4
