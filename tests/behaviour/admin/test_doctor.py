"""The examination of a running gateway: over REST for the operator, and by the command line, near and far."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.cli.conftest import environment
from tests.support.commands import run_gateway
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.servers import TestDatabase, execute
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream


async def _doctor(folder: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    done = await run_gateway(["doctor", *arguments], folder=folder, variables=environment(**variables))
    return done.code, done.out, done.err


@pytest.fixture
def stand(own_stand: Stand) -> Stand:
    """One of the test's own: it damages the database."""
    return own_stand


async def test_only_the_operator_examines_the_gateway(gateway: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: only the operator reads what an installation lacks (ADM-1, TEN-5)."""
    await gateway.create_tenant("acme")
    alone = (await gateway.admin.get("/doctor")).json()
    await gateway.create_tenant("globex")
    examined = (await gateway.admin.get("/doctor")).json()

    weak = {"policy", "policies"}  # tenants of tests are open (SAF-2)
    assert {finding["check"] for finding in alone["findings"] if finding["status"] != "ok"} == weak
    assert examined["status"] == "warning"  # the recording upstream is on the list for all tenants (ISO-5)
    (egress,) = (finding for finding in examined["findings"] if finding["check"] == "egress")
    assert upstream.authority in egress["detail"]
    assert f"gateway tenant egress SLUG --allow {upstream.authority}" in egress["mend"]
    checks = {finding["check"]: finding["status"] for finding in examined["findings"]}
    assert {check for check, status in checks.items() if status != "ok"} == {"egress", *weak}
    assert {"database", "secrets", "policies", "access_rules"} <= checks.keys()
    rules = [{"effect": "deny", "who": ["key:key_x"], "unless": ["group:gone:x"], "what": {"sources": ["payroll"]}}]
    (await gateway.admin.patch("/tenants/acme/access", json={"rules": rules})).raise_for_status()
    findings = (await gateway.admin.get("/doctor")).json()["findings"]
    (access,) = (finding for finding in findings if finding["check"] == "access_rules")
    assert access["status"] == "warning"
    assert "acme: group:gone:x, acme: key:key_x, acme: payroll" in access["detail"]
    for scope in ("admin", "mcp", "audit"):
        key = await gateway.create_key("acme", scope)
        refused = await gateway.http.get("/admin/v1/doctor", headers={"authorization": f"Bearer {key}"})
        assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")
    assert (await gateway.http.get("/admin/v1/doctor")).status_code == 401


async def test_a_finding_fails_the_command_remotely_and_locally(
    gateway: RunningGateway, database: TestDatabase, redis_url: str, tmp_path: Path
) -> None:
    """Ours: the same findings from the gateway and from here; a failed one ends with 1 and names its remedy (CLI-1)."""
    far = {"GATEWAY_URL": gateway.url, "GATEWAY_OPERATOR_KEY": OPERATOR_KEY}
    near = {
        "GATEWAY_DATABASE_URL": database.app_url,
        "GATEWAY_REDIS_URL": redis_url,
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
    }
    code, out, err = await _doctor(tmp_path, **far)
    assert (code, err) == (0, "")
    assert f"examined {gateway.url}" in out
    assert (await _doctor(tmp_path, **near))[0] == 0

    await execute(database.superuser_url, "alter table keys disable row level security")
    for variables in (far, near):
        code, out, _ = await _doctor(tmp_path, "--json", **variables)
        found: dict[str, Any] = {finding["check"]: finding for finding in json.loads(out)["findings"]}
        assert code == 1
        assert found["row_level_security"]["status"] == "failed"
        assert "alter table keys enable row level security" in found["row_level_security"]["mend"]
        assert SECRET_KEY not in out
        assert OPERATOR_KEY not in out
    assert not list(tmp_path.iterdir())


async def test_before_the_first_start_the_command_names_the_next_step(tmp_path: Path) -> None:
    """Ours: an examination makes nothing; a gateway that is away has its exit code (CLI-1)."""
    code, out, _ = await _doctor(tmp_path)
    assert code == 1
    assert "gateway serve" in out
    assert not list(tmp_path.iterdir())

    code, _, err = await _doctor(tmp_path, "--url", "http://127.0.0.1:9", GATEWAY_OPERATOR_KEY=OPERATOR_KEY)
    assert code == 3
    assert "cannot reach" in err
