"""The verbs of every declared singleton, with the example of its declaration."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from gateway.catalog.kinds.engines.single_object import SingleObject
from gateway.catalog.kinds.singletons import SINGLE_OBJECTS
from gateway.catalog.transaction import Author, open_changes
from gateway.domain.events import CatalogMoved
from gateway.domain.identifiers import INSTALLATION
from gateway.domain.tenancy.principals import Operator
from gateway.errors import PreconditionFailed
from gateway.kinds.singletons import SINGLETONS
from gateway.store.audit import entries
from gateway.web.kinds.singleton_models import singleton_models_of
from tests.integration.catalog.conftest import Changes

BY = Author(caller=Operator(), correlation_id="test")
each_single = pytest.mark.parametrize("single", SINGLE_OBJECTS, ids=lambda each: each.kind.name)


def _example(single: SingleObject[Any], current: Any) -> Any:
    models = singleton_models_of(single.kind)
    body = models.whole.model_validate(dict(single.kind.example))
    return models.compose(body, current, single.kind.of(), may_remove=True)


async def _actions(changes: Changes) -> list[str]:
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        found = await entries.page(changes.tenant.id, db, after=None, limit=200)
    return [one.action for one in found if not one.action.startswith("tenant.")][::-1]


def test_every_singleton_has_its_verbs() -> None:
    """Ours: a declared singleton without verbs fails here."""
    assert [one.kind for one in SINGLE_OBJECTS] == list(SINGLETONS)


@each_single
async def test_every_change_has_its_version_and_entry(changes: Changes, single: SingleObject[Any]) -> None:
    """Ours: a change writes one version and one entry; a set without a change writes neither (ADM-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    first = await single.show(tenant, catalog)
    made = await single.set(tenant, catalog, lambda one: _example(single, one), by=BY, expected=frozenset({first.tag}))
    assert made.version == first.one.version + 1
    assert await single.get(tenant, catalog) == made
    assert await single.set(tenant, catalog, lambda one: _example(single, one), by=BY) == made
    changed = await single.change(tenant, catalog, lambda one: one, by=BY)
    assert changed == replace(made, version=made.version + 1)
    with pytest.raises(PreconditionFailed):
        await single.set(tenant, catalog, lambda one: one, by=BY, expected=frozenset({first.tag}))
    assert await _actions(changes) == [f"{single.kind.name}.update"] * 2


async def test_one_transaction_holds_changes_of_all_singletons(changes: Changes) -> None:
    """Ours: changes that commit together have a revision and an entry each, and one event (OPS-1)."""
    changes.events.clear()
    async with open_changes(changes.tenant.id, changes.catalog, by=BY) as opened:
        for single in SINGLE_OBJECTS:
            await single.write(opened, partial(_example, single))
    [event, of_installation] = changes.events  # its trail has copies of what only the operator changes
    assert of_installation.tenant == INSTALLATION
    assert event == CatalogMoved(tenant=changes.tenant.id, revision=opened.revision or 0)
    assert await _actions(changes) == [f"{one.kind.name}.update" for one in SINGLE_OBJECTS]
