"""Primitives over the admin API, where names, paths and gates meet."""

from typing import Any

import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.primitives import NAMED, add, static_tool, template, text_prompt, text_resource, tool
from tests.support.upstream import RecordingUpstream

TOOLS = "/tenants/acme/tools"


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await gateway.create_tenant("acme")
    return gateway


async def test_a_tool_may_be_called_like_a_path(acme: RunningGateway) -> None:
    """Ours: a tool named `validate` is shown, changed and removed like any other (PRG-3)."""
    await add(acme, "acme", "tools", static_tool("validate"))
    place = f"{TOOLS}/validate"
    assert (await acme.admin.get(place)).json()["name"] == "validate"
    judged = await acme.admin.post(place, json=static_tool("other"))
    assert (judged.status_code, judged.json()["name"]) == (200, "other")
    assert (await acme.admin.patch(place, json={"enabled": False})).json()["enabled"] is False
    tried = await acme.admin.post(f"{place}/try", json={})
    assert (tried.status_code, tried.json()["code"]) == (409, "conflict")
    assert (await acme.admin.delete(place)).status_code == 204
    assert (await acme.admin.get(place)).status_code == 404
    assert (await acme.admin.post(f"{TOOLS}/say", json={})).headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"


async def test_a_name_with_a_slash_is_addressed_by_its_id(acme: RunningGateway) -> None:
    """Ours: an id addresses everything, whatever its name is (PRG-3)."""
    answer = await acme.admin.post(TOOLS, json=static_tool("pets/list"))
    place = f"{TOOLS}/{answer.json()['id']}"
    assert answer.headers["location"] == f"/admin/v1{place}"
    assert (await acme.admin.get(place)).json()["name"] == "pets/list"
    assert (await acme.admin.post(f"{place}/try", json={})).status_code == 200
    assert (await acme.admin.delete(place)).status_code == 204


@pytest.mark.parametrize("name", [".", ".."])
async def test_a_name_of_dots_leads_nowhere_else(acme: RunningGateway, name: str) -> None:
    """RFC 3986: a client goes up the path at such a segment; a deletion of the object must not reach the tenant.

    Ours: it is addressed by its id (PRG-3).
    """
    answer = await acme.admin.post(TOOLS, json=static_tool(name))
    assert answer.headers["location"] == f"/admin/v1{TOOLS}/{answer.json()['id']}"
    assert (await acme.http.delete(answer.headers["location"], headers=acme.admin.headers)).status_code == 204
    assert (await acme.admin.get("/tenants/acme")).status_code == 200


async def test_if_match_holds_for_the_object_of_a_uri(acme: RunningGateway) -> None:
    """RFC 9110: a change meant for another version is refused (ADM-1)."""
    made = await acme.admin.post("/tenants/acme/resources", json=text_resource("docs://a"))
    path, tag = "/tenants/acme/resources", {"if-match": made.headers["etag"]}
    uri = {"uri": "docs://a"}
    changed = await acme.admin.patch(path, params=uri, json={"safety": "moderate"}, headers=tag)
    assert (changed.status_code, changed.json()["status"]["safety"]) == (200, "moderate")
    for method in ("PATCH", "PUT", "DELETE"):
        body = None if method == "DELETE" else {"enabled": True} if method == "PATCH" else text_resource("docs://a")
        assert (await acme.admin.request(method, path, params=uri, json=body, headers=tag)).status_code == 412
    tag = {"if-match": changed.headers["etag"]}
    assert (await acme.admin.delete(path, params=uri, headers=tag)).status_code == 204


async def test_a_definition_is_one_value(acme: RunningGateway) -> None:
    """Ours: PATCH replaces a definition or a handler whole and keeps its nulls and numbers (ADM-1, PRG-3)."""
    schema = {"type": "object", "properties": {"a": {"default": None}, "b": {"default": 1.5}}}
    body = tool("say", {"kind": "static", "content": []}, schema=schema)
    made = (await acme.admin.post(TOOLS, json={**body, "safety": "dangerous"})).json()
    assert made["definition"] == body["definition"]
    assert (made["handler"], made["safety"], made["status"]["safety"]) == (body["handler"], "dangerous", "dangerous")
    other = static_tool("say")["definition"]
    changed = (await acme.admin.patch(f"{TOOLS}/say", json={"definition": other, "safety": None})).json()
    assert (changed["definition"], changed["handler"]) == (other, body["handler"])
    assert (changed["safety"], changed["status"]["safety"]) == (None, "safe")


