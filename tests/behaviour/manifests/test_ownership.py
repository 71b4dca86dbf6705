"""Ownership of objects by sets of manifests: adoption, new names, pruning and drift."""

from typing import Any

import anyio
import httpx
import pytest

from gateway.catalog.manifests.limits import MAX_DRIFT_EVENTS
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.manifests import Manifest, actions, apply, entries_of, profile, send, tenant_for_manifests
from tests.support.primitives import add

ROOT = "/tenants/acme"


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await tenant_for_manifests(gateway)
    return gateway


def _reasons(answer: httpx.Response, status: int = 409) -> list[str]:
    assert answer.status_code == status, answer.text
    return [fault["reason"] for fault in answer.json()["errors"]]


def _policy(**members: Any) -> dict[str, Any]:
    return {"kind": "policy", "members": members}


async def test_a_set_takes_over_nothing_unless_permitted(acme: RunningGateway) -> None:
    """Ours: an object of another set, or of none, is refused; `adopt` takes it over, with an entry (CFG-3)."""
    await acme.admin.put(f"{ROOT}/profiles/by-hand", json={})
    await acme.admin.patch(f"{ROOT}/policy", json={"dangerous": "deny"})
    await apply(acme, [profile("of-other")], set="other")
    wanted = [profile("by-hand"), profile("of-other", description="New."), profile("new"), _policy(dangerous="deny")]
    assert _reasons(await send(acme, wanted, set="platform")) == [
        "profile by-hand exists and belongs to no set",
        "profile of-other belongs to the set other of the operator",
        "policy exists and belongs to no set",
    ]
    before = len(await entries_of(acme))
    done = await apply(acme, wanted, set="platform", adopt=True, dry_run=True)
    assert done == await apply(acme, wanted, set="platform", adopt=True) | {
        "objects": [one | {"id": one["id"] if one["name"] != "new" else None} for one in done["objects"]]
    }
    assert actions(done) == {"by-hand": "adopt", "of-other": "update", "new": "create", "policy": "adopt"}
    entries = (await entries_of(acme))[before:]
    assert [one["action"] for one in entries] == ["policy.adopt", "profile.adopt", "profile.update", "profile.create"]
    assert [one["detail"].get("drift") for one in entries] == [None, None, "other", None]
    assert actions(await apply(acme, wanted, set="platform")) == dict.fromkeys(actions(done), "none")
    assert _reasons(await send(acme, [profile("of-other")], set="other")) == [
        "profile of-other belongs to the set platform of the operator"
    ]


async def test_without_a_set_nothing_is_owned(acme: RunningGateway) -> None:
    """Ours: without `set`, objects of any owner are applied, and the terms of sets are refused (CFG-3)."""
    await acme.admin.put(f"{ROOT}/profiles/by-hand", json={})
    await apply(acme, [profile("by-hand", description="New."), profile("new")])
    await apply(acme, [profile("new")], set="platform", adopt=True)
    answer = await send(acme, [profile("new")], adopt=True, prune=True)
    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/adopt", "/prune"]
    assert actions(await apply(acme, [profile("new", description="By hand.")])) == {"new": "update"}
    assert (await entries_of(acme))[-1]["detail"]["drift"] == "platform"


async def test_pruning_removes_only_objects_of_the_set(acme: RunningGateway) -> None:
    """Ours: objects of others, of no set and singletons stay; the number of removals is bounded (CFG-3)."""
    await acme.admin.put(f"{ROOT}/profiles/by-hand", json={})
    await apply(acme, [profile("of-other")], set="other")
    mine = [profile(name) for name in ("a", "b", "c")]
    await apply(acme, [*mine, _policy(dangerous="deny")], set="platform")
    kept = await apply(acme, mine[:1], set="platform")
    assert actions(kept) == {"a": "none"}
    assert _reasons(await send(acme, mine[:1], set="platform", prune=True, max_deletions=1)) == [
        "would remove the profile b",
        "would remove the profile c",
    ]
    assert _reasons(await send(acme, [], set="platform", prune=True)) == [
        "is empty, and `prune` would remove all that the set owns"
    ]
    tried = await apply(acme, mine[:1], set="platform", prune=True, dry_run=True)
    assert actions(tried) == {"a": "none", "b": "delete", "c": "delete"}
    done = await apply(acme, mine[:1], set="platform", prune=True)
    assert done == tried
    shown = (await acme.admin.get(f"{ROOT}/profiles")).json()["items"]
    assert {one["name"] for one in shown} == {"a", "by-hand", "default", "of-other"}
    assert (await acme.admin.get(f"{ROOT}/policy")).json()["dangerous"] == "deny"
    assert [one["action"] for one in await entries_of(acme)][-2:] == ["profile.delete"] * 2
    assert actions(await apply(acme, mine[:1], set="platform", prune=True)) == {"a": "none"}


