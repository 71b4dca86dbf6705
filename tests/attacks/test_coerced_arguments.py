"""Arguments in another spelling: nothing that judges, records or shows a call sees them as they were sent."""

import json
from typing import Any

import pytest

from tests.support.gateway import RunningGateway
from tests.support.primitives import add
from tests.support.stand import Stand, common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

POLICY = "/tenants/acme/policy"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
BODY = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer"},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "password": {"type": "string"},
        "deep": {"type": "object", "properties": {"amount": {"type": "integer"}}},
    },
    "additionalProperties": False,
}
LIMIT = {"name": "limit", "in": "query", "schema": {"type": "integer"}}


@pytest.fixture
async def key(gateway: RunningGateway, upstream: RecordingUpstream) -> str:
    """A key of a tenant with one tool that pays."""
    content = {"application/json": {"schema": BODY}}
    node = {"operationId": "pay", "parameters": [LIMIT], "requestBody": {"required": True, "content": content}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Pay", "version": "1"},
        "servers": [{"url": upstream.url}],
        "paths": {"/pay": {"post": {**node, "responses": {"200": {"description": "ok"}}}}},
    }
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", document, expose="both")
    return await gateway.create_key("acme")


async def _call(gateway: RunningGateway, key: str, arguments: dict[str, Any], name: str = "pay") -> Any:
    answer = await gateway.rpc("acme", key, "tools/call", {"name": name, "arguments": arguments})
    result: dict[str, Any] = answer.json()["result"]
    return result.get("_meta", {}).get("gateway/error", {}).get("code") if result["isError"] else "ok"


def _spelled(value: dict[str, Any]) -> list[Any]:
    """The body in several spellings."""
    texts = {name: str(part) if isinstance(part, int) else part for name, part in value.items()}
    escaped = json.dumps(value).replace("a", "\\u0061")
    return [value, texts, json.dumps(value), json.dumps(texts), json.dumps(value, indent=2), escaped]


async def test_no_spelling_slips_past_a_rule_on_an_argument(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: a rule about 5 decides on `"5"`, and on members inside JSON text (SAF-5, CLN-2)."""
    for pointer, place in (("/body/amount", "amount"), ("/body/deep/amount", "deep")):
        when = [{"pointer": pointer, "operator": "equals", "value": 4}]
        rules = [{"tool": "pay", "when": when, "decision": "allow", "reason": "exactly four"}]
        stored = await gateway.admin.patch(POLICY, json={"moderate": "deny", "rules": rules})
        assert stored.status_code == 200, stored.text
        for number, outcome in ((4, "ok"), (5, "policy.denied")):
            for body in _spelled({"amount": number}):
                spelled = body if place == "amount" else {"deep": body}
                assert await _call(gateway, key, {"body": spelled}) == outcome, spelled
                inner = {"operation": "pay", "arguments": json.dumps({"body": spelled})}
                assert await _call(gateway, key, inner, "call_endpoint") == outcome, spelled
    assert {json.loads(seen.body).get("amount", 4) for seen in upstream.seen} == {4}


async def test_no_spelling_hides_members_from_guardrails(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: a guardrail reads what is sent, not JSON text with escapes around it (SAF-6, CLN-2)."""
    rule = {"name": "secrets", "check": "secrets", "phases": ["call"], "action": "block"}
    await add(gateway, "acme", "guardrails", rule)
    hidden = "".join(f"\\u{ord(letter):04x}" for letter in AWS)

    for body in ({"note": AWS}, f'{{"note": "{hidden}"}}', {"tags": f'["{hidden}"]'}, {"tags": AWS}):
        assert await _call(gateway, key, {"body": body}) == "policy.call_blocked", body
    assert upstream.seen == []


async def test_two_readings_of_one_text_are_refused(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: a member cannot be written twice, so that a rule sees one and the API the other (CLN-2)."""
    for body in (
        '{"amount": 1, "amount": 5}',
        '{"amount": 1, "\\u0061mount": 5}',
        '{"amount": NaN}',
        '\ufeff{"amount": 1}',
    ):
        assert await _call(gateway, key, {"body": body}) == "call.arguments_invalid", body
    assert upstream.seen == []


async def test_the_trail_records_the_value_and_the_digest_of_the_sent_arguments(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: rules of recorded arguments apply inside JSON text; equal requests have equal digests (SAF-3, SAF-4)."""
    rule = {"tool": "pay", "keep": ["/body/amount", "/limit"], "drop": ["/body/note"]}
    (await gateway.admin.patch(POLICY, json={"recorded_arguments": [rule]})).raise_for_status()
    sent = {"amount": 6, "note": "private words", "password": "hunter2"}
    spelled = _spelled(sent)
    for body in spelled:
        assert await _call(gateway, key, {"limit": 1 if body is sent else "1", "body": body}) == "ok"
    answer = await gateway.admin.get("/tenants/acme/audit", params={"limit": 200})
    entries = [entry for entry in answer.json()["items"] if entry.get("target") == "pay"]

    calls = [entry for entry in entries if entry["detail"].get("arguments")]
    assert [entry["detail"]["arguments"]["kept"] for entry in calls] == [{"/limit": 1, "/body/amount": 6}] * len(
        spelled
    )
    assert "private words" not in answer.text
    assert "hunter2" not in answer.text
    assert len({entry["detail"]["digest"] for entry in entries}) == 1
    assert len({seen.body for seen in upstream.seen}) == 1


async def test_no_spelling_reaches_a_pinned_argument(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: an argument that an override pins is sent, whatever else a call contains (OAS-6)."""
    changed = await gateway.admin.patch("/tenants/acme/tools/pay", json={"pinned": {"limit": 3}})
    assert changed.status_code == 200, changed.text

    assert await _call(gateway, key, {"limit": "9", "body": {}}) == "call.arguments_invalid"
    assert await _call(gateway, key, {"body": "{}"}) == "ok"
    assert [seen.target for seen in upstream.seen] == ["/pay?limit=3"]


async def test_a_person_approves_the_value(gateway: RunningGateway, key: str, stand: Stand) -> None:
    """Ours: an approval shows the request itself, and another spelling of it is the same request (SAF-3)."""
    (await gateway.admin.patch(POLICY, json={"moderate": "approve"})).raise_for_status()
    first = await _call(gateway, key, {"body": {"amount": 7}})
    again = await _call(gateway, key, {"body": '{"amount": "7"}'})
    waiting = (await gateway.admin.get("/tenants/acme/approvals")).json()["items"]

    assert (first, again) == ("approval.required", "approval.required")
    assert len(waiting) == 1
    assert stand.upstreams[0].seen == []
