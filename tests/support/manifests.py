"""Objects of manifests, generated from the declarations of all kinds."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import httpx
import msgspec
import orjson

from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import API_VERSION, MANIFEST_KINDS, key_member, kind_in_manifests, name_in_manifests
from gateway.kinds.members import REQUIRED, settable
from gateway.kinds.singleton import Singleton
from gateway.kinds.singletons import SINGLETONS
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, template

TEXT = {"kind": "template", "text": "x", "mimeType": "text/plain"}
Manifest = dict[str, Any]


def manifest_of(kind: Kind[Any] | Singleton[Any], **more: object) -> Manifest:
    """An object of a kind with every member: that of the example, or else its default."""
    defaults: Mapping[str, object] = {
        each.name: msgspec.json.decode(msgspec.json.encode(each.default))
        for each in settable(kind.of)
        if each.default is not REQUIRED and each.is_stored
    }
    members = {**defaults, **kind.example, **more}
    keyed = key_member(kind)
    derived = isinstance(kind, Kind) and bool(kind.key_in)
    key = kind.key_sent(members) if isinstance(kind, Kind) and derived else members.pop(keyed, None) if keyed else None
    named = {"name": key} if keyed else {}
    return {"kind": kind_in_manifests(kind.name), **named, "members": members}


def manifests_of_all() -> Sequence[Manifest]:
    """One object of every kind and singleton, in an order in which they could not be created one after another."""
    return [manifest_of(kind) for kind in (*reversed(SINGLETONS), *reversed(KINDS))]


def profile(name: str, **more: object) -> Manifest:
    """The manifest of a profile."""
    return {"kind": "profile", "name": name, "members": more}


def text_of(document: Mapping[str, object]) -> bytes:
    """The bytes of an OpenAPI document, as an upload sends them."""
    return orjson.dumps(document)


async def tenant_for_manifests(gateway: RunningGateway, slug: str = "acme") -> None:
    """Create a tenant with the template that the examples of all kinds refer to."""
    await gateway.create_tenant(slug)
    await add(gateway, slug, "resource-templates", template("note://{id}", TEXT))


async def tenant_with_tools(gateway: RunningGateway, slug: str = "acme") -> None:
    """Create a tenant with all that the examples refer to, a source included."""
    await tenant_for_manifests(gateway, slug)
    await add(gateway, slug, "sources", {"name": "pets", "document": pets("https://pets.example")})


async def send(gateway: RunningGateway, objects: Sequence[Manifest], slug: str = "acme", **more: Any) -> httpx.Response:
    """Apply objects to a tenant."""
    return await gateway.admin.post(f"/tenants/{slug}/apply", json={"objects": list(objects), **more})


async def apply(gateway: RunningGateway, objects: Sequence[Manifest], slug: str = "acme", **more: Any) -> Manifest:
    """The result of an application that succeeds."""
    answer = await send(gateway, objects, slug, **more)
    assert answer.status_code == 200, answer.text
    result: Manifest = answer.json()
    return result


async def entries_of(gateway: RunningGateway, slug: str = "acme") -> Sequence[Manifest]:
    """The entries of changes, oldest first, without those of the tenant's creation."""
    answer = await gateway.admin.get(f"/tenants/{slug}/audit", params={"kind": "change", "limit": 200})
    found: list[Manifest] = answer.json()["items"]
    own = [one for one in found[::-1] if not one["action"].startswith("tenant.")]
    by_hand = [("note://{id}", "resource_template.create"), ("pets", "source.create")]  # what examples refer to
    return [one for one in own if (one["target"], one["action"]) not in by_hand or "set" in one["detail"]]


def actions(result: Manifest) -> Mapping[str, str]:
    """The action of each object by its name, or by its kind if it has none."""
    return {one["name"] or one["kind"]: one["action"] for one in result["objects"]}


def document_of(one: Manifest) -> Manifest:
    """A wanted object as a document of a file."""
    keyed = key_member(MANIFEST_KINDS[one["kind"]])
    named = {keyed: one["name"]} if keyed else {}
    members = {name_in_manifests(name): value for name, value in one["members"].items()}
    return {"apiVersion": API_VERSION, "kind": one["kind"], **named, **members}


def contains(shown: object, sent: object) -> bool:
    """True if a response has what was sent, at any depth; it may have more members, and sort texts."""
    if isinstance(shown, dict) and isinstance(sent, dict):
        whole, part = cast("Manifest", shown), cast("Manifest", sent)
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(shown, list) and isinstance(sent, list):
        sides = cast("list[object]", shown), cast("list[object]", sent)
        if all(isinstance(each, str) for side in sides for each in side):
            return sorted(map(str, sides[0])) == sorted(map(str, sides[1]))
        return len(sides[0]) == len(sides[1]) and all(map(contains, *sides))
    return shown == sent
