"""Rules of the policy through the admin API and on the wire; the policy of new tenants."""

from typing import Any

import pytest

from gateway.domain.tenancy.policy import Decision
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, tool
from tests.support.servers import execute
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream

POLICY = "/tenants/acme/policy"
LARGE_ID = {"pointer": "/id", "operator": "greater", "value": 10}


async def _call(
    gateway: RunningGateway, key: str, name: str, arguments: dict[str, object], slug: str = "acme"
) -> dict[str, Any]:
    answer = await gateway.rpc(slug, key, "tools/call", {"name": name, "arguments": arguments})
    result: dict[str, Any] = answer.json()["result"]
    return result


async def _call_raw(gateway: RunningGateway, key: str, members: str) -> str:
    """The response to a call of `get_pet` whose arguments have these members, as text."""
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
    headers = {
        "authorization": f"Bearer {key}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "get_pet",
    }
    params = f'{{"name":"get_pet","arguments":{{{members}}},"_meta":{meta}}}'
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    return (await gateway.http.post("/t/acme/mcp", content=body, headers=headers)).text


def _code(result: dict[str, Any]) -> str | None:
    found: str | None = result.get("_meta", {}).get("gateway/error", {}).get("code")
    return found


@pytest.fixture
async def key(gateway: RunningGateway, upstream: RecordingUpstream) -> str:
    """A key of a tenant with the pets as tools."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url), expose="both")
    return await gateway.create_key("acme")


async def test_a_rule_decides_calls_on_the_wire(gateway: RunningGateway, key: str, upstream: RecordingUpstream) -> None:
    """Ours: no spelling of a number evades a rule, and `call_endpoint` does not bypass it (SAF-5)."""
    rule = {"tool": "get_pet", "when": [LARGE_ID], "decision": "deny", "reason": "at most ten"}
    stored = await gateway.admin.patch(POLICY, json={"rules": [rule]})
    assert stored.status_code == 200, stored.text
    assert stored.json()["rules"] == [{"source": None, "profile": None, "level": None, **rule}]

    assert not (await _call(gateway, key, "get_pet", {"id": 10}))["isError"]
    sent = len(upstream.seen)
    refused = await _call(gateway, key, "get_pet", {"id": 11})
    assert "rule 1: at most ten" in refused["content"][0]["text"]
    for operation in ("get_pet", "GET /pets/{id}"):
        inner = await _call(gateway, key, "call_endpoint", {"operation": operation, "arguments": {"id": 11}})
        assert "policy.denied" in str(inner) or "at most ten" in str(inner), inner
    assert len(upstream.seen) == sent


async def test_a_rule_follows_a_tool_that_is_renamed(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: while the old name can be called, a rule about it counts for both names, and for what runs it (SAF-5)."""
    handler = {"kind": "openapi", "source": "api", "operation": "get_pet", "arguments": {"id": 7}}
    await add(gateway, "acme", "tools", tool("alias", handler))
    rule = {"tool": "get_pet", "decision": "deny", "reason": "archived"}
    (await gateway.admin.patch(POLICY, json={"rules": [rule]})).raise_for_status()
    (await gateway.admin.patch("/tenants/acme/tools/get_pet", json={"name": "find_pet"})).raise_for_status()

    calls: list[tuple[str, dict[str, object]]] = [("get_pet", {"id": 7}), ("find_pet", {"id": 7}), ("alias", {})]
    for name, arguments in calls:
        refused = await _call(gateway, key, name, arguments)
        assert "rule 1: archived" in refused["content"][0]["text"], (name, refused)
    assert upstream.seen == []


async def test_every_spelling_of_a_number_is_the_number(gateway: RunningGateway, key: str) -> None:
    """Ours: conditions compare values, not their texts (SAF-5)."""
    rule = {"tool": "get_pet", "when": [LARGE_ID], "decision": "deny"}
    await gateway.admin.patch(POLICY, json={"rules": [rule]})

    for spelling in ("1.1e1", "11.0", "1100e-2", "11", "99999999999999999999999"):
        answer = await _call_raw(gateway, key, f'"id":{spelling}')

        assert "policy.denied" in answer or "call.arguments_invalid" in answer, answer


async def test_members_that_are_repeated_reach_no_rule(
    gateway: RunningGateway, key: str, upstream: RecordingUpstream
) -> None:
    """Ours: of two members of one name, the rule and the upstream never read different ones (SAF-5)."""
    await gateway.admin.patch(POLICY, json={"rules": [{"when": [LARGE_ID], "decision": "deny"}]})
    for members in ('"id":1,"id":11', '"id":11,"id":1', '"id":1,"Id":11'):
        await _call_raw(gateway, key, members)

    assert not any("11" in request.target for request in upstream.seen)


