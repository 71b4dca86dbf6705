"""Attacks on access rules: every way to a denied primitive, caches of people with other groups, rules that change."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.tenancy.access import UNREADABLE
from tests.behaviour.tasks.conftest import tools_of
from tests.behaviour.tasks.test_followed_tasks import following
from tests.support.documents import many, pets
from tests.support.gateway import RunningGateway
from tests.support.handshake import open_session
from tests.support.issuer import LocalIssuer, add_issuer, new_issuer
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource, tool
from tests.support.servers import TestDatabase, execute
from tests.support.stand import Stand, common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.tasks import TaskClient, accept
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

ACCESS = "/tenants/acme/access"
PETS = {"sources": ["api"]}


async def put(gateway: RunningGateway, *rules: dict[str, Any], default: str = "allow") -> None:
    """Store the rules."""
    answer = await gateway.admin.patch(ACCESS, json={"default": default, "rules": list(rules)})
    assert answer.status_code == 200, answer.text


def deny(who: list[str], unless: list[str] | None = None, **what: Any) -> dict[str, Any]:
    """A rule that denies."""
    return {"effect": "deny", "who": who, "unless": unless or [], "what": what}


async def ask(
    gateway: RunningGateway, credential: str, method: str, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The JSON-RPC response."""
    named = {"mcp_name": params["uri"]} if params and method == "resources/read" else {}
    answer: dict[str, Any] = (await gateway.rpc("acme", credential, method, params, **named)).json()
    return answer


async def names(gateway: RunningGateway, credential: str) -> list[str]:
    """The listed tools."""
    return [tool["name"] for tool in (await ask(gateway, credential, "tools/list"))["result"]["tools"]]


def shape(answer: dict[str, Any], name: str) -> str:
    """A response without its id and the asked name, so that two can be compared."""
    text = json.dumps({key: value for key, value in answer.items() if key != "id"}).replace(name, "NAME")
    found = json.loads(text)
    for part in (found.get("error", {}).get("data", {}), found.get("result", {}).get("_meta", {})):
        part.pop("correlation_id", None)
        part.pop("gateway/correlation_id", None)
    return json.dumps(found, sort_keys=True)


