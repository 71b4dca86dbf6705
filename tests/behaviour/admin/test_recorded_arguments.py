"""Arguments in the audit trail by rule: through the admin API, on the wire, and in an export."""

import io
from typing import Any

import orjson
import pytest

from gateway.cli.audit_verifier import ExportVerifier
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.upstream import RecordingUpstream

RULE = {"tool": "get_pet", "source": None, "keep": ["/id"], "hash": ["/owner"], "drop": []}
TENANTS = ("acme", "globex")


@pytest.fixture
async def keys(gateway: RunningGateway, upstream: RecordingUpstream) -> dict[str, str]:
    """Keys of two tenants with the same tools and rules."""
    for slug in TENANTS:
        await gateway.create_tenant(slug)
        await gateway.import_document(slug, pets(upstream.url), expose="both")
        await _set(gateway, slug, RULE, {"tool": "call_endpoint", "keep": [""]})
    return {slug: await gateway.create_key(slug) for slug in TENANTS}


async def _set(gateway: RunningGateway, slug: str, *rules: object) -> dict[str, Any]:
    stored = await gateway.admin.patch(f"/tenants/{slug}/policy", json={"recorded_arguments": rules})
    assert stored.status_code == 200, stored.text
    found: dict[str, Any] = stored.json()
    return found


async def _call(gateway: RunningGateway, slug: str, key: str, name: str, **arguments: object) -> None:
    answer = await gateway.rpc(slug, key, "tools/call", {"name": name, "arguments": arguments})
    assert "result" in answer.json(), answer.text


async def _exported(gateway: RunningGateway, slug: str, tool: str) -> list[dict[str, Any]]:
    """The details of a tool's calls in a verified export."""
    text = (await gateway.admin.get(f"/tenants/{slug}/audit/export?kind=call&tool={tool}")).content
    known = (await gateway.admin.get(f"/tenants/{slug}/audit/export-keys")).json()
    public = [bytes.fromhex(key["public"]) for key in known["keys"]]
    found = ExportVerifier(public, tenant=known["tenant"]).verify(io.BytesIO(text))
    assert found.is_whole, found.faults
    lines = [orjson.loads(line) for line in text.splitlines()]
    return [orjson.loads(line["detail"]) for line in lines if line.get("target") == tool]


async def test_an_export_has_the_arguments_that_a_rule_names(gateway: RunningGateway, keys: dict[str, str]) -> None:
    """Ours: they are under the entry's MAC, and the hashes of two tenants have nothing in common (SAF-4)."""
    for slug, key in keys.items():
        await _call(gateway, slug, key, "get_pet", id=7, owner="Ada", token="hunter2")
        await _call(gateway, slug, key, "get_pet", id=8, owner={"name": "Ada"})
        await _call(gateway, slug, key, "list_pets")
    listed = (await gateway.admin.get("/tenants/acme/audit?tool=get_pet")).json()["items"]

    (first, second), (other, _) = [
        [one["arguments"] for one in await _exported(gateway, t, "get_pet")] for t in TENANTS
    ]

    assert [one["arguments"] for one in (entry["detail"] for entry in reversed(listed))] == [first, second]
    assert first["kept"] == {"/id": 7}
    assert first["hashed"]["/owner"] == second["hashed"]["/owner/name"]
    assert first["hashed"]["/owner"] != other["hashed"]["/owner"]
    assert ["arguments" in one for one in await _exported(gateway, "acme", "list_pets")] == [False]


async def test_no_other_entry_has_the_arguments_of_an_operation(gateway: RunningGateway, keys: dict[str, str]) -> None:
    """Ours: a rule for the tool that calls an operation does not undo the operation's own rule (SAF-4)."""
    call = {"operation": "get_pet", "arguments": {"id": 9, "note": "private"}}
    await _call(gateway, "acme", keys["acme"], "call_endpoint", **call)

    (outer,) = await _exported(gateway, "acme", "call_endpoint")
    (inner,) = await _exported(gateway, "acme", "get_pet")

    assert outer["arguments"] == {"kept": {"/operation": "get_pet"}, "dropped": ["/arguments"]}
    assert inner["arguments"] == {"kept": {"/id": 9}}


async def test_a_renamed_tool_keeps_its_rule(gateway: RunningGateway, keys: dict[str, str]) -> None:
    """Ours: while the old name can be called, a rule for it counts for both names (SAF-4)."""
    (await gateway.admin.patch("/tenants/acme/tools/get_pet", json={"name": "find_pet"})).raise_for_status()

    for number, name in enumerate(("find_pet", "get_pet")):
        await _call(gateway, "acme", keys["acme"], name, id=number, owner="Ada")

    found = await _exported(gateway, "acme", "find_pet")
    assert [one["arguments"]["kept"] for one in found] == [{"/id": 0}, {"/id": 1}]


async def test_rules_are_stored_and_audited(gateway: RunningGateway, keys: dict[str, str]) -> None:
    """Ours: other members of the policy stay, and the change is in the trail (ADM-1)."""
    del keys
    assert (await _set(gateway, "acme", RULE))["recorded_arguments"] == [RULE]
    await gateway.admin.patch("/tenants/acme/policy", json={"safe": "confirm"})
    shown = (await gateway.admin.get("/tenants/acme/policy")).json()
    assert (shown["safe"], shown["recorded_arguments"]) == ("confirm", [RULE])
    assert (await _set(gateway, "acme"))["recorded_arguments"] == []

    entries = (await gateway.admin.get("/tenants/acme/audit?kind=change")).json()["items"]
    changed = [entry["detail"] for entry in entries if entry["action"] == "policy.update"]
    sides = [tuple(detail[side].get("recorded_arguments") for side in ("before", "after")) for detail in changed[:3]]
    stored = {"source": None, "hash": [], "drop": [], **RULE}
    assert [sides[0], sides[1], sides[2][1]] == [([stored], []), (None, None), [stored]]


_FAULTY: tuple[tuple[dict[str, object], str], ...] = (
    ({"keep": ["id"]}, "/recorded_arguments/0/keep/0"),
    ({"keep": ["/a"] * 51}, "/recorded_arguments/0/keep"),
    ({"hash": ["/login/Password"]}, "/recorded_arguments/0/hash/0"),
    ({"keep": ["/api_key/x"]}, "/recorded_arguments/0/keep/0"),
    ({"profile": "default"}, "/recorded_arguments/0/profile"),
    ({"tool": ""}, "/recorded_arguments/0/tool"),
)


async def test_faults_of_rules_have_pointers(gateway: RunningGateway) -> None:
    """Ours: a rule that cannot be followed is refused at its place (ADM-1)."""
    await gateway.create_tenant("acme")
    for rule, pointer in _FAULTY:
        refused = await gateway.admin.patch("/tenants/acme/policy", json={"recorded_arguments": [rule]})

        assert refused.status_code == 400, refused.text
        assert [fault["pointer"] for fault in refused.json()["errors"]] == [pointer]
