"""Issuers of the installation: people and workloads administer with access tokens, by grants."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, new_issuer
from tests.support.servers import TestServers
from tests.support.upstream import recording_upstream

GRANTS: dict[str, dict[str, Any]] = {
    "platform": {"role": "administrator", "who": ["group:corp:platform"], "unless": ["subject:corp:eve"]},
    "desk": {"role": "support", "who": ["group:corp:desk"]},
    "owners": {"role": "administrator", "who": ["group:corp:acme-owners"], "tenants": ["acme"]},
    "ci": {
        "role": "administrator",
        "who": ["subject:corp:repo:acme/infra:ref:refs/heads/main"],
        "tenants": ["acme"],
        "kinds": ["profile"],
    },
}


@dataclass(slots=True)
class Office:
    """A gateway with two tenants, whose operators sign in at an issuer of the installation."""

    gateway: RunningGateway
    issuer: LocalIssuer

    @property
    def url(self) -> str:
        """The admin API, which is the audience of operators' tokens."""
        return f"{self.gateway.url}/admin/v1"

    def token(self, *groups: str, **claims: Any) -> str:
        """A token for the admin API."""
        return self.issuer.token(claims.pop("audience", self.url), groups=list(groups), **claims)

    async def ask(self, token: str, method: str, path: str, body: object = None) -> httpx.Response:
        """One request with a token."""
        headers = {"authorization": f"Bearer {token}"}
        return await self.gateway.http.request(method, f"/admin/v1{path}", json=body, headers=headers)


@pytest.fixture(scope="module")
async def office(servers: TestServers) -> AsyncGenerator[Office]:
    """The issuer publishes its keys at an upstream of the test."""
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, servers.own_redis(), egress_allow=[upstream.authority]) as gateway,
        ):
            for slug in ("acme", "globex"):
                await gateway.create_tenant(slug)
            issuer = new_issuer(upstream)
            issuer.publish()
            body: dict[str, Any] = {"name": "corp", "url": issuer.url, "rules": [{}]}
            made = await gateway.admin.post("/issuers", json=body)
            assert made.status_code == 201, made.text
            assert made.headers["location"].endswith("/admin/v1/issuers/corp")
            for name, grant in GRANTS.items():
                given = await gateway.admin.post("/operator-grants", json={"name": name, **grant})
                assert given.status_code == 201, given.text
            yield Office(gateway, issuer)


async def test_a_token_administers_every_tenant_and_the_trail_names_the_person(office: Office) -> None:
    """Ours: one token of an issuer of the installation is accepted everywhere, by its groups (OPR-3)."""
    token = office.token("platform", sub="ada")
    for method, path, body, wanted in (
        ("GET", "/tenants", None, 200),
        ("PATCH", "/tenants/acme/ceilings", {"burst": 4000}, 200),
        ("PUT", "/tenants/globex/profiles/cats", {"description": "Cats"}, 201),
        ("GET", "/operator-grants", None, 200),
        ("GET", "/audit/verify", None, 200),
    ):
        answer = await office.ask(token, method, path, body)
        assert answer.status_code == wanted, (path, answer.text)
    entries = (await office.gateway.admin.get("/tenants/globex/audit", params={"limit": 1})).json()["items"]
    assert entries[0]["principal"] == "operator:corp:ada"
    trail = (await office.gateway.admin.get("/audit", params={"principal": "operator:corp:ada"})).json()["items"]
    assert [one["action"] for one in trail] == ["ceilings.update"]
    people = (await office.ask(token, "GET", "/people")).json()["items"]
    assert [one["subject"] for one in people] == ["corp:ada"]


async def test_grants_limit_people_and_workloads(office: Office) -> None:
    """Ours: a role is limited to tenants and kinds; a person without a grant has no rights (OPR-3, TEN-1)."""
    bench, owner = office.token("desk", sub="bob"), office.token("acme-owners", sub="cy")
    workload = office.token(sub="repo:acme/infra:ref:refs/heads/main")
    profile = {"objects": [{"kind": "profile", "name": "p", "members": {"description": "By CI"}}]}
    policy = {"objects": [{"kind": "policy", "members": {"dangerous": "deny"}}]}
    for token, method, path, body, wanted in (
        (bench, "GET", "/tenants/acme/keys", None, 200),
        (bench, "POST", "/tenants/acme/keys", {"name": "k", "scopes": ["mcp"]}, 403),
        (owner, "POST", "/tenants/acme/keys", {"name": "k", "scopes": ["mcp"]}, 201),
        (owner, "GET", "/tenants/globex/keys", None, 404),
        (owner, "PATCH", "/tenants/acme/ceilings", {"burst": 9999}, 403),
        (owner, "POST", "/operator-grants", {"name": "g", "role": "administrator", "who": ["issuer:corp"]}, 403),
        (workload, "POST", "/tenants/acme/apply", profile, 200),
        (workload, "POST", "/tenants/acme/apply", policy, 403),
        (workload, "GET", "/tenants/acme/profiles", None, 403),
        (workload, "POST", "/tenants/globex/apply", profile, 404),
        (office.token(sub="joe"), "GET", "/tenants", None, 403),
        (office.token("platform", sub="eve"), "GET", "/tenants", None, 403),
        (office.token(sub="repo:acme/infra:ref:refs/heads/fork"), "POST", "/tenants/acme/apply", profile, 404),
    ):
        answer = await office.ask(token, method, path, body)
        assert answer.status_code == wanted, (method, path, answer.text)
    changed = (await office.gateway.admin.get("/tenants/acme/audit", params={"limit": 1})).json()["items"][0]
    assert changed["principal"] == "operator:corp:repo:acme/infra:ref:refs/heads/main"
    assert changed["detail"]["way"] == "apply"


