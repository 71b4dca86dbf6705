"""The verbs of every declared kind, with the example of its declaration."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.index import COLLECTIONS
from gateway.catalog.transaction import Author, OpenChanges, open_changes
from gateway.domain.events import CatalogMoved
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Limits, Policy
from gateway.domain.tenancy.principals import Operator
from gateway.errors import Conflict, LimitExceeded, NameTaken, NotFound, PreconditionFailed
from gateway.kinds.index import KINDS
from gateway.kinds.members import settable
from gateway.kinds.sources import OVERRIDE
from gateway.store import operations
from gateway.store.audit import entries
from gateway.store.kinds.primitives import TEMPLATES
from gateway.store.kinds.singletons import POLICY
from gateway.store.sources import sources
from gateway.web.kinds.models import models_of
from tests.integration.catalog.conftest import Changes
from tests.integration.store.samples import make_operation, make_primitive, make_source
from tests.support.kinds import with_key

BY = Author(caller=Operator(), correlation_id="test")
_BOUNDED = [one for one in COLLECTIONS if one.kind.limit is not None]
_NAMES = ("one", "two", "three", "one-more")
each_kind = pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda each: each.kind.name)


def _example(collection: Collection[Any], name: str = "") -> Any:
    """A new object with the members of the kind's example."""
    kind = collection.kind
    models = models_of(kind)
    members = with_key(kind, kind.example, _key(collection, name)) if name else kind.example
    if name and kind is OVERRIDE:
        members = {**members, "operation": f"GET /{name}"}  # an operation has one override
    body = models.create.model_validate(members)
    return models.compose(body, models.key_of(body), None)


async def _complete(collection: Collection[Any], opened: OpenChanges, new: Any) -> Any:
    """The object as it is stored."""
    return new if collection.complete is None else await collection.complete(opened, None, new)


def _key(collection: Collection[Any], name: str) -> str:
    """A key of the form of the kind: the name, or a URI that the template of the tenant matches."""
    if collection.kind.keyed == "uri_template":
        return f"memo://{name}/{{id}}"
    return name if collection.kind.is_named else f"note://{name}"


@pytest.fixture
async def changes(changes: Changes) -> Changes:
    """The catalog with the template and the source that examples refer to."""
    tenant = changes.tenant.id
    template = make_primitive("note://{id}", family=Family.TEMPLATE)
    source = replace(make_source(tenant), name="pets")
    operation = replace(make_operation(source.id, "get_pet"), identity="GET /pets")
    others = [
        replace(make_operation(source.id, f"op_{name}"), identity=f"GET /{name}")
        for name in (*_NAMES, *(f"n{number}" for number in range(4)))
    ]
    async with changes.catalog.store.transaction(tenant) as db:
        await TEMPLATES.insert(tenant, db, template)
        await sources.insert(source, db)
        await operations.insert_all(tenant, db, [operation, *others])
    return changes


async def _actions(changes: Changes) -> list[str]:
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        found = await entries.page(changes.tenant.id, db, after=None, limit=200)
    return [one.action for one in found if not one.action.startswith("tenant.")][::-1]


def test_every_kind_has_a_collection() -> None:
    """Ours: a declared kind without verbs fails here."""
    assert [one.kind for one in COLLECTIONS] == list(KINDS)


@each_kind
async def test_every_verb_has_its_version_and_entry(changes: Changes, collection: Collection[Any]) -> None:
    """Ours: a verb writes one version and one entry; a set without a change writes neither (ADM-1)."""
    tenant, catalog, made = changes.tenant.id, changes.catalog, _example(collection)
    models = models_of(collection.kind)
    name = collection.kind.key_of(made)
    created = await collection.create(tenant, catalog, made, by=BY)
    secrets = {one.name for one in settable(collection.kind.of) if one.is_secret}

    def compose(current: Any) -> Any:
        example = collection.kind.whole_example
        sent = {key: value for key, value in example.items() if current is None or key not in secrets}
        return models.compose(models.whole.model_validate(sent), name, current)

    same, is_new, _ = await collection.set(tenant, catalog, created.id, compose, by=BY)
    assert (same, is_new, created.version) == (created, False, 1)
    changed, verbs = created, ["create", "delete", "create"]
    if models.change.model_fields:
        body = models.change.model_validate(collection.kind.changed_example)
        changed = await collection.change(tenant, catalog, created.id, lambda one: models.revise(body, one), by=BY)
        times = {"updated_at": changed.updated_at} if hasattr(changed, "updated_at") else {}
        # A changed secret has a time of its own.
        status = {"status": getattr(changed, "status")} if secrets & collection.kind.changed_example.keys() else {}  # noqa: B009
        assert changed == replace(created, version=2, **times, **status)
        verbs.insert(1, "update")
    async with catalog.store.transaction(tenant) as db:
        assert await collection.find(tenant, db, name) == changed
    assert collection.kind.key_of(await collection.get(tenant, catalog, name)) == name
    with pytest.raises(PreconditionFailed):
        await collection.remove(tenant, catalog, name, by=BY, expected=frozenset({f"{created.id}.0"}))
    with pytest.raises(PreconditionFailed):
        await collection.set(tenant, catalog, name, compose, by=BY, expected=frozenset())
    await collection.remove(tenant, catalog, name, by=BY, expected=frozenset({f"{created.id}.{changed.version}"}))
    with pytest.raises(NotFound):
        await collection.get(tenant, catalog, name)
    if collection.kind.keyed == "id":
        verbs.pop()
    else:
        again, is_new, _ = await collection.set(tenant, catalog, name, compose, by=BY, expected=frozenset())
        assert (again.id != created.id, is_new, again.version) == (True, True, 1)
    assert await _actions(changes) == [collection.kind.action(verb) for verb in verbs]


