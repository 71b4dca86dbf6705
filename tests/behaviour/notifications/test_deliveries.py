"""Outbound webhooks: signed, tried again, given up, replayed."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from contextlib import suppress

import anyio
import pytest

from gateway.store.notifications.deliveries import enqueue
from tests.behaviour.notifications.conftest import REQUESTED, Outbox
from tests.support.replicas import until
from tests.support.servers import execute
from tests.support.upstream import Seen


def signed_by(secret: str, seen: Seen) -> bool:
    """True if a secret has made one of the signatures: the receiver's side of Standard Webhooks, from its text."""
    signed = f"{seen.header('webhook-id')}.{seen.header('webhook-timestamp')}.".encode() + seen.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{made}" in (seen.header("webhook-signature") or "").split(" ")


async def arrived(outbox: Outbox, number: int) -> list[Seen]:
    """Received requests of the receiver, once there are so many."""

    async def are_there() -> bool:
        return len(outbox.receiver.seen) >= number

    await until(are_there, seconds=30)
    return outbox.receiver.seen


async def test_an_event_arrives_signed(outbox: Outbox) -> None:
    """Standard Webhooks: id, timestamp and signature over the exact body; the log has it (SAF-3)."""
    made = await outbox.endpoint()
    assert await outbox.raise_event(tool="delete_pet", warnings=["deletes a pet"]) == 1
    [delivery] = await outbox.settled("delivered")
    [seen] = outbox.receiver.seen

    assert (seen.method, seen.target, seen.header("content-type")) == ("POST", "/chat", "application/json")
    assert seen.header("webhook-id") == delivery["id"]
    assert abs(int(seen.header("webhook-timestamp") or 0) - time.time()) < 60
    assert signed_by(made["secret"], seen)
    body = json.loads(seen.body)
    assert (body["type"], body["data"]) == (REQUESTED, {"tool": "delete_pet", "warnings": ["deletes a pet"]})
    shown = (await outbox.gateway.admin.get(f"{outbox.path}/chat/deliveries/{delivery['id']}")).json()
    assert shown["payload"] == body
    assert (shown["attempts"], shown["status"], shown["error"]) == (1, 200, None)


async def test_an_event_commits_with_its_transaction_or_not_at_all(outbox: Outbox) -> None:
    """Ours: a change that is rolled back is not reported (SAF-3)."""
    await outbox.endpoint()
    with suppress(ZeroDivisionError):
        async with outbox.store.transaction(outbox.tenant) as db:
            assert await enqueue(outbox.tenant, db, REQUESTED, {"id": "apr_never"}) == 1
            raise ZeroDivisionError
    await outbox.raise_event(id="apr_2")
    await outbox.settled("delivered")

    assert [json.loads(seen.body)["data"]["id"] for seen in outbox.receiver.seen] == ["apr_2"]


async def test_an_endpoint_gets_the_kinds_that_it_chose(outbox: Outbox) -> None:
    """Ours: other kinds, disabled endpoints and tenants without any write nothing (SAF-3)."""
    assert await outbox.raise_event() == 0
    await outbox.endpoint(kinds=["approval.denied"])
    await outbox.endpoint("off", enabled=False)
    assert await outbox.raise_event() == 0
    assert await outbox.raise_event("approval.denied") == 1
    [delivery] = await outbox.settled("delivered")

    assert delivery["kind"] == "approval.denied"
    assert await outbox.log("off") == []


async def test_a_failed_attempt_is_made_again_under_the_same_id(outbox: Outbox) -> None:
    """Standard Webhooks: the id is stable over retries, the timestamp is the attempt's (SAF-3)."""
    made = await outbox.endpoint()
    outbox.receiver.status = 503
    await outbox.raise_event()
    [waiting] = await outbox.settled("pending")
    assert (waiting["status"], "503" in waiting["error"]) == (503, True)
    assert waiting["due_at"] > waiting["attempted_at"]
    failing = await outbox.show()
    assert (failing["failures"], failing["failing_since"] is not None, failing["enabled"]) == (1, True, True)
    outbox.receiver.status = 204
    await outbox.retry()
    [delivered] = await outbox.settled("delivered", attempts=2)
    first, second = outbox.receiver.seen

    assert first.header("webhook-id") == second.header("webhook-id") == delivered["id"]
    assert first.body == second.body
    assert signed_by(made["secret"], first)
    assert signed_by(made["secret"], second)
    assert (await outbox.show())["failures"] == 0