async def test_an_object_in_use_is_not_pruned(acme: RunningGateway) -> None:
    """Ours: pruning has the checks of a deletion; what is refused leaves all as it was (CFG-3)."""
    await apply(acme, [profile("a"), profile("bound")], set="platform")
    await acme.create_key("acme", profile="bound")
    refused = await send(acme, [profile("a", description="New.")], set="platform", prune=True)
    assert _reasons(refused)[0].startswith("used by key")
    assert (await acme.admin.get(f"{ROOT}/profiles/a")).json()["description"] == ""


async def test_a_removed_object_has_no_owner(acme: RunningGateway) -> None:
    """Ours: an object that is created again belongs to no set, though one of its name did (CFG-3)."""
    await apply(acme, [profile("a")], set="platform")
    await acme.admin.delete(f"{ROOT}/profiles/a")
    assert (await entries_of(acme))[-1]["detail"]["drift"] == "platform"
    await acme.admin.put(f"{ROOT}/profiles/a", json={})
    assert _reasons(await send(acme, [profile("a")], set="platform")) == ["profile a exists and belongs to no set"]


async def test_a_new_name_keeps_id_and_secret(acme: RunningGateway) -> None:
    """Ours: a move renames the object, once; without it, the new name would be another object (CFG-3)."""
    old = {"kind": "webhook-endpoint", "name": "a", "members": {"url": "https://a.example/hook"}}
    new = {**old, "name": "b", "members": {"url": "https://b.example/hook"}}
    [made] = (await apply(acme, [old], set="platform"))["objects"]
    moved = [{"kind": "webhook-endpoint", "from": "a", "to": "b"}]
    done = await apply(acme, [new], set="platform", moved=moved, prune=True)
    [renamed] = done["objects"]
    assert (renamed["action"], renamed["id"], renamed["name"]) == ("rename", made["id"], "b")
    shown = (await acme.admin.get(f"{ROOT}/webhook-endpoints/b")).json()
    assert (shown["id"], shown["url"]) == (made["id"], "https://b.example/hook")
    assert actions(await apply(acme, [new], set="platform", moved=moved, prune=True)) == {"b": "none"}
    await acme.admin.post(f"{ROOT}/webhook-endpoints", json={"name": "a", "url": "https://a.example/hook"})
    assert (await send(acme, [new], set="platform", moved=moved)).status_code == 409
    for wrong in (
        [{"kind": "profile", "from": "a", "to": "b"}],
        [{"kind": "webhook-endpoint", "from": "a", "to": "other"}],
        [{"kind": "webhook-endpoint", "from": "b", "to": "a"}],
        moved * 2,
    ):
        assert (await send(acme, [new], set="platform", moved=wrong)).status_code == 400


async def test_a_refused_removal_has_a_place(acme: RunningGateway) -> None:
    """Ours: an object in use is not pruned; the refusal names it and the term that would remove it (CFG-3)."""
    members = {"kind": "shared", "place": "bearer", "value": "a-value", "origins": ["https://api.example"]}
    credential = {"kind": "credential", "name": "vendor", "members": members}
    await apply(acme, [credential, profile("a")], set="platform")
    watch = {"uri": "note://1", "url": "https://api.example/notes/1", "credential": "vendor"}
    assert (await acme.admin.post(f"{ROOT}/watches", json=watch)).status_code == 201
    refused = await send(acme, [profile("a")], set="platform", prune=True, prune_protected=True)
    assert _reasons(refused) == ["used by watch note://1"]
    assert refused.json()["errors"][0]["pointer"] == "/prune"
    assert refused.json()["detail"].startswith("credential vendor: ")
    refused = await send(acme, [profile("a")], set="platform", prune_protected=True)
    assert _reasons(refused, 400) == ["needs `prune`"]


async def test_drift_is_shown_and_reported(acme: RunningGateway) -> None:
    """Ours: a change by hand of an owned object is in its entry, a metric, an event and the next result (CFG-3)."""
    endpoint = {"name": "alerts", "url": "https://hooks.example/x", "kinds": ["configuration.drifted"]}
    await acme.admin.post(f"{ROOT}/webhook-endpoints", json=endpoint)
    wanted = [profile("a", description="Mine."), _policy(dangerous="deny")]
    await apply(acme, wanted, set="platform")
    counted = await _drift_count(acme)
    await acme.admin.patch(f"{ROOT}/profiles/a", json={"description": "By hand."})
    await acme.admin.patch(f"{ROOT}/policy", json={"safe": "deny"})
    assert [one["detail"].get("drift") for one in (await entries_of(acme))[-2:]] == ["platform"] * 2
    assert await _drift_count(acme) == counted + 2
    deliveries = (await acme.admin.get(f"{ROOT}/webhook-endpoints/alerts/deliveries")).json()["items"]
    assert [one["kind"] for one in deliveries] == ["configuration.drifted"] * 2
    last = (await acme.admin.get(f"{ROOT}/webhook-endpoints/alerts/deliveries/{deliveries[-1]['id']}")).json()
    assert last["payload"]["data"]["set"] == "platform"
    result = await apply(acme, wanted, set="platform")
    assert [(one["action"], one["drift"]) for one in result["objects"]] == [("update", True)] * 2
    result = await apply(acme, wanted, set="platform")
    assert [(one["action"], one["drift"]) for one in result["objects"]] == [("none", False)] * 2


