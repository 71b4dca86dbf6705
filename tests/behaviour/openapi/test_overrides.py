"""Overrides of imported tools through a real gateway: stored over REST, seen by clients, kept by imports."""

import json
from typing import Any

import pytest

from gateway.domain.listed.definition import listed_definition
from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.documents import pets
from tests.support.primitives import tool as declared
from tests.support.servers import TestDatabase, execute

TOOLS = f"/tenants/{SLUG}/tools"
OVERRIDES = f"/tenants/{SLUG}/sources/api/overrides"


async def _import(bench: OpenAPIBench, **more: Any) -> None:
    await bench.gateway.import_document(SLUG, pets(bench.upstream.url), **more)


async def _put(bench: OpenAPIBench, *, without: str = "", **more: object) -> dict[str, Any]:
    """The report of another import of the pets document, maybe without a path."""
    document = pets(bench.upstream.url)
    document["paths"].pop(without, None)
    body = {"document": document, "allow_removals": True, **more}
    answer = await bench.gateway.admin.put(f"/tenants/{SLUG}/sources/api", json=body)
    assert answer.status_code == 200, answer.text
    imported: dict[str, Any] = answer.json()
    return imported


async def _set(bench: OpenAPIBench, tool: str, **wanted: object) -> dict[str, Any]:
    answer = await bench.gateway.admin.patch(f"{TOOLS}/{tool}", json=wanted)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def _refused(bench: OpenAPIBench, tool: str, **wanted: object) -> tuple[int, list[str]]:
    """Status and places of a refused change."""
    answer = await bench.gateway.admin.patch(f"{TOOLS}/{tool}", json=wanted)
    return answer.status_code, [fault["pointer"] for fault in answer.json().get("errors", [])]


async def _called(bench: OpenAPIBench, tool: str, **arguments: object) -> str:
    """Request at the upstream of a successful call."""
    result = await bench.call(tool, arguments)
    assert not result.get("isError"), result
    [(_, seen)] = bench.seen()
    return f"{seen.method} {seen.target}"


async def _is_unknown(bench: OpenAPIBench, tool: str) -> bool:
    params: dict[str, Any] = {"name": tool, "arguments": {}}
    return "error" in (await bench.gateway.rpc(SLUG, bench.key, "tools/call", params)).json()


async def test_an_override_is_shown_beside_the_document(bench: OpenAPIBench) -> None:
    """Ours: the tool as it is in force, what is wanted otherwise, and the document's own words (OAS-6)."""
    await _import(bench)
    before = (await bench.gateway.admin.get(f"{TOOLS}/get_pet")).json()
    assert (before["status"]["override"], before["status"]["document"], before["status"]["hidden"]) == (
        None,
        None,
        False,
    )

    hints = {"openWorldHint": False}
    shown = await _set(bench, "get_pet", title="Find", description="Finds one.", safety="moderate", annotations=hints)
    assert shown["status"]["safety"] == shown["safety"] == "moderate"
    assert shown["status"]["document"] == {"safety": "safe", "definition": before["definition"]}
    assert shown["status"]["override"]["operation"] == "GET /pets/{id}"
    assert shown["status"]["override"]["annotations"].items() >= hints.items()
    listed = (await bench.tools())["get_pet"]
    assert listed == listed_definition(shown["definition"], "get_pet")
    assert (listed["title"], listed["description"]) == ("Find", "Finds one.")
    assert listed["annotations"] == {**before["definition"]["annotations"], **hints}

    shown = await _set(bench, "get_pet", title=None, annotations=None)
    assert (shown["status"]["override"]["title"], shown["status"]["override"]["description"]) == (None, "Finds one.")
    shown = await _set(bench, "get_pet", description=None, safety=None)
    assert shown["status"]["override"] is None
    assert (await bench.tools())["get_pet"] == listed_definition(before["definition"], "get_pet")


