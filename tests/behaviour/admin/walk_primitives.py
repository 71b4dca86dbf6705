"""The part of the walk through the admin API that is about primitives, profiles and credentials."""

from typing import Any
from urllib.parse import quote

from tests.behaviour.admin.walk import Walk
from tests.support.issuer import new_issuer
from tests.support.primitives import (
    NAMED,
    prompt,
    resource,
    static_tool,
    template,
    text_prompt,
    text_resource,
    tool,
)
from tests.support.upstream import RecordingUpstream

ACME = "/tenants/acme"
URI = "docs://a/b?c=d"
URI_TEMPLATE = "docs://rows/{id}"


async def walk_primitives(walk: Walk, upstream: RecordingUpstream) -> None:
    """Every route of primitives, profiles, credentials and schemas, in success and in refusal."""
    await _walk_schemas(walk)
    await _walk_credentials(walk, upstream)
    await _walk_tools(walk, upstream)
    await _walk_resources(walk)
    await _walk_templates(walk)
    await _walk_prompts(walk)
    await _walk_profiles(walk)
    await _walk_webhooks(walk)
    await _walk_webhook_endpoints(walk, upstream)
    await _walk_issuers(walk, upstream)
    await _walk_guardrails(walk)
    await _walk_watches(walk, upstream)
    await _walk_live_sources(walk)
    await walk.ask("DELETE", f"{ACME}/tools/fetch", 204)
    await walk.ask("DELETE", f"{ACME}/credentials/token", 204)


async def _walk_schemas(walk: Walk) -> None:
    names = (await walk.ask("GET", "/schemas", 200)).json()["items"]
    for name in names:
        assert (await walk.ask("GET", f"/schemas/{name}", 200)).json()
    await walk.ask("GET", "/schemas/none", 404)


async def _walk_credentials(walk: Walk, upstream: RecordingUpstream) -> None:
    path = f"{ACME}/credentials"
    body: dict[str, Any] = {"name": "token", "place": "bearer", "value": "s3cr3t", "origins": [upstream.url]}
    made = await walk.ask("POST", path, 201, json=body)
    assert made.headers["location"] == f"/admin/v1{path}/token"
    assert "s3cr3t" not in made.text
    await walk.ask("POST", path, 409, json=body)
    await walk.ask("POST", path, 400, json={**body, "name": "x", "origins": ["https://a.example/path"]})
    await walk.ask("GET", path, 200)
    shown = await walk.ask("GET", f"{path}/token", 200)
    assert (await walk.ask("GET", f"{path}/{made.json()['id']}", 200)).json() == shown.json()
    await walk.ask("GET", f"{path}/none", 404)
    assert (await walk.ask("POST", f"{path}/token/test", 200)).json() == {"reference": None}
    changed = {"place": "header", "field": "X-Key", "value": "other", "origins": [upstream.url]}
    await walk.ask("PUT", f"{path}/token", 200, json=changed, headers={"if-match": made.headers["etag"]})
    await walk.ask("PUT", f"{path}/token", 412, json=changed, headers={"if-match": made.headers["etag"]})
    await walk.ask("PATCH", f"{path}/token", 200, json={"field": "X-Other", "value": "third"})
    await walk.ask("PATCH", f"{path}/token", 200, json={"field": "X-Key", "value": "fourth"})
    moved = await walk.ask("PATCH", f"{path}/token", 422, json={"origins": ["https://evil.example"]})
    assert moved.json()["errors"][0]["pointer"] == "/origins"
    await walk.ask("PATCH", f"{path}/token", 412, json={}, headers={"if-match": made.headers["etag"]})


