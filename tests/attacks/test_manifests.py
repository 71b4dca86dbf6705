"""Hostile manifests: other tenants, kinds of the operator, floods, nesting, and names that are none."""

import hashlib
import re
from typing import Any

import anyio
import httpx
import pytest

from gateway.admin.endpoint import SMALL_BODY
from gateway.catalog.manifests.limits import MAX_BODY_BYTES, MAX_OBJECTS
from tests.support.gateway import RunningGateway
from tests.support.manifests import (
    Manifest,
    actions,
    apply,
    entries_of,
    manifests_of_all,
    profile,
    send,
    tenant_with_tools,
)
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

PATH = "/tenants/acme/apply"


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with the tenants `acme` and `globex`, of which each has one object of every kind."""
    for slug in ("acme", "globex"):
        await tenant_with_tools(gateway, slug)
        await apply(gateway, manifests_of_all(), slug, set="platform")
    return gateway


async def _as(gateway: RunningGateway, key: str, body: dict[str, Any], slug: str = "acme") -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    return await gateway.http.post(f"/admin/v1/tenants/{slug}/apply", json=body, headers=headers)


async def _rows(gateway: RunningGateway, slug: str) -> str:
    """The objects with their versions; jobs note failures of watches and sinks in the status of these."""
    paths = ("profiles", "webhooks", "webhook-endpoints", "guardrails", "policy", "egress", "access", "ceilings")
    return "\n".join([(await gateway.admin.get(f"/tenants/{slug}/{path}")).text for path in paths])


async def test_an_application_reaches_one_tenant(acme: RunningGateway) -> None:
    """Ours: ids and sets of another tenant name nothing; its objects stay, whatever is pruned (CFG-3)."""
    before, key = await _rows(acme, "globex"), await acme.create_key("acme", "admin")
    assert (await _as(acme, key, {"objects": []}, "globex")).status_code == 404
    [other] = [
        one["id"]
        for one in (await acme.admin.get("/tenants/globex/profiles")).json()["items"]
        if one["name"] != "default"
    ]
    webhook = {"kind": "webhook", "name": "cms", "members": {"id": other}}
    for one in ({"kind": "profile", "name": other}, webhook):
        assert (await _as(acme, key, {"objects": [one]})).status_code in {400, 404}
    wanted = {"objects": [profile("only")], "set": "platform", "prune": True, "prune_protected": True}
    assert (await _as(acme, key, wanted)).status_code == 200
    assert await _rows(acme, "globex") == before


async def test_an_id_is_no_name(acme: RunningGateway) -> None:
    """Ours: an object has one name in manifests, so that none is changed twice or pruned under its id (CFG-3)."""
    [made] = (await acme.admin.get("/tenants/acme/webhook-endpoints")).json()["items"]
    other = {"kind": "webhook-endpoint", "name": made["id"], "members": {"url": "https://evil.example/"}}
    refused = await send(acme, [other])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/0/name")
    assert (await acme.admin.get("/tenants/acme/webhook-endpoints")).json()["items"] == [made]


async def test_a_slow_reader_of_a_document_holds_one_of_few_places(acme: RunningGateway) -> None:
    """Ours: a document stays in memory until it is read, so that readers have a bounded number of places (ISO-3)."""
    content = b"#" * (24 * 1024 * 1024)
    path = f"{acme.url}/admin/v1/tenants/acme/documents/{hashlib.sha256(content).hexdigest()}"
    headers = {"authorization": acme.admin.headers["authorization"], "content-type": "application/yaml"}
    assert (await acme.http.put(path, content=content, headers=headers)).is_success
    async with acme.http.stream("GET", path, headers=headers) as answer:
        metrics = await acme.http.get(f"{acme.url}/metrics", headers=headers)
        [busy] = re.findall(r'gateway_pool_busy\{pool="exports_of_audit_trails"\} (\S+)', metrics.text)
        assert (answer.status_code, float(busy)) == (200, 1)
        assert hashlib.sha256(await answer.aread()).hexdigest() in path


async def test_one_object_is_bounded_as_in_a_request_of_its_own(acme: RunningGateway) -> None:
    """Ours: one object of 4 MiB would be validated in one step of the event loop (CFG-3)."""
    refused = await send(acme, [profile("a"), profile("b", description="x" * SMALL_BODY)])
    fault = refused.json()["errors"][0]
    assert (refused.status_code, fault["pointer"]) == (400, "/objects/1/members")
    assert "1024 KiB" in fault["reason"]


async def test_kinds_of_the_operator_need_the_operator(acme: RunningGateway) -> None:
    """Ours: a tenant's admin applies neither egress nor ceilings, and its other scopes apply nothing (CFG-3)."""
    key = await acme.create_key("acme", "admin")
    for kind, members in (("egress", {"allow": ["10.0.0.1:80"]}), ("ceilings", {"burst": 9})):
        for more in ({}, {"dry_run": True}):
            refused = await _as(acme, key, {"objects": [profile("a"), {"kind": kind, "members": members}], **more})
            assert (refused.status_code, "only the operator" in refused.json()["detail"]) == (403, True)
    assert (await acme.admin.get("/tenants/acme/profiles/a")).status_code == 404
    for scopes in (["mcp"], ["audit"], ["approve"]):
        other = await acme.create_key("acme", *scopes)
        assert (await _as(acme, other, {"objects": []})).status_code == 403
    sink = {"kind": "audit-sink", "name": "f", "members": {"kind": "file", "target": "x"}}
    assert (await _as(acme, key, {"objects": [sink]})).status_code == 403