async def test_a_pinned_argument_is_sent_and_not_accepted_from_callers(bench: OpenAPIBench) -> None:
    """Ours: it is neither listed nor taken from a caller, and the upstream always gets it (OAS-6)."""
    await _import(bench)
    bench.seen()
    await _set(bench, "get_pet", pinned={"verbose": True})

    schema = (await bench.tools())["get_pet"]["inputSchema"]
    assert (set(schema["properties"]), schema["required"]) == ({"id"}, ["id"])
    assert await _called(bench, "get_pet", id=7) == "GET /v1/pets/7?verbose=true"
    refused = await bench.call("get_pet", {"id": 7, "verbose": False})
    assert refused["isError"]
    assert "verbose" in refused["content"][0]["text"]
    assert bench.seen() == []

    await _set(bench, "get_pet", pinned={"id": 9, "verbose": False})
    assert (await bench.tools())["get_pet"]["inputSchema"]["properties"] == {}
    assert await _called(bench, "get_pet") == "GET /v1/pets/9?verbose=false"
    await _set(bench, "create_pet", pinned={"body": {"name": "Rex"}})
    result = await bench.call("create_pet", {})
    assert not result.get("isError"), result
    assert [json.loads(seen.body) for _, seen in bench.seen()] == [{"name": "Rex"}]


async def test_impossible_overrides_are_refused_at_their_place(bench: OpenAPIBench) -> None:
    """Ours: pins that are no argument or no value of it, and fields of another kind of tool (OAS-6, PRG-4)."""
    await _import(bench)
    own = declared("own", {"kind": "static", "content": [{"type": "text", "text": "x"}]})
    (await bench.gateway.admin.post(TOOLS, json=own)).raise_for_status()

    assert await _refused(bench, "get_pet", pinned={"idd": 1}) == (422, ["/pinned/idd"])
    assert await _refused(bench, "get_pet", pinned={"id": "seven"}) == (422, ["/pinned/id"])
    assert await _refused(bench, "get_pet", title="a\u202eb") == (422, ["/title"])
    assert await _refused(bench, "get_pet", annotations={"title": "T"}) == (400, ["/annotations/title"])
    assert await _refused(bench, "get_pet", result={"keep": ["items"]}) == (400, ["/result/keep/0"])
    assert await _refused(bench, "get_pet", handler={"kind": "static"}) == (400, ["/handler"])
    assert await _refused(bench, "own", hidden=True, name="other") == (400, ["/name", "/hidden"])
    assert await _refused(bench, "own", enabled=None) == (400, ["/enabled"])
    assert (await _refused(bench, "none", title="T"))[0] == 404
    assert (await bench.gateway.admin.patch(f"{TOOLS}/own", json={"enabled": False})).json()["enabled"] is False


async def test_a_result_is_cut_as_wanted(bench: OpenAPIBench) -> None:
    """Ours: the part at a pointer, without what is dropped; failures and empty answers stay as they are (OAS-6)."""
    await _import(bench)
    await _set(bench, "list_pets", result={"pointer": "/items", "drop": ["/*/secret"]})
    bench.upstream.body = b'{"items": [{"id": 12345678901234567890, "secret": 1}], "next": 2}'

    result = await bench.call("list_pets", {})
    assert json.loads(result["content"][0]["text"]) == [{"id": 12345678901234567890}]
    bench.upstream.status, bench.upstream.body = 404, b'{"items": "none"}'
    failed = await bench.call("list_pets", {})
    assert failed["isError"]
    assert "none" in failed["content"][0]["text"]
    bench.upstream.status = 204
    assert not (await bench.call("list_pets", {})).get("isError")
    bench.upstream.status, bench.upstream.body = 200, b'{"other": 1}'
    lost = await bench.call("list_pets", {})
    assert lost["isError"]
    assert "/items" in lost["content"][0]["text"]


async def test_a_safety_level_is_judged_by_policy_and_audited(bench: OpenAPIBench) -> None:
    """Ours: also a lower one than the method's, which the trail keeps (OAS-6, SAF-1)."""
    await _import(bench)
    policy = {"moderate": "deny", "dangerous": "deny"}
    (await bench.gateway.admin.patch(f"/tenants/{SLUG}/policy", json=policy)).raise_for_status()
    assert (await bench.call("create_pet", {"body": {"name": "a"}}))["isError"]

    await _set(bench, "create_pet", safety="safe", pinned={"body": {"name": "secret name"}})
    await _set(bench, "list_pets", safety="dangerous")
    assert await _called(bench, "create_pet") == "POST /v1/pets"
    assert (await bench.call("list_pets", {}))["isError"]
    entries = (await bench.gateway.admin.get(f"/tenants/{SLUG}/audit?limit=200")).json()["items"]
    lowered = next(entry for entry in entries if (entry["action"], entry["target"]) == ("tool.override", "create_pet"))
    assert lowered["detail"]["safety"] == ["moderate", "safe"]
    assert lowered["detail"]["pinned"] == ["body"]
    assert "secret name" not in json.dumps(entries)


