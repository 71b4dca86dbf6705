"""A walk through every route of the admin API, each answer held against the OpenAPI document it serves."""

import hashlib

import orjson
import pytest

from tests.behaviour.admin.walk import Walk
from tests.behaviour.admin.walk_actions import differences, entries_of, walk_upserts
from tests.behaviour.admin.walk_authorization import walk_accounts, walk_authorization
from tests.behaviour.admin.walk_kinds import walk_kinds
from tests.behaviour.admin.walk_operators import walk_operators
from tests.behaviour.admin.walk_primitives import walk_primitives
from tests.support.documents import pets, secured
from tests.support.gateway import RunningGateway
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream

URL = "https://pets.example"

_LINES = {
    ("GET", "/audit/export"),
    ("GET", "/audit/tail"),
    ("GET", "/tenants/{t}/audit/export"),
    ("GET", "/tenants/{t}/audit/tail"),
    ("GET", "/tenants/{t}/documents/{digest}"),
}
"""Routes that answer with JSON Lines or bytes; their own tests read them."""


@pytest.fixture
async def walk(gateway: RunningGateway) -> Walk:
    """The operator on the way through the API."""
    document = await gateway.admin.get("/openapi.json", headers={"authorization": ""})
    return Walk(gateway.admin, document.json())


async def test_every_route_answers_as_documented(
    walk: Walk, gateway: RunningGateway, upstream: RecordingUpstream, stand: Stand
) -> None:
    """Ours: each response of each route, in success and in refusal, is in its own OpenAPI document (PRG-4, OAS-3)."""
    await _walk_tenants(walk)
    await _walk_keys(walk)
    await _walk_sources(walk, upstream)
    await _walk_tools_and_policy(walk)
    await _walk_approvals(walk)
    await walk_primitives(walk, upstream)
    await walk_kinds(walk)
    await walk_authorization(walk, gateway, upstream)
    await walk_accounts(walk, stand, upstream)
    await walk_upserts(walk)
    await walk_operators(walk, gateway, upstream)
    await _check_changes(walk)
    assert await differences(walk) == "", "new names belong under `new` of tests/surface/golden/actions.json"
    await walk.ask("DELETE", "/tenants/acme", 412, headers={"if-match": '"ten_x.1"'})
    await walk.ask("DELETE", "/tenants/acme", 204)
    await walk.ask("GET", "/deleted-tenants?limit=1", 200)
    await walk.ask("GET", "/openapi.json", 200)
    await walk.ask("GET", "/doctor", 200)
    await walk.ask("GET", "/secrets", 200)
    await walk.ask("POST", "/secrets/rotate", 200, json={"dry_run": True})
    succeeded = {(method, template) for method, template, status in walk.seen if status < 300}
    assert succeeded | _LINES == walk.documented


_CHANGES = {
    "/tenants/{t}": "tenant.rename",
    "/tenants/{t}/access": "access.update",
    "/tenants/{t}/audit-sinks/{name}": "audit_sink.update",
    "/tenants/{t}/audit/retention": "audit_retention.update",
    "/tenants/{t}/ceilings": "ceilings.update",
    "/tenants/{t}/clients/{id}": "client.update",
    "/tenants/{t}/credentials/{name}": "credential.update",
    "/tenants/{t}/egress": "egress.update",
    "/tenants/{t}/guardrails/{name}": "guardrail.update",
    "/tenants/{t}/issuers/{name}": "issuer.update",
    "/tenants/{t}/keys/{id}": "key.update",
    "/tenants/{t}/live-sources/{name}": "live_source.update",
    "/tenants/{t}/policy": "policy.update",
    "/tenants/{t}/profiles/{name}": "profile.update",
    "/tenants/{t}/prompts/{name}": "prompt.update",
    "/tenants/{t}/resource-templates": "resource_template.update",
    "/tenants/{t}/resource-templates/{id}": "resource_template.update",
    "/tenants/{t}/overrides/{name}": "tool.override",
    "/tenants/{t}/resources": "resource.update",
    "/tenants/{t}/resources/{id}": "resource.update",
    "/tenants/{t}/sources/{name}": "source.update",
    "/tenants/{t}/sources/{name}/document": "source.update",
    "/tenants/{t}/tools/{name}": "tool.update",
    "/tenants/{t}/watches/{id}": "watch.update",
    "/tenants/{t}/webhook-endpoints/{name}": "webhook_endpoint.update",
}
"""The action of each path whose object PUT or PATCH changes."""