async def test_sets_of_the_operator_are_apart(acme: RunningGateway) -> None:
    """Ours: an admin's set of the same name owns, takes over and prunes nothing of the operator's set (CFG-3)."""
    key, mine = await acme.create_key("acme", "admin"), {"set": "platform"}
    before = await _rows(acme, "acme")
    theirs = {"objects": [profile("readers", description="Mine now.")], **mine}
    refused = await _as(acme, key, theirs)
    assert refused.status_code == 409
    assert "belongs to the set platform of the operator" in refused.json()["detail"]
    for more in ({}, {"dry_run": True}):
        refused = await _as(acme, key, {**theirs, "adopt": True, **more})
        assert (refused.status_code, "only the operator" in refused.json()["detail"]) == (403, True)
        assert refused.json()["errors"][0]["pointer"] == "/objects/0"
    pruning = {**mine, "prune": True, "prune_protected": True, "max_deletions": MAX_OBJECTS}
    assert (await _as(acme, key, {"objects": [{"kind": "webhook", "name": "own"}], **mine})).status_code == 200
    done = await _as(acme, key, {"objects": [profile("only")], **pruning})
    assert [(one["name"], one["action"]) for one in done.json()["objects"]] == [("only", "create"), ("own", "delete")]
    await acme.admin.delete("/tenants/acme/profiles/only")
    assert await _rows(acme, "acme") == before
    again = await apply(acme, manifests_of_all(), set="platform")
    assert {one["action"] for one in again["objects"]} == {"none"}
    assert (await _as(acme, key, {"objects": [profile("only")], **mine})).status_code == 200
    taken = await apply(acme, [profile("only")], set="platform", adopt=True)
    assert taken["objects"][0]["action"] == "adopt"


async def test_objects_of_the_operator_are_not_taken_over(acme: RunningGateway) -> None:
    """Ours: to take over an object needs what its change needs, also if nothing of it changes (CFG-3)."""
    key, members = await acme.create_key("acme", "admin"), {"kind": "file", "target": "acme"}
    made = await acme.admin.post("/tenants/acme/audit-sinks", json={"name": "disk", **members})
    assert made.status_code == 201, made.text
    sinks: list[Manifest] = [{"kind": "audit-sink", "name": "disk", "members": members}]
    wanted = {"objects": sinks, "set": "mine"}
    assert (await _as(acme, key, wanted)).status_code == 409
    refused = await _as(acme, key, {**wanted, "adopt": True})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/objects/0")
    assert actions(await apply(acme, sinks, set="mine", adopt=True)) == {"disk": "adopt"}


async def test_an_object_is_named_once(acme: RunningGateway) -> None:
    """Ours: the second of two equal names is refused with the place of the first (CFG-1)."""
    twice = [profile("a"), profile("b"), profile("a", description="Other."), {"kind": "policy"}, {"kind": "policy"}]
    refused = await send(acme, twice)
    assert refused.status_code == 400
    assert refused.json()["errors"] == [
        {"pointer": "/objects/2", "reason": "names the same object as /objects/0"},
        {"pointer": "/objects/4", "reason": "names the same object as /objects/3"},
    ]