async def _walk_tools(walk: Walk, upstream: RecordingUpstream) -> None:
    path = f"{ACME}/tools"
    body = static_tool("say")
    judged = await walk.ask("POST", f"{path}/validate", 200, json=body)
    assert (judged.json()["safety"], judged.json()["replaces"]) == ("safe", None)
    made = await walk.ask("POST", path, 201, json=body)
    assert made.headers["location"] == f"/admin/v1{path}/say"
    await walk.ask("POST", path, 409, json=body)
    await walk.ask("POST", path, 422, json=tool("x", {"kind": "none"}))
    await walk.ask("POST", f"{path}/validate", 422, json=tool("x y", {"kind": "static", "content": []}))
    await walk.ask("POST", path, 400, json={"definition": {}})
    shown = await walk.ask("GET", f"{path}/say", 200)
    assert shown.headers["etag"] == made.headers["etag"]
    assert (await walk.ask("GET", f"{path}/{made.json()['id']}", 200)).json() == shown.json()
    tried = await walk.ask("POST", f"{path}/say/try", 200, json={"arguments": {}})
    assert tried.json()["result"]["content"] == [{"type": "text", "text": "hello"}]
    await walk.ask("PATCH", f"{path}/say", 200, json={"enabled": False}, headers={"if-match": made.headers["etag"]})
    await walk.ask("PATCH", f"{path}/say", 412, json={"enabled": True}, headers={"if-match": made.headers["etag"]})
    await walk.ask("POST", f"{path}/say/try", 409, json={})
    await walk.ask("POST", f"{path}/say/explain", 200, json={"arguments": {}, "as": {"profile": "default"}})
    await walk.ask("POST", f"{path}/none/explain", 404, json={})
    listed = (await walk.ask("GET", f"{path}/say/listed", 200)).json()
    assert (listed["name"], listed["definition"]["name"], listed["limits"]) == ("say", "say", [])
    await walk.ask("GET", f"{path}/none/listed", 404)
    await walk.ask("POST", f"{path}/none/try", 404, json={})
    await walk.ask("PUT", f"{path}/say", 200, json=static_tool("say", "other"))
    await walk.ask("DELETE", f"{path}/say", 204)
    await walk.ask("DELETE", f"{path}/say", 404)
    imported = next(
        one for one in (await walk.ask("GET", path, 200)).json()["items"] if one["status"]["origin"] == "source"
    )
    await walk.ask("DELETE", f"{path}/{imported['name']}", 409)
    await _walk_overrides(
        walk, f"{path}/{imported['name']}", f"{ACME}/sources/{imported['status']['source']}/overrides"
    )
    await _walk_a_fetching_tool(walk, upstream)


async def _walk_overrides(walk: Walk, tool_path: str, path: str) -> None:
    await walk.ask("PATCH", tool_path, 200, json={"title": "First"})
    changed = await walk.ask("PATCH", tool_path, 200, json={"title": "Other", "hidden": True, "enabled": False})
    assert (changed.json()["enabled"], changed.json()["status"]["hidden"]) == (False, True)
    await walk.ask("PATCH", tool_path, 412, json={"title": "New"}, headers={"if-match": '"opr_x.1"'})
    await walk.ask("PATCH", tool_path, 422, json={"pinned": {"none": 1}})
    await walk.ask("PATCH", tool_path, 400, json={"handler": {"kind": "static"}})
    await walk.ask("PATCH", tool_path, 409, json={"name": "call_endpoint"})
    [kept] = (await walk.ask("GET", path, 200)).json()["items"]
    override = changed.json()["status"]["override"]
    assert (kept["tool"], kept["name"], override["name"]) == (changed.json()["name"], None, changed.json()["name"])
    assert kept.items() >= (override | {"name": None}).items()
    shown = await walk.ask("GET", f"{path}/{kept['id']}", 200)
    assert shown.json() == kept
    await walk.ask("DELETE", f"{path}/{kept['id']}", 412, headers={"if-match": '"ovr_x.1"'})
    await walk.ask("DELETE", f"{path}/{kept['id']}", 204)
    await walk.ask("GET", f"{path}/{kept['id']}", 404)
    await walk.ask("PATCH", tool_path, 200, json={"title": "Again"})
    await walk.ask("DELETE", f"{tool_path}/override", 204)
    await walk.ask("DELETE", f"{tool_path}/override", 404)


async def _walk_a_fetching_tool(walk: Walk, upstream: RecordingUpstream) -> None:
    url = f"{upstream.url}/hello/{{{{ name }}}}"
    handler = {"kind": "http", "method": "POST", "url": url, "credential": "token", "body": {"n": "{{ name }}"}}
    upstream.status, upstream.body = 200, b'{"ok":true}'
    await walk.ask("POST", f"{ACME}/tools", 201, json=tool("fetch", handler, schema=NAMED))
    tried = (await walk.ask("POST", f"{ACME}/tools/fetch/try", 200, json={"arguments": {"name": "Bo"}})).json()
    assert tried["request"]["url"] == f"{upstream.url}/hello/Bo"
    assert tried["request"]["body"] == '{"n":"Bo"}'
    assert "fourth" not in str(tried)
    assert upstream.seen[-1].header("x-key") == "fourth"
    wrong = await walk.ask("POST", f"{ACME}/tools/fetch/try", 422, json={"arguments": {"name": 7}})
    assert wrong.json()["errors"][0]["pointer"] == "/arguments/name"
    await walk.ask("DELETE", f"{ACME}/credentials/token", 409)


