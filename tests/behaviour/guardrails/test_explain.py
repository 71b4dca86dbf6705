"""Explanations of calls: the predicted outcome, without any effect."""

import json
from typing import Any

import pytest

from tests.behaviour.guardrails.conftest import AWS, SECRETS, Guarded
from tests.support.documents import pets
from tests.support.primitives import add, add_profile, static_tool, tool


async def test_an_explanation_shows_every_station(tenant: Guarded) -> None:
    """Ours: level, decision, guardrails, request and limits of a call that would run (SAF-5)."""
    await tenant.guard(SECRETS)
    await tenant.hook(position=500)
    found = await tenant.explain("create_pet", {"body": {"name": "Rex"}})

    assert (found["tool"], found["visible"], found["course"]) == ("create_pet", True, "runs")
    assert found["level"]["level"] == "moderate"
    assert "POST" in found["level"]["reasons"][0]
    assert (found["decision"], found["refusal"]) == ("allow", None)
    assert [(one["name"], one["findings"]) for one in found["guardrails"]] == [("secrets", []), ("judge", None)]
    assert found["request"]["method"] == "POST"
    assert found["request"]["url"] == f"{tenant.upstream.url}/v1/pets"
    assert json.loads(found["request"]["body"]) == {"name": "Rex"}
    assert found["limits"]["concurrency"] == 64


_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"body": {"name": f"key {AWS}"}}, "policy.call_blocked"),
    ({"body": {"name": 7}}, "call.arguments_invalid"),
    ({}, "call.arguments_invalid"),
    ({"body": {"name": "x"}, "other": 1}, "call.arguments_invalid"),
]


@pytest.mark.parametrize(("arguments", "code"), _REFUSED)
async def test_an_explanation_shows_the_refusal(tenant: Guarded, arguments: dict[str, Any], code: str) -> None:
    """Ours: the code that the call would end with, and the reasons (SAF-5)."""
    await tenant.guard(SECRETS)
    found = await tenant.explain("create_pet", arguments)
    assert (found["course"], found["refusal"]["code"], found["request"]) == ("refused", code, None)
    assert bool(found["refusal"]["faults"]) is (code == "call.arguments_invalid")
    assert AWS not in json.dumps(found)


@pytest.mark.parametrize(("decision", "course"), [("deny", "refused"), ("confirm", "asks")])
async def test_an_explanation_shows_the_policys_decision(tenant: Guarded, decision: str, course: str) -> None:
    """Ours: a call that is denied, and one that a person has to confirm (SAF-5, SAF-2)."""
    (await tenant.gateway.admin.patch(f"/tenants/{tenant.slug}/policy", json={"moderate": decision})).raise_for_status()
    found = await tenant.explain("create_pet", {"body": {"name": "Rex"}})
    assert (found["decision"], found["course"]) == (decision, course)
    assert "moderate" in found["decision_reason"]


async def test_an_explanation_has_no_effect(tenant: Guarded) -> None:
    """Ours: nothing is sent or recorded, no hook is asked, and no limit counts it (SAF-5)."""
    await tenant.guard(SECRETS)
    await tenant.hook(phases=["call", "result"], position=500)
    limits = {"limits": {"calls_per_second": 0.001, "burst": 2}}
    (await tenant.gateway.admin.patch(f"/tenants/{tenant.slug}/policy", json=limits)).raise_for_status()
    before = (await tenant.gateway.admin.get(f"/tenants/{tenant.slug}/audit", params={"limit": 200})).json()["items"]
    for name in ("Rex", AWS) * 5:
        await tenant.explain("create_pet", {"body": {"name": name}})
    after = (await tenant.gateway.admin.get(f"/tenants/{tenant.slug}/audit", params={"limit": 200})).json()["items"]

    assert tenant.upstream.seen == tenant.receiver.seen == []
    assert [entry["id"] for entry in after] == [entry["id"] for entry in before]
    results = [await tenant.call(body={"name": "Rex"}) for _ in range(3)]
    assert ["error" in result for result in results] == [False, False, True]


