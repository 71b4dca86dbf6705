"""Every endpoint of the admin API, every role of operators, every tenant: what is permitted follows from one table."""

import re

import pytest

from gateway.admin.endpoint import Route
from gateway.admin.routes.index import ENDPOINTS
from gateway.domain.tenancy.keys import Scope
from tests.support.operators import ROLES, Operators

_FORBIDDEN, _MISSING = 403, 404
_NO_TENANT = "no such tenant"
_OF_FINANCE = {"get_tenant", "get_ceilings", "get_policy"}
_OF_CREATOR = {"replace_tenant", "update_tenant"}
_APPLIED = {"apply_manifests"}
_OF_AUDITOR = {"audit", "operator-keys", "operator-grants", "issuers", "people", "deleted-tenants"}
_SCHEMAS = {"list_schemas", "get_schema"}
_SLOW = {"delete_tenant", "follow_audit", "follow_installation_audit"}
"""Requests that are not made: a deletion for good, and streams without an end."""


def _is_permitted(name: str, route: Route, tenant: str | None) -> bool | None:
    """True if the operator of this name may send the request; None if the tenant does not exist for it."""
    role = ROLES[name]
    is_read, is_limited = route.method == "GET", "tenants" in role
    if tenant is None:
        return _is_permitted_outside(name, route, is_limited=is_limited)
    is_own = name == "creator" and tenant == "made"
    if (is_limited and tenant != "acme") or (name == "creator" and not is_own):
        return None
    if name.startswith("support"):
        return is_read
    if name.startswith("auditor"):
        return is_read and (Scope.AUDIT in route.scopes or route.name == "get_tenant")
    if name == "finance":
        return route.name in _OF_FINANCE
    if name == "of-profiles":
        return route.name in _APPLIED
    return bool(route.scopes & {Scope.ADMIN, Scope.AUDIT}) or (is_own and route.name in _OF_CREATOR)


def _is_permitted_outside(name: str, route: Route, *, is_limited: bool) -> bool:
    if route.name == "list_tenants" or route.name in _SCHEMAS:
        return True
    if name == "creator":
        return route.name == "create_tenant"
    if is_limited or route.method != "GET":
        return False
    if name == "auditor":
        return route.path.split("/")[1] in _OF_AUDITOR
    return name == "support" or (name == "finance" and route.name == "list_deleted_tenants")


@pytest.mark.parametrize("name", ROLES)
async def test_roles_reach_the_endpoints_of_the_table(operators: Operators, name: str) -> None:
    """Ours: no endpoint, of today or later, is open to a role without a row of the table (OPR-3, TEN-5)."""
    for route in ENDPOINTS:
        if route.name in _SLOW:
            continue
        for tenant in ("acme", "globex", "made") if "{t}" in route.path else (None,):
            path = re.sub(r"\{\w+\}", "missing", route.path.replace("{t}", tenant or ""))
            answer = await operators.ask(name, route.method, path, {} if route.method in {"POST", "PUT"} else None)
            permitted = _is_permitted(name, route, tenant)
            place = (name, route.method, path, answer.status_code, answer.text[:300])
            is_refused = answer.status_code == _FORBIDDEN
            is_missing = answer.status_code == _MISSING and answer.json()["detail"] == _NO_TENANT
            assert (is_refused, is_missing) == (permitted is False, permitted is None), place
            assert answer.status_code != 401, place


async def test_an_operator_lists_its_tenants_only(operators: Operators) -> None:
    """Ours: a list of tenants has those that a role concerns, on each page and in each order (OPR-3, TEN-1)."""
    wanted = {
        "administrator": ["acme"],
        "support-of-acme": ["acme"],
        "creator": ["made"],
        "support": ["acme", "globex", "made"],
        "finance": ["acme", "globex", "made"],
    }
    for name, slugs in wanted.items():
        for query in ({}, {"limit": 1}, {"sort": "-slug"}, {"search": "m"}):
            found: list[str] = []
            page = (await operators.ask(name, "GET", "/tenants", params=query)).raise_for_status().json()
            found += [one["slug"] for one in page["items"]]
            while page["next_cursor"] is not None:
                more = {**query, "cursor": page["next_cursor"]}
                page = (await operators.ask(name, "GET", "/tenants", params=more)).raise_for_status().json()
                found += [one["slug"] for one in page["items"]]
            assert sorted(found) == [one for one in slugs if "search" not in query or "m" in one], (name, query)