async def _walk_resources(walk: Walk) -> None:
    path = f"{ACME}/resources"
    body = text_resource(URI)
    await walk.ask("POST", f"{path}/validate", 200, json=body)
    made = await walk.ask("POST", path, 201, json=body)
    one, by_uri = f"{path}/{made.json()['id']}", f"{path}?uri={quote(URI, safe='')}"
    assert made.headers["location"] == f"/admin/v1{one}"
    await walk.ask("POST", path, 409, json=body)
    await walk.ask("POST", path, 422, json=resource("docs://x", {"kind": "static", "contents": [{"text": "?"}]}))
    assert len((await walk.ask("GET", path, 200)).json()["items"]) == 1
    assert (await walk.ask("GET", by_uri, 200)).json()["items"] == [(await walk.ask("GET", one, 200)).json()]
    assert (await walk.ask("GET", f"{path}?uri=docs%3A%2F%2Fnone", 200)).json()["items"] == []
    await walk.ask("POST", f"{path}/updated", 202, json={"uri": URI})
    await walk.ask("POST", f"{path}/updated", 404, json={"uri": "docs://none"})
    tried = await walk.ask("POST", f"{path}/try?uri={quote(URI, safe='')}", 200)
    assert tried.json()["result"]["contents"][0]["text"] == "hello"
    await walk.ask("POST", f"{path}/try?uri=docs://none", 404)
    for place in (one, by_uri):
        await walk.ask("PATCH", place, 200, json={"safety": "dangerous"})
        assert (await walk.ask("PUT", place, 200, json=body)).json()["status"]["safety"] == "safe"
    await walk.ask("DELETE", one, 204)
    await walk.ask("POST", path, 201, json=body)
    await walk.ask("DELETE", by_uri, 204)
    await walk.ask("DELETE", by_uri, 404)
    await walk.ask("DELETE", path, 400)