async def test_a_hidden_tool_is_for_handlers_only(bench: OpenAPIBench) -> None:
    """Ours: clients neither see nor call it; steps, pinned operations and an admin's trial do (OAS-6)."""
    await _import(bench)
    steps = declared("twice", {"kind": "steps", "steps": [{"call": {"tool": "list_pets"}}]})
    pinned = declared("mine", {"kind": "openapi", "source": "api", "operation": "list_pets"})
    shown = await _set(bench, "list_pets", hidden=True)
    for body in (steps, pinned):
        answer = await bench.gateway.admin.post(TOOLS, json=body)
        assert answer.status_code == 201, answer.text

    assert (shown["status"]["hidden"], shown["enabled"]) == (True, True)
    assert "list_pets" not in await bench.tools()
    assert await _is_unknown(bench, "list_pets")
    assert await _called(bench, "twice") == "GET /v1/pets"
    assert await _called(bench, "mine") == "GET /v1/pets"
    assert (await bench.gateway.admin.post(f"{TOOLS}/list_pets/try", json={"arguments": {}})).status_code == 200
    assert "list_pets" in {item["name"] for item in (await bench.gateway.admin.get(TOOLS)).json()["items"]}

    bench.seen()
    assert (await _set(bench, "list_pets", hidden=None, enabled=False))["enabled"] is False
    assert await _is_unknown(bench, "list_pets")
    assert (await bench.call("twice", {}))["isError"]
    assert (await bench.call("mine", {}))["isError"]
    assert bench.seen() == []


async def test_call_endpoint_calls_the_tool_that_is_in_force(bench: OpenAPIBench) -> None:
    """Ours: hidden, pinned and renamed tools of a source that is queried, but none that is off (OAS-5, OAS-6)."""
    await _import(bench, expose="both")
    await _set(bench, "get_pet", hidden=True, pinned={"verbose": True}, name="find_pet")

    for key in ("find_pet", "GET /pets/{id}"):
        asked = {"operation": key, "arguments": {"id": 1}}
        assert await _called(bench, "call_endpoint", **asked) == "GET /v1/pets/1?verbose=true"
    details = await bench.call("get_endpoint_details", {"path": "/pets/{id}", "method": "get"})
    assert set(details["structuredContent"]["inputSchema"]["properties"]) == {"id"}
    assert details["structuredContent"]["tool"] == "find_pet"
    await _set(bench, "find_pet", enabled=False)
    assert (await bench.call("call_endpoint", {"operation": "GET /pets/{id}", "arguments": {"id": 1}}))["isError"]
    assert bench.seen() == []


async def test_a_renamed_tool_can_be_called_by_its_old_name(bench: OpenAPIBench) -> None:
    """Ours: an alias is called like the tool, is not listed, and the trail knows the real name (OAS-6)."""
    await _import(bench)
    steps = declared("twice", {"kind": "steps", "steps": [{"call": {"tool": "get_pet", "arguments": {"id": 2}}}]})
    (await bench.gateway.admin.post(TOOLS, json=steps)).raise_for_status()
    level = (await bench.gateway.admin.get(f"{TOOLS}/twice")).json()["status"]["safety"]
    await _set(bench, "get_pet", name="find_pet")

    assert {"find_pet", "get_pet"} & set(await bench.tools()) == {"find_pet"}
    assert await _called(bench, "find_pet", id=1) == await _called(bench, "get_pet", id=1) == "GET /v1/pets/1"
    assert await _called(bench, "twice") == "GET /v1/pets/2"
    assert (await bench.gateway.admin.get(f"{TOOLS}/twice")).json()["status"]["safety"] == level
    entries = (await bench.gateway.admin.get(f"/tenants/{SLUG}/audit?limit=200")).json()["items"]
    assert {entry["target"] for entry in entries if entry["action"] == "call"} == {"find_pet", "twice"}
    profile = {"name": "small", "include": [{"names": ["list_*"]}]}
    (await bench.gateway.admin.post(f"/tenants/{SLUG}/profiles", json=profile)).raise_for_status()
    bench.seen()
    small = await bench.gateway.http.post(
        f"/t/{SLUG}/small/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_pet", "arguments": {"id": 1}}},
        headers={"authorization": f"Bearer {bench.key}", "accept": "application/json, text/event-stream"},
    )
    assert "error" in small.json()
    assert bench.seen() == []