async def _check_changes(walk: Walk) -> None:
    """The trail of the walk: each change of each kind has before and after, and no secret (TEN-4)."""
    changes = {path for method, path in walk.documented if method in {"PUT", "PATCH"} and path.startswith("/tenants")}
    # These PUTs create, and have nothing to change.
    creations = {"/tenants/{t}/webhooks/{name}", "/tenants/{t}/documents/{digest}"}
    assert changes - creations == _CHANGES.keys()
    entries = await entries_of(walk, "change")
    differing = {entry["action"] for entry in entries if {"before", "after"} <= entry["detail"].keys()}
    assert {*_CHANGES.values(), "tool.override", "key.rotate", "webhook.rotate"} - differing == set()
    created = [entry for entry in entries if entry["action"].endswith(".create")]
    deleted = [entry for entry in entries if entry["action"].endswith(".delete")]
    assert {entry["action"] for entry in created if "after" not in entry["detail"]} == set()
    assert {entry["action"] for entry in deleted if "before" not in entry["detail"]} == set()
    text = orjson.dumps(entries).decode()
    assert len(walk.secrets) > 10
    assert [secret for secret in walk.secrets if len(secret) > 5 and secret in text] == []


async def _walk_tenants(walk: Walk) -> None:
    await walk.ask("POST", "/tenants", 201, json={"slug": "acme", "name": "Acme"})
    await walk.ask("POST", "/tenants", 409, json={"slug": "acme"})
    await walk.ask("POST", "/tenants", 400, json={"slug": "Not A Slug"})
    await walk.ask("POST", "/tenants", 415, content=b"{}", headers={"content-type": "text/plain"})
    await walk.ask("POST", "/tenants", 413, json={"slug": "x", "name": "x" * 2**20})
    await walk.ask("GET", "/tenants", 200)
    await walk.ask("GET", "/tenants?cursor=abc", 400)
    shown = await walk.ask("GET", "/tenants/acme", 200)
    assert (await walk.ask("GET", f"/tenants/{shown.json()['id']}", 200)).json() == shown.json()
    await walk.ask("GET", "/tenants/none", 404)
    tag = shown.headers["etag"]
    renamed = await walk.ask("PATCH", "/tenants/acme", 200, json={"name": "New"}, headers={"if-match": tag})
    assert (await walk.ask("GET", "/tenants/acme", 200)).headers["etag"] == renamed.headers["etag"] != tag
    await walk.ask("PATCH", "/tenants/acme", 412, json={"name": "Newer"}, headers={"if-match": tag})
    same = await walk.ask("PUT", "/tenants/acme", 200, json=renamed.json())
    assert same.headers["etag"] == renamed.headers["etag"], "a PUT of what GET returned changed the tenant"
    await walk.ask("PUT", "/tenants/acme", 400, json={"slug": "other"})
    await walk.ask("PUT", "/tenants/acme", 412, json={"slug": "acme"}, headers={"if-match": tag})
    await walk.ask("PUT", "/tenants/none", 404, json={"slug": "none"})
    assert (await walk.ask("PUT", "/tenants/acme", 200, json={"slug": "acme"})).json()["name"] == "acme"