async def test_a_failing_endpoint_is_probed_by_one_delivery(outbox: Outbox) -> None:
    """Ours: whatever waits for an endpoint that is down, one attempt at a time finds out (SAF-3)."""
    await outbox.endpoint()
    outbox.receiver.status = 500
    await outbox.raise_event(id="apr_0")
    await outbox.settled("pending")
    for number in range(1, 4):
        await outbox.raise_event(id=f"apr_{number}")
    await outbox.retry()
    await arrived(outbox, 2)

    async def is_held_again() -> bool:
        return bool((await outbox.show())["failures"] == 2)

    await until(is_held_again, seconds=30)
    assert len(outbox.receiver.seen) == 2
    outbox.receiver.status = 200
    await outbox.retry()
    assert {one["state"] for one in await outbox.settled(*["delivered"] * 4)} == {"delivered"}
    assert len(outbox.receiver.seen) == 6


async def test_a_held_endpoint_gets_no_attempt(outbox: Outbox) -> None:
    """Ours: new events wait until its pause is over, while those of other endpoints arrive (SAF-3)."""
    await outbox.endpoint(kinds=[REQUESTED])
    await outbox.endpoint("other", url=f"{outbox.stand.upstreams[1].url}/other", kinds=["approval.denied"])
    outbox.receiver.status = 500
    await outbox.raise_event()
    await outbox.settled("pending")
    await outbox.pass_time(held_until="-1 h")
    await outbox.raise_event()
    for number in (1, 2):  # each arrives in a round of the scheduler of its own
        await outbox.raise_event("approval.denied")
        await outbox.settled(*["delivered"] * number, name="other")

    assert len(outbox.receiver.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(outbox: Outbox, status: int) -> None:
    """Ours: a receiver cannot send the gateway elsewhere (SAF-3)."""
    elsewhere = outbox.stand.upstreams[1]
    await outbox.endpoint()
    outbox.receiver.status, outbox.receiver.headers = status, (("location", f"{elsewhere.url}/x"),)
    await outbox.raise_event()
    [waiting] = await outbox.settled("pending")

    assert "redirects are not followed" in waiting["error"]
    assert elsewhere.seen == []


async def test_a_gone_endpoint_is_disabled_at_once(outbox: Outbox) -> None:
    """Standard Webhooks: 410 ends the delivery and the endpoint; the trail records it (SAF-3, SAF-4)."""
    await outbox.endpoint()
    outbox.receiver.status = 410
    await outbox.raise_event()
    await outbox.settled("failed")

    async def is_off() -> bool:
        return not (await outbox.show())["enabled"]

    await until(is_off, seconds=30)
    off = await outbox.show()
    assert "410" in off["notice"]
    entries = (await outbox.gateway.admin.get(f"/tenants/{outbox.slug}/audit")).json()["items"]
    assert (entries[0]["action"], entries[0]["principal"]) == ("webhook_endpoint.disable", "gateway")
    assert await outbox.raise_event() == 0
    refused = await outbox.gateway.admin.post(f"{outbox.path}/chat/test")
    assert refused.status_code == 409
    outbox.receiver.status = 200
    on = (await outbox.gateway.admin.patch(f"{outbox.path}/chat", json={"enabled": True})).json()
    assert (on["enabled"], on["status"]["notice"], on["status"]["failures"]) == (True, None, 0)
    await outbox.raise_event()
    assert await outbox.settled("delivered", "failed")


async def test_a_late_410_disables_no_changed_endpoint(outbox: Outbox) -> None:
    """Ours: an attempt in progress when the URL changed reports nothing about the new one (SAF-3)."""
    await outbox.endpoint()
    outbox.receiver.status, outbox.receiver.gate = 410, asyncio.Event()
    await outbox.raise_event()
    with anyio.fail_after(10):
        await outbox.receiver.arrived.wait()
    moved = {"url": f"{outbox.receiver.url}/new"}
    (await outbox.gateway.admin.patch(f"{outbox.path}/chat", json=moved)).raise_for_status()
    outbox.receiver.gate.set()
    await outbox.settled("failed")

    found = await outbox.show()
    assert (found["enabled"], found["failures"], found["notice"]) == (True, 0, None)


async def test_an_endpoint_that_fails_for_days_is_disabled(outbox: Outbox) -> None:
    """Ours: and what waits for it goes on when it is enabled in time (SAF-3)."""
    await outbox.endpoint()
    outbox.receiver.status = 500
    await outbox.raise_event()
    await outbox.settled("pending")
    await outbox.pass_time(failing_since="5 days")
    await outbox.retry()

    async def is_off() -> bool:
        return not (await outbox.show())["enabled"]

    await until(is_off, seconds=30)
    assert "5 days" in (await outbox.show())["notice"]
    outbox.receiver.status = 200
    await outbox.retry()
    await outbox.gateway.admin.patch(f"{outbox.path}/chat", json={"enabled": True})
    assert await outbox.settled("delivered", attempts=3)


async def test_a_delivery_fails_after_a_day(outbox: Outbox) -> None:
    """Ours: an attempt whose pause would end after 24 hours is the last; what was never possible fails too (SAF-3)."""
    await outbox.endpoint()
    outbox.receiver.status = 500
    await outbox.raise_event(id="apr_tried")
    await outbox.settled("pending")
    await outbox.pass_time(expires_at="24 h")
    await outbox.retry()
    [failed] = await outbox.settled("failed", attempts=1)
    assert failed["error"] is not None
    await outbox.gateway.admin.patch(f"{outbox.path}/chat", json={"enabled": True})
    await outbox.raise_event(id="apr_untried")
    await outbox.gateway.admin.patch(f"{outbox.path}/chat", json={"enabled": False})
    await outbox.pass_time(expires_at="25 h", due_at="25 h")
    await outbox.look()

    async def are_failed() -> bool:
        return all(one["state"] == "failed" for one in await outbox.log())

    await until(are_failed, seconds=30)


async def test_the_log_is_deleted_in_time(outbox: Outbox) -> None:
    """Ours: a delivery that ended is kept for seven days, and then its endpoint has no job (SAF-3)."""
    await outbox.endpoint()
    await outbox.raise_event()
    [kept] = await outbox.settled("delivered")
    assert kept["due_at"][:10] > kept["ended_at"][:10]
    await outbox.pass_time(due_at="8 days")
    await outbox.look()
    await outbox.settled(attempts=0)


async def test_a_replay_is_the_same_message_again(outbox: Outbox) -> None:
    """Ours: a replay has the id and body of its delivery; the receiver sees that it is one (SAF-3)."""
    await outbox.endpoint()
    await outbox.raise_event()
    [first] = await outbox.settled("delivered")
    again = await outbox.gateway.admin.post(f"{outbox.path}/chat/deliveries/{first['id']}/replay")
    assert (again.status_code, again.json()["state"]) == (202, "pending")
    seen = await arrived(outbox, 2)
    [second] = await outbox.settled("delivered")

    assert seen[0].body == seen[1].body
    assert seen[1].header("webhook-id") == second["id"] == first["id"]


async def test_a_test_event_is_sent_at_once(outbox: Outbox) -> None:
    """Ours: an admin sees how an endpoint answers, while it is held too, whatever kinds it chose (SAF-3)."""
    await outbox.endpoint(kinds=["approval.denied"])
    outbox.receiver.status = 500
    await outbox.raise_event("approval.denied")
    await outbox.settled("pending")
    outbox.receiver.status = 200
    sent = (await outbox.gateway.admin.post(f"{outbox.path}/chat/test")).json()
    await arrived(outbox, 2)
    log = await outbox.settled("delivered", "pending")
    assert log[0]["id"] == sent["id"]


async def test_a_rotated_endpoint_signs_with_both_secrets_for_a_day(outbox: Outbox) -> None:
    """Standard Webhooks: two signatures in one header, and no older secret (SAF-3)."""
    made = await outbox.endpoint()
    first = (await outbox.gateway.admin.post(f"{outbox.path}/chat/rotate")).json()
    second = (await outbox.gateway.admin.post(f"{outbox.path}/chat/rotate")).json()
    await outbox.raise_event()
    await outbox.settled("delivered")
    [seen] = outbox.receiver.seen
    signers = [signed_by(secret["secret"], seen) for secret in (made, first, second)]
    assert (signers, second["status"]["old_secret_until"] is not None) == ([False, True, True], True)


async def test_secrets_that_cannot_be_read_are_rotated(outbox: Outbox) -> None:
    """Ours: a changed row is no secret; the log names the remedy, and the rotation helps (SAF-3)."""
    await outbox.endpoint()
    broken = f"update webhook_endpoints set sealed = '\\x00' where tenant_id = '{outbox.tenant}'"
    await execute(outbox.stand.database.superuser_url, broken)
    await outbox.raise_event()
    [waiting] = await outbox.settled("pending")
    assert "rotate" in waiting["error"]
    assert outbox.receiver.seen == []
    rotated = (await outbox.gateway.admin.post(f"{outbox.path}/chat/rotate")).json()
    await outbox.retry()
    await outbox.settled("delivered", attempts=2)
    assert signed_by(rotated["secret"], outbox.receiver.seen[0])


async def test_a_policy_that_names_origins_holds_for_webhooks(outbox: Outbox) -> None:
    """Ours: at creation and at each attempt (SAF-3, TEN-5)."""
    await outbox.endpoint()
    path = f"/tenants/{outbox.slug}/policy"
    (await outbox.gateway.admin.put(path, json={"http_origins": ["https://api.example"]})).raise_for_status()
    await outbox.raise_event()
    [waiting] = await outbox.settled("pending")
    body = {"name": "two", "url": outbox.receiver.url, "kinds": [REQUESTED]}
    refused = await outbox.gateway.admin.post(outbox.path, json=body)

    assert "policy" in waiting["error"]
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/url")
    assert outbox.receiver.seen == []


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://hooks.example/x", 400),
        ("http://127.0.0.1:1/x", 400),
        ("ftp://hooks.example", 400),
        ("https://user:pass@hooks.example", 400),
        ("https://hooks.example/#x", 400),
        ("https://hooks.example/" + "x" * 2100, 400),
        ("https:///x", 400),
    ],
)
async def test_a_url_without_tls_is_refused(outbox: Outbox, url: str, status: int) -> None:
    """Ours: only an operator's entry permits http (SAF-3)."""
    refused = await outbox.gateway.admin.post(outbox.path, json={"name": "x", "url": url, "kinds": [REQUESTED]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (status, "/url"), refused.text


async def test_an_attempt_dials_no_private_address(outbox: Outbox) -> None:
    """Ours: webhooks leave through the guarded client, as calls do (SAF-3)."""
    await outbox.endpoint("inside", url="https://127.0.0.1:2/x")
    await outbox.raise_event()
    [waiting] = await outbox.settled("pending", name="inside")
    assert "not permitted to connect" in waiting["error"]


async def test_endpoints_and_queues_are_bounded(outbox: Outbox) -> None:
    """Ours: ten endpoints, ten thousand waiting deliveries; an event beyond is dropped with a notice (SAF-3)."""
    for number in range(10):
        await outbox.endpoint(f"e{number}", enabled=number == 0)
    more = await outbox.gateway.admin.post(
        outbox.path, json={"name": "e10", "url": outbox.receiver.url, "kinds": [REQUESTED]}
    )
    assert (more.status_code, more.json()["code"]) == (429, "limit.exceeded")
    await outbox.fill("e0", 10_000, due="now() + interval '1 h'")
    assert await outbox.raise_event() == 0
    assert "10000" in (await outbox.show("e0"))["notice"]
    assert (await outbox.gateway.admin.post(f"{outbox.path}/e0/test")).status_code == 429
