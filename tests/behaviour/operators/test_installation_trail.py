"""The trail of the installation: changes of tenants and operators, by name."""

import io
import json

import anyio
import structlog.testing

from gateway.cli.audit_verifier import ExportVerifier
from tests.support.gateway import OPERATOR_KEY
from tests.support.operators import Operators


async def _actions(operators: Operators, **query: str) -> list[tuple[str, str, str]]:
    found = (await operators.gateway.admin.get("/audit", params={"limit": 200, **query})).raise_for_status()
    return [(one["principal"], one["action"], one["target"]) for one in found.json()["items"]]


async def test_the_trail_names_who_did_what_to_tenants_and_operators(operators: Operators) -> None:
    """Ours: tenants, operators, ceilings and egress are in one trail, which an auditor reads and verifies (OPR-3)."""
    await operators.make("ada", "administrator")
    await operators.make("reader", "auditor")
    for method, path, body in (
        ("POST", "/tenants", {"slug": "umbrella"}),
        ("PATCH", "/tenants/umbrella/ceilings", {"burst": 4000}),
        ("PUT", "/tenants/umbrella/egress", {"allow": ["10.0.0.7:8080"]}),
        ("PATCH", "/tenants/umbrella", {"name": "Umbrella"}),
        ("POST", "/tenants/umbrella/keys", {"name": "own", "scopes": ["mcp"]}),
        ("DELETE", "/tenants/umbrella", None),
    ):
        (await operators.ask("ada", method, path, body)).raise_for_status()
    by_ada = await _actions(operators, principal="operator:ada")
    assert by_ada == [
        ("operator:ada", "tenant.delete", "umbrella"),
        ("operator:ada", "tenant.rename", "umbrella"),
        ("operator:ada", "egress.update", "egress"),
        ("operator:ada", "ceilings.update", "ceilings"),
        ("operator:ada", "tenant.create", "umbrella"),
    ]
    everything = await _actions(operators)
    assert ("operator", "operator_key.create", "ada") in everything
    assert everything[-1] == ("gateway", "tenant.create", "_installation")

    verified = await operators.ask("reader", "GET", "/audit/verify")
    assert (verified.status_code, verified.json()["ok"]) == (200, True), verified.text
    exported = await operators.ask("reader", "GET", "/audit/export")
    [key, *_] = (await operators.ask("reader", "GET", "/audit/export-keys")).json()["keys"]
    checked = ExportVerifier([bytes.fromhex(key["public"])]).verify(io.BytesIO(exported.content))
    assert (checked.faults, checked.entries > 6) == ([], True)
    assert operators.keys["ada"] not in exported.text
    refused = await operators.ask("reader", "DELETE", "/operator-keys/ada")
    assert refused.status_code == 403
    with anyio.fail_after(10):
        while not (  # noqa: ASYNC110  # the entry is written in the background
            found := (
                await operators.gateway.admin.get("/audit", params={"principal": "operator:reader", "kind": "call"})
            ).json()["items"]
        ):
            await anyio.sleep(0.1)
    assert found[0]["target"] == "DELETE /admin/v1/operator-keys/ada"


async def test_a_trail_without_any_change_is_whole(operators: Operators) -> None:
    """Ours: the trail of the installation begins with its first reading at the latest (OPR-3)."""
    for path in ("/audit", "/audit/explain?of=nothing", "/audit/verify", "/audit/export", "/audit/export-keys"):
        answer = await operators.gateway.admin.get(path)
        assert answer.status_code == (404 if "explain" in path else 200), (path, answer.text)
    for path in ("/audit", "/audit/verify"):
        assert (await operators.gateway.http.get(f"/admin/v1{path}")).status_code == 401


async def test_the_key_of_the_setting_is_an_event_once_operators_have_names(operators: Operators) -> None:
    """Ours: the first key is break-glass: an entry and a warning for its use, once for each network (OPR-3)."""
    before = [one for one in await _actions(operators) if one[1] == "operator.break_glass"]
    with structlog.testing.capture_logs() as lines:
        await operators.make("first", "administrator")
        headers = {"authorization": f"Bearer {OPERATOR_KEY}", "user-agent": "curl/8"}
        for _ in range(3):
            (await operators.gateway.http.get("/admin/v1/tenants", headers=headers)).raise_for_status()
    entries = (await operators.gateway.admin.get("/audit", params={"limit": 200})).json()["items"]
    found = [one for one in entries if one["action"] == "operator.break_glass"]
    assert len(found) - len(before) <= 1
    assert len(found) == 1
    assert found[0]["detail"]["address"] == "127.0.0.1"
    assert json.dumps(found[0]).count(OPERATOR_KEY) == 0
    assert [one["event"] for one in lines if one["event"].startswith("break_glass")] in ([], ["break_glass_key_used"])