async def test_tokens_for_other_resources_are_refused(office: Office) -> None:
    """Ours: the audience is the admin API alone; no token for a tenant, for MCP or for two resources (OPR-3, IDN-4)."""
    url = office.gateway.url
    for audience in (f"{url}/t/acme/mcp", f"{url}/admin/v1/tenants/acme", url, [office.url, f"{url}/t/acme/mcp"]):
        token = office.token("platform", audience=audience)
        for path in ("/tenants", "/tenants/acme/keys"):
            assert (await office.ask(token, "GET", path)).status_code == 401, (audience, path)
    token = office.token("platform", sub="ada")
    called = await office.gateway.rpc("acme", token, "tools/list")
    assert called.status_code == 401


async def test_a_person_removed_from_a_group_is_refused_with_the_next_token(office: Office) -> None:
    """Ours: rights follow the groups of the token; a denial applies to the next request, with a valid token (OPR-3)."""
    before = office.token("platform", sub="mo")
    assert (await office.ask(before, "GET", "/doctor")).status_code == 200
    assert (await office.ask(office.token(sub="mo"), "GET", "/doctor")).status_code == 403
    denied = await office.gateway.admin.post("/people/corp:mo/deny")
    assert denied.status_code == 200, denied.text
    assert (await office.ask(before, "GET", "/doctor")).status_code == 401
    (await office.gateway.admin.delete("/operator-grants/desk")).raise_for_status()
    assert (await office.ask(office.token("desk", sub="bob"), "GET", "/tenants/acme/keys")).status_code == 404
    again = {"name": "desk", **GRANTS["desk"]}
    (await office.gateway.admin.post("/operator-grants", json=again)).raise_for_status()


async def test_the_issuers_of_operators_are_the_installations(office: Office) -> None:
    """Ours: an issuer of the installation gives nothing at a tenant's MCP URL, and has no sign-in (OPR-3)."""
    listed = (await office.gateway.admin.get("/issuers")).json()["items"]
    assert [one["name"] for one in listed] == ["corp"]
    assert (await office.gateway.admin.get("/tenants/acme/issuers")).json()["items"] == []
    sign_in = {"client_id": "gateway", "client_secret": "secret"}
    body: dict[str, Any] = {
        "name": "other",
        "url": "https://login.example",
        "rules": [{}],
        "sign_in": sign_in,
        "enabled": False,
    }
    refused = await office.gateway.admin.post("/issuers", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/sign_in")
    people = {"name": "all", "role": "support", "who": ["people"]}
    named = await office.gateway.admin.post("/operator-grants", json=people)
    assert (named.status_code, named.json()["errors"][0]["pointer"]) == (400, "/who")


async def test_keys_are_switched_off_where_people_administer(servers: TestServers) -> None:
    """Ours: with `tokens`, keys end as soon as people administer, and not before, so none is locked out (OPR-3)."""
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(
                database.app_url, servers.own_redis(), egress_allow=[upstream.authority], operator_sign_in="tokens"
            ) as gateway,
        ):
            issuer = new_issuer(upstream)
            issuer.publish()
            office = Office(gateway, issuer)
            key = (await gateway.admin.post("/operator-keys", json={"name": "k", "role": "support"})).json()["secret"]
            corp: dict[str, Any] = {"name": "corp", "url": issuer.url, "rules": [{}]}
            (await gateway.admin.post("/issuers", json=corp)).raise_for_status()
            assert (await office.ask(key, "GET", "/tenants")).status_code == 200
            body = {"name": "platform", **GRANTS["platform"]}
            (await gateway.admin.post("/operator-grants", json=body)).raise_for_status()
            for refused in (OPERATOR_KEY, key):
                answer = await office.ask(refused, "GET", "/tenants")
                assert (answer.status_code, "GATEWAY_OPERATOR_SIGN_IN" in answer.text) == (401, True), answer.text
            token = office.token("platform", sub="ada")
            assert (await office.ask(token, "GET", "/tenants")).status_code == 200
            (await office.ask(token, "PATCH", "/issuers/corp", {"enabled": False})).raise_for_status()
            assert (await office.ask(OPERATOR_KEY, "GET", "/tenants")).status_code == 200