async def test_names_of_terms_are_texts(acme: RunningGateway) -> None:
    """Ours: former names and names of expected objects are printable and bounded, as names are (CFG-1)."""
    for bad in ("", "\x00", "a\nb", "\x9f", "x" * 10_000):
        moves = [{"kind": "profile", "from": bad, "to": "a"}, {"kind": "profile", "from": "a", "to": bad}]
        places = zip(("from", "to"), moves, strict=True)
        for pointer, move in places:
            refused = await send(acme, [profile("a")], moved=[move])
            assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, f"/moved/0/{pointer}")
        refused = await send(acme, [], expected=[{"kind": "watch", "name": bad, "etag": None}])
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/expected/0/name")
    lone = b'{"objects":[],"expected":[{"kind":"profile","name":"\\ud800","etag":null}]}'
    headers = {"content-type": "application/json"}
    assert (await acme.admin.post(PATH, content=lone, headers=headers)).status_code == 400


async def test_floods_are_refused_before_they_are_read(acme: RunningGateway) -> None:
    """Ours: too many objects, bytes, levels and faults are bounded; nothing is stored (CFG-1)."""
    before = await entries_of(acme)
    many = [profile(f"p{number}") for number in range(20_000)]
    assert (await send(acme, many)).status_code in {400, 413}
    assert (await send(acme, many[: MAX_OBJECTS + 1])).json()["errors"][0]["pointer"] == "/objects"
    headers = {"content-type": "application/json"}
    large = await acme.admin.post(PATH, content=b" " * (MAX_BODY_BYTES + 1), headers=headers)
    assert large.status_code == 413
    deep = b'{"objects":[{"kind":"profile","name":"a","members":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}]}"
    assert (await acme.admin.post(PATH, content=deep, headers=headers)).status_code == 400
    twice = b'{"objects":[],"objects":[{"kind":"profile","name":"a"}]}'
    assert (await acme.admin.post(PATH, content=twice, headers=headers)).status_code == 400
    wrong = await send(acme, [{"kind": "x" * 60, "name": "\x00"} for _ in range(MAX_OBJECTS)])
    assert (wrong.status_code, len(wrong.json()["errors"])) == (400, 20)
    odd: list[Manifest] = [
        profile("a/../b"),
        profile("a\n"),
        profile("\uff41"),
        {"kind": "watch", "name": "\x00", "members": {}},
    ]
    refused = await send(acme, odd)
    assert [fault["pointer"] for fault in refused.json()["errors"]] == [
        *(f"/objects/{place}/name" for place in range(4)),
        "/objects/3/members/url",
    ]
    bodies: list[object] = [{"objects": None}, {"objects": [None]}, {"objects": [{"kind": ["profile"]}]}, []]
    bodies.append({"objects": [], "max_deletions": -1})
    for body in bodies:
        assert (await acme.admin.post(PATH, json=body)).status_code == 400
    assert await entries_of(acme) == before


async def test_the_limit_of_a_kind_holds(acme: RunningGateway) -> None:
    """Ours: a manifest creates no more objects than single requests could, and a refusal leaves none (CFG-1)."""
    members = {"kind": "syslog", "target": "tls://siem.example:6514"}
    wanted = [{"kind": "audit-sink", "name": f"s{number}", "members": members} for number in range(11)]
    refused = await send(acme, wanted)
    assert (refused.status_code, refused.json()["code"]) == (429, "limit.exceeded")
    assert refused.json()["errors"][0]["pointer"] == "/objects/9"
    assert len((await acme.admin.get("/tenants/acme/audit-sinks")).json()["items"]) == 1


async def test_texts_of_a_commit_are_texts(acme: RunningGateway) -> None:
    """Ours: commit and author are bounded and printable, and replace no other member of an entry (CFG-1)."""
    for bad in ("", "x" * 201, "a\nb", "\x1b[31m"):
        assert (await send(acme, [profile("a")], commit=bad)).status_code == 400
    await apply(acme, [profile("a")], commit='{"revision": 1}', author="id")
    detail = (await entries_of(acme))[-1]["detail"]
    assert (detail["commit"], detail["author"], detail["id"].startswith("prf_")) == ('{"revision": 1}', "id", True)


async def test_applications_do_not_delay_other_tenants(acme: RunningGateway) -> None:
    """Ours: while applications of one tenant wait for each other, another tenant's changes are made (ISO-3)."""
    wanted = [profile(f"p{number}") for number in range(150)]
    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(send, acme, [{**one, "members": {"description": str(number)}} for one in wanted])
        for number in range(5):
            done = await acme.admin.put(f"/tenants/globex/profiles/q{number}", json={})
            assert done.status_code == 201, done.text
    shown = (await acme.admin.get("/tenants/acme/profiles", params={"limit": 200})).json()["items"]
    assert len({one["description"] for one in shown if one["name"].startswith("p")}) == 1