async def test_an_old_name_is_over_after_its_time(bench: OpenAPIBench, database: TestDatabase) -> None:
    """Ours: no restart is needed for it to go (OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", name="find_pet")
    assert await _called(bench, "get_pet", id=1) == "GET /v1/pets/1"
    await execute(database.superuser_url, "update aliases set expires_at = now()")
    await _set(bench, "list_pets", title="All")

    assert await _is_unknown(bench, "get_pet")
    assert await _called(bench, "find_pet", id=1) == "GET /v1/pets/1"


async def test_there_are_no_more_overrides_than_primitives(bench: OpenAPIBench) -> None:
    """Ours: overrides of removed operations are kept up to a bound (OAS-6, SAF-4)."""
    await _import(bench)
    await _set(bench, "get_pet", title="Find")
    limits = {"limits": {"primitives": 1}}
    (await bench.gateway.admin.patch(f"/tenants/{SLUG}/policy", json=limits)).raise_for_status()

    assert (await _refused(bench, "list_pets", title="All"))[0] == 429
    assert (await _set(bench, "get_pet", title="Look"))["definition"]["title"] == "Look"


async def test_the_present_owner_of_a_name_precedes_the_former(bench: OpenAPIBench) -> None:
    """Ours: a name that was given away is free at once, for imports, own tools and renames alike (OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", name="find_pet")
    own = declared("get_pet", {"kind": "static", "content": [{"type": "text", "text": "mine"}]})
    assert (await bench.gateway.admin.post(TOOLS, json=own)).status_code == 201

    assert (await bench.call("get_pet", {}))["content"][0]["text"] == "mine"
    assert (await _refused(bench, "find_pet", name=None))[0] == 409  # the document's name is another's by now
    answer = await bench.gateway.admin.delete(f"{TOOLS}/find_pet/override")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert answer.json()["conflicts"] == [{"name": "get_pet", "owner": "custom"}]
    for taken, owner in (("list_pets", "source:api"), ("get_pet", "custom"), ("call_endpoint", "builtin")):
        answer = await bench.gateway.admin.patch(f"{TOOLS}/create_pet", json={"name": taken})
        assert (answer.status_code, answer.json()["conflicts"]) == (409, [{"name": taken, "owner": owner}])
    (await bench.gateway.admin.delete(f"{TOOLS}/get_pet")).raise_for_status()
    assert await _called(bench, "get_pet", id=3) == "GET /v1/pets/3"  # it is free: it leads to the old tool again
    assert (await bench.gateway.admin.delete(f"{TOOLS}/find_pet/override")).status_code == 204
    assert await _called(bench, "find_pet", id=4) == "GET /v1/pets/4"
    assert "get_pet" in await bench.tools()


async def test_another_prefix_leaves_the_old_names_alive(bench: OpenAPIBench) -> None:
    """Ours: clients that know the names from before the change go on; a name that was chosen stays (OAS-6)."""
    await _import(bench, prefix="v1")
    await _set(bench, "v1_get_pet", name="find_pet")
    answer = await bench.gateway.admin.patch(f"/tenants/{SLUG}/sources/api", json={"prefix": "v2"})
    assert answer.status_code == 200, answer.text

    assert set(await bench.tools()) == {"find_pet", "v2_list_pets", "v2_create_pet", "v2_delete_pet"}
    for name in ("v1_list_pets", "v2_list_pets"):
        assert await _called(bench, name) == "GET /v1/pets"
    assert await _called(bench, "v1_get_pet", id=1) == "GET /v1/pets/1"
    assert (await bench.gateway.admin.delete(f"{TOOLS}/find_pet/override")).status_code == 204
    assert "v2_get_pet" in await bench.tools()


async def test_an_import_keeps_overrides_and_reports_those_it_cannot_use(bench: OpenAPIBench) -> None:
    """Ours: they belong to method and path, are kept while the operation is absent, and are reported (OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", name="find_pet", title="Find", pinned={"verbose": True})
    await _set(bench, "list_pets", title="All")
    again = await _put(bench)
    assert [(one["operation"], one["tool"], one["applies"]) for one in again["report"]["overrides"]] == [
        ("GET /pets", "list_pets", True),
        ("GET /pets/{id}", "find_pet", True),
    ]
    assert {one["tool"] for one in again["report"]["operations"]} >= {"find_pet", "list_pets"}
    assert (await bench.tools())["find_pet"]["title"] == "Find"

    dry = await _put(bench, without="/pets/{id}", dry_run=True)
    gone = await _put(bench, without="/pets/{id}")
    reported = "override for GET /pets/{id}: the document no longer has the operation, or the import excludes it"
    for imported in (dry, gone):
        assert [one["applies"] for one in imported["report"]["overrides"]] == [True, False]
        assert reported in imported["report"]["warnings"]
    kept = (await bench.gateway.admin.get(OVERRIDES)).json()["items"]
    assert [(one["operation"], one["tool"]) for one in kept] == [("GET /pets", "list_pets"), ("GET /pets/{id}", None)]
    assert set(await bench.tools()) == {"list_pets", "create_pet"}
    own = declared("find_pet", {"kind": "static", "content": [{"type": "text", "text": "x"}]})
    taken = await bench.gateway.admin.post(TOOLS, json=own)
    assert (taken.status_code, taken.json()["conflicts"][0]["owner"]) == (409, "source:api")
    found = {"/found": {"get": {"operationId": "find_pet", "responses": {"200": {"description": "ok"}}}}}
    other = {"name": "other", "document": pets(bench.upstream.url) | {"paths": found}}
    taken = await bench.gateway.admin.post(f"/tenants/{SLUG}/sources", json=other)
    assert (taken.status_code, taken.json()["conflicts"]) == (409, [{"name": "find_pet", "owner": "source:api"}])

    await _put(bench)
    assert await _called(bench, "find_pet", id=5) == "GET /v1/pets/5?verbose=true"


async def test_a_pin_that_fits_no_more_is_reported_and_the_rest_applies(bench: OpenAPIBench) -> None:
    """Ours: a change of a pinned argument is reported by the import, before any caller meets it (OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", title="Find", pinned={"verbose": True})
    document = pets(bench.upstream.url)
    document["paths"]["/pets/{id}"]["get"]["parameters"][1] = {
        "name": "wide",
        "in": "query",
        "schema": {"type": "boolean"},
    }
    path = f"/tenants/{SLUG}/sources/api"
    report = (await bench.gateway.admin.put(path, json={"document": document})).json()["report"]

    assert any("GET /pets/{id}: /pinned/verbose" in warning for warning in report["warnings"])
    assert (await bench.tools())["get_pet"]["title"] == "Find"
    assert await _called(bench, "get_pet", id=1, wide=True) == "GET /v1/pets/1?wide=true"


async def test_a_fresh_name_gives_way_to_one_that_was_chosen(bench: OpenAPIBench) -> None:
    """Ours: an operation that comes new cannot take the name that an override wants (OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", name="find_pet")
    document = pets(bench.upstream.url)
    document["paths"]["/found"] = {"get": {"operationId": "find_pet", "responses": {"200": {"description": "ok"}}}}
    path = f"/tenants/{SLUG}/sources/api"
    answer = await bench.gateway.admin.put(path, json={"document": document})
    assert answer.status_code == 200, answer.text

    assert await _called(bench, "find_pet", id=1) == "GET /v1/pets/1"
    assert any(name.startswith("find_pet_") for name in await bench.tools())


async def test_overrides_are_listed_page_by_page_and_removed(bench: OpenAPIBench) -> None:
    """Ours: also the one whose operation is gone; they go with their source (OAS-6)."""
    await _import(bench)
    for tool in ("get_pet", "list_pets", "create_pet", "delete_pet"):
        await _set(bench, tool, title=f"The {tool}")
    admin = bench.gateway.admin
    first = (await admin.get(OVERRIDES, params={"limit": 3})).json()
    rest = (await admin.get(OVERRIDES, params={"limit": 3, "cursor": first["next_cursor"]})).json()
    both = [*first["items"], *rest["items"]]
    assert [one["operation"] for one in both] == ["DELETE /pets/{id}", "GET /pets", "GET /pets/{id}", "POST /pets"]
    assert rest["next_cursor"] is None

    await _put(bench, without="/pets/{id}")
    gone = f"{OVERRIDES}/{both[0]['id']}"
    shown = await admin.get(gone)
    assert (shown.json()["tool"], shown.json()["title"]) == (None, "The delete_pet")
    assert (await admin.delete(gone, headers={"if-match": '"other"'})).status_code == 412
    assert (await admin.delete(gone, headers={"if-match": shown.headers["etag"]})).status_code == 204
    assert (await admin.get(gone)).status_code == (await admin.delete(gone)).status_code == 404
    assert (await admin.delete(f"{OVERRIDES}/{both[1]['id']}")).status_code == 204
    assert (await bench.tools())["list_pets"].get("title") is None
    assert (await admin.delete(f"{TOOLS}/list_pets/override")).status_code == 404
    (await admin.delete(f"/tenants/{SLUG}/sources/api")).raise_for_status()
    await _import(bench)
    assert (await admin.get(OVERRIDES)).json()["items"] == []


async def test_a_change_is_held_to_the_version_it_was_meant_for(bench: OpenAPIBench) -> None:
    """Ours: the tag of a tool changes with its override and with its document (OAS-6)."""
    await _import(bench)
    admin, place = bench.gateway.admin, f"{TOOLS}/get_pet"
    tags = [(await admin.get(place)).headers["etag"]]
    for body in ({"title": "one"}, {"title": "two"}, {"hidden": True}, {"hidden": None, "title": None}):
        answer = await admin.patch(place, json=body, headers={"if-match": tags[-1]})
        assert answer.status_code == 200, answer.text
        tags.append(answer.headers["etag"])
        assert (await admin.get(place)).headers["etag"] == tags[-1]
    assert len(set(tags[:-1])) == len(tags) - 1
    assert tags[-1] == tags[0]
    stale = await admin.patch(place, json={"title": "late"}, headers={"if-match": tags[1]})
    assert stale.status_code == 412
    assert (await admin.get(place)).json()["status"]["override"] is None


@pytest.mark.parametrize("expose", ["query", "tools"])
async def test_another_tenant_has_its_own_overrides(bench: OpenAPIBench, expose: str) -> None:
    """Ours: the same document in two tenants, and neither knows what the other wants (TEN-1, OAS-6)."""
    await _import(bench, expose=expose)
    await bench.gateway.create_tenant("other")
    await bench.gateway.import_document("other", pets(bench.upstream.url), expose=expose)
    await _set(bench, "get_pet", name="find_pet", title="Find", pinned={"verbose": True})

    theirs = await bench.gateway.admin.get("/tenants/other/tools/get_pet")
    assert theirs.json()["status"]["override"] is None
    assert (await bench.gateway.admin.get("/tenants/other/sources/api/overrides")).json()["items"] == []
    own = (await bench.gateway.admin.get(OVERRIDES)).json()["items"][0]["id"]
    assert (await bench.gateway.admin.get(f"/tenants/other/sources/api/overrides/{own}")).status_code == 404
    assert (await bench.gateway.admin.delete(f"/tenants/other/sources/api/overrides/{own}")).status_code == 404
    await bench.gateway.import_document("acme", pets(bench.upstream.url), name="second", prefix="second_")
    for method in ("GET", "DELETE"):
        refused = await bench.gateway.admin.request(method, f"/tenants/acme/sources/second/overrides/{own}")
        assert refused.status_code == 404
    assert (await bench.gateway.admin.get(f"{OVERRIDES}/{own}")).is_success
    assert (await bench.gateway.admin.patch("/tenants/other/tools/list_pets", json={"name": "find_pet"})).is_success


async def test_an_override_is_an_object_with_every_verb(bench: OpenAPIBench) -> None:
    """Ours: it has the name of its tool; a change of a tool without one creates it, and its removal resets (OAS-6)."""
    await _import(bench)
    admin, path = bench.gateway.admin, f"/tenants/{SLUG}/overrides"
    wanted: dict[str, Any] = {"name": "find_pet", "source": "api", "operation": "GET /pets/{id}", "title": "Find"}
    made = await admin.post(path, json=wanted)
    assert (made.status_code, made.headers["location"]) == (201, f"/admin/v1{path}/find_pet")
    assert (made.json()["status"], made.json()["source"]) == ({"tool": "find_pet"}, "api")
    assert (await bench.tools())["find_pet"]["title"] == "Find"
    assert await _called(bench, "get_pet", id=1) == "GET /v1/pets/1"

    again = await admin.post(path, json={**wanted, "name": "another"})
    assert (again.status_code, "already" in again.json()["detail"]) == (409, True)
    unknown = await admin.post(path, json={**wanted, "name": "other", "operation": "GET /none"})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/operation")
    taken = await admin.patch(f"{path}/find_pet", json={"name": "list_pets"})
    assert (taken.status_code, taken.json()["conflicts"][0]["owner"]) == (409, "source:api")
    nothing = await admin.put(f"{path}/find_pet", json={"source": "api", "operation": "GET /pets/{id}"})
    assert nothing.status_code == 200  # its name is a change
    moved = await admin.put(f"{path}/find_pet", json={**wanted, "operation": "GET /pets"})
    assert (moved.status_code, moved.json()["errors"][0]["pointer"]) == (400, "/operation")
    renamed = await admin.patch(f"{path}/find_pet", json={"name": "get_pet", "hidden": True})
    assert (renamed.json()["id"], renamed.json()["name"]) == (made.json()["id"], "get_pet")
    empty = await admin.patch(f"{path}/get_pet", json={"hidden": None})
    assert (empty.status_code, "changes nothing" in empty.json()["detail"]) == (400, True)
    assert (await admin.delete(f"{path}/get_pet")).status_code == 204
    assert (await admin.get(f"{path}/get_pet")).status_code == 404

    fresh = await admin.patch(f"{path}/list_pets", json={"safety": "moderate"})
    assert (fresh.status_code, fresh.json()["operation"]) == (200, "GET /pets")
    assert [one["name"] for one in (await admin.get(path, params={"source": "api"})).json()["items"]] == ["list_pets"]
    assert (await admin.patch(f"{path}/none", json={"title": "T"})).status_code == 404
    entries = (await admin.get(f"/tenants/{SLUG}/audit?limit=200&kind=change")).json()["items"]
    actions = [one["action"] for one in reversed(entries) if one["action"].startswith("tool.")]
    assert actions == ["tool.override", "tool.override", "tool.override", "tool.reset", "tool.override"]


async def test_hints_and_parts_of_results_are_changed_one_by_one(bench: OpenAPIBench) -> None:
    """Ours: a change keeps the hints and parts that it does not name; a null restores the document's (ADM-1, OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", annotations={"readOnlyHint": False}, result={"keep": ["/id"]})
    shown = await _set(bench, "get_pet", annotations={"openWorldHint": True}, result={"pointer": "/a"})
    override = shown["status"]["override"]
    assert (override["annotations"]["readOnlyHint"], override["annotations"]["openWorldHint"]) == (False, True)
    assert override["result"] == {"pointer": "/a", "keep": ["/id"], "drop": None}
    shown = await _set(bench, "get_pet", annotations={"readOnlyHint": None, "openWorldHint": None}, result=None)
    assert shown["status"]["override"] is None


async def test_an_override_without_its_operation_waits_under_its_id(bench: OpenAPIBench) -> None:
    """Ours: it can be shown and removed, and not be changed, until the operation is back (OAS-6)."""
    await _import(bench)
    await _set(bench, "get_pet", title="Find")
    await _put(bench, without="/pets/{id}")
    admin, path = bench.gateway.admin, f"/tenants/{SLUG}/overrides"
    [kept] = (await admin.get(path, params={"waiting": "true"})).json()["items"]
    assert (kept["name"], kept["status"]) == (kept["id"], {"tool": None})
    refused = await admin.patch(f"{path}/{kept['id']}", json={"title": "Other"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/operation")
    same = await admin.put(f"{path}/{kept['id']}", json=kept)
    assert (same.status_code, same.json()) == (200, kept)
    await _put(bench)
    assert (await admin.get(f"{path}/get_pet")).json()["title"] == "Find"
    assert (await bench.tools())["get_pet"]["title"] == "Find"