async def test_faults_of_rules_have_pointers(gateway: RunningGateway, key: str) -> None:
    """Ours: each wrong value is named at its place, and nothing is stored (SAF-5)."""
    del key
    wrong: list[tuple[str, object]] = [
        ("greater", "1000"),
        ("in", 5),
        ("equals", [1]),
        ("inside", "tmp"),
        ("outside", "/a/../b"),
        ("exists", 1),
        ("matches", "(a)\\1"),
        ("matches", "a(?=b)"),
        ("starts_with", 1),
        ("contains", " "),
        ("equals", "a\u0000"),
        ("at_most", 10**30),
    ]
    conditions = [{"pointer": "/a", "operator": operator, "value": value} for operator, value in wrong]
    rules = [{"when": [condition], "decision": "deny"} for condition in conditions]

    refused = await gateway.admin.patch(POLICY, json={"rules": rules})

    assert refused.status_code == 400, refused.text
    assert [fault["pointer"] for fault in refused.json()["errors"]] == [
        f"/rules/{position}/when/0/value" for position in range(len(wrong))
    ]
    assert (await gateway.admin.get(POLICY)).json()["rules"] == []


_FAULTY: tuple[tuple[dict[str, object], str], ...] = (
    ({"decision": "maybe"}, "/rules/0/decision"),
    ({}, "/rules/0/decision"),
    ({"decision": "deny", "tools": ["a"]}, "/rules/0/tools"),
    ({"decision": "deny", "tool": ""}, "/rules/0/tool"),
    ({"decision": "deny", "level": "harmless"}, "/rules/0/level"),
    ({"decision": "deny", "when": [{"pointer": "a", "operator": "equals", "value": 1}]}, "/rules/0/when/0/pointer"),
    ({"decision": "deny", "when": [{"pointer": "/a", "operator": "like", "value": 1}]}, "/rules/0/when/0/operator"),
    ({"decision": "deny", "when": [{"pointer": "/a", "operator": "equals"}]}, "/rules/0/when/0/value"),
    ({"decision": "deny", "when": [LARGE_ID] * 9}, "/rules/0/when"),
)


async def test_a_rule_has_the_documented_form(gateway: RunningGateway, key: str) -> None:
    """Ours: unknown members and values are refused at their place (SAF-5)."""
    del key
    for rule, pointer in _FAULTY:
        refused = await gateway.admin.patch(POLICY, json={"rules": [rule]})

        assert refused.status_code == 400, refused.text
        assert any(fault["pointer"].startswith(pointer) for fault in refused.json()["errors"]), refused.text


async def test_rules_are_bounded(gateway: RunningGateway, key: str) -> None:
    """Ours: number and size of the rules are limited (SAF-5)."""
    del key
    many = [{"decision": "deny"}] * 65
    large = [{"decision": "deny", "when": [{"pointer": "/a", "operator": "in", "value": ["x" * 500] * 50}] * 3}] * 2

    assert (await gateway.admin.patch(POLICY, json={"rules": many})).status_code == 400
    assert (await gateway.admin.patch(POLICY, json={"rules": large})).json()["errors"][0]["pointer"] == "/rules"


async def test_a_report_lists_the_matches_of_each_rule(gateway: RunningGateway, key: str) -> None:
    """Ours: a rule that matches nothing, or is never reached, is a warning; nothing is stored (SAF-5)."""
    del key
    rules = [
        {"tool": "*_pets", "decision": "deny"},
        {"tool": "GET /pets", "when": [LARGE_ID], "decision": "allow"},
        {"tool": "missing", "decision": "deny"},
        {"profile": "nowhere", "decision": "deny"},
        {"tool": "get_pet", "when": [{**LARGE_ID, "pointer": "/idd"}], "decision": "deny"},
    ]

    found = (await gateway.admin.post(f"{POLICY}/check", json={"rules": rules})).json()["rules"]

    assert found[0]["names"] == ["list_pets"]
    assert "has no effect" in found[1]["warnings"][0]
    assert found[2] == {"rule": 3, "count": 0, "names": [], "warnings": ["matches no current primitive"]}
    assert "no profile nowhere" in found[3]["warnings"][0]
    assert "has the argument /idd" in found[4]["warnings"][0]
    assert (await gateway.admin.get(POLICY)).json()["rules"] == []
    assert (await gateway.admin.post(f"{POLICY}/check", json={})).json() == {"rules": []}


