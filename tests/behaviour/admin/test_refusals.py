"""Refusals in the audit trail: each one of a known principal is found by its id, with the rule that decided."""

from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.support.documents import many
from tests.support.gateway import RunningGateway
from tests.support.handshake import open_session
from tests.support.primitives import add, static_tool, text_prompt, text_resource
from tests.support.servers import TestDatabase
from tests.support.upstream import RecordingUpstream

CLIENT = {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"}}}


@dataclass(slots=True)
class Shop:
    """A tenant with something to refuse for each rule, and the answers that its callers got, by correlation id."""

    gateway: RunningGateway
    keys: dict[str, str] = field(default_factory=dict[str, str])
    answers: dict[str, httpx.Response] = field(default_factory=dict[str, httpx.Response])

    async def rpc(self, name: str, key: str, method: str, params: dict[str, Any], *, place: str = "shop") -> None:
        """Send one request under an id of its own."""
        named = {"mcp_name": params["uri"]} if "uri" in params else {}
        sent = {"x_request_id": f"refused-{name}", **named}
        self.answers[name] = await self.gateway.rpc(place, self.keys[key], method, {**params, **CLIENT}, **sent)

    async def admin(self, name: str, key: str, method: str, path: str) -> None:
        """Send one request to the admin API."""
        headers = {"authorization": f"Bearer {self.keys[key]}", "x-request-id": f"refused-{name}"}
        self.answers[name] = await self.gateway.admin.request(method, path, headers=headers)

    async def entries(self, **wanted: str) -> list[dict[str, Any]]:
        """The entries that a filter finds."""
        answer = await self.gateway.admin.get("/tenants/shop/audit", params={"limit": "200", **wanted})
        found: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
        return found


@pytest.fixture
async def shop(gateway: RunningGateway, upstream: RecordingUpstream) -> Shop:
    """Two keys: one for everything, one bound to the profile `reading`; access rules, a policy, a hidden tool."""
    made = Shop(gateway)
    await gateway.create_tenant("shop")
    await gateway.create_tenant("other")
    await gateway.import_document("shop", many(upstream.url, 4))
    for uri in ("text://open", "text://closed"):
        await add(gateway, "shop", "resources", text_resource(uri, "x"))
    await add(gateway, "shop", "tools", static_tool("not.yet"))
    await add(gateway, "shop", "prompts", text_prompt("greets", "hello"))
    profile = {"name": "reading", "include": [{"names": ["op_0000"]}]}
    (await gateway.admin.post("/tenants/shop/profiles", json=profile)).raise_for_status()
    made.keys["all"] = await gateway.create_key("shop")
    made.keys["reading"] = await gateway.create_key("shop", profile="reading")
    made.keys["auditor"] = await gateway.create_key("shop", "audit")
    (await gateway.admin.patch("/tenants/shop/tools/op_0003", json={"hidden": True})).raise_for_status()
    denied = {
        "effect": "deny",
        "who": ["everyone"],
        "what": {"names": ["op_0001", "not.yet", "text://closed"]},
        "reason": "not yet",
    }
    access = {"default": "allow", "rules": [denied]}
    (await gateway.admin.patch("/tenants/shop/access", json=access)).raise_for_status()
    rules = [{"decision": "deny", "tool": "op_0002", "reason": "frozen"}]
    (await gateway.admin.patch("/tenants/shop/policy", json={"rules": rules})).raise_for_status()
    return made


def call(name: str) -> dict[str, Any]:
    """The parameters of a call."""
    return {"name": name, "arguments": {}}


async def test_each_refusal_is_found_by_its_id_with_the_rule(shop: Shop) -> None:
    """Ours: unknown and hidden primitives, profile, tenant, access, policy, scope and state (OPR-1, SAF-4)."""
    await shop.rpc("unknown", "all", "tools/call", call("nothing"))
    await shop.rpc("access", "all", "tools/call", call("op_0001"))
    await shop.rpc("listed", "all", "tools/call", call("not_yet"))
    await shop.rpc("override", "all", "tools/call", call("op_0003"))
    await shop.rpc("policy", "all", "tools/call", call("op_0002"))
    await shop.rpc("profile", "reading", "tools/call", call("op_0002"), place="shop/reading")
    await shop.rpc("resource", "all", "resources/read", {"uri": "text://closed"})
    await shop.rpc("prompt", "reading", "prompts/get", {"name": "greets"}, place="shop/reading")
    await shop.rpc("other-profile", "reading", "tools/call", call("op_0000"))
    await shop.rpc("no-profile", "all", "tools/call", call("op_0000"), place="shop/nowhere")
    await shop.rpc("other-tenant", "all", "tools/call", call("op_0000"), place="other")
    await shop.rpc("scope", "auditor", "tools/call", call("op_0000"))
    await shop.rpc("state", "all", "tools/call", {**call("op_0000"), "requestState": "forged"})
    await shop.admin("admin-scope", "all", "GET", "/tenants/shop/audit")
    await shop.admin("admin-operator", "auditor", "GET", "/tenants")
    await shop.admin("admin-tenant", "auditor", "GET", "/tenants/other/audit")

    found: dict[str, dict[str, Any]] = {}
    for name in shop.answers:
        [found[name]] = await shop.entries(correlation_id=f"refused-{name}")

    rule = {name: (entry["outcome"], entry["detail"]["rule"]) for name, entry in found.items()}
    assert rule == {
        "unknown": ("not_found", {"kind": "unknown", "words": "no active tool has this name"}),
        "access": ("not_found", {"kind": "access", "name": "1", "words": "access rule 1 denies it: not yet"}),
        "listed": ("not_found", rule["access"][1]),
        "override": ("not_found", rule["override"][1]),
        "policy": ("policy.denied", {"kind": "policy", "name": "1", "words": "rule 1: frozen"}),
        "profile": ("not_found", {"kind": "profile", "name": "reading", "words": rule["profile"][1]["words"]}),
        "resource": ("not_found", {"kind": "access", "name": "1", "words": "access rule 1 denies it: not yet"}),
        "prompt": ("not_found", {"kind": "profile", "name": "reading", "words": rule["prompt"][1]["words"]}),
        "other-profile": ("not_found", rule["other-profile"][1] | {"kind": "profile", "name": "reading"}),
        "no-profile": ("not_found", rule["no-profile"][1] | {"kind": "profile", "name": "nowhere"}),
        "other-tenant": ("not_found", {"kind": "tenant"}),
        "scope": ("auth.forbidden", {"kind": "scope", "name": "mcp"}),
        "state": ("input.invalid", rule["state"][1] | {"kind": "state"}),
        "admin-scope": ("auth.forbidden", {"kind": "scope", "name": "admin"} | rule["admin-scope"][1]),
        "admin-operator": ("auth.forbidden", {"kind": "operator"}),
        "admin-tenant": ("not_found", {"kind": "tenant"}),
    }
    assert rule["override"][1]["kind"] == "override"
    for entry in found.values():
        assert entry["principal"].startswith("key:key_")
        assert entry["detail"]["reason"]
        assert entry["detail"]["address"] == "127.0.0.1"
    for name in ("unknown", "access", "policy", "profile", "prompt", "state"):
        detail = found[name]["detail"]
        profile = "reading" if name in {"profile", "prompt"} else "default"
        assert (detail["profile"], detail["claimed_client"]) == (profile, "probe")
        assert detail["catalog_revision"] > detail["policy_revision"] > 1
    assert found["policy"]["detail"]["source"] == "api"
    targets = [found[name]["target"] for name in ("access", "listed", "resource", "prompt")]
    assert targets == ["op_0001", "not.yet", "text://closed", "greets"]
    assert (await shop.gateway.admin.get("/tenants/shop/audit/verify")).json()["ok"] is True
    await _check_explanations(shop, found)
    others = (await shop.gateway.admin.get("/tenants/other/audit")).json()["items"]
    assert [entry["action"] for entry in others] == ["tenant.create"]


async def _check_explanations(shop: Shop, found: dict[str, dict[str, Any]]) -> None:
    """The explanation of each entry names the rule of then, also after the rules have changed."""
    (await shop.gateway.admin.patch("/tenants/shop/access", json={"default": "allow", "rules": []})).raise_for_status()
    (await shop.gateway.admin.patch("/tenants/shop/policy", json={"rules": []})).raise_for_status()
    for name, entry in found.items():
        for of in (entry["id"], entry["correlation_id"]):
            answer = (await shop.gateway.admin.get("/tenants/shop/audit/explain", params={"of": of})).json()
            [explained] = answer["items"]
            assert explained["entry"]["id"] == entry["id"]
            assert (entry["detail"]["rule"].get("words") or "decided by") in explained["explanation"], name
    [change] = (await shop.entries(kind="change"))[:1]
    answer = (await shop.gateway.admin.get(f"/tenants/shop/audit/explain?of={change['id']}")).json()
    assert "rules: [{" in answer["items"][0]["explanation"]
    assert (await shop.gateway.admin.get("/tenants/shop/audit/explain?of=aud_none")).status_code == 404


async def test_a_call_has_its_profile_source_client_and_address(shop: Shop) -> None:
    """Ours: an allowed call records as much as a refused one, in both eras; filters find it (OPR-1, SAF-4)."""
    await shop.rpc("stateless", "all", "tools/call", call("op_0000"))
    session = await open_session(shop.gateway, "shop", shop.keys["all"])
    await session.rpc("tools/call", call("op_0000"))
    await session.rpc("tools/call", call("nothing"))

    [stateless] = await shop.entries(client="probe")
    [in_session] = await shop.entries(client="t", outcome="ok")
    [unknown] = await shop.entries(client="t", outcome="not_found")

    facts = {"profile": "default", "source": "api", "address": "127.0.0.1"}
    for entry, client in ((stateless, "probe"), (in_session, "t")):
        assert facts | {"claimed_client": client} == {
            name: entry["detail"][name] for name in (*facts, "claimed_client")
        }
    assert (unknown["target"], unknown["detail"]["rule"]["kind"]) == ("nothing", "unknown")
    assert stateless["correlation_id"] == "refused-stateless"


async def test_limits_are_found_by_their_name(shop: Shop) -> None:
    """Ours: rate, sessions and streams are refusals with the name of the limit (OPR-1, TEN-3)."""
    limits = {"calls_per_second": 1, "burst": 1, "sessions": 1, "streams": 1}
    (await shop.gateway.admin.patch("/tenants/shop/policy", json={"limits": limits})).raise_for_status()

    session = await open_session(shop.gateway, "shop", shop.keys["all"])
    with pytest.raises(httpx.HTTPStatusError):
        await open_session(shop.gateway, "shop", shop.keys["all"])
    for _ in range(3):
        await session.rpc("tools/call", call("op_0000"))

    limited = await shop.entries(outcome="limited")
    refused = await shop.entries(outcome="limit.exceeded")
    assert {entry["detail"]["rule"]["name"] for entry in limited} == {"calls_per_second"}
    assert {entry["detail"]["rule"]["name"] for entry in refused} == {"sessions"}


async def test_a_filter_of_another_tenant_finds_nothing(shop: Shop, database: TestDatabase) -> None:
    """Ours: the index is of all tenants, its entries are one's own (TEN-5)."""
    await shop.rpc("mine", "all", "tools/call", call("nothing"))
    key = await shop.gateway.create_key("other", "audit")

    mine = await shop.entries(correlation_id="refused-mine")
    headers = {"authorization": f"Bearer {key}"}
    path = "/tenants/other/audit?correlation_id=refused-mine"
    theirs = (await shop.gateway.admin.get(path, headers=headers)).json()["items"]

    assert (len(mine), theirs) == (1, [])