@pytest.fixture
async def issuer(gateway: RunningGateway, upstream: RecordingUpstream) -> LocalIssuer:
    """The issuer `corp` of a tenant with the pets as tools and query tools, and primitives of its own."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url), expose="both")
    issuer = new_issuer(upstream)
    await add_issuer(gateway, "acme", issuer)
    return issuer


def sign_in(gateway: RunningGateway, issuer: LocalIssuer, sub: str, *groups: str) -> str:
    """A token of a person with these groups."""
    return issuer.token(f"{gateway.url}/t/acme/mcp", sub=sub, groups=list(groups))


async def test_no_way_leads_to_a_denied_tool(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream
) -> None:
    """Ours: a denied tool looks like a missing one, by name, alias, step, query tool and old name (IDN-4, TEN-5)."""
    key = await gateway.create_key("acme")
    openapi = {"kind": "openapi", "source": "api", "operation": "get_pet", "arguments": {"id": 7}}
    await add(gateway, "acme", "tools", tool("alias", openapi))
    steps = {"kind": "steps", "steps": [{"call": {"tool": "get_pet", "arguments": {"id": 7}}}]}
    await add(gateway, "acme", "tools", tool("stepped", steps))
    (await gateway.admin.patch("/tenants/acme/tools/list_pets", json={"name": "all_pets"})).raise_for_status()
    sent = len(upstream.seen)
    await put(gateway, deny(["everyone"], names=["get_pet", "list_pets"]))

    listed = await names(gateway, key)
    assert {"create_pet", "stepped", "call_endpoint"} <= set(listed)
    assert not {"get_pet", "alias", "all_pets", "list_pets"} & set(listed)
    missing = shape(await ask(gateway, key, "tools/call", {"name": "no_tool", "arguments": {}}), "no_tool")
    for name in ("get_pet", "alias", "all_pets", "list_pets"):
        answer = await ask(gateway, key, "tools/call", {"name": name, "arguments": {"id": 7}})
        assert shape(answer, name) == missing, answer
    inner = await ask(gateway, key, "tools/call", {"name": "stepped", "arguments": {}})
    assert "there is no tool" in str(inner), inner
    for operation in ("get_pet", "GET /pets/{id}", "all_pets", "list_pets"):
        called = {"operation": operation, "arguments": {"id": 7}}
        answer = await ask(gateway, key, "tools/call", {"name": "call_endpoint", "arguments": called})
        assert answer["result"]["isError"], answer
    for query in ("list_endpoints", "search_endpoints", "get_api_info", "list_schemas"):
        arguments = {"query": "pet"} if query.startswith("search") else {}
        answer = await ask(gateway, key, "tools/call", {"name": query, "arguments": arguments})
        assert "get_pet" not in str(answer), answer
    assert len(upstream.seen) == sent


async def test_no_way_leads_to_a_denied_resource_or_prompt(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: nor by a template, a completion or a subscription (IDN-4, TEN-5)."""
    key = await gateway.create_key("acme")
    await add(gateway, "acme", "resources", text_resource("docs://secret", "the secret"))
    rows = template("docs://{id}", {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"})
    await add(gateway, "acme", "resource-templates", rows)
    completing = {"kind": "template", "text": "x", "completions": {"name": {"values": ["hidden-name"]}}}
    drafted = text_prompt("draft")
    drafted["definition"]["arguments"] = [{"name": "name"}]
    drafted["handler"] = completing
    await add(gateway, "acme", "prompts", drafted)
    await add(gateway, "acme", "prompts", text_prompt("open"))
    session = await open_session(gateway, "acme", key)
    await put(gateway, deny(["keys"], names=["docs://secret", "draft"]))

    reads = {uri: await ask(gateway, key, "resources/read", {"uri": uri}) for uri in ("docs://secret", "docs://open")}
    assert "error" in reads["docs://secret"]
    assert "the secret" not in str(reads)
    assert "row open" in str(reads["docs://open"])
    for method in ("resources/read", "resources/subscribe"):
        for uri in ("docs://secret", "docs://%73ecret", "docs://SECRET"):
            answer = await session.rpc(method, {"uri": uri})
            assert "error" in answer, (method, uri, answer)
    wanted = {"ref": {"type": "ref/prompt", "name": "draft"}, "argument": {"name": "name", "value": ""}}
    completed = await session.rpc("completion/complete", wanted)
    assert "hidden-name" not in str(completed)
    got = await session.rpc("prompts/get", {"name": "draft"})
    assert shape(got, "draft") == shape(await session.rpc("prompts/get", {"name": "none"}), "none")


async def test_people_with_other_groups_never_see_each_others_lists(
    gateway: RunningGateway, issuer: LocalIssuer
) -> None:
    """Ours: parallel lists and calls of four people with other groups, and of a key, are each their own (IDN-4)."""
    groups = {"ada": ("a",), "bob": ("b",), "eve": ("a", "b"), "kim": ()}
    for group in ("a", "b"):
        await add(gateway, "acme", "tools", static_tool(f"canary_{group}", f"only {group}"))
    await put(
        gateway,
        *(deny(["everyone"], [f"group:corp:{group}"], names=[f"canary_{group}"]) for group in ("a", "b")),
    )
    tokens = {sub: sign_in(gateway, issuer, sub, *held) for sub, held in groups.items()}
    expected = {sub: {f"canary_{group}" for group in held} for sub, held in groups.items()}
    tokens["key"], expected["key"] = await gateway.create_key("acme"), set()

    async def look(sub: str) -> None:
        listed = set(await names(gateway, tokens[sub]))
        assert {name for name in listed if name.startswith("canary")} == expected[sub], sub
        for name in ("canary_a", "canary_b"):
            answer = await ask(gateway, tokens[sub], "tools/call", {"name": name, "arguments": {}})
            assert ("result" in answer) == (name in expected[sub]), (sub, answer)

    await asyncio.gather(*(look(sub) for _ in range(6) for sub in tokens))


async def test_groups_that_change_between_list_and_call_count_at_once(
    gateway: RunningGateway, issuer: LocalIssuer
) -> None:
    """Ours: a newer token of the same person has its own groups, also inside a session (IDN-4)."""
    await put(gateway, deny(["people"], ["group:corp:eng"], **PETS))
    before, after = sign_in(gateway, issuer, "ada", "eng"), sign_in(gateway, issuer, "ada", "sales")
    session = await open_session(gateway, "acme", before)

    assert "list_pets" in await names(gateway, before)
    moved = type(session)(gateway, "acme", after, session.id, session.opened)
    answer = await moved.rpc("tools/call", {"name": "list_pets", "arguments": {}})
    assert "error" in answer, answer
    assert "result" in await session.rpc("tools/call", {"name": "list_pets", "arguments": {}})


async def test_an_approval_that_came_before_a_denial_runs_nothing(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream
) -> None:
    """Ours: the rules at the time of the call count, not those at the time of the request for approval (IDN-4)."""
    key, approver = await gateway.create_key("acme"), await gateway.create_key("acme", "approve", subject="boss")
    (await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "approve"})).raise_for_status()
    call = {"name": "delete_pet", "arguments": {"id": 7}}
    waiting = await ask(gateway, key, "tools/call", call)
    [approval] = (await gateway.admin.get("/tenants/acme/approvals")).json()["items"]
    headers = {"authorization": f"Bearer {approver}"}
    place = f"/admin/v1/tenants/acme/approvals/{approval['id']}/approve"
    (await gateway.http.post(place, json={}, headers=headers)).raise_for_status()
    sent = len(upstream.seen)
    await put(gateway, deny(["keys"], names=["delete_pet"]))

    answer = await ask(gateway, key, "tools/call", call)

    assert "approv" in str(waiting)
    assert "Tool not found" in str(answer), answer
    assert len(upstream.seen) == sent