@each_kind
async def test_names_are_unique_and_not_reserved(changes: Changes, collection: Collection[Any]) -> None:
    """Ours: a taken or reserved name is refused with its owner, and nothing is created under an id (ADM-1)."""
    tenant, catalog, kind = changes.tenant.id, changes.catalog, collection.kind
    made = await collection.create(tenant, catalog, _example(collection, "one"), by=BY)
    taken = {"one": kind.owner_of(made)} if kind.keyed != "id" else {}
    for name, owner in {**taken, **kind.reserved}.items():
        with pytest.raises(NameTaken) as refused:
            await collection.create(tenant, catalog, _example(collection, name), by=BY)
        assert [(each.name, each.owner) for each in refused.value.conflicts] == [(_key(collection, name), owner)]
    for name in (f"{kind.id_prefix}_{'0' * 20}", *(("no name", "x" * 200) if kind.is_named else ())):
        with pytest.raises(NotFound):
            await collection.set(tenant, catalog, name, lambda _: _example(collection), by=BY)
    if kind.built_in is not None:
        shown = await collection.page(tenant, catalog, after=None, limit=10)
        assert kind.built_in in shown
        for refusal in (
            collection.remove(tenant, catalog, kind.built_in.name, by=BY),
            collection.change(tenant, catalog, kind.built_in.name, lambda one: one, by=BY),
            collection.set(tenant, catalog, kind.built_in.name, lambda _: _example(collection), by=BY),
        ):
            with pytest.raises(Conflict):
                await refusal


@pytest.mark.parametrize("collection", _BOUNDED, ids=lambda each: each.kind.name)
async def test_a_kind_is_bounded(changes: Changes, collection: Collection[Any]) -> None:
    """Ours: one tenant has at most the declared number of objects (RES-1)."""
    assert collection.kind.limit is not None
    await _is_bounded(changes, collection, collection.kind.limit.most)


@pytest.mark.parametrize(
    "collection", [one for one in COLLECTIONS if one not in _BOUNDED], ids=lambda each: each.kind.name
)
async def test_kinds_of_primitives_share_a_limit(changes: Changes, collection: Collection[Any]) -> None:
    """Ours: one tenant has at most as many primitives as its policy permits (RES-1)."""
    async with open_changes(changes.tenant.id, changes.catalog, by=BY) as opened:
        await POLICY.save(changes.tenant.id, opened.db, Policy(limits=Limits(primitives=4)))
    present = 0 if collection.kind is OVERRIDE else 1  # the template of the fixture; overrides are counted apart
    await _is_bounded(changes, collection, 4, present=present)


async def _is_bounded(changes: Changes, collection: Collection[Any], most: int, *, present: int = 0) -> None:
    async with open_changes(changes.tenant.id, changes.catalog, by=BY) as opened:
        for number in range(most - present):
            new = _example(collection, f"n{number}")
            await collection.insert(opened, await _complete(collection, opened, new))
    with pytest.raises(LimitExceeded, match=str(most)):
        await collection.create(changes.tenant.id, changes.catalog, _example(collection, "one-more"), by=BY)


@each_kind
async def test_one_transaction_holds_many_changes(changes: Changes, collection: Collection[Any]) -> None:
    """Ours: changes that commit together have a revision and an entry each, and one event (OPS-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    changes.events.clear()
    async with open_changes(tenant, catalog, by=BY) as opened:
        for name in ("one", "two"):
            await collection.write_new(opened, _example(collection, name))
    [event] = [one for one in changes.events if isinstance(one, CatalogMoved)]
    assert event == CatalogMoved(tenant=tenant, revision=opened.revision or 0)
    assert len(await _actions(changes)) == 2
    with pytest.raises(NotFound):
        async with open_changes(tenant, catalog, by=BY) as opened:
            await collection.write_new(opened, _example(collection, "three"))
            await collection.find(tenant, opened.db, "missing")
    assert len(await _actions(changes)) == 2