async def _walk_keys(walk: Walk) -> None:
    made = await walk.ask("POST", "/tenants/acme/keys", 201, json={"name": "a", "scopes": ["mcp"], "subject": "s"})
    await walk.ask("POST", "/tenants/acme/keys", 400, json={"name": "a", "scopes": ["mcp", "approve"]})
    await walk.ask("POST", "/tenants/acme/keys", 422, json={"name": "a", "scopes": ["mcp"], "profile": "small"})
    path = made.headers["location"].removeprefix("/admin/v1")
    assert path == f"/tenants/acme/keys/{made.json()['id']}"
    await walk.ask("GET", "/tenants/acme/keys", 200)
    shown = await walk.ask("GET", path, 200)
    assert shown.headers["etag"] == made.headers["etag"]
    assert "key" not in shown.json()
    await walk.ask("PATCH", path, 200, json={"expires_at": "2100-01-01T00:00:00Z"})
    await walk.ask("PATCH", path, 200, json={"expires_at": None})
    await walk.ask("PATCH", path, 412, json={"name": "b"}, headers={"if-match": made.headers["etag"]})
    rotated = await walk.ask("POST", f"{path}/rotate", 200)
    assert rotated.json()["key"] != made.json()["key"]
    assert rotated.json()["old_secret_until"] is None
    await walk.ask("POST", f"{path}/rotate", 400, json={"overlap_s": 31 * 86400})
    twice = await walk.ask("POST", f"{path}/rotate", 200, json={"overlap_s": 60})
    assert twice.json()["old_secret_until"] is not None
    await walk.ask("POST", f"{path}/rotate", 409, json={"overlap_s": 60})
    stale = {"if-match": rotated.headers["etag"]}
    await walk.ask("POST", f"{path}/end-old-secret", 412, headers=stale)
    assert (await walk.ask("POST", f"{path}/end-old-secret", 200)).json()["old_secret_until"] is None
    assert (await walk.ask("POST", f"{path}/revoke", 200)).json()["revoked_at"] is not None
    await walk.ask("POST", f"{path}/rotate", 409)
    await walk.ask("POST", "/keys/check", 200, json={"text": rotated.json()["key"]})
    await walk.ask("DELETE", path, 204)
    await walk.ask("GET", path, 404)


async def _walk_sources(walk: Walk, upstream: RecordingUpstream) -> None:
    sources = "/tenants/acme/sources"
    body = {"name": "pets", "document": pets(URL)}
    await walk.ask("POST", sources, 200, json={**body, "dry_run": True})
    made = await walk.ask("POST", sources, 201, json=body)
    assert made.headers["location"] == f"/admin/v1{sources}/pets"
    await walk.ask("POST", sources, 409, json=body)
    clash = await walk.ask("POST", sources, 409, json={**body, "name": "zoo"})
    prefix = clash.json()["suggested_prefix"]
    await walk.ask("POST", sources, 201, json={**body, "name": "zoo", "prefix": prefix})
    await walk.ask("POST", sources, 422, json={"name": "bad", "document": "{"})
    queried = {**body, "name": "q", "prefix": "q", "expose": "query"}
    await walk.ask("POST", sources, 200, json={**queried, "dry_run": True})
    upstream.status = 500
    await walk.ask("POST", sources, 502, json={"name": "bad", "url": f"{upstream.url}/x"})
    await walk.ask("POST", sources, 422, json={"name": "bad", "url": "http://169.254.169.254/x"})
    await walk.ask("GET", sources, 200)
    await walk.ask("GET", f"{sources}/pets", 200)
    report = await walk.ask("GET", f"{sources}/pets/report", 200)
    assert report.json() == made.json()["report"]
    secret = {"document": secured(URL), "credentials": {"token": "s3cr3t"}}
    await walk.ask("PUT", f"{sources}/pets", 409, json=secret)
    replaced = await walk.ask("PUT", f"{sources}/pets", 200, json={**secret, "allow_removals": True})
    assert replaced.json()["status"]["credentials"] == ["token"]
    await walk.ask("PATCH", f"{sources}/pets", 200, json={"prefix": "p", "dry_run": True})
    await walk.ask("PATCH", f"{sources}/pets", 200, json={"prefix": "p"})
    await walk.ask("PATCH", f"{sources}/pets", 412, json={}, headers={"if-match": made.headers["etag"]})
    await walk.ask("PUT", f"{sources}/pets/document", 200, json=secured(URL))
    await walk.ask("PUT", f"{sources}/pets/document", 415, content=b"{}")
    await walk.ask("PUT", f"{sources}/pets/document", 422, json={})
    await walk.ask("PUT", f"{sources}/none/document", 404, json=secured(URL))
    await _walk_versions(walk, f"{sources}/zoo", upstream)
    await _walk_documents(walk, orjson.dumps(pets(URL)))
    await walk.ask("DELETE", f"{sources}/zoo", 204)
    await walk.ask("GET", f"{sources}/zoo/report", 404)