async def test_a_cursor_is_bound_to_the_list_of_one_person(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: a cursor names the view for which it was made (RES-3, TEN-5)."""
    await gateway.import_document("acme", many("http://127.0.0.1:1", 120), name="many")
    await put(gateway, deny(["everyone"], ["group:corp:eng"], names=["op_0000"]))
    ada, bob = sign_in(gateway, issuer, "ada", "eng"), sign_in(gateway, issuer, "bob")
    first = (await ask(gateway, ada, "tools/list"))["result"]

    second = await ask(gateway, ada, "tools/list", {"cursor": first["nextCursor"]})
    foreign = await ask(gateway, bob, "tools/list", {"cursor": first["nextCursor"]})

    assert len(second["result"]["tools"]) > 20
    assert "error" in foreign, foreign
    checked: list[dict[str, Any]] = []
    asked: dict[str, Any] = {"as": {"subject": "corp:bob", "groups": []}, "family": "tool", "limit": 100}
    found: dict[str, Any] = {}
    for _ in range(2):
        found = (await gateway.admin.post(f"{ACCESS}/check", json=asked)).json()
        checked += found["items"]
        asked["cursor"] = found["next_cursor"] or asked["cursor"]
    assert [one["name"] for one in checked if not one["allowed"]] == ["op_0000"]
    assert found["next_cursor"] is None
    foreign_check = await gateway.admin.post(f"{ACCESS}/check", json={**asked, "as": {"key": None}})
    assert foreign_check.status_code == 400


async def test_a_key_of_an_agent_reads_and_changes_no_rules(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: rules, and the reports that name hidden primitives, are for administrators of this tenant (TEN-1)."""
    await gateway.create_tenant("globex")
    agent, foreign = await gateway.create_key("acme"), await gateway.create_key("globex", "admin")
    token = sign_in(gateway, issuer, "ada", "eng")
    body = {"rules": [deny(["everyone"])]}
    for credential, expected in ((agent, 403), (foreign, 404), (token, 401)):
        headers = {"authorization": f"Bearer {credential}"}
        for method, path in (("GET", ""), ("PUT", ""), ("POST", "/report"), ("POST", "/check")):
            sent = None if method == "GET" else {} if path == "/check" else body
            answer = await gateway.http.request(method, f"/admin/v1{ACCESS}{path}", headers=headers, json=sent)
            assert answer.status_code == expected, (path, answer.text)
    assert (await gateway.admin.get(ACCESS)).json() == {"default": "allow", "rules": [], "roles": []}


async def test_rules_of_extreme_size_are_refused(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: rules are compared with each primitive when a snapshot is loaded, so their patterns are bounded (ISO-2)."""
    patterns = [deny(["everyone"], names=[f"*{number}_{place}*" for place in range(100)]) for number in range(11)]
    long = [deny([f"subject:{'x' * 280}{number}" for number in range(99)]) for _ in range(9)]
    for rules, reason in ((patterns, "1000 names"), (long, "bytes")):
        answer = await gateway.admin.patch(ACCESS, json={"rules": rules})
        assert answer.status_code == 400, answer.text
        assert reason in answer.text
    for who in ("group:finance", "group:", "Everyone", "key:", "subject:a\nb", "role:admin"):
        assert (await gateway.admin.patch(ACCESS, json={"rules": [deny([who])]})).status_code == 400, who
    for scope in (
        "scope:read",
        "scope:corp:",
        "scope:corp:a b",
        'scope:corp:a"',
        "scope:corp:é",
        f"scope:a:{'x' * 300}",
    ):
        refused = await gateway.admin.patch(ACCESS, json={"rules": [deny(["people"], [scope])]})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/rules/0/unless/0"), scope


async def test_no_rule_takes_primitives_away_because_of_a_scope(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: a client would evade such a rule by requesting fewer scopes; the refusal names the alternative (IDN-4)."""
    assert issuer.keys
    scope = "scope:corp:agent"
    for rule in (deny([scope]), deny(["people", scope]), {"effect": "allow", "unless": [scope]}):
        for method, path in (("PATCH", ACCESS), ("POST", f"{ACCESS}/report")):
            answer = await gateway.admin.request(method, path, json={"rules": [rule]})
            assert answer.status_code == 400, answer.text
            assert "`who` of an allow rule or in `unless` of a deny rule" in answer.text


WRITES: dict[str, Any] = deny(["people"], ["scope:corp:write"], safety=["moderate", "dangerous"])


async def test_a_token_for_reading_sees_and_calls_safe_tools_only(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream, stand: Stand
) -> None:
    """Ours: a token with the scope of writing has all tools; the same scope of another issuer counts nothing (IDN-4).

    Both eras; a session goes by the token of each request. Clients find the scopes in the metadata (RFC 9728).
    """
    lab = new_issuer(stand.upstreams[1])
    await add_issuer(gateway, "acme", lab, name="lab")
    await put(gateway, WRITES)
    audience = f"{gateway.url}/t/acme/mcp"
    read, write, foreign = (
        one.token(audience, scope=scope)
        for one, scope in ((issuer, "read"), (issuer, "read write"), (lab, "write corp:write"))
    )
    created = {"name": "create_pet", "arguments": {"name": "Rex"}}
    session = await open_session(gateway, "acme", write)

    for token in (read, foreign):
        listed = set(await names(gateway, token))
        assert (listed >= {"list_pets", "get_pet"}, "create_pet" in listed) == (True, False)
        lesser = type(session)(gateway, "acme", token, session.id, session.opened)
        answers = [await ask(gateway, token, "tools/call", created)]
        answers += [await lesser.rpc("tools/call", created)] if token is read else []
        assert all("Tool not found" in str(answer) for answer in answers), answers
    assert "POST" not in {seen.method for seen in upstream.seen}

    assert {"list_pets", "create_pet", "delete_pet"} <= set(await names(gateway, write))
    assert "result" in await ask(gateway, write, "tools/call", created)
    assert "result" in await session.rpc("tools/call", created)
    assert "result" in await ask(gateway, read, "tools/call", {"name": "list_pets", "arguments": {}})
    metadata = (await gateway.http.get("/.well-known/oauth-protected-resource/t/acme/mcp")).json()
    assert metadata["scopes_supported"] == ["write"]
    explained = await gateway.admin.post(
        "/tenants/acme/tools/create_pet/explain", json={"as": {"subject": "corp:ada", "scopes": ["corp:read"]}}
    )
    assert "a token with the scope corp:write may use it" in explained.json()["hidden_because"]
    body = {"arguments": created["arguments"], "as": {"scopes": ["corp:write"]}}
    assert (await gateway.admin.post("/tenants/acme/tools/create_pet/explain", json=body)).json()["visible"]


async def test_results_of_a_token_are_hidden_from_a_weaker_one(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream
) -> None:
    """Ours: tasks and approvals of a person are out of reach for another application's token for reading (IDN-4).

    A task that goes on without its token has no scopes.
    """
    audience = f"{gateway.url}/t/acme/mcp"
    read, write = (issuer.token(audience, scope=scope) for scope in ("read", "write"))
    (await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "approve"})).raise_for_status()
    for declared in ("asks", "asks_both"):
        await add(gateway, "acme", "tools", tools_of(upstream)[declared])
    await put(gateway, WRITES, deny(["people"], ["scope:corp:write"], names=["asks"]))
    strong, weak = (TaskClient(gateway, "acme", one) for one in (write, read))
    task = await strong.start("delete_pet", id=7)
    await strong.wait(task, "input_required", "working")

    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        answer = await weak.send(method, {"taskId": task, "inputResponses": {}})
        assert answer["error"]["message"] == "Task not found", answer
    [approval] = (await gateway.admin.get("/tenants/acme/approvals")).json()["items"]
    boss = await gateway.create_key("acme", "approve", subject="boss")
    place = f"/admin/v1/tenants/acme/approvals/{approval['id']}/approve"
    (await gateway.http.post(place, json={}, headers={"authorization": f"Bearer {boss}"})).raise_for_status()
    stolen = await weak.send("tools/call", {"name": "delete_pet", "arguments": {"id": 7}})
    assert "Tool not found" in str(stolen), stolen
    assert (await strong.wait(task))["status"] == "completed"

    asking = await strong.start("asks")
    await strong.wait(asking, "input_required")
    own = await weak.start("asks_both")
    async with following(weak, [asking, own]) as messages:
        await anext(messages)
        assert "result" in await strong.update(asking, first=accept(name="Rex"))
        ended = await strong.wait(asking)
        await weak.update(own, first=accept(name="Rex"), second=accept(name="Tom"))
        async with asyncio.timeout(10):
            async for message in messages:
                assert message["params"]["taskId"] == own, message
                if message["params"]["status"] == "completed":
                    break
    assert (ended["status"], "no longer exists" in str(ended)) == ("failed", True), ended