async def test_rules_are_kept_and_replaced_whole(gateway: RunningGateway, key: str) -> None:
    """Ours: an absent member stays, a list replaces all rules, and the trail has the new ones (SAF-4)."""
    del key
    await gateway.admin.patch(POLICY, json={"rules": [{"tool": "a", "decision": "approve"}]})
    await gateway.admin.patch(POLICY, json={"safe": "allow"})
    assert [rule["tool"] for rule in (await gateway.admin.get(POLICY)).json()["rules"]] == ["a"]
    assert (await gateway.admin.patch(POLICY, json={"rules": None})).status_code == 400
    await gateway.admin.patch(POLICY, json={"rules": []})
    assert (await gateway.admin.get(POLICY)).json()["rules"] == []
    entries = (await gateway.admin.get("/tenants/acme/audit", params={"limit": 100})).json()["items"]
    changes = [entry["detail"] for entry in entries if entry["action"] == "policy.update"]
    removed = [change["before"] for change in changes if change.get("after", {}).get("rules") == []]
    assert [rule["tool"] for rule in removed[0]["rules"]] == ["a"]


async def test_rules_are_the_tenants_own(gateway: RunningGateway, key: str, upstream: RecordingUpstream) -> None:
    """Ours: a rule of one tenant decides nothing for another (TEN-1)."""
    await gateway.create_tenant("globex")
    await gateway.import_document("globex", pets(upstream.url))
    other = await gateway.create_key("globex")
    await gateway.admin.patch(POLICY, json={"rules": [{"decision": "deny"}]})

    assert _code(await _call(gateway, key, "list_pets", {})) == "policy.denied"
    assert not (await _call(gateway, other, "list_pets", {}, "globex"))["isError"]


async def test_a_new_tenant_is_protected_and_an_older_one_is_not_changed(stand: Stand) -> None:
    """Ours: new tenants ask unless the installation chose otherwise; a tenant of before keeps its policy (SAF-2)."""
    database = stand.database
    async with running_gateway(database.app_url, stand.redis_url, tenant_policy=()) as gateway:
        await gateway.create_tenant("fresh")
        await gateway.create_tenant("older")
        await execute(
            database.superuser_url,
            "delete from policies where tenant_id = (select id from tenants where slug = 'older')",
        )
        protected, kept = [(await gateway.admin.get(f"/tenants/{slug}/policy")).json() for slug in ("fresh", "older")]
        findings = (await gateway.admin.get("/doctor")).json()["findings"]
        for slug in ("fresh", "older"):
            await gateway.admin.delete(f"/tenants/{slug}")

    levels = ("safe", "moderate", "dangerous")
    assert [protected[level] for level in levels] == [Decision.ALLOW, Decision.CONFIRM, Decision.APPROVE]
    assert [kept[level] for level in levels] == [Decision.ALLOW] * 3
    [found] = [one for one in findings if one["check"] == "policies"]
    assert found["status"] == "warning"
    assert "older" in found["detail"]
    assert "fresh" not in found["detail"]
    assert "policy update --moderate confirm --dangerous approve" in found["mend"]


async def test_a_replacement_resets_only_mentioned_members(gateway: RunningGateway) -> None:
    """Ours: for one release, a PUT of a client that expects merging removes no rule and weakens no decision (ADM-1)."""
    await gateway.create_tenant("acme")
    kept = {"dangerous": "deny", "rules": [{"tool": "a", "decision": "deny"}], "limits": {"burst": 7}}
    assert (await gateway.admin.patch(POLICY, json=kept)).status_code == 200
    stored = await gateway.admin.get(POLICY)
    refused = await gateway.admin.put(POLICY, json={"moderate": "deny"})
    places = {fault["pointer"] for fault in refused.json()["errors"]}
    assert (refused.status_code, places) == (409, {"/dangerous", "/rules/0", "/limits/burst"})
    assert "`If-Match` or `?replace=true`" in refused.json()["detail"]
    same = await gateway.admin.put(POLICY, json=stored.json())
    assert (same.status_code, same.headers["etag"]) == (200, stored.headers["etag"])
    replaced = (await gateway.admin.put(f"{POLICY}?replace=true", json={"moderate": "deny"})).json()
    assert (replaced["moderate"], replaced["dangerous"], replaced["rules"]) == ("deny", "allow", [])
    assert replaced["limits"]["burst"] == 200
    (await gateway.admin.patch(POLICY, json=kept)).raise_for_status()
    tag = (await gateway.admin.get(POLICY)).headers["etag"]
    assert (await gateway.admin.put(POLICY, json={}, headers={"if-match": tag})).json()["rules"] == []