async def test_drift_of_many_objects_has_few_events(acme: RunningGateway) -> None:
    """Ours: one application enqueues few deliveries, however many objects of others it changes (CFG-3)."""
    endpoint = {"name": "alerts", "url": "https://hooks.example/x", "kinds": ["configuration.drifted"]}
    await acme.admin.post(f"{ROOT}/webhook-endpoints", json=endpoint)
    names = [f"p{number}" for number in range(MAX_DRIFT_EVENTS + 5)]
    await apply(acme, [profile(name) for name in names], set="platform")
    counted = await _drift_count(acme)
    await apply(acme, [profile(name, description="Other.") for name in names])
    path = f"{ROOT}/webhook-endpoints/alerts/deliveries"
    assert len((await acme.admin.get(path, params={"limit": 200})).json()["items"]) == MAX_DRIFT_EVENTS
    assert await _drift_count(acme) == counted + len(names)
    assert [one["detail"]["drift"] for one in (await entries_of(acme))[-len(names) :]] == ["platform"] * len(names)


async def _drift_count(gateway: RunningGateway) -> float:
    with anyio.fail_after(5):
        lines = (await gateway.http.get("/metrics", headers=gateway.admin.headers)).text.splitlines()
    found = [line for line in lines if line.startswith("gateway_configuration_drift_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in found)


async def test_a_client_is_matched_by_its_only_name(acme: RunningGateway) -> None:
    """Ours: an object whose name need not be unique is matched by it; two of the name are refused (CFG-3)."""
    members = {"redirect_uris": ["https://reports.example/callback"], "confidential": True}
    wanted = [profile("a"), {"kind": "client", "name": "Reports", "members": members}]
    [_, made] = (await apply(acme, wanted, set="platform"))["objects"]
    assert (made["action"], made["name"], made["secret"] is None) == ("create", "Reports", False)
    assert actions(await apply(acme, wanted, set="platform")) == {"a": "none", "Reports": "none"}
    other = {**members, "redirect_uris": ["https://other.example/callback"]}
    changed = [wanted[0], {**wanted[1], "members": other}]
    [_, done] = (await apply(acme, changed, set="platform"))["objects"]
    assert (done["action"], done["id"], done["secret"]) == ("update", made["id"], None)
    refused = await send(acme, wanted[:1], set="platform", prune=True)
    assert _reasons(refused) == ["would remove the client Reports"]
    second = (await acme.admin.post(f"{ROOT}/clients", json={"name": "Reports", **members})).json()["id"]
    refused = await send(acme, changed, set="platform")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (409, "/objects/1")
    assert "several clients have the name" in refused.json()["detail"]
    await acme.admin.delete(f"{ROOT}/clients/{second}")
    done = await apply(acme, wanted[:1], set="platform", prune=True, prune_protected=True)
    assert actions(done) == {"a": "none", "Reports": "delete"}


async def test_a_key_is_matched_by_its_only_active_name(acme: RunningGateway) -> None:
    """Ours: a manifest names the active key of a name; ended ones are no obstacle, and two active ones are (CFG-3)."""
    wanted = [profile("a"), {"kind": "key", "name": "agent", "members": {"scopes": ["mcp"], "profile": "a"}}]
    [_, made] = (await apply(acme, wanted, set="platform"))["objects"]
    assert (made["action"], made["secret"].startswith("mcpg_live_")) == ("create", True)
    assert actions(await apply(acme, wanted, set="platform")) == {"a": "none", "agent": "none"}

    other = [wanted[0], {**wanted[1], "members": {"scopes": ["mcp", "audit"], "profile": "a"}}]
    refused = await send(acme, other, set="platform")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/1/members/scopes")

    second = await acme.admin.post(f"{ROOT}/keys", json={"name": "agent", "scopes": ["mcp"]})
    refused = await send(acme, wanted, set="platform")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (409, "/objects/1")
    assert "several keys have the name" in refused.json()["detail"]
    await acme.admin.post(f"{ROOT}/keys/{second.json()['id']}/revoke")
    assert actions(await apply(acme, wanted, set="platform")) == {"a": "none", "agent": "none"}

    refused = await send(acme, wanted[:1], set="platform", prune=True)
    assert _reasons(refused) == ["would remove the key agent"]
    await acme.admin.post(f"{ROOT}/keys/{made['id']}/revoke")
    assert actions(await apply(acme, wanted[:1], set="platform", prune=True)) == {"a": "none"}, "it left the set"
    [_, again] = (await apply(acme, wanted, set="platform"))["objects"]
    assert (again["action"], again["id"] == made["id"]) == ("create", False)
    done = await apply(acme, wanted[:1], set="platform", prune=True, prune_protected=True)
    assert actions(done) == {"a": "none", "agent": "delete"}


async def test_a_secret_is_written_when_it_changes(acme: RunningGateway) -> None:
    """Ours: a set compares secrets by a digest of what it applied; a change by hand makes the digest void (CFG-3)."""

    def credential(value: str, origin: str = "https://api.example.com") -> dict[str, Any]:
        members = {"place": "bearer", "value": value, "origins": [origin]}
        return {"kind": "credential", "name": "vendor", "members": members}

    async def run(one: dict[str, Any], **more: Any) -> dict[str, Any]:
        done = await apply(acme, [one], set="platform", **more)
        assert "s3cr3t" not in str(done)
        applied: dict[str, Any] = done["objects"][0]
        return applied

    secret_change = [{"pointer": "/value", "before": None, "after": None, "is_secret": True, "is_cut": False}]
    assert (await run(credential("s3cr3t-1")))["action"] == "create"
    count = len(await entries_of(acme))
    again = await run(credential("s3cr3t-1"))
    assert (again["action"], again["changes"], len(await entries_of(acme))) == ("none", [], count)
    changed = await run(credential("s3cr3t-2"), dry_run=True)
    assert (changed["action"], changed["changes"]) == ("update", secret_change)
    assert (await run(credential("s3cr3t-1")))["action"] == "none"
    assert (await run(credential("s3cr3t-2")))["action"] == "update"
    moved = await run(credential("s3cr3t-2", "https://other.example.com"))
    assert (moved["action"], [one["pointer"] for one in moved["changes"]]) == ("update", ["/origins/0", "/value"])
    await acme.admin.patch(f"{ROOT}/credentials/vendor", json={"value": "s3cr3t-3"})
    restored = [await run(credential("s3cr3t-2", "https://other.example.com")) for _ in range(2)]
    assert [(one["action"], one["drift"]) for one in restored] == [("update", True), ("none", False)]


async def test_overrides_are_renamed_and_pruned_by_their_set(acme: RunningGateway) -> None:
    """Ours: an override names its source and operation; `moved` renames its tool, and pruning resets it (CFG-1)."""

    await add(acme, "acme", "sources", {"name": "pets", "document": pets("https://pets.example")})

    def override(name: str, **more: object) -> Manifest:
        members = {"source": "pets", "operation": "GET /pets/{id}", "pinned": {"verbose": True}, **more}
        return {"kind": "override", "name": name, "members": members}

    made = await apply(acme, [override("find_pet"), profile("a")], set="platform")
    assert actions(made) == {"find_pet": "create", "a": "create"}
    again = await apply(acme, [override("find_pet"), profile("a")], set="platform")
    assert actions(again) == {"find_pet": "none", "a": "none"}
    refused = await send(acme, [override("find_pet", operation="GET /pets")])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/0/members/operation")
    refused = await send(acme, [override("search_pet")], set="platform")
    assert (refused.status_code, "already" in refused.json()["detail"]) == (409, True)
    refused = await send(acme, [override("find_pet", pinned={"none": 1})])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/objects/0/members/pinned/none")
    moved = [{"kind": "override", "from": "find_pet", "to": "search_pet"}]
    renamed = await apply(acme, [override("search_pet"), profile("a")], set="platform", moved=moved)
    assert actions(renamed) == {"search_pet": "rename", "a": "none"}
    assert renamed["objects"][0]["id"] == made["objects"][0]["id"]
    tools = (await acme.admin.get("/tenants/acme/tools?source=pets")).json()["items"]
    assert "search_pet" in {one["name"] for one in tools}
    (await acme.admin.patch("/tenants/acme/tools/search_pet", json={"title": "By hand"})).raise_for_status()
    drifted = await apply(acme, [override("search_pet"), profile("a")], set="platform", dry_run=True)
    assert [one["drift"] for one in drifted["objects"]] == [True, False]
    pruned = await apply(acme, [profile("a")], set="platform", prune=True)
    assert actions(pruned) == {"a": "none", "search_pet": "delete"}
    tools = (await acme.admin.get("/tenants/acme/tools?source=pets")).json()["items"]
    assert "get_pet" in {one["name"] for one in tools}
