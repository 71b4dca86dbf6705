"""Approvals at a running gateway: what an approval is bound to, inner calls, rounds, cancellation and bounds."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import mcp_types as types
import pytest
from mcp import Client

from gateway.protocol.sessions.peer import SessionPeer
from tests.support.documents import pets, secured
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, add_profile, text_prompt, text_resource, tool
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.serving import clients_of
from tests.support.upstream import RecordingUpstream, recording_upstream

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DELETE = {"call": {"tool": "delete_pet", "arguments": {"id": 7}}}
DONE = {"return": {"text": "done"}}
SECRETS = {"name": "secrets", "check": "secrets", "phases": ["result"], "action": "block"}


@dataclass(slots=True)
class Office:
    """A tenant whose dangerous calls need an approval, its agent, and a person that approves."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    person: httpx.AsyncClient
    key: str
    slug: str = "acme"

    @property
    def admin(self) -> httpx.AsyncClient:
        return self.gateway.admin

    async def put(self, path: str, body: object, method: str = "PUT") -> dict[str, Any]:
        answer = await self.admin.request(method, f"/tenants/{self.slug}/{path}", json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def call(self, name: str, *, key: str | None = None, place: str | None = None, **arguments: Any) -> Any:
        """The result of a call of 2026-07-28 by a client without capabilities."""
        params = {"name": name, "arguments": arguments}
        answer = (await self.gateway.rpc(place or self.slug, key or self.key, "tools/call", params)).json()
        return answer.get("result") or answer["error"]

    async def pending(self) -> dict[str, Any]:
        """The only pending approval, once there is one."""
        with anyio.fail_after(10):
            while True:
                if found := await self.listed(state="pending"):
                    [only] = found
                    return only
                await anyio.sleep(0.02)

    async def until_cancelled(self, name: str) -> None:
        """Wait until the trail has the end of a cancelled call."""
        with anyio.fail_after(10):
            while True:
                entries = (await self.admin.get(f"/tenants/{self.slug}/audit", params={"tool": name})).json()["items"]
                if any(entry["outcome"] == "cancelled" for entry in entries):
                    return
                await anyio.sleep(0.02)

    async def listed(self, **wanted: str) -> list[dict[str, Any]]:
        answer = await self.person.get(f"/tenants/{self.slug}/approvals", params=wanted)
        items: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
        return items

    async def decide(self, approval: str, verdict: str = "approve", **more: Any) -> httpx.Response:
        return await self.person.post(f"/tenants/{self.slug}/approvals/{approval}/{verdict}", json={}, **more)

    async def state(self, approval: str) -> str:
        answer = await self.person.get(f"/tenants/{self.slug}/approvals/{approval}")
        state: str = answer.raise_for_status().json()["state"]
        return state

    async def granted(self, name: str, **arguments: Any) -> str:
        """The approval of a call that a person has approved and that has not run."""
        asked = _facts(await self.call(name, **arguments))
        assert asked["state"] == "pending"
        assert (await self.decide(asked["id"])).status_code == 200
        found: str = asked["id"]
        return found


@pytest.fixture
async def office(gateway: RunningGateway, upstream: RecordingUpstream) -> AsyncGenerator[Office]:
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    key = await gateway.create_key("acme", subject="bot")
    async with clients_of(gateway.url, await gateway.create_key("acme", "approve", subject="anna")) as (person, _):
        office = Office(gateway, upstream, person, key)
        await office.put("policy", {"dangerous": "approve"}, "PATCH")
        yield office


def _facts(result: Any) -> dict[str, Any]:
    meta = result["_meta"] if "_meta" in result else result["data"]
    facts: dict[str, Any] = meta.get("gateway/approval") or meta["approval"]
    return facts


async def test_a_pending_call_names_the_next_step(office: Office) -> None:
    """Ours: an error result with id, state, expiry and the next step; the trail has the request (SAF-3, SAF-4)."""
    result = await office.call("delete_pet", id=7)

    facts = _facts(result)
    explained = await office.put("tools/delete_pet/explain", {"arguments": {"id": 7}}, "POST")
    assert [approver.endswith(" (test)") for approver in explained["approvers"]] == [True]
    assert result["isError"]
    assert facts.keys() == {"id", "state", "expires_at"}
    assert "Call again with the same arguments" in result["content"][0]["text"]
    assert result["_meta"]["gateway/error"]["code"] == "approval.required"
    entries = (await office.admin.get("/tenants/acme/audit")).json()["items"]
    [asked] = [entry for entry in entries if entry["action"] == "approval.requested"]
    assert (asked["target"], asked["outcome"], asked["detail"]["subject"]) == ("delete_pet", facts["id"], "bot")
    assert office.upstream.seen == []


async def test_a_changed_tool_policy_or_credential_needs_a_new_approval(office: Office) -> None:
    """Ours: an approval holds for the definition, the policy and the stored credential that the person saw (SAF-3)."""

    async def changed_policy() -> None:
        await office.put("policy", {"moderate": "confirm"}, "PATCH")

    async def changed_tool() -> None:
        await office.put("tools/delete_pet", {"description": "Deletes it twice."}, "PATCH")

    for change in (changed_policy, changed_tool):
        first = await office.granted("delete_pet", id=7)
        await change()
        again = _facts(await office.call("delete_pet", id=7))
        assert (again["id"] != first, again["state"]) == (True, "pending")
        assert await office.state(first) == "superseded"
        await office.decide(again["id"])
        assert not (await office.call("delete_pet", id=7))["isError"]
    assert len(office.upstream.seen) == 2


async def test_a_replaced_credential_needs_a_new_approval(office: Office) -> None:
    """Ours: of a source, of a handler and of its steps: another stored credential is another owner (SAF-3)."""
    document = secured(office.upstream.url)
    await office.gateway.import_document("acme", document, name="keyed", credentials={"token": "one"})
    await office.put("tools/op_0000", {"safety": "dangerous"}, "PATCH")
    origins = [office.upstream.url]
    named = {"place": "bearer", "origins": origins}
    await add(office.gateway, "acme", "credentials", {"name": "crm", "value": "one", **named})
    sent = {"kind": "http", "method": "POST", "url": f"{office.upstream.url}/x", "credential": "crm"}
    await add(office.gateway, "acme", "tools", tool("posts", sent, safety="dangerous"))

    async def of_source() -> None:
        await office.put("sources/keyed", {"credentials": {"token": "two"}}, "PATCH")

    async def of_handler() -> None:
        await office.put("credentials/crm", {"value": "two", **named})

    changes: dict[str, Callable[[], Awaitable[None]]] = {"op_0000": of_source, "posts": of_handler}
    for name, change in changes.items():
        first = await office.granted(name)
        await change()
        assert _facts(await office.call(name))["id"] != first
        assert await office.state(first) == "superseded"
    assert office.upstream.seen == []


async def test_a_denied_level_stays_denied_after_an_approval(office: Office) -> None:
    """Ours: the policy of the moment comes first (SAF-2)."""
    granted = await office.granted("delete_pet", id=7)
    await office.put("policy", {"dangerous": "deny"}, "PATCH")

    result = await office.call("delete_pet", id=7)
    assert result["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert (await office.state(granted), office.upstream.seen) == ("approved", [])


async def test_a_tool_that_left_the_profile_does_not_run(office: Office) -> None:
    """Ours: an approval opens no door that a profile has closed, and does not move to another profile (SAF-3)."""
    await add_profile(office.gateway, "acme", "small", include=[{"names": ["delete_pet"]}])
    asked = _facts(await office.call("delete_pet", place="acme/small", id=7))
    await office.decide(asked["id"])
    assert _facts(await office.call("delete_pet", id=7))["id"] != asked["id"]

    await office.put("profiles/small", {"include": [{"names": ["get_pet"]}]}, "PATCH")
    assert (await office.call("delete_pet", place="acme/small", id=7))["code"] == -32602
    assert (await office.state(asked["id"]), office.upstream.seen) == ("approved", [])


async def test_another_key_of_the_subject_runs_the_approved_call(office: Office) -> None:
    """Ours: an approval is the subject's: it survives a new key, and another subject cannot use it (SAF-3)."""
    granted = await office.granted("delete_pet", id=7)
    keys = (await office.admin.get("/tenants/acme/keys")).json()["items"]
    [old] = [key["id"] for key in keys if key["subject"] == "bot"]
    await office.put(f"keys/{old}/revoke", None, "POST")
    other = await office.gateway.create_key("acme", subject="other bot")
    assert _facts(await office.call("delete_pet", key=other, id=7))["id"] != granted

    key = await office.gateway.create_key("acme", subject="bot")
    assert not (await office.call("delete_pet", key=key, id=7))["isError"]
    assert await office.state(granted) == "done"


async def test_an_approval_survives_the_rotation_of_its_key(office: Office) -> None:
    """Ours: a request with the old secret runs with the new one, once, also while both are valid (IDN-5, SAF-3)."""
    granted = await office.granted("delete_pet", id=7)
    key = f"key_{office.key.split('_')[2]}"
    rotated = await office.put(f"keys/{key}/rotate", {"overlap_s": 60}, "POST")
    assert not (await office.call("delete_pet", key=rotated["key"], id=7))["isError"]
    assert await office.state(granted) == "done"
    assert _facts(await office.call("delete_pet", id=7))["id"] != granted


async def test_resources_and_prompts_are_approved_too(office: Office) -> None:
    """Ours: the same station for every family; the approval is in the error's data (SAF-3)."""
    await add(office.gateway, "acme", "resources", text_resource("note://1"))
    await add(office.gateway, "acme", "prompts", text_prompt("greets"))
    await office.put("policy", {"safe": "approve"}, "PATCH")
    requests: list[tuple[str, dict[str, Any], dict[str, str]]] = [
        ("resources/read", {"uri": "note://1"}, {"mcp_name": "note://1"}),
        ("prompts/get", {"name": "greets"}, {}),
    ]
    for method, params, headers in requests:
        asked = (await office.gateway.rpc("acme", office.key, method, params, **headers)).json()
        facts = _facts(asked["error"])
        assert (asked["error"]["code"], facts["state"]) == (40300, "pending")
        await office.decide(facts["id"])
        got = (await office.gateway.rpc("acme", office.key, method, params, **headers)).json()
        assert "result" in got, got
        assert await office.state(facts["id"]) == "done"


async def test_a_changed_resource_or_prompt_ends_its_approvals(office: Office) -> None:
    """Ours: at the change, and only those of its own family (SAF-3)."""
    resource = await add(office.gateway, "acme", "resources", text_resource("note://1"))
    await add(office.gateway, "acme", "prompts", text_prompt("greets"))
    await add(office.gateway, "acme", "tools", tool("greets", {"kind": "steps", "steps": [DONE]}, safety="safe"))
    await office.put("policy", {"safe": "approve"}, "PATCH")
    asked = {
        action: (await office.gateway.rpc("acme", office.key, method, params, **headers)).json()
        for action, method, params, headers in (
            ("read", "resources/read", {"uri": "note://1"}, {"mcp_name": "note://1"}),
            ("get", "prompts/get", {"name": "greets"}, {}),
        )
    }
    read, get = (_facts(asked[action]["error"])["id"] for action in ("read", "get"))
    call = _facts(await office.call("greets"))["id"]

    await office.put("prompts/greets", text_prompt("greets", "Hello."), "PATCH")
    assert [await office.state(one) for one in (read, get, call)] == ["pending", "superseded", "pending"]
    removed = await office.admin.request("DELETE", f"/tenants/{office.slug}/resources/{resource['id']}")
    assert removed.is_success, removed.text
    assert [await office.state(one) for one in (read, get, call)] == ["superseded", "superseded", "pending"]


async def test_inner_calls_are_approved_one_by_one(office: Office) -> None:
    """Ours: a safe tool carries no dangerous one past the approver; the outer call ends before what follows (SAF-3)."""
    after = {"call": {"tool": "create_pet", "arguments": {"body": {"name": "x"}}}}
    await add(
        office.gateway, "acme", "tools", tool("walk", {"kind": "steps", "steps": [DELETE, after, DONE]}, safety="safe")
    )

    asked = _facts(await office.call("walk"))
    assert office.upstream.seen == []
    assert (await office.pending())["tool"] == "delete_pet"
    await office.decide(asked["id"])
    done = await office.call("walk")

    assert done["content"][0]["text"] == "done"
    assert [seen.method for seen in office.upstream.seen] == ["DELETE", "POST"]


async def test_an_operation_called_by_the_query_tool_is_approved(office: Office) -> None:
    """Ours: `call_endpoint` is another way to the same operation, with the same approval station (SAF-3)."""
    await office.gateway.import_document(
        "acme", pets(office.upstream.url), name="asked", expose="query", prefix="asked"
    )
    call: dict[str, Any] = {"source": "asked", "method": "DELETE", "path": "/pets/{id}", "arguments": {"id": 7}}
    first = await office.call("call_endpoint", **call)
    asked = _facts(first)
    assert (first["isError"], asked["state"]) == (True, "pending")
    await office.decide(asked["id"])

    assert not (await office.call("call_endpoint", **call)).get("isError")
    assert [seen.method for seen in office.upstream.seen] == ["DELETE"]


async def test_the_rounds_of_an_approved_call_are_one_run(office: Office) -> None:
    """MCP: a question ends the request of 2026-07-28; the next round goes on under the same approval, once (SAF-3)."""
    ask = {"ask": {"key": "who", "message": "Who?", "schema": FORM}, "as": "who"}
    text = {"return": {"text": "{{ who.content.name }}"}}
    await add(
        office.gateway, "acme", "tools", tool("greet", {"kind": "steps", "steps": [ask, text]}, safety="dangerous")
    )
    seen: list[str] = []

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        [running] = await office.listed(tool="greet")
        seen.append(running["state"])
        assert _facts(await office.call("greet"))["state"] == "running"  # no other caller gets in between
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    granted = await office.granted("greet")
    async with office.gateway.client("acme", office.key, "2026-07-28", elicitation_callback=answer) as client:
        result = await client.call_tool("greet", {})

    assert isinstance(result.content[0], types.TextContent)
    assert (result.content[0].text, seen) == ("Ada", ["running"])
    assert await office.state(granted) == "done"
    assert len(await office.listed(tool="greet")) == 1


async def test_a_tool_that_changes_between_rounds_ends_the_call(office: Office) -> None:
    """Ours: the next round of an approved call is still what the person approved (SAF-3)."""
    ask = {"ask": {"key": "who", "message": "Who?", "schema": FORM}, "as": "who"}
    steps = {"kind": "steps", "steps": [ask, {"return": {"text": "{{ who.content.name }}"}}]}
    await add(office.gateway, "acme", "tools", tool("greet", steps, safety="dangerous"))

    async def answer(_: Any, __: types.ElicitRequestParams) -> types.ElicitResult:
        changed = {**steps, "steps": [ask, {"return": {"text": "something else"}}]}
        await office.put("tools/greet", {"handler": changed}, "PATCH")
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    await office.granted("greet")
    async with office.gateway.client("acme", office.key, "2026-07-28", elicitation_callback=answer) as client:
        result = await client.call_tool("greet", {})

    assert result.is_error
    assert isinstance(result.content[0], types.TextContent)
    assert "has changed since it was approved" in result.content[0].text


@pytest.mark.parametrize(
    ("family", "body", "runs"),
    [("resources", text_resource("note://1"), True), ("guardrails", SECRETS, False)],
    ids=["another primitive", "a guardrail"],
)
async def test_a_catalog_that_moved_while_a_call_waited_is_read_again(
    office: Office, family: str, body: dict[str, Any], *, runs: bool
) -> None:
    """Ours: a waiting call is prepared again under the same rules; under others it ends, and the next runs (SAF-3)."""
    results: list[types.CallToolResult] = []
    async with office.gateway.client("acme", office.key, "legacy") as client:
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                results.append(await client.call_tool("delete_pet", {"id": 7}))

            group.start_soon(wait)
            asked = await office.pending()
            await add(office.gateway, "acme", family, body)
            await office.decide(asked["id"])
        assert (results[0].is_error, len(office.upstream.seen)) == (not runs, int(runs))
        if not runs:
            assert (results[0].meta or {})["gateway/approval"]["state"] == "approved"
            assert not (await client.call_tool("delete_pet", {"id": 7})).is_error


async def test_a_page_is_shown_where_the_client_can_open_one(servers: TestServers) -> None:
    """MCP: URL-mode elicitation to the approval's page; the next round runs what was approved meanwhile (SAF-3)."""
    shown: list[types.ElicitRequestURLParams] = []
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(
                database.app_url,
                servers.own_redis(),
                egress_allow=[upstream.authority],
                public_url="https://gateway.example",
            ) as gateway,
        ):
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "approve"})

            async def open_page(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
                assert isinstance(params, types.ElicitRequestURLParams)
                shown.append(params)
                if len(shown) == 1:
                    path = f"/tenants/acme/approvals/{params.url.rpartition('/')[2]}/approve"
                    assert (await gateway.admin.post(path, json={})).status_code == 200
                return types.ElicitResult(action="accept")

            key = await gateway.create_key("acme")
            async with gateway.client("acme", key, "2026-07-28", elicitation_callback=open_page) as client:
                granted = await client.call_tool("delete_pet", {"id": 7})
                waiting = await client.call_tool("delete_pet", {"id": 8})

            assert not granted.is_error
            facts = (waiting.meta or {})["gateway/approval"]
            assert (facts["state"], facts["url"]) == ("pending", f"https://gateway.example/approvals/{facts['id']}")
            assert [params.url for params in shown][1] == facts["url"]
            assert len(shown) == 2
            assert [seen.target for seen in upstream.seen] == ["/v1/pets/7"]


async def test_a_waiting_call_holds_no_slot(office: Office) -> None:
    """Ours: with one slot, calls run beside one that waits for a person; it takes the slot again to run (TEN-3)."""
    await office.put("policy", {"limits": {"concurrency": 1}}, "PATCH")
    results: list[types.CallToolResult] = []
    async with office.gateway.client("acme", office.key, "legacy") as client, anyio.create_task_group() as group:

        async def wait() -> None:
            results.append(await client.call_tool("delete_pet", {"id": 7}))

        group.start_soon(wait)
        asked = await office.pending()
        assert not (await office.call("get_pet", id=1))["isError"]
        await office.decide(asked["id"])
    assert not results[0].is_error
    assert len(office.upstream.seen) == 2


async def test_a_bounded_wait_ends_and_the_approval_stays(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a session's call waits for a bounded time; then it ends as pending, and a later call runs it (SAF-3)."""
    monkeypatch.setattr(SessionPeer, "approval_timeout_s", 0.1)
    async with office.gateway.client("acme", office.key, "legacy") as client:
        result = await client.call_tool("delete_pet", {"id": 7})
        asked = (result.meta or {})["gateway/approval"]
        assert (result.is_error, asked["state"]) == (True, "pending")
        await office.decide(asked["id"])
        assert not (await client.call_tool("delete_pet", {"id": 7})).is_error


async def test_a_client_that_leaves_while_it_waits_runs_nothing(office: Office) -> None:
    """Ours: the approval outlives the request; nothing runs because a person approves it later (SAF-3)."""
    asked: dict[str, Any] = {}
    async with office.gateway.client("acme", office.key, "legacy") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "delete_pet", {"id": 7})
            asked = await office.pending()
            group.cancel_scope.cancel()
        await office.until_cancelled("delete_pet")
        assert (await office.decide(asked["id"])).status_code == 200
        assert (await office.state(asked["id"]), office.upstream.seen) == ("approved", [])
        assert not (await client.call_tool("delete_pet", {"id": 7})).is_error


async def test_two_waiting_callers_get_one_run(office: Office) -> None:
    """Ours: of two equal calls that wait for the same approval, one runs it; the other gets an error that states it
    (SAF-3).
    """
    results: list[types.CallToolResult] = []
    async with anyio.create_task_group() as group:
        clients: list[Client] = []

        async def wait() -> None:
            async with office.gateway.client("acme", office.key, "legacy") as client:
                clients.append(client)
                results.append(await client.call_tool("delete_pet", {"id": 7}))

        group.start_soon(wait)
        group.start_soon(wait)
        asked = await office.pending()
        with anyio.fail_after(10):
            while len(clients) < 2:  # noqa: ASYNC110  # bounded
                await anyio.sleep(0.02)
        await office.decide(asked["id"])
    assert len(office.upstream.seen) == 1
    errors = [result for result in results if result.is_error]
    assert len(errors) == 1
    assert (errors[0].meta or {})["gateway/approval"]["state"] in {"running", "done"}


async def test_an_approved_request_is_not_sent_again(office: Office) -> None:
    """Ours: a DELETE is idempotent, and would be retried; an approval is for one (SAF-3)."""
    office.upstream.status, office.upstream.body = 503, b"{}"
    await office.granted("delete_pet", id=7)
    result = await office.call("delete_pet", id=7)

    assert result["isError"]
    assert len(office.upstream.seen) == 1
    [ended] = await office.listed()
    assert (ended["state"], ended["outcome"]) == ("done", "upstream_error")


async def test_the_shown_request_is_the_sent_one_without_secrets(office: Office) -> None:
    """Ours: the person sees method, URL and body, credentials blanked, and counts of what is listed (SAF-3)."""
    handler = {
        "kind": "http",
        "method": "POST",
        "url": f"{office.upstream.url}/purge?token={{{{ token }}}}",
        "body": {"ids": "{{ ids }}", "password": "{{ token }}"},
    }
    definition = {"description": "Purges pets. This cannot be undone."}
    await add(office.gateway, "acme", "tools", tool("purge", handler, safety="dangerous", definition=definition))
    await office.call("purge", ids=[1, 2, 3], token="hunter2")

    shown = await office.pending()
    assert "hunter2" not in str(shown)
    assert shown["request"]["method"] == "POST"
    assert '"ids":[1,2,3]' in shown["request"]["body"]
    assert "'ids' in the body lists 3 entries." in shown["warnings"]
    assert "The description states: 'This cannot be undone'." in shown["warnings"]


async def test_a_key_that_approves_tries_nothing_that_needs_it(office: Office) -> None:
    """Ours: an owner creates admins and approvers, so neither may try what the other approves (ISO-6)."""
    owner = await office.gateway.create_key("acme", "admin", "approve", subject="owner")
    async with clients_of(office.gateway.url, owner) as (api, _):
        made = await api.post("/tenants/acme/keys", json={"name": "k", "scopes": ["admin"], "subject": "puppet"})
        async with clients_of(office.gateway.url, made.json()["key"]) as (puppet, _):
            for client in (api, puppet):
                tried = await client.post("/tenants/acme/tools/delete_pet/try", json={"arguments": {"id": 7}})
                assert tried.status_code == 403, tried.text
    assert await office.listed() == []


async def test_the_operator_tries_and_another_person_approves(office: Office) -> None:
    """Ours: the operator's own call is approved by a person of the tenant, never by the operator (SAF-3)."""
    path = "/tenants/acme/tools/delete_pet/try"
    tried = (await office.admin.post(path, json={"arguments": {"id": 7}})).json()
    asked = _facts(tried["result"])
    own = await office.admin.post(f"/tenants/acme/approvals/{asked['id']}/approve", json={})
    assert own.status_code == 403
    await office.decide(asked["id"])
    assert not (await office.admin.post(path, json={"arguments": {"id": 7}})).json()["result"].get("isError")


async def test_decisions_over_rest(office: Office) -> None:
    """Ours: entity tags, single decisions, repeated requests and bounded comments, as for other objects (ADM-1)."""
    asked = _facts(await office.call("delete_pet", id=7))
    path = f"/tenants/acme/approvals/{asked['id']}"
    tag = (await office.person.get(path)).headers["etag"]
    refused = await office.person.post(f"{path}/approve", json={}, headers={"if-match": '"other"'})
    long = await office.person.post(f"{path}/approve", json={"comment": "x" * 1001})
    lines = await office.person.post(f"{path}/approve", json={"comment": "a\nb"})
    assert [one.status_code for one in (refused, long, lines)] == [412, 400, 400]

    headers = {"if-match": tag, "idempotency-key": "once"}
    first = await office.person.post(f"{path}/approve", json={"comment": "ok"}, headers=headers)
    again = await office.person.post(f"{path}/approve", json={"comment": "ok"}, headers=headers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    late = await office.decide(asked["id"], "deny")
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    for wrong in ("apr_none", "x" * 300):
        assert (await office.person.get(f"/tenants/acme/approvals/{wrong}")).status_code == 404
    assert (await office.person.get("/tenants/acme/approvals", params={"state": "asked"})).status_code == 400


async def test_a_person_of_another_tenant_sees_nothing(office: Office) -> None:
    """Ours: approvals are their tenant's (ISO-6)."""
    asked = _facts(await office.call("delete_pet", id=7))
    await office.gateway.create_tenant("globex")
    key = await office.gateway.create_key("globex", "approve", "admin")
    async with clients_of(office.gateway.url, key) as (other, _):
        for slug in ("acme", "globex"):
            assert (await other.get(f"/tenants/{slug}/approvals/{asked['id']}")).status_code == 404
            path = f"/tenants/{slug}/approvals/{asked['id']}/approve"
            assert (await other.post(path, json={})).status_code == 404
        assert (await other.get("/tenants/globex/approvals")).json()["items"] == []
    assert await office.state(asked["id"]) == "pending"


async def test_a_client_that_cannot_ask_its_user_falls_back_to_an_approval(office: Office) -> None:
    """Ours: a call to confirm is not lost on a client without elicitation: another person releases it (SAF-2)."""
    await office.put("policy", {"moderate": "confirm"}, "PATCH")

    asked = await office.call("create_pet", body={"name": "Rex"})
    assert asked["_meta"]["gateway/approval"]["state"] == "pending"
    assert "only the operator" not in asked["content"][0]["text"]
    assert "the user confirms it instead" in asked["content"][0]["text"]
    assert not office.upstream.seen
    await office.decide(asked["_meta"]["gateway/approval"]["id"])

    assert not (await office.call("create_pet", body={"name": "Rex"}))["isError"]
    assert [seen.method for seen in office.upstream.seen] == ["POST"]


async def test_no_approval_is_given_in_vain(office: Office) -> None:
    """Ours: a call of an earlier policy cannot be approved, because it would not run; it can be denied (SAF-3)."""
    asked, other = [_facts(await office.call("delete_pet", id=number)) for number in (7, 8)]
    await office.put("policy", {"dangerous": "deny"}, "PATCH")
    answer = await office.decide(asked["id"])
    assert (answer.status_code, "policy has changed" in answer.text) == (409, True)
    assert await office.state(asked["id"]) == "superseded"
    assert (await office.decide(other["id"], "deny")).status_code == 200


async def test_a_rule_requires_an_approval_for_some_arguments(office: Office) -> None:
    """Ours: the same tool runs, or waits for a person, by its arguments (SAF-5)."""
    condition = {"pointer": "/id", "operator": "greater", "value": 1000}
    rule = {"tool": "get_pet", "when": [condition], "decision": "approve", "reason": "<b>far</b>"}
    await office.put("policy", {"rules": [rule]}, "PATCH")

    assert not (await office.call("get_pet", id=7))["isError"]
    asked = await office.call("get_pet", id=1001)
    assert asked["_meta"]["gateway/error"]["code"] == "approval.required"
    assert len(office.upstream.seen) == 1
    assert (await office.pending())["warnings"][0] == "The tenant's policy requires a person (rule 1: <b>far</b>)."


async def test_without_an_approver_the_refusal_names_it(gateway: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: a caller does not wait for a person that the tenant does not have (SAF-2)."""
    await gateway.create_tenant("lone")
    await gateway.import_document("lone", pets(upstream.url))
    key = await gateway.create_key("lone")
    (await gateway.admin.patch("/tenants/lone/policy", json={"dangerous": "approve"})).raise_for_status()

    tried = await gateway.admin.post("/tenants/lone/tools/delete_pet/try", json={"arguments": {"id": 1}})
    assert "the role; the operator cannot decide on its own call" in tried.json()["result"]["content"][0]["text"]
    own = await gateway.create_key("lone", subject="me")
    await gateway.create_key("lone", "approve", subject="me")

    answer = await gateway.rpc("lone", key, "tools/call", {"name": "delete_pet", "arguments": {"id": 1}})
    assert "No key of another subject" not in answer.json()["result"]["content"][0]["text"]
    async with gateway.client("lone", own, "legacy") as client:
        with anyio.fail_after(20):  # a session's call waits for 45 s where another subject can approve
            result = await client.call_tool("delete_pet", {"id": 1})
    assert isinstance(result.content[0], types.TextContent)
    assert "No key of another subject has the scope approve" in result.content[0].text
    assert (result.meta or {})["gateway/approval"]["state"] == "pending"


async def test_a_change_that_a_replica_has_not_learned_stops_the_run(office: Office, database: TestDatabase) -> None:
    """Ours: a replica that lost an event still has the old tool and policy; no approval is used there (SAF-3)."""
    granted = await office.granted("delete_pet", id=7)
    await execute(database.superuser_url, "update tenants set revision = revision + 1")  # another replica's change

    late = _facts(await office.call("delete_pet", id=7))
    assert (late["id"], late["state"], office.upstream.seen) == (granted, "approved", [])
