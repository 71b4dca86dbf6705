"""Keys of operators: made, used, listed, changed, rotated and revoked."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from tests.support.operators import Operators


async def test_an_administrator_without_limits_is_an_operator_by_name(operators: Operators) -> None:
    """Ours: a named key does what the key of the setting does, and the trail has its name (OPR-3)."""
    await operators.make("alice", "administrator")
    made = await operators.ask(
        "alice", "POST", "/tenants", {"slug": "initech"}, headers={"user-agent": "terraform/1.9"}
    )
    ceilings = await operators.ask("alice", "PATCH", "/tenants/initech/ceilings", {"burst": 4000})
    egress = await operators.ask("alice", "PUT", "/tenants/initech/egress", {"allow": ["10.0.0.7:8080"]})
    assert [made.status_code, ceilings.status_code, egress.status_code] == [201, 200, 200], (made.text, egress.text)

    items = (await operators.gateway.admin.get("/tenants/initech/audit")).json()["items"]
    assert {one["principal"] for one in items} == {"operator:alice"}
    created = items[-1]["detail"]
    assert (created["way"], created["claimed_client"], created["address"]) == ("rest", "terraform/1.9", "127.0.0.1")
    assert created["operator_key"].startswith("key_")


async def test_a_key_is_shown_once_and_listed_without_its_secret(operators: Operators) -> None:
    """Ours: only the response to a creation and to a rotation has the key; the store has its digest (OPR-3, TEN-5)."""
    key = await operators.make("once", "support")
    shown = await operators.gateway.admin.get("/operator-keys/once")
    listed = await operators.gateway.admin.get("/operator-keys", params={"role": "support"})
    assert [one["name"] for one in listed.json()["items"]] == ["once"]
    assert key not in shown.text + listed.text
    assert shown.json()["status"] == {"state": "active", "tenants": None, "last_used_at": None}
    with_one = await operators.gateway.admin.put("/operator-keys/once", json=shown.json())
    assert (with_one.status_code, with_one.headers["etag"]) == (200, shown.headers["etag"])


async def test_a_rotated_and_a_deleted_key_is_refused_at_once(operators: Operators) -> None:
    """Ours: a rotation and a deletion apply to the next request, although authentications are cached (OPR-3)."""
    old = await operators.make("rotating", "administrator")
    assert (await operators.ask("rotating", "GET", "/tenants")).status_code == 200
    rotated = await operators.gateway.admin.post("/operator-keys/rotating/rotate")
    assert (await operators.ask("rotating", "GET", "/tenants")).status_code == 401
    operators.keys["rotating"] = rotated.json()["secret"]
    assert operators.keys["rotating"] != old
    assert (await operators.ask("rotating", "GET", "/tenants")).status_code == 200
    assert (await operators.gateway.admin.delete("/operator-keys/rotating")).status_code == 204
    assert (await operators.ask("rotating", "GET", "/tenants")).status_code == 401


async def test_a_change_of_the_role_applies_to_the_next_request(operators: Operators) -> None:
    """Ours: the rights of a key are read again after each change (OPR-3)."""
    await operators.make("mover", "administrator")
    assert (await operators.ask("mover", "GET", "/doctor")).status_code == 200
    await operators.gateway.admin.patch("/operator-keys/mover", json={"role": "finance"})
    assert (await operators.ask("mover", "GET", "/doctor")).status_code == 403
    limited = await operators.gateway.admin.patch("/operator-keys/mover", json={"tenants": ["acme"]})
    assert limited.json()["status"]["tenants"] == ["acme"]
    assert [one[:4] for one in limited.json()["tenants"]] == ["ten_"]
    assert (await operators.ask("mover", "GET", "/tenants/globex")).status_code == 404


async def test_an_expired_key_is_refused(operators: Operators) -> None:
    """Ours: a key ends at its expiry, and none is made that has ended (OPR-3)."""
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    await operators.make("ending", "support", expires_at=soon)
    with anyio.fail_after(20):
        while (await operators.ask("ending", "GET", "/tenants")).status_code != 401:  # noqa: ASYNC110  # time is awaited
            await anyio.sleep(0.2)
    body = {"name": "ended", "role": "support", "expires_at": "2020-01-01T00:00:00Z"}
    refused = await operators.gateway.admin.post("/operator-keys", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/expires_at")


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"role": "support", "kinds": ["profile"]}, "/kinds"),
        ({"role": "administrator", "kinds": ["access"]}, "/kinds"),
        ({"role": "creator", "tenants": ["acme"]}, "/tenants"),
        ({"role": "support", "tenants": ["nowhere"]}, "/tenants/0"),
        ({"role": "support", "expires_at": "tomorrow"}, "/expires_at"),
        ({"role": "support", "expires_at": "2035-01-01T00:00:00"}, "/expires_at"),
        ({"role": "root"}, "/role"),
    ],
)
async def test_rights_that_make_no_sense_are_refused(
    operators: Operators, members: dict[str, object], pointer: str
) -> None:
    """Ours: a limit that the role does not have is refused, instead of having no effect (OPR-3)."""
    refused = await operators.gateway.admin.post("/operator-keys", json={"name": "wrong", **members})
    assert refused.is_client_error, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer


async def test_a_tenant_created_under_the_slug_of_a_deleted_one_is_not_seen(operators: Operators) -> None:
    """Ours: limits name tenants by id, so a slug that is used again gives no rights (OPR-3, TEN-2)."""
    await operators.gateway.create_tenant("reused")
    await operators.make("limited", "support", tenants=["reused"])
    assert (await operators.ask("limited", "GET", "/tenants/reused")).status_code == 200
    (await operators.gateway.admin.delete("/tenants/reused")).raise_for_status()
    await operators.gateway.create_tenant("reused")
    assert (await operators.ask("limited", "GET", "/tenants/reused")).status_code == 404
    assert (await operators.ask("limited", "GET", "/tenants")).json()["items"] == []
