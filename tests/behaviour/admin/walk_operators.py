"""A walk through the routes of the installation: operators, issuers, people, and the trail."""

from typing import Any

import orjson

from gateway.kinds.index import OPERATORS_KINDS
from tests.behaviour.admin.walk import Walk
from tests.behaviour.admin.walk_kinds import walk_kind
from tests.support.gateway import RunningGateway
from tests.support.issuer import new_issuer
from tests.support.upstream import RecordingUpstream

_CHANGED = {"operator_key.update", "operator_grant.update", "issuer.update", "ceilings.update", "tenant.rename"}


async def walk_operators(walk: Walk, gateway: RunningGateway, upstream: RecordingUpstream) -> None:
    """Use every route of the installation, and leave no operator behind."""
    for kind in OPERATORS_KINDS:
        if not kind.is_tenants:
            await walk_kind(walk, kind)
            await walk.ask("POST", f"/{kind.plural}", 201, json={**kind.example, "name": "second"})
            await walk.ask("PATCH", f"/{kind.plural}/second", 200, json={"role": "auditor", "kinds": None})
            await walk.ask("DELETE", f"/{kind.plural}/second", 204)
    issuer = new_issuer(upstream)
    issuer.publish()
    body: dict[str, Any] = {"name": "staff", "url": issuer.url, "rules": [{}]}
    made = await walk.ask("POST", "/issuers", 201, json=body)
    assert made.headers["location"] == "/admin/v1/issuers/staff"
    await walk.ask("POST", "/issuers", 409, json=body)
    await walk.ask("GET", "/issuers", 200)
    await walk.ask("GET", "/issuers/staff", 200)
    await walk.ask("GET", "/issuers/missing", 404)
    await walk.ask("PUT", "/issuers/staff", 200, json={**body, "max_lifetime_s": 900})
    await walk.ask("PATCH", "/issuers/staff", 200, json={"max_lifetime_s": 600})
    await walk.ask("POST", "/issuers/staff/refresh-keys", 200)
    headers = {"authorization": f"Bearer {issuer.token(f'{gateway.url}/admin/v1', sub='ada')}"}
    await walk.ask("GET", "/tenants", 403, headers=headers)
    [person] = (await walk.ask("GET", "/people", 200)).json()["items"]
    assert person["subject"] == "staff:ada"
    for verb in ("deny", "allow"):
        await walk.ask("POST", f"/people/{person['id']}/{verb}", 200)
    await walk.ask("GET", f"/people/{person['id']}", 200)
    await walk.ask("DELETE", "/issuers/staff", 204)
    await _walk_trail(walk)


async def _walk_trail(walk: Walk) -> None:
    """The trail of the installation: changes have before and after, and no secret."""
    entries = (await walk.ask("GET", "/audit?kind=change&limit=200", 200)).json()["items"]
    differing = {one["action"] for one in entries if {"before", "after"} <= one["detail"].keys()}
    assert _CHANGED - differing == set(), differing
    text = orjson.dumps(entries).decode()
    assert [secret for secret in walk.secrets if len(secret) > 5 and secret in text] == []
    await walk.ask("GET", f"/audit/explain?of={entries[0]['id']}", 200)
    assert (await walk.ask("GET", "/audit/verify", 200)).json()["ok"]
    await walk.ask("GET", "/audit/export-keys", 200)