async def _walk_templates(walk: Walk) -> None:
    path = f"{ACME}/resource-templates"
    body = template(URI_TEMPLATE, {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"})
    await walk.ask("POST", f"{path}/validate", 200, json=body)
    made = await walk.ask("POST", path, 201, json=body)
    one, by_uri = f"{path}/{made.json()['id']}", f"{path}?uri={quote(URI_TEMPLATE, safe='')}"
    same = template("docs://rows/{other}", {"kind": "template", "text": "x", "mimeType": "text/plain"})
    await walk.ask("POST", path, 409, json=same)
    await walk.ask("GET", path, 200)
    assert (await walk.ask("GET", by_uri, 200)).json()["items"] == [(await walk.ask("GET", one, 200)).json()]
    await walk.ask("POST", f"{ACME}/resources/updated", 202, json={"uri": "docs://rows/7"})
    tried = await walk.ask("POST", f"{ACME}/resources/try?uri=docs://rows/7", 200)
    assert tried.json()["result"]["contents"][0]["text"] == "row 7"
    for place in (one, by_uri):
        await walk.ask("PATCH", place, 200, json={"enabled": False})
        await walk.ask("PUT", place, 200, json=body)
    await walk.ask("DELETE", one, 204)
    await walk.ask("POST", path, 201, json=body)
    await walk.ask("DELETE", by_uri, 204)


async def _walk_prompts(walk: Walk) -> None:
    path = f"{ACME}/prompts"
    await walk.ask("POST", f"{path}/validate", 200, json=text_prompt("greet"))
    made = await walk.ask("POST", path, 201, json=text_prompt("greet"))
    assert made.headers["location"] == f"/admin/v1{path}/greet"
    await walk.ask("GET", path, 200)
    await walk.ask("GET", f"{path}/greet", 200)
    await walk.ask("PATCH", f"{path}/greet", 200, json={"enabled": True})
    arguments = [{"name": "who", "required": True}]
    await walk.ask(
        "PUT",
        f"{path}/greet",
        200,
        json=prompt("greet", {"kind": "template", "text": "Hi {{ who }}"}, arguments=arguments),
    )
    tried = await walk.ask("POST", f"{path}/greet/try", 200, json={"arguments": {"who": "Bo"}})
    assert tried.json()["result"]["messages"][0]["content"]["text"] == "Hi Bo"
    await walk.ask("POST", f"{path}/greet/try", 422, json={})
    await walk.ask("DELETE", f"{path}/greet", 204)


async def _walk_profiles(walk: Walk) -> None:
    path = f"{ACME}/profiles"
    body: dict[str, Any] = {"name": "small", "include": [{"names": ["fetch"], "families": ["tool"]}]}
    made = await walk.ask("POST", path, 201, json=body)
    assert made.json()["status"]["counts"] == {"tools": 1, "resources": 0, "resource_templates": 0, "prompts": 0}
    await walk.ask("POST", path, 409, json=body)
    await walk.ask("POST", path, 409, json={"name": "default"})
    await walk.ask("POST", path, 400, json={"name": "Not A Label"})
    listed = (await walk.ask("GET", path, 200)).json()["items"]
    assert [one["name"] for one in listed] == ["default", "small"]
    assert (
        listed[0]["status"]["tools_list_bytes"]
        > listed[1]["status"]["tools_list_bytes"]
        > listed[1]["status"]["estimated_tokens"]
        > 0
    )
    assert (await walk.ask("GET", f"{path}/small", 200)).headers["etag"] == made.headers["etag"]
    tag = {"if-match": made.headers["etag"]}
    none = await walk.ask("PATCH", f"{path}/small", 200, json={"exclude": [{}]}, headers=tag)
    assert none.json()["status"]["counts"]["tools"] == 0
    await walk.ask("PATCH", f"{path}/small", 412, json={"exclude": [{}]}, headers=tag)
    await walk.ask("PUT", f"{path}/small?replace=true", 200, json={"description": "All."})
    await walk.ask("PUT", f"{path}/default", 409, json={})
    key = await walk.ask("POST", f"{ACME}/keys", 201, json={"name": "k", "scopes": ["mcp"], "profile": "small"})
    await walk.ask("DELETE", f"{path}/small", 409)
    await walk.ask("POST", f"{ACME}/keys/{key.json()['id']}/revoke", 200)
    await walk.ask("DELETE", f"{path}/small", 204)
    await walk.ask("GET", f"{path}/small", 404)


async def _walk_webhooks(walk: Walk) -> None:
    path = f"{ACME}/webhooks"
    made = await walk.ask("POST", path, 201, json={"name": "cms"})
    assert made.headers["location"] == f"/admin/v1{path}/cms"
    await walk.ask("POST", path, 409, json={"name": "cms"})
    await walk.ask("POST", path, 400, json={"name": "not a name"})
    listed = await walk.ask("GET", path, 200)
    shown = await walk.ask("GET", f"{path}/{made.json()['id']}", 200)
    assert listed.json()["items"] == [shown.json()]
    assert shown.headers["etag"] == made.headers["etag"]
    assert made.json()["secret"] not in listed.text + shown.text
    rotated = await walk.ask("POST", f"{path}/cms/rotate", 200)
    assert rotated.json()["secret"] != made.json()["secret"]
    await walk.ask("POST", f"{path}/cms/rotate", 412, headers={"if-match": made.headers["etag"]})
    await walk.ask("GET", f"{path}/none", 404)
    await walk.ask("DELETE", f"{path}/cms", 204)


async def _walk_issuers(walk: Walk, upstream: RecordingUpstream) -> None:
    path, people, before = f"{ACME}/issuers", f"{ACME}/people", upstream.body
    issuer = new_issuer(upstream)
    body: dict[str, Any] = {"name": "corp", "url": issuer.url, "rules": [{"group": "a"}, {"profiles": ["default"]}]}
    made = await walk.ask("POST", path, 201, json=body)
    assert made.headers["location"] == f"/admin/v1{path}/corp"
    await walk.ask("POST", path, 409, json=body)
    await walk.ask("POST", path, 400, json={**body, "name": "plain", "url": "http://login.example"})
    await walk.ask("POST", path, 400, json={**body, "rules": []})
    await walk.ask(
        "POST",
        path,
        422,
        json={**body, "name": "x", "url": f"{issuer.url}/x", "enabled": False, "rules": [{"profiles": ["none"]}]},
    )
    listed = await walk.ask("GET", path, 200)
    shown = await walk.ask("GET", f"{path}/{made.json()['id']}", 200)
    assert listed.json()["items"] == [shown.json()]
    tag = {"if-match": made.headers["etag"]}
    changed = await walk.ask("PATCH", f"{path}/corp", 200, json={"max_lifetime_s": 900}, headers=tag)
    assert changed.json()["max_lifetime_s"] == 900
    await walk.ask("PATCH", f"{path}/corp", 412, json={"enabled": False}, headers=tag)
    same = await walk.ask("PUT", f"{path}/corp", 200, json=changed.json())
    assert same.headers["etag"] == changed.headers["etag"], "a PUT of what GET returned changed the issuer"
    await walk.ask("PUT", f"{path}/corp", 400, json={**changed.json(), "url": f"{issuer.url}/other"})
    await walk.ask("PUT", f"{path}/corp", 412, json=changed.json(), headers=tag)
    await walk.ask("PUT", f"{path}/none", 404, json={**body, "name": "none"})
    assert (await walk.ask("PUT", f"{path}/corp", 200, json=body)).json()["max_lifetime_s"] == 3600
    changed = await walk.ask(
        "PATCH", f"{path}/corp", 200, json={"rules": changed.json()["rules"], "max_lifetime_s": 900}
    )
    assert changed.json()["rules"] == shown.json()["rules"]
    await walk.ask("PATCH", f"{path}/none", 404, json={"enabled": False})
    await walk.ask("POST", f"{path}/corp/refresh-keys", 412, headers=tag)
    fetched = await walk.ask("POST", f"{path}/corp/refresh-keys", 200)
    assert fetched.json()["max_lifetime_s"] == 900
    await walk.ask("POST", f"{path}/none/refresh-keys", 404)
    await walk.sign_in(issuer.token)
    [person] = (await walk.ask("GET", people, 200)).json()["items"]
    denied = await walk.ask("POST", f"{people}/{person['id']}/deny", 200)
    assert denied.json()["denied_at"] is not None
    await walk.ask("POST", f"{people}/{person['id']}/deny", 412, headers={"if-match": '"none"'})
    allowed = await walk.ask("POST", f"{people}/{person['id']}/allow", 200)
    assert allowed.json() == (await walk.ask("GET", f"{people}/{person['id']}", 200)).json() == person
    await walk.ask("GET", f"{people}/none", 404)
    await walk.ask("POST", f"{people}/none/allow", 404)
    await walk.ask("DELETE", f"{path}/corp", 204)
    upstream.body = before


async def _walk_webhook_endpoints(walk: Walk, upstream: RecordingUpstream) -> None:
    path = f"{ACME}/webhook-endpoints"
    body: dict[str, Any] = {"name": "chat", "url": upstream.url, "kinds": ["approval.requested"], "enabled": False}
    made = await walk.ask("POST", path, 201, json=body)
    assert made.headers["location"] == f"/admin/v1{path}/chat"
    await walk.ask("POST", path, 409, json=body)
    await walk.ask("POST", path, 400, json={**body, "name": "plain", "url": "http://hooks.example"})
    await walk.ask("POST", path, 400, json={**body, "name": "x", "kinds": []})
    listed = await walk.ask("GET", path, 200)
    shown = await walk.ask("GET", f"{path}/{made.json()['id']}", 200)
    assert listed.json()["items"] == [shown.json()]
    assert made.json()["secret"] not in listed.text + shown.text
    await walk.ask("POST", f"{path}/chat/test", 409)
    tag = {"if-match": made.headers["etag"]}
    changed = await walk.ask("PATCH", f"{path}/chat", 200, json={"enabled": True}, headers=tag)
    assert changed.json()["enabled"]
    await walk.ask("PATCH", f"{path}/chat", 412, json={"enabled": False}, headers=tag)
    rotated = await walk.ask("POST", f"{path}/chat/rotate", 200)
    assert rotated.json()["secret"] != made.json()["secret"]
    sent = (await walk.ask("POST", f"{path}/chat/test", 202)).json()
    log = await walk.ask("GET", f"{path}/chat/deliveries", 200)
    assert [one["id"] for one in log.json()["items"]] == [sent["id"]]
    found = await walk.ask("GET", f"{path}/chat/deliveries/{sent['id']}", 200)
    assert found.json()["payload"]["type"] == "webhook_endpoint.test"
    await walk.ask("POST", f"{path}/chat/deliveries/{sent['id']}/replay", 202)
    await walk.ask("GET", f"{path}/chat/deliveries/none", 404)
    await walk.ask("POST", f"{path}/chat/deliveries/none/replay", 404)
    await walk.ask("GET", f"{path}/none/deliveries", 404)
    await walk.ask("DELETE", f"{path}/chat", 204)
    await walk.ask("GET", f"{path}/chat", 404)


async def _walk_guardrails(walk: Walk) -> None:
    path = f"{ACME}/guardrails"
    rule = {"check": "http", "phases": ["call"], "action": "block"}
    await walk.ask("POST", path, 400, json={"name": "other", **rule})
    hook = {"url": "https://judge.example/", "credential": "none"}
    await walk.ask("POST", path, 422, json={"name": "other", **rule, "hook": hook})
    await walk.ask("POST", path, 201, json={"name": "secrets", **rule, "check": "secrets"})
    await walk.ask("PATCH", f"{path}/secrets", 200, json={"enabled": False})
    await walk.ask("DELETE", f"{path}/secrets", 204)


async def _walk_watches(walk: Walk, upstream: RecordingUpstream) -> None:
    path = f"{ACME}/watches"
    body: dict[str, Any] = {"uri": URI, "url": f"{upstream.url}/x", "credential": "token"}
    await walk.ask("POST", path, 422, json=body)
    await walk.ask("POST", f"{ACME}/resources", 201, json=text_resource(URI))
    made = await walk.ask("POST", path, 201, json=body)
    one = f"{path}/{made.json()['id']}"
    found = await walk.ask("GET", f"{path}?uri={quote(URI, safe='')}", 200)
    assert [item["id"] for item in found.json()["items"]] == [made.json()["id"]]
    tag = {"if-match": made.headers["etag"]}
    changed = await walk.ask("PATCH", one, 200, json={"interval_s": 3600, "credential": None}, headers=tag)
    assert (changed.json()["interval_s"], changed.json()["credential"]) == (3600, None)
    await walk.ask("PATCH", one, 412, json={"interval_s": 60}, headers=tag)
    await walk.ask("PATCH", one, 422, json={"credential": "none"})
    await walk.ask("DELETE", one, 204)
    await walk.ask("GET", one, 404)
    await walk.ask("DELETE", f"{ACME}/resources?uri={quote(URI, safe='')}", 204)


async def _walk_live_sources(walk: Walk) -> None:
    path = f"{ACME}/live-sources"
    body: dict[str, Any] = {"name": "laptop", "kind": "agent", "include": ["get_*"], "safety": {"get_it": "safe"}}
    made = await walk.ask("POST", path, 201, json=body)
    await walk.ask("POST", path, 422, json={**body, "name": "x", "credential": "token"})
    await walk.ask("POST", path, 403, json={**body, "name": "x", "kind": "command", "settings": {"argv": ["id"]}})
    await walk.ask("GET", f"{path}?kind=agent&state=detached&enabled=true&search=LAP", 200)
    shown = await walk.ask("GET", f"{path}/laptop", 200)
    assert (await walk.ask("GET", f"{path}/{made.json()['id']}", 200)).json() == shown.json()
    tag = {"if-match": made.headers["etag"]}
    changed = await walk.ask("PATCH", f"{path}/laptop", 200, json={"prefix": "pc"}, headers=tag)
    assert (changed.json()["prefix"], changed.json()["include"]) == ("pc", ["get_*"])
    await walk.ask("PATCH", f"{path}/laptop", 412, json={"prefix": None}, headers=tag)
    await walk.ask("PATCH", f"{path}/laptop", 400, json={"include": None})
    await walk.ask("PUT", f"{path}/laptop", 400, json={"kind": "mcp", "settings": {"url": "https://wiki.example"}})
    await walk.ask("PUT", f"{path}/laptop", 200, json={"kind": "agent"})
    await walk.ask("POST", f"{path}/laptop/reattach", 200)
    await walk.ask("POST", f"{path}/laptop/accept", 200, json={})
    await walk.ask("POST", f"{path}/laptop/accept", 422, json={"names": ["none"]})
    await walk.ask("POST", f"{path}/laptop/accept", 412, json={}, headers=tag)
    await walk.ask("GET", f"{path}/laptop/primitives", 200)
    await walk.ask("GET", f"{path}/none/primitives", 404)
    await walk.ask("DELETE", f"{path}/laptop", 204)