async def test_a_tenant_reaches_no_operators(operators: Operators) -> None:
    """Ours: keys of a tenant, also with every scope, see no operators and no trail of the installation (OPR-3)."""
    keys = [await operators.gateway.create_key("acme", *scopes) for scopes in (["admin", "audit", "mcp"], ["approve"])]
    for route in ENDPOINTS:
        if "{t}" in route.path or route.name in _SCHEMAS:
            continue
        path = re.sub(r"\{\w+\}", "support", route.path)
        for key in keys:
            headers = {"authorization": f"Bearer {key}"}
            answer = await operators.gateway.http.request(route.method, f"/admin/v1{path}", headers=headers)
            assert answer.status_code == _FORBIDDEN, (route.method, path, answer.text)


async def test_the_installation_is_in_no_path(operators: Operators) -> None:
    """Ours: the tenant that owns operators is no tenant for any request, of whichever principal (OPR-3, TEN-1)."""
    for slug in ("_installation", "*", "%2A", "ten_installation"):
        for path in ("", "/keys", "/audit", "/policy", "/people"):
            for answer in (
                await operators.gateway.admin.get(f"/tenants/{slug}{path}"),
                await operators.ask("administrator", "GET", f"/tenants/{slug}{path}"),
            ):
                assert (answer.status_code, answer.json()["detail"]) == (_MISSING, _NO_TENANT), (slug, path)
        assert (await operators.gateway.admin.delete(f"/tenants/{slug}")).status_code == _MISSING
    listed = await operators.gateway.admin.get("/tenants")
    assert [one["slug"] for one in listed.json()["items"]] == ["acme", "globex", "made"]


async def test_an_operator_key_opens_no_mcp(operators: Operators) -> None:
    """Ours: operators administer; no key of theirs calls a tool of a tenant (OPR-3)."""
    for name in ROLES:
        for slug in ("acme", "_installation"):
            answer = await operators.gateway.rpc(slug, operators.keys[name], "tools/list")
            assert answer.status_code == _MISSING, (name, slug, answer.text)


@pytest.mark.parametrize("scope", ["provide", "approve"])
async def test_an_administrator_of_a_tenant_grants_no_more_than_it_has(operators: Operators, scope: str) -> None:
    """Ours: scopes that only the operator grants stay closed, so no limited operator approves its own calls (OPR-3)."""
    for name, slug in (("administrator", "acme"), ("creator", "made")):
        body = {"name": "more", "scopes": [scope]}
        refused = await operators.ask(name, "POST", f"/tenants/{slug}/keys", body)
        assert refused.status_code == _FORBIDDEN, refused.text


async def test_an_administrator_of_a_tenant_reads_no_variable_of_the_host(operators: Operators) -> None:
    """Ours: a reference to an environment variable needs the operator itself (OPR-3, TEN-4)."""
    reference = {"store": "env", "path": "GATEWAY_OPERATOR_KEY"}
    body = {"name": "stolen", "place": "bearer", "reference": reference, "origins": ["https://evil.example"]}
    refused = await operators.ask("administrator", "POST", "/tenants/acme/credentials", body)
    assert refused.is_client_error, refused.text
    assert "test_key" not in refused.text


async def test_a_creator_administers_what_it_made(operators: Operators) -> None:
    """Ours: self-service: a creator makes keys of its tenants, and deletes them, but sets no ceilings (OPR-3)."""
    made = await operators.ask("creator", "POST", "/tenants", {"slug": "preview"})
    assert made.status_code == 201, made.text
    key = await operators.ask("creator", "POST", "/tenants/preview/keys", {"name": "app", "scopes": ["mcp"]})
    ceilings = await operators.ask("creator", "PATCH", "/tenants/preview/ceilings", {"burst": 100_000})
    gone = await operators.ask("creator", "DELETE", "/tenants/preview")
    assert [key.status_code, ceilings.status_code, gone.status_code] == [201, 403, 204], (key.text, gone.text)