async def _walk_documents(walk: Walk, document: bytes) -> None:
    path, headers = "/tenants/acme/documents", {"content-type": "application/json"}
    digest = hashlib.sha256(document).hexdigest()
    await walk.ask("PUT", f"{path}/{digest}", 200, content=document, headers=headers)
    await walk.ask("PUT", f"{path}/{digest}", 400, content=b"{}", headers=headers)
    await walk.ask("PUT", f"{path}/{digest.upper()}", 404, content=document, headers=headers)
    await walk.ask("PUT", f"{path}/{digest}", 415, content=document, headers={"content-type": "text/html"})


async def _walk_versions(walk: Walk, source: str, upstream: RecordingUpstream) -> None:
    await walk.ask("POST", f"{source}/refresh", 409)
    await walk.ask("GET", f"{source}/proposal", 404)
    more = {"document": secured(URL), "allow_removals": True}
    await walk.ask("POST", f"{source}/proposal", 200, json={**more, "dry_run": True})
    await walk.ask("POST", f"{source}/proposal", 200, json=more)
    await walk.ask("POST", f"{source}/proposal", 409, json=more)
    await walk.ask("POST", f"{source}/proposal", 422, json={"document": "{"})
    await walk.ask("POST", f"{source}/proposal", 400, json={})
    shown = await walk.ask("GET", f"{source}/proposal", 200)
    await walk.ask("DELETE", f"{source}/proposal", 412, headers={"if-match": '"src_x.1.1"'})
    await walk.ask("DELETE", f"{source}/proposal", 204)
    await walk.ask("POST", f"{source}/versions/{shown.json()['version']}/activate", 404)
    await walk.ask("POST", f"{source}/proposal", 200, json=more)
    await walk.ask("POST", f"{source}/versions/3/activate", 200)
    listed = await walk.ask("GET", f"{source}/versions?limit=1", 200)
    await walk.ask("GET", f"{source}/versions?limit=1&cursor={listed.json()['next_cursor']}", 200)
    await walk.ask("GET", f"{source}/versions?cursor=x", 400)
    [active] = listed.json()["items"]
    first = await walk.ask("GET", f"{source}/versions/1", 200)
    await walk.ask("GET", f"{source}/versions/{'9' * 30}", 404)
    await walk.ask("POST", f"{source}/versions/{active['version']}/activate", 409)
    path, tag = f"{source}/versions/1/activate", {"if-match": first.headers["etag"]}
    await walk.ask("POST", path, 200, json={"dry_run": True}, headers=tag)
    await walk.ask("POST", path, 200, headers=tag)
    await walk.ask("POST", path, 412, headers=tag)
    upstream.status, upstream.body = 200, orjson.dumps(secured(URL))
    scheduled = {"url": f"{upstream.url}/openapi.json", "refresh_interval_s": 3600}
    await walk.ask("PATCH", source, 200, json={**scheduled, "allow_removals": True})
    await walk.ask("PATCH", source, 400, json={"refresh_interval_s": 1})
    await walk.ask("POST", f"{source}/refresh", 200)


