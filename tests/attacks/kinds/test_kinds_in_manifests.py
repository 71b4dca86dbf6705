"""The guards of the engines of manifests and of replacements, each tried on every kind: `tests/guard_table.py`."""

import re
from typing import Any

import pytest

from gateway.domain.identifiers import mint
from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import MANIFEST_KINDS, Declared
from gateway.kinds.members import keeps
from tests.support.generated_objects import EVERY, split_secrets
from tests.support.kind_world import OPERATOR, World, body_of, item_path, list_path, renumbered
from tests.support.manifests import Manifest

_SET = "generated"
_KEPT: Manifest = {"kind": "webhook", "name": "kept", "members": {}}


def _is_idlike(kind: Kind[Any]) -> bool:
    """True if an id could be a name of the kind."""
    return kind.is_named and not kind.key_in and re.fullmatch(kind.form, mint(kind.id_prefix)) is not None


each_kind = pytest.mark.parametrize("kind", EVERY, ids=lambda one: one.name)
each_collection = pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)


def _without_secrets(world: World, kind: Declared) -> Manifest:
    """The last object of a kind, which keeps its stored secrets."""
    one = world.manifests(kind)[-1]
    return {**one, "members": split_secrets(kind.of, one["members"])[0]}


@pytest.mark.parametrize("kind", [one for one in KINDS if _is_idlike(one)], ids=lambda one: one.name)
async def test_an_id_is_no_name_in_manifests(world: World, kind: Kind[Any]) -> None:
    """Ours: no object with a name is changed under its id, by which it would be named twice (CFG-3).

    Where an id has not the form of names, or the name is a part of another member, the body is invalid already.
    """
    one = _without_secrets(world, kind)
    stored = (await world.gateway.admin.get(await item_path(world, kind, one))).json()
    refused = await world.apply(OPERATOR, [{**one, "name": stored["id"]}], dry_run=True)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/0/name"), refused.text


@each_kind
async def test_an_object_of_any_kind_is_named_once(world: World, kind: Declared) -> None:
    """Ours: the second of two equal names is refused with the place of the first (CFG-1)."""
    one = _without_secrets(world, kind)
    refused = await world.apply(OPERATOR, [one, one], dry_run=True)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/objects/1"), refused.text


@each_kind
async def test_a_set_takes_over_no_object_of_any_kind(world: World, kind: Declared) -> None:
    """Ours: a set adopts an object that it does not own only with permission, whatever the kind (CFG-3)."""
    one = _without_secrets(world, kind)
    assert (await world.apply(OPERATOR, [one])).is_success  # the objects of a singleton follow one another
    refused = await world.apply(OPERATOR, [one], set=_SET, dry_run=True)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (409, "/objects/0"), refused.text
    adopted = await world.apply(OPERATOR, [one], set=_SET, adopt=True, dry_run=True)
    assert [each["action"] for each in adopted.json()["objects"]] == ["adopt"], adopted.text


@each_kind
async def test_a_plan_expects_the_version_of_any_kind(world: World, kind: Declared) -> None:
    """Ours: a plan is refused if an object of any kind has moved since, and applied at the version it names (CFG-2)."""
    one = _without_secrets(world, kind)
    [planned] = (await world.apply(OPERATOR, [one], dry_run=True)).json()["objects"]
    expected = {"kind": one["kind"], "name": one.get("name"), "etag": planned["etag"]}
    same = await world.apply(OPERATOR, [one], dry_run=True, expected=[expected])
    assert same.status_code == 200, same.text
    for moved in (f"{planned['etag']}0", None):
        refused = await world.apply(OPERATOR, [one], dry_run=True, expected=[{**expected, "etag": moved}])
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (412, "/expected/0"), refused.text


@each_collection
async def test_pruning_removes_objects_of_its_set_only(world: World, kind: Kind[Any]) -> None:
    """Ours: of the objects of any kind, pruning removes those that the set owns and does not name (CFG-3)."""
    own = renumbered(kind, world.manifests(kind)[-1], 70)
    path = list_path(kind)
    before = (await world.gateway.admin.get(path, params={"limit": 200})).json()["items"]
    made = await world.apply(OPERATOR, [own, _KEPT], set=_SET)
    assert made.status_code == 200, made.text
    terms: dict[str, Any] = {"set": _SET, "prune": True, "prune_protected": kind.is_protected}
    many = await world.apply(OPERATOR, [_KEPT], **{**terms, "max_deletions": 0})
    assert (many.status_code, own["name"] in many.text) == (409, True)
    pruned = await world.apply(OPERATOR, [_KEPT], **terms)
    removed = [(each["kind"], each["name"]) for each in pruned.json()["objects"] if each["action"] == "delete"]
    assert removed == [(own["kind"], own["name"])], pruned.text
    kept = await world.apply(OPERATOR, [own], set="other", dry_run=True)
    assert kept.json()["objects"][0]["action"] == "create"
    left = [one["id"] for one in (await world.gateway.admin.get(path, params={"limit": 200})).json()["items"]]
    assert {one["id"] for one in before} <= set(left)


@pytest.mark.parametrize("kind", [one for one in KINDS if one.is_protected], ids=lambda one: one.name)
async def test_pruning_of_protected_kinds_needs_a_permission(world: World, kind: Kind[Any]) -> None:
    """Ours: an object of a protected kind is not pruned by the permission for others (CFG-3)."""
    own = renumbered(kind, world.manifests(kind)[-1], 60)
    assert (await world.apply(OPERATOR, [own, _KEPT], set=_SET)).is_success
    refused = await world.apply(OPERATOR, [_KEPT], set=_SET, prune=True)
    assert (refused.status_code, own["name"] in refused.text) == (409, True)
    pruned = await world.apply(OPERATOR, [_KEPT], set=_SET, prune=True, prune_protected=True)
    assert pruned.status_code == 200, pruned.text


@pytest.mark.parametrize("kind", [one for one in EVERY if keeps(one.of)], ids=lambda one: one.name)
async def test_a_replacement_keeps_stored_members_of_any_kind(world: World, kind: Declared) -> None:
    """Ours: a PUT without permission removes no stored member that is marked so, whatever the kind (ADM-1)."""
    one = world.manifests(kind)[-1]
    item = await item_path(world, kind, one)
    assert (await world.apply(OPERATOR, [one])).is_success
    before = await world.gateway.admin.get(item)
    refused = await world.gateway.admin.put(item, json={})
    assert refused.status_code == 409, refused.text
    assert refused.json()["errors"]
    assert (await world.gateway.admin.get(item)).text == before.text
    permitted = await world.gateway.admin.put(item, json={}, headers={"if-match": "*"})
    assert permitted.status_code == 200, permitted.text
    restored = await world.gateway.admin.put(f"{item}?replace=true", json=body_of(kind, one))
    assert restored.status_code == 200, restored.text


def test_every_kind_is_one_of_manifests() -> None:
    """Ours: a kind that manifests do not have fails here."""
    assert {one.name for one in MANIFEST_KINDS.values()} >= {one.name for one in EVERY}