async def test_a_refusal_points_into_the_body(acme: RunningGateway) -> None:
    """Ours: a broken definition is 422 with the place of each fault, and nothing is stored (TDF-1, PRG-3)."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    steps = {"kind": "steps", "steps": [{"call": {"tool": "none"}}, {"return": {"text": "x"}}]}
    cases: list[tuple[dict[str, Any], str, str]] = [
        (tool("x", {"kind": "static", "content": []}, schema=schema), "/definition/inputSchema", "definition."),
        (tool("x", {"kind": "static", "content": [{"type": "none"}]}), "/handler/content/0", "definition."),
        (tool("x", {"kind": "static", "content": [], "extra": 1}), "/handler/extra", "definition."),
        (tool("x", {"kind": "static", "content": []}, definition={"extra": 1}), "/definition/extra", "definition."),
        (tool("x", steps), "/handler/steps/0/call", "input.reference_missing"),
    ]
    for body, pointer, code in cases:
        answer = await acme.admin.post(TOOLS, json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith(pointer), answer.text
        assert answer.json()["code"].startswith(code)
    assert (await acme.admin.get(TOOLS)).json()["items"] == []


async def test_schemas_are_readable_by_writers(acme: RunningGateway) -> None:
    """Ours: a tenant's admin reads what bodies may hold, a client's key does not (ADM-1)."""
    for scope, status in (("admin", 200), ("mcp", 403), ("audit", 403)):
        key = await acme.create_key("acme", scope)
        headers = {"authorization": f"Bearer {key}"}
        assert (await acme.http.get("/admin/v1/schemas", headers=headers)).status_code == status
        assert (await acme.http.get("/admin/v1/schemas/tool", headers=headers)).status_code == status
        assert (await acme.http.get("/admin/v1/tenants", headers=headers)).status_code == 403


async def test_a_trial_passes_every_gate_and_is_in_the_trail(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: an admin's trial is a call: policy, audit and outcome as for any caller (PRG-3, SAF-4)."""
    url = f"{upstream.url}/x"
    await add(acme, "acme", "tools", tool("send", {"kind": "http", "method": "POST", "url": url, "body": {}}))
    key = await acme.create_key("acme", "admin")
    headers = {"authorization": f"Bearer {key}"}
    path = f"/admin/v1{TOOLS}/send/try"
    assert (await acme.http.post(path, json={}, headers=headers)).json()["result"].get("isError") is not True
    await acme.admin.patch("/tenants/acme/policy", json={"moderate": "deny"})
    denied = await acme.http.post(path, json={}, headers=headers)
    assert denied.json()["result"]["isError"] is True
    assert len(upstream.seen) == 1
    trail = (await acme.admin.get("/tenants/acme/audit?tool=send")).json()["items"]
    assert [(entry["kind"], entry["outcome"]) for entry in reversed(trail)] == [
        ("call.intent", "intended"),
        ("call", "ok"),
        ("call", "policy.denied"),
    ]
    assert {entry["principal"] for entry in trail} == {f"key:{_id_of(key)}"}


def _id_of(key: str) -> str:
    return f"key_{key.split('_')[2]}"


