"""Escalation by a tenant's own admins: keys and issuers beyond the operator's bounds, and a lock-out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.gateway import RunningGateway
from tests.support.issuer import add_issuer, new_issuer
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

CEILINGS = "/tenants/acme/ceilings"
DAY = 86_400


class Owner:
    """A tenant's admin at the admin API."""

    def __init__(self, gateway: RunningGateway, key: str) -> None:
        self._gateway = gateway
        self._headers = {"authorization": f"Bearer {key}"}

    async def ask(self, method: str, path: str, json: dict[str, Any] | None = None) -> httpx.Response:
        """The response to one request below the tenant."""
        place = f"/admin/v1/tenants/acme{path}"
        return await self._gateway.http.request(method, place, headers=self._headers, json=json)

    async def create(self, *scopes: str, days: float | None = 1) -> httpx.Response:
        """The response to a new key."""
        end = {} if days is None else {"expires_at": (datetime.now(UTC) + timedelta(days=days)).isoformat()}
        return await self.ask("POST", "/keys", {"name": "k", "scopes": list(scopes), **end})


@pytest.fixture
async def owner(gateway: RunningGateway) -> Owner:
    """An admin that may call and audit too, in a tenant whose admins may grant `mcp` for two days."""
    await gateway.create_tenant("acme")
    key = await gateway.create_key("acme", "admin", "mcp", "audit")
    bounds = {"keys": 4, "key_lifetime_s": 2 * DAY, "scopes": ["mcp"], "issuers": False}
    (await gateway.admin.patch(CEILINGS, json={"admin_bounds": bounds})).raise_for_status()
    return Owner(gateway, key)


async def test_an_owner_grants_only_delegated_scopes(gateway: RunningGateway, owner: Owner) -> None:
    """Ours: no further owner, no scope and no lifetime beyond the operator's bounds; the operator has none (IDN-4)."""
    for scopes in (["admin"], ["mcp", "audit"], ["audit"]):
        refused = await owner.create(*scopes)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/scopes"), refused.text
        assert "operator" in refused.json()["detail"]
    for days in (None, 3):
        refused = await owner.create("mcp", days=days)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/expires_at"), refused.text
    made = (await owner.create("mcp")).json()["id"]
    late = {"expires_at": (datetime.now(UTC) + timedelta(days=9)).isoformat()}
    assert (await owner.ask("PATCH", f"/keys/{made}", late)).status_code == 403
    assert (await owner.ask("PATCH", f"/keys/{made}", {"expires_at": None})).status_code == 403
    assert (await owner.ask("PATCH", f"/keys/{made}", {"name": "renamed"})).status_code == 200
    assert (await owner.ask("POST", f"/keys/{made}/rotate")).status_code == 200
    await gateway.create_key("acme", "audit")


async def test_an_owner_does_not_rotate_keys_beyond_its_bounds(gateway: RunningGateway, owner: Owner) -> None:
    """Ours: rotation shows the text of a key, so it is a grant; taking a secret away is none (IDN-4)."""
    await gateway.create_key("acme", "audit", "admin")
    keys = (await gateway.admin.get("/tenants/acme/keys")).json()["items"]
    other = next(key["id"] for key in keys if "mcp" not in key["scopes"])

    assert (await owner.ask("POST", f"/keys/{other}/rotate")).status_code == 403
    assert (await owner.ask("PATCH", f"/keys/{other}", {"name": "mine"})).status_code == 403
    assert (await owner.ask("POST", f"/keys/{other}/end-old-secret")).status_code == 200
    assert (await owner.ask("POST", f"/keys/{other}/revoke")).status_code == 200


async def test_an_owner_has_so_many_keys(gateway: RunningGateway, owner: Owner) -> None:
    """Ours: the bound counts all keys; the operator may add more (IDN-4)."""
    for _ in range(3):
        assert (await owner.create("mcp")).status_code == 201
    refused = await owner.create("mcp")

    assert (refused.status_code, "limited to 4 keys" in refused.text) == (429, True), refused.text
    await gateway.create_key("acme")


async def test_an_owner_accepts_no_issuer_unless_it_may(
    gateway: RunningGateway, owner: Owner, upstream: RecordingUpstream
) -> None:
    """Ours: neither a new one, nor other rules for one of the operator's (IDN-4)."""
    issuer = new_issuer(upstream)
    body: dict[str, Any] = {"name": "own", "url": issuer.url, "rules": [{}]}
    assert (await owner.ask("POST", "/issuers", body)).status_code == 403
    await add_issuer(gateway, "acme", issuer, rules=[{"group": "staff"}])
    assert (await owner.ask("PATCH", "/issuers/corp", {"rules": [{}]})).status_code == 403

    (await gateway.admin.put(CEILINGS, params={"replace": True}, json={})).raise_for_status()

    assert (await owner.ask("PATCH", "/issuers/corp", {"rules": [{}]})).status_code == 200


async def test_an_owner_reads_its_bounds_and_sets_none(gateway: RunningGateway, owner: Owner) -> None:
    """Ours: the bounds are the operator's, and each change is in the trail (ISO-3, IDN-4)."""
    bounds = (await owner.ask("GET", "/ceilings")).json()["admin_bounds"]
    assert bounds == {"keys": 4, "key_lifetime_s": 2 * DAY, "scopes": ["mcp"], "issuers": False}
    assert (await owner.ask("PUT", "/ceilings", {"admin_bounds": {}})).status_code == 403
    (await gateway.admin.patch(CEILINGS, json={"burst": 50})).raise_for_status()
    assert (await owner.ask("GET", "/ceilings")).json()["admin_bounds"] == bounds
    entries = (await gateway.admin.get("/tenants/acme/audit")).json()["items"]
    changes = [entry["detail"] for entry in entries if entry["action"] == "ceilings.update"]
    assert [detail["after"] for detail in changes] == [{"burst": 50}, {"admin_bounds": bounds}]


async def test_the_last_owner_is_not_locked_out_by_mistake(gateway: RunningGateway, owner: Owner) -> None:
    """Ours: the last key with `admin` is revoked or deleted by the operator only (IDN-4)."""
    [own] = (await gateway.admin.get("/tenants/acme/keys")).json()["items"]
    for method, path in (("POST", f"/keys/{own['id']}/revoke"), ("DELETE", f"/keys/{own['id']}")):
        refused = await owner.ask(method, path)
        assert (refused.status_code, "last key" in refused.text) == (409, True), refused.text
    await gateway.create_key("acme", "admin")
    assert (await owner.ask("POST", f"/keys/{own['id']}/revoke")).status_code == 200

    rest = [key for key in (await gateway.admin.get("/tenants/acme/keys")).json()["items"] if key["id"] != own["id"]]
    assert (await gateway.admin.post(f"/tenants/acme/keys/{rest[0]['id']}/revoke")).status_code == 200