async def _walk_access(walk: Walk) -> None:
    path = "/tenants/acme/access"
    tag = (await walk.ask("GET", path, 200)).headers["etag"]
    wanted = {"default": "allow", "rules": [{"effect": "deny", "who": ["group:corp:x"], "what": {"sources": ["none"]}}]}
    stored = (await walk.ask("PUT", path, 200, json=wanted, headers={"if-match": tag})).json()
    await walk.ask("PUT", path, 412, json=wanted, headers={"if-match": tag})
    assert (await walk.ask("PUT", path, 200, json=stored)).json() == stored
    refused = await walk.ask("PUT", path, 400, json={"rules": [{"effect": "deny", "who": ["role:x"]}]})
    assert refused.json()["errors"][0]["pointer"] == "/rules/0/who/0"
    [reported] = (await walk.ask("POST", f"{path}/report", 200, json={})).json()["rules"]
    assert len(reported["warnings"]) == 3, reported
    await walk.ask("POST", f"{path}/report", 400, json={"rules": [{"effect": "maybe"}]})
    asked = {"limit": 1, "as": {"groups": ["corp:x"]}}
    await walk.ask("POST", f"{path}/check", 200, json=asked)
    await walk.ask("POST", f"{path}/check", 400, json={**asked, "cursor": "x"})
    await walk.ask("POST", f"{path}/check", 404, json={"as": {"key": "key_none"}})
    await walk.ask("PUT", f"{path}?replace=true", 200, json={})


async def _walk_tools_and_policy(walk: Walk) -> None:
    listed = await walk.ask("GET", "/tenants/acme/tools", 200)
    name = listed.json()["items"][0]["name"]
    shown = await walk.ask("GET", f"/tenants/acme/tools/{name}", 200)
    assert (shown.json()["status"]["safety"], shown.json()["status"]["safety_reasons"]) == ("safe", ["GET only reads"])
    await walk.ask("GET", "/tenants/acme/tools/none", 404)
    current = await walk.ask("GET", "/tenants/acme/policy", 200)
    policy = {**current.json(), "dangerous": "deny"}
    tag = current.headers["etag"]
    assert (await walk.ask("PUT", "/tenants/acme/policy", 200, json=policy, headers={"if-match": tag})).json() == policy
    await walk.ask("PUT", "/tenants/acme/policy", 412, json=policy, headers={"if-match": tag})
    await walk.ask("PUT", "/tenants/acme/egress", 400, json={"allow": ["*:80"]})
    refused = await walk.ask("PUT", "/tenants/acme/policy", 400, json={"moderate": "maybe"})
    assert refused.json()["errors"][0]["pointer"] == "/moderate"
    broken = {"decision": "deny", "when": [{"pointer": "/a", "operator": "greater", "value": "1"}]}
    refused = await walk.ask("PATCH", "/tenants/acme/policy", 400, json={"rules": [broken]})
    assert refused.json()["errors"][0]["pointer"] == "/rules/0/when/0/value"
    await walk.ask("POST", "/tenants/acme/policy/check", 400, json={"rules": [broken]})
    await walk.ask("POST", "/tenants/acme/policy/check", 200, json={"rules": [{"decision": "deny"}]})
    await _walk_access(walk)
    await walk.ask("PATCH", "/tenants/acme/ceilings", 200, json={"burst": 900})
    above = await walk.ask("PATCH", "/tenants/acme/policy", 403, json={"limits": {"burst": 901}})
    assert above.json()["errors"][0]["pointer"] == "/limits/burst"
    await walk.ask("GET", "/tenants/acme/audit?kind=change&principal=operator&limit=3", 200)
    await walk.ask("GET", "/tenants/acme/audit?kind=dream", 400)
    assert (await walk.ask("GET", "/tenants/acme/audit/verify", 200)).json()["ok"]
    [last] = (await walk.ask("GET", "/tenants/acme/audit?limit=1", 200)).json()["items"]
    await walk.ask("GET", f"/tenants/acme/audit/explain?of={last['id']}", 200)
    await walk.ask("GET", "/tenants/acme/audit/explain?of=aud_none", 404)
    await walk.ask("GET", "/tenants/none/audit/verify", 404)
    await _walk_audit_sinks(walk)


