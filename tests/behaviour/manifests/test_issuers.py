"""Issuers in manifests: fetched before the transaction, compared without their secrets, and protected from pruning."""

from typing import Any

import pytest

from gateway.domain.tenancy.keys import Scope
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalIssuer, LocalProvider, new_issuer
from tests.support.manifests import Manifest, actions, apply, entries_of, profile, send, tenant_for_manifests
from tests.support.upstream import RecordingUpstream

ROOT = "/tenants/acme"
PLATFORM = {"set": "platform"}


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await tenant_for_manifests(gateway)
    return gateway


@pytest.fixture
def provider(upstream: RecordingUpstream) -> LocalProvider:
    """An authorization server at which people sign in."""
    found = LocalProvider(new_issuer(upstream))
    found.publish()
    return found


def _issuer(issuer: LocalIssuer, **members: Any) -> Manifest:
    return {"kind": "issuer", "name": "corp", "members": {"url": issuer.url, "rules": [{"group": "staff"}], **members}}


async def test_an_issuer_is_fetched_created_and_left_alone(acme: RunningGateway, provider: LocalProvider) -> None:
    """Ours: an application stores what was fetched; a dry run, and an equal application, write nothing (CFG-3)."""
    wanted = [profile("staff"), _issuer(provider.issuer, sign_in=provider.client, rules=[{"profiles": ["staff"]}])]
    tried = await apply(acme, wanted, dry_run=True, **PLATFORM)
    assert actions(tried) == {"staff": "create", "corp": "create"}
    assert (await acme.admin.get(f"{ROOT}/issuers/corp")).status_code == 404
    made = await apply(acme, wanted, **PLATFORM)
    assert actions(made) == {"staff": "create", "corp": "create"}
    shown = (await acme.admin.get(f"{ROOT}/issuers/corp")).json()
    assert (shown["jwks_url"], shown["status"]["token_url"]) == (
        f"{provider.issuer.url}/keys",
        f"{provider.issuer.url}/token",
    )
    assert provider.client["client_secret"] not in str(made) + str(shown)
    before = len(await entries_of(acme))
    assert actions(await apply(acme, wanted, **PLATFORM)) == {"staff": "none", "corp": "none"}
    without = [wanted[0], _issuer(provider.issuer, sign_in={"client_id": "gateway"}, rules=[{"profiles": ["staff"]}])]
    assert actions(await apply(acme, without, **PLATFORM)) == {"staff": "none", "corp": "none"}
    assert len(await entries_of(acme)) == before

    other = {**provider.client, "client_secret": "another-secret"}
    changed = [wanted[0], _issuer(provider.issuer, sign_in=other, rules=[{"profiles": ["staff"]}], max_lifetime_s=60)]
    [_, done] = (await apply(acme, changed, **PLATFORM))["objects"]
    assert (done["action"], {one["pointer"] for one in done["changes"]}) == ("update", {"/max_lifetime_s", "/secrets"})
    assert "another-secret" not in str(await entries_of(acme)) + str(done)


async def test_an_issuer_that_cannot_be_read_is_refused_before_the_transaction(
    acme: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: metadata that cannot be used refuses the application, and nothing of it is stored (CFG-3)."""
    issuer = LocalIssuer(upstream)
    upstream.body = b"{}"
    refused = await send(acme, [profile("a"), _issuer(issuer)])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/1/members/url")
    assert (await acme.admin.get(f"{ROOT}/profiles/a")).status_code == 404
    moved = {**_issuer(issuer, enabled=False)}
    await apply(acme, [moved])
    refused = await send(acme, [{**moved, "members": {**moved["members"], "url": "https://other.example"}}])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/0/members/url")
    refused = await send(acme, [_issuer(issuer, enabled=False, rules=[{"group": None}])])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/0/members/rules/0/group")
    refused = await send(acme, [{**moved, "name": (await _id(acme))}])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/0/name")


async def test_an_issuer_is_protected_owned_and_drifts(acme: RunningGateway, provider: LocalProvider) -> None:
    """Ours: a change by hand is drift, pruning needs its permission, and other sets take over nothing (CFG-3)."""
    wanted = [profile("a"), _issuer(provider.issuer)]
    await apply(acme, wanted, **PLATFORM)
    await acme.admin.patch(f"{ROOT}/issuers/corp", json={"max_lifetime_s": 60})
    seen = (await apply(acme, wanted, dry_run=True, **PLATFORM))["objects"][1]
    assert (seen["action"], seen["drift"]) == ("update", True)
    refused = await send(acme, [wanted[1]], set="other")
    assert (refused.status_code, "`adopt`" in refused.json()["detail"]) == (409, True)
    refused = await send(acme, wanted[:1], prune=True, **PLATFORM)
    assert (refused.status_code, "prune_protected" in refused.json()["detail"]) == (409, True)
    done = await apply(acme, wanted[:1], prune=True, prune_protected=True, **PLATFORM)
    assert actions(done) == {"a": "none", "corp": "delete"}
    assert (await acme.admin.get(f"{ROOT}/issuers/corp")).status_code == 404


async def test_an_admin_applies_issuers_within_its_bounds(acme: RunningGateway, provider: LocalProvider) -> None:
    """Ours: a manifest permits no more than a request: audiences, delegation, and the scope to admit people (CFG-3)."""
    await acme.admin.patch(f"{ROOT}/ceilings", json={"admin_bounds": {"issuers": False}})
    keys = {each: await acme.create_key("acme", *each) for each in ((Scope.ADMIN,), (Scope.ADMIN, Scope.MCP))}
    for scopes, members in (
        ((Scope.ADMIN,), {}),
        ((Scope.ADMIN, Scope.MCP), {"audiences": ["other"]}),
        ((Scope.ADMIN, Scope.MCP), {}),
    ):
        headers = {"authorization": f"Bearer {keys[scopes]}"}
        body = {"objects": [_issuer(provider.issuer, **members)]}
        refused = await acme.http.post(f"/admin/v1{ROOT}/apply", json=body, headers=headers)
        assert refused.status_code == 403, refused.text
    await acme.admin.post(f"{ROOT}/issuers", json={"name": "corp", **_issuer(provider.issuer)["members"]})
    adopting = {"objects": [_issuer(provider.issuer)], "set": "mine", "adopt": True}
    refused = await acme.http.post(f"/admin/v1{ROOT}/apply", json=adopting, headers=headers)
    assert (refused.status_code, "may not accept issuers" in refused.text) == (403, True)


async def _id(acme: RunningGateway) -> str:
    found: str = (await acme.admin.get(f"{ROOT}/issuers/corp")).json()["id"]
    return found