async def test_a_default_that_hides_the_query_tools_is_reported(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: with `default: deny`, operations behind query tools are not found unless a rule names the tools (IDN-4)."""
    assert issuer.keys
    allow = {"effect": "allow", "what": {"sources": ["api"]}}
    found: list[list[str]] = []
    for default, names in (("deny", None), ("deny", ["*_endpoint*", "*_schema*", "get_api_info"]), ("allow", None)):
        more = [] if names is None else [{"effect": "allow", "what": {"names": names}}]
        body = {"default": default, "rules": [allow, *more]}
        found.append((await gateway.admin.post(f"{ACCESS}/report", json=body)).json()["warnings"])
    hidden, *others = found
    assert (len(hidden), "call_endpoint" in hidden[0]) == (1, True)
    assert others == [[], []]


async def test_rules_of_a_later_release_fail_only_for_their_subjects(
    gateway: RunningGateway, issuer: LocalIssuer, database: TestDatabase
) -> None:
    """Ours: calls of the tenant go on, an unknown denial denies, and no replacement loses it unseen (IDN-4)."""
    key, token = await gateway.create_key("acme"), issuer.token(f"{gateway.url}/t/acme/mcp")
    await put(gateway, deny(["group:corp:cleaners"], names=["create_pet"]))
    later = [{"effect": "deny", "who": ["team:red"], "what": {"names": ["list_pets"]}}]
    roles = [{"role": "operate", "who": ["people"]}]
    stored = f"rules = '{json.dumps(later)}'::jsonb, roles = '{json.dumps(roles)}'::jsonb"
    await execute(database.superuser_url, f"update access_rules set {stored}")
    await add(gateway, "acme", "tools", static_tool("own"))

    for credential in (key, token):
        assert {"create_pet", "own"} <= set(await names(gateway, credential))
        assert "list_pets" not in await names(gateway, credential)
    shown = (await gateway.admin.get(ACCESS)).json()
    assert [one["reason"] for one in (*shown["rules"], *shown["roles"])] == [UNREADABLE] * 2
    refused = await gateway.admin.patch(ACCESS, json={"rules": []})
    assert (refused.status_code, "later release" in refused.text) == (409, True), refused.text
    assert (await gateway.admin.patch(ACCESS, json={"rules": [], "roles": []})).status_code == 200
