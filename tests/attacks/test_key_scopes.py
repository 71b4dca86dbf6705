"""Minting of scopes, for every set of scopes of the author and every requested scope."""

from collections.abc import AsyncGenerator
from itertools import combinations

import httpx
import pytest

from gateway.domain.tenancy.keys import Scope
from gateway.kinds.identity import KEY
from gateway.kinds.kind import Limit
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestServers

_OTHERS = (Scope.MCP, Scope.AUDIT, Scope.PROVIDE)
ADMINS = [
    frozenset({Scope.ADMIN, *more}) for count in range(len(_OTHERS) + 1) for more in combinations(_OTHERS, count)
] + [frozenset({Scope.ADMIN, Scope.APPROVE}), frozenset({Scope.ADMIN, Scope.APPROVE, Scope.AUDIT})]
"""Every set of scopes that an author may have and that opens the keys' routes; mcp and approve exclude each other."""
OPERATORS = frozenset({Scope.PROVIDE})


def _named(scopes: frozenset[Scope]) -> str:
    return "+".join(sorted(scopes))


@pytest.fixture(scope="module")
async def gateway(servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """A gateway with one tenant."""
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.own_redis()) as started:
            await started.create_tenant("acme")
            yield started


@pytest.fixture(scope="module")
async def targets(gateway: RunningGateway) -> dict[Scope, str]:
    """The id of a key of each scope, made by the operator."""
    found: dict[Scope, str] = {}
    for scope in Scope:
        made = await gateway.admin.post("/tenants/acme/keys", json={"name": "target", "scopes": [scope]})
        assert made.status_code == 201, made.text
        found[scope] = made.json()["id"]
    return found


async def _as(gateway: RunningGateway, author: str, method: str, path: str, body: object = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {author}"}
    return await gateway.http.request(method, f"/admin/v1/tenants/acme/keys{path}", json=body, headers=headers)


@pytest.mark.parametrize("scopes", ADMINS, ids=_named)
async def test_a_key_grants_no_scope_that_it_lacks(
    gateway: RunningGateway, targets: dict[Scope, str], scopes: frozenset[Scope]
) -> None:
    """Security review 12: an admin key minted every scope. Now those that it has, never the operator's (ISO-6)."""
    author = await gateway.create_key("acme", *scopes)
    for scope in Scope:
        may = scope in scopes - OPERATORS
        minted = await _as(gateway, author, "POST", "", {"name": "k", "scopes": [scope]})
        rotated = await _as(gateway, author, "POST", f"/{targets[scope]}/rotate")
        changed = await _as(gateway, author, "PATCH", f"/{targets[scope]}", {"expires_at": None})
        wanted = (201, 200, 200) if may else (403, 403, 403)
        assert (minted.status_code, rotated.status_code, changed.status_code) == wanted, (scope, minted.text)
        if not may:
            reported = "only the operator grants" if scope in OPERATORS else f"lacks the scope {scope}"
            assert reported in minted.json()["detail"]
            assert "key" not in rotated.json()


async def test_no_key_of_a_tenant_makes_a_caller_and_its_approver(gateway: RunningGateway) -> None:
    """Ours: an owner (`admin` and `approve`) grants both and never `mcp`; who grants `mcp` never grants `approve`."""
    owner = await gateway.create_key("acme", "admin", "approve")
    assert (await _as(gateway, owner, "POST", "", {"name": "k", "scopes": ["admin", "approve"]})).status_code == 201
    assert (await _as(gateway, owner, "POST", "", {"name": "k", "scopes": ["mcp"]})).status_code == 403
    author = await gateway.create_key("acme", "admin", "mcp")
    assert (await _as(gateway, author, "POST", "", {"name": "k", "scopes": ["mcp"]})).status_code == 201
    assert (await _as(gateway, author, "POST", "", {"name": "k", "scopes": ["approve"]})).status_code == 403
    both = await gateway.admin.post("/tenants/acme/keys", json={"name": "k", "scopes": ["mcp", "approve"]})
    assert both.status_code == 400


async def test_a_request_with_one_foreign_scope_is_refused_whole(gateway: RunningGateway) -> None:
    """Ours: one scope that is not the author's refuses the key, however many are."""
    author = await gateway.create_key("acme", "admin", "mcp")

    assert (await _as(gateway, author, "POST", "", {"name": "k", "scopes": ["mcp", "audit"]})).status_code == 403
    assert (await _as(gateway, author, "POST", "", {"name": "k", "scopes": ["mcp", "admin"]})).status_code == 201


async def test_an_admin_ends_every_key_of_its_tenant(gateway: RunningGateway) -> None:
    """Ours: taking away needs no scope but `admin`."""
    author = await gateway.create_key("acme", "admin")
    for scope in Scope:
        made = (await gateway.admin.post("/tenants/acme/keys", json={"name": "t", "scopes": [scope]})).json()
        assert (await _as(gateway, author, "POST", f"/{made['id']}/revoke")).status_code == 200
        assert (await _as(gateway, author, "DELETE", f"/{made['id']}")).status_code == 204


async def test_the_operator_grants_every_scope(targets: dict[Scope, str]) -> None:
    """Ours: scopes that a tenant's keys may not grant are granted by the operator."""
    assert targets.keys() == set(Scope)


async def test_a_tenant_has_so_many_keys_and_no_more(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Security review 8: 2,000 keys were minted in 6 s without a cap; the refusal names it and the way out (ISO-6)."""
    monkeypatch.setitem(vars(KEY), "limit", Limit(most=3, reason="a thousand take too long to mint"))
    await gateway.create_tenant("small")
    made = [await gateway.admin.post("/tenants/small/keys", json={"name": "k", "scopes": ["mcp"]}) for _ in range(4)]

    assert [one.status_code for one in made] == [201, 201, 201, 429]
    assert "has 3 keys (the limit); delete" in made[3].json()["detail"]
    revoked = await gateway.admin.post(f"/tenants/small/keys/{made[0].json()['id']}/revoke")
    again = await gateway.admin.post("/tenants/small/keys", json={"name": "k", "scopes": ["mcp"]})
    assert (revoked.status_code, again.status_code) == (200, 429), "a revoked key still has its row"
    await gateway.admin.delete(f"/tenants/small/keys/{made[0].json()['id']}")
    again = await gateway.admin.post("/tenants/small/keys", json={"name": "k", "scopes": ["mcp"]})
    assert again.status_code == 201