async def test_a_secret_of_the_walk_is_in_no_answer(walk: Walk) -> None:
    """Ours: a stored credential comes back in no list, object, report or trail (TEN-4)."""
    await walk.ask("POST", "/tenants", 201, json={"slug": "acme"})
    body = {"name": "api", "document": secured(URL), "credentials": {"token": "s3cr3t-canary"}}
    await walk.ask("POST", "/tenants/acme/sources", 201, json=body)
    for path in ("sources", "sources/api", "sources/api/report", "tools", "audit", "policy", "keys"):
        answer = await walk.ask("GET", f"/tenants/acme/{path}", 200)
        assert b"s3cr3t-canary" not in orjson.dumps(answer.json())


async def _walk_approvals(walk: Walk) -> None:
    path, [tool, *_] = "/tenants/acme/approvals", (await walk.ask("GET", "/tenants/acme/tools", 200)).json()["items"]
    await walk.ask("PATCH", "/tenants/acme/policy", 200, json={"safe": "approve"})
    made = await walk.ask("POST", "/tenants/acme/keys", 201, json={"name": "anna", "scopes": ["approve"]})
    person = {"authorization": f"Bearer {made.json()['key']}"}
    for verdict in ("approve", "deny"):
        tried = await walk.ask("POST", f"/tenants/acme/tools/{tool['name']}/try", 200, json={"arguments": {}})
        asked = f"{path}/{tried.json()['result']['_meta']['gateway/approval']['id']}"
        shown = await walk.ask("GET", asked, 200)
        await walk.ask("POST", f"{asked}/{verdict}", 403, json={})
        await walk.ask("POST", f"{asked}/{verdict}", 400, json={"comment": ""})
        await walk.ask("POST", f"{asked}/{verdict}", 412, json={}, headers={**person, "if-match": '"apr_x.1"'})
        tagged = {**person, "if-match": shown.headers["etag"]}
        await walk.ask("POST", f"{asked}/{verdict}", 200, json={"comment": "seen"}, headers=tagged)
        await walk.ask("POST", f"{asked}/{verdict}", 409, json={}, headers=person)
        await walk.ask("POST", f"/tenants/acme/tools/{tool['name']}/try", 200, json={"arguments": {}})
    assert len((await walk.ask("GET", f"{path}?limit=1", 200)).json()["items"]) == 1
    await walk.ask("GET", f"{path}?state=asked", 400)
    await walk.ask("GET", f"{path}/none", 404)
    await walk.ask("PATCH", "/tenants/acme/policy", 200, json={"safe": "allow"})


async def _walk_audit_sinks(walk: Walk) -> None:
    """Keys of exports and sinks of an audit trail."""
    await walk.ask("GET", "/tenants/acme/audit/export-keys", 200)
    await walk.ask("GET", "/tenants/acme/audit/retention?days=400", 200)
    await walk.ask("PUT", "/tenants/acme/audit/retention", 400, json={"days": 1})
    path = "/tenants/acme/audit-sinks"
    sink = {"name": "siem", "kind": "https", "target": "https://siem.example/in", "enabled": False}
    await walk.ask("POST", path, 201, json=sink)
    await walk.ask("GET", path, 200)
    await walk.ask("GET", f"{path}/siem", 200)
    await walk.ask("PATCH", f"{path}/siem", 200, json={"target": "https://siem.example/other"})
    await walk.ask("DELETE", f"{path}/siem", 204)