async def test_the_shown_request_has_no_credentials(tenant: Guarded) -> None:
    """Ours: a stored credential appears nowhere in an explanation (SAF-5, TEN-4)."""
    secret = {"name": "token", "place": "bearer", "value": "s3cr3t-word-of-mine", "origins": [tenant.upstream.url]}
    await add(tenant.gateway, tenant.slug, "credentials", secret)
    handler = {"kind": "http", "method": "GET", "url": f"{tenant.upstream.url}/pay", "credential": "token"}
    await add(tenant.gateway, tenant.slug, "tools", tool("pay", handler))
    found = await tenant.explain("pay")
    assert found["course"] == "runs", found
    assert "s3cr3t-word" not in json.dumps(found)
    assert tenant.upstream.seen == []


async def test_an_explanation_names_the_reason_for_a_hidden_tool(tenant: Guarded) -> None:
    """Ours: disabled, hidden by an override, outside the profile, behind the query tools, or not there (SAF-5)."""
    admin, place = tenant.gateway.admin, f"/tenants/{tenant.slug}/tools"
    await tenant.gateway.import_document(tenant.slug, pets(tenant.upstream.url), name="q", expose="query", prefix="q_")
    await add_profile(tenant.gateway, tenant.slug, "readers", include=[{"names": ["list_*"]}])
    await add(tenant.gateway, tenant.slug, "tools", static_tool("off"))
    (await admin.patch(f"{place}/off", json={"enabled": False})).raise_for_status()
    (await admin.patch(f"{place}/delete_pet", json={"hidden": True})).raise_for_status()
    asked: list[tuple[str, dict[str, str], str]] = [
        ("off", {}, "it is disabled"),
        ("delete_pet", {}, "an override hides it"),
        ("get_pet", {"profile": "readers"}, "the profile readers does not contain it"),
        ("q_get_pet", {}, "only through the query tools"),
    ]
    for name, client, reason in asked:
        found = await tenant.explain(name, {"id": 7}, **client)
        assert (found["visible"], found["course"]) == (False, "hidden"), name
        assert reason in found["hidden_because"], name
    assert (await tenant.explain("list_pets", profile="readers"))["visible"]
    assert (await admin.post(f"{place}/nothing/explain", json={})).status_code == 404


async def test_an_explanation_is_for_one_client(tenant: Guarded) -> None:
    """Ours: scopes, profile and validity of the key count; keys of other tenants do not exist (SAF-5, TEN-4)."""
    admin, keys = tenant.gateway.admin, f"/tenants/{tenant.slug}/keys"
    await add_profile(tenant.gateway, tenant.slug, "readers", include=[{"names": ["list_*"]}])
    made: dict[str, str] = {}
    for name, more in (("bound", {"profile": "readers"}), ("gone", {}), ("auditor", {"scopes": ["audit"]})):
        answer = await admin.post(keys, json={"name": name, "scopes": ["mcp"], **more})
        made[name] = answer.raise_for_status().json()["id"]
    (await admin.post(f"{keys}/{made['gone']}/revoke")).raise_for_status()

    assert (await tenant.explain("list_pets", key=made["bound"]))["visible"]
    assert not (await tenant.explain("get_pet", {"id": 1}, key=made["bound"]))["visible"]
    other = await tenant.explain("list_pets", key=made["bound"], profile="default")
    assert other["hidden_because"] == "the key is bound to the profile readers"
    assert "revoked" in (await tenant.explain("list_pets", key=made["gone"]))["hidden_because"]
    assert (await tenant.explain("list_pets", key=made["auditor"]))["refusal"]["code"] == "auth.forbidden"

    await tenant.gateway.create_tenant(f"{tenant.slug}-other")
    for body in ({"as": {"key": made["bound"]}}, {"as": {"profile": "readers"}}):
        answer = await admin.post(f"/tenants/{tenant.slug}-other/tools/list_pets/explain", json=body)
        assert answer.status_code == 404