async def test_a_trial_of_an_imported_tool_shows_its_request(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: the request is shown for every kind of tool, bodies that are not text by their size (PRG-3)."""
    await acme.import_document("acme", pets(upstream.url))
    tried = (await acme.admin.post(f"{TOOLS}/get_pet/try", json={"arguments": {"id": 7}})).json()
    assert (tried["request"]["method"], tried["request"]["url"]) == ("GET", f"{upstream.url}/v1/pets/7")
    assert tried["request"]["body"] is None
    assert tried["result"]["structuredContent"] == {"ok": True}
    wrong = await acme.admin.post(f"{TOOLS}/get_pet/try", json={"arguments": {"id": "x"}})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/arguments/id")


async def test_a_trial_of_a_disabled_tool_reports_it(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: also of an imported tool, which a person sees in the list (PRG-3)."""
    await acme.import_document("acme", pets(upstream.url))
    await acme.admin.patch(f"{TOOLS}/list_pets", json={"enabled": False})
    tried = await acme.admin.post(f"{TOOLS}/list_pets/try", json={})
    assert (tried.status_code, tried.json()["code"]) == (409, "conflict")
    assert "enable it" in tried.json()["detail"]


async def test_a_trial_with_a_question_to_a_user_is_refused(acme: RunningGateway) -> None:
    """Ours: a trial has no user to answer questions, so it is refused and does not hang (CAL-4)."""
    ask = {"message": "Sure?", "schema": {"type": "object", "properties": {"a": {"type": "boolean"}}}}
    steps = {"kind": "steps", "steps": [{"ask": ask, "as": "said"}, {"return": {"text": "{{ said.action }}"}}]}
    await add(acme, "acme", "tools", tool("ask", steps))
    answer = await acme.admin.post(f"{TOOLS}/ask/try", json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "call.capability_missing")


async def test_every_list_of_primitives_has_parts(acme: RunningGateway) -> None:
    """Ours: limit and cursor work on every list, with the longest URIs too (RES-3)."""
    long = "docs://" + "x" * 2030
    handler = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    secret = {"place": "bearer", "value": "x", "origins": ["https://a.example"]}
    for number in range(3):
        await add(acme, "acme", "tools", static_tool(f"t{number}"))
        await add(acme, "acme", "prompts", text_prompt(f"p{number}"))
        body = text_resource(f"{long}{number}")
        await add(acme, "acme", "resources", {**body, "definition": {**body["definition"], "name": "long"}})
        await add(acme, "acme", "resource-templates", template(f"docs://{number}/{{id}}", handler))
        await add(acme, "acme", "profiles", {"name": f"p{number}"})
        await add(acme, "acme", "credentials", {"name": f"c{number}", **secret})
    for noun in ("tools", "prompts", "resources", "resource-templates", "profiles", "credentials"):
        whole = (await acme.admin.get(f"/tenants/acme/{noun}")).json()["items"]
        parts: list[object] = []
        cursor: str | None = ""
        while cursor is not None:
            params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
            answer = await acme.admin.get(f"/tenants/acme/{noun}", params=params)
            assert answer.status_code == 200, answer.text
            parts += answer.json()["items"]
            cursor = answer.json()["next_cursor"]
        assert parts == whole
        assert len(whole) >= 3


async def test_changes_through_the_admin_api_reach_clients(acme: RunningGateway) -> None:
    """Ours: created, switched off and on, changed and removed: the next request of a client sees it (PRG-3)."""
    key = await acme.create_key("acme")

    async def names() -> list[str]:
        listed: list[dict[str, Any]] = (await acme.rpc("acme", key, "tools/list")).json()["result"]["tools"]
        return [each["name"] for each in listed]

    await add(acme, "acme", "tools", tool("say", {"kind": "template", "text": "Hi {{ name }}"}, schema=NAMED))
    assert await names() == ["say"]
    called = await acme.rpc("acme", key, "tools/call", {"name": "say", "arguments": {"name": "Bo"}})
    assert called.json()["result"]["content"][0]["text"] == "Hi Bo"
    await acme.admin.patch(f"{TOOLS}/say", json={"enabled": False})
    assert await names() == []
    gone = await acme.rpc("acme", key, "tools/call", {"name": "say", "arguments": {"name": "Bo"}})
    assert "error" in gone.json()
    await acme.admin.patch(f"{TOOLS}/say", json={"enabled": True})
    await acme.admin.put(f"{TOOLS}/say", json=static_tool("tell"))
    assert await names() == ["tell"]
    await acme.admin.delete(f"{TOOLS}/tell")
    assert await names() == []
