"""A walk through the routes of every declared kind, with the example of its declaration."""

from typing import Any
from urllib.parse import quote

from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.members import keeps
from gateway.kinds.singleton import Singleton
from gateway.kinds.singletons import SINGLETONS
from gateway.kinds.sources import OVERRIDE
from tests.behaviour.admin.walk import Walk
from tests.support.documents import pets
from tests.support.kinds import with_key
from tests.support.primitives import template

ACME = "/tenants/acme"


async def walk_kinds(walk: Walk) -> None:
    """Create, show, set, change and delete an object of each kind."""
    text = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    await walk.ask("POST", f"{ACME}/resource-templates", 201, json=template("note://{id}", text))
    animals = {"name": "animals", "prefix": "animals", "document": pets("https://pets.example")}
    await walk.ask("POST", f"{ACME}/sources", 201, json=animals)
    for kind in KINDS:
        await walk_kind(walk, kind)
    await walk.ask("DELETE", f"{ACME}/sources/animals", 204)
    await _walk_manifests(walk)
    await walk.ask("DELETE", f"{ACME}/resource-templates?uri={quote('note://{id}', safe='')}", 204)
    for single in SINGLETONS:
        await _walk_singleton(walk, single)


async def _walk_manifests(walk: Walk) -> None:
    """Apply objects with each result and refusal, and remove them."""
    path, wanted = f"{ACME}/apply", {"kind": "webhook", "name": "applied"}
    await walk.ask("POST", path, 200, json={"objects": [wanted], "dry_run": True})
    made = await walk.ask("POST", path, 200, json={"objects": [wanted], "set": "platform"})
    assert made.json()["objects"][0]["secret"]
    await walk.ask("POST", path, 400, json={"objects": [wanted, wanted]})
    await walk.ask("POST", path, 409, json={"objects": [wanted], "set": "other"})
    expected = [{"kind": "webhook", "name": "applied", "etag": None}]
    await walk.ask("POST", path, 412, json={"objects": [wanted], "expected": expected})
    unknown = {"kind": "watch", "name": "nothing://1", "members": {"url": "https://api.example/"}}
    await walk.ask("POST", path, 422, json={"objects": [unknown]})
    await walk.ask("POST", path, 413, content=b" " * (4 * 2**20 + 1), headers={"content-type": "application/json"})
    await walk.ask("DELETE", f"{ACME}/webhooks/applied", 204)


async def walk_kind(walk: Walk, kind: Kind[Any]) -> None:
    """Create, show, set, change and delete an object of one kind."""
    path = f"/{kind.plural}" if kind.is_operators else f"{ACME}/{kind.plural}"
    has_key = kind.keyed != "id"
    key = "walked" if kind.is_named else "note://walked"
    key = "memo://walked/{id}" if kind.keyed == "uri_template" else key
    example = with_key(kind, kind.example, key) | ({"source": "animals"} if kind is OVERRIDE else {})
    made = await walk.ask("POST", path, 201, json=example)
    item = f"{path}/{made.json()[kind.address]}"
    assert made.headers["location"] == f"/admin/v1{item}"
    if has_key:
        await walk.ask("POST", path, 409, json=example)
        await walk.ask("POST", path, 422 if kind.key_in else 400, json=with_key(kind, example, "Not a name\n"))
    await walk.ask("POST", path, 400, json={**example, "unknown": 1})
    assert made.json()[kind.keyed] in [one[kind.keyed] for one in (await walk.ask("GET", path, 200)).json()["items"]]
    shown = await walk.ask("GET", item, 200)
    assert shown.headers["etag"] == made.headers["etag"]
    same = await walk.ask("PUT", item, 200, json=shown.json())
    assert same.headers["etag"] == made.headers["etag"], f"{kind.name}: a PUT of what GET returned changed it"
    await walk.ask("PUT", item, 400, json={**shown.json(), kind.keyed: "other"})
    if keeps(kind.of):
        await walk.ask("PUT", item, 409, json={})
        await walk.ask("PUT", f"{item}?replace=true", 200, json={})
        await walk.ask("PUT", item, 200, json=shown.json())
        made = await walk.ask("GET", item, 200)
    if kind.changed_example:
        changes = {name: example[name] for name in kind.changed_example}
        changed = await walk.ask("PATCH", item, 200, json=changes)
        assert changed.headers["etag"] != made.headers["etag"]
        await walk.ask("PATCH", item, 412, json=changes, headers={"if-match": made.headers["etag"]})
    if kind.generates:
        secret = kind.generated_as
        assert secret not in shown.json()
        rotated = await walk.ask("POST", f"{item}/rotate", 200)
        assert rotated.json()[secret] not in {made.json()[secret], ""}
    await walk.ask("DELETE", item, 412, headers={"if-match": '"other"'})
    await walk.ask("DELETE", item, 204)
    await walk.ask("GET", item, 404)
    if kind.address == "id":
        await walk.ask("PUT", item, 404, json=example)
        if kind.is_found_by_key:
            await _walk_by_key(walk, kind, key, example)
        return
    again = await walk.ask("PUT", item, 201, json={name: example[name] for name in kind.whole_example})
    assert again.json()["id"] != made.json()["id"]
    await walk.ask("DELETE", item, 204)


async def _walk_by_key(walk: Walk, kind: Kind[Any], key: str, example: dict[str, Any]) -> None:
    """The same object, addressed by its key: a PUT creates it."""
    path = f"{ACME}/{kind.plural}?{kind.query_key}={quote(key, safe='')}"
    await walk.ask("PATCH", path, 404, json=kind.changed_example)
    await walk.ask("PUT", path, 400, json=with_key(kind, example, f"{key}/other"))
    made = await walk.ask("PUT", path, 201, json=example)
    [shown] = (await walk.ask("GET", path, 200)).json()["items"]
    assert shown == made.json()
    same = await walk.ask("PUT", path, 200, json=shown)
    assert same.headers["etag"] == made.headers["etag"]
    await walk.ask("PATCH", path, 200, json={"enabled": False})
    await walk.ask("DELETE", path, 412, headers={"if-match": made.headers["etag"]})
    await walk.ask("DELETE", path, 204)
    assert (await walk.ask("GET", path, 200)).json()["items"] == []


async def _walk_singleton(walk: Walk, single: Singleton[Any]) -> None:
    path = f"{ACME}/{single.path}"
    former = await walk.ask("GET", path, 200)
    await walk.ask("PUT", path, 400, json={"unknown": 1})
    await walk.ask("PATCH", path, 400, json={"unknown": 1})
    made = await walk.ask("PUT", path, 200, json=dict(single.example), headers={"if-match": former.headers["etag"]})
    assert made.headers["etag"] != former.headers["etag"]
    shown = await walk.ask("GET", path, 200)
    assert shown.headers["etag"] == made.headers["etag"]
    same = await walk.ask("PUT", path, 200, json=shown.json())
    assert same.headers["etag"] == made.headers["etag"], f"{single.name}: a PUT of what GET returned changed it"
    changed = await walk.ask("PATCH", path, 200, json=dict(single.changed_example))
    assert changed.headers["etag"] != made.headers["etag"]
    await walk.ask("PUT", path, 412, json=dict(single.example), headers={"if-match": made.headers["etag"]})
    await walk.ask("PATCH", path, 412, json={}, headers={"if-match": made.headers["etag"]})
    if keeps(single.of):
        await walk.ask("PUT", path, 409, json={})
        await walk.ask("PUT", f"{path}?replace=true", 200, json={})
    await walk.ask("PUT", path, 200, json=former.json(), headers={"if-match": "*"})
