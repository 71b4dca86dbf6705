"""The primitives of a snapshot in the form that access rules match."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gateway.catalog.snapshots.access_table import AccessTable, CoveredItem, Item, compile_access, key_of
from gateway.catalog.snapshots.listed_form import READ_TOOL
from gateway.catalog.snapshots.primitive_policies import forms_of, operation_of
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.access import AccessRules
from gateway.domain.tenancy.selection import Facets, facets_of
from gateway.domain.tools import Tool


def with_access(snapshot: Snapshot, access: AccessRules) -> Snapshot:
    """Return the snapshot with these access rules."""
    return snapshot if access == snapshot.access.access else replace(snapshot, access=compile_for(snapshot, access))


def compile_for(snapshot: Snapshot, access: AccessRules) -> AccessTable:
    """Compile access rules for the primitives of a snapshot, and for the tool that profiles may add."""
    return compile_access(access, (_covered_item(snapshot, item) for item in (*all_items(snapshot), READ_TOOL)))


def all_items(snapshot: Snapshot) -> Iterator[Item]:
    """Yield every item that can be called, once each, including query-only and hidden operations."""
    operations = (tool for by_key in snapshot.operations.values() for tool in by_key.values())
    remote = (tool for by_key in snapshot.queried_live.values() for tool in by_key.values())
    every = (*operations, *remote, *snapshot.unlisted.values(), *snapshot.tools)
    yield from {key_of(tool): tool for tool in every}.values()
    for primitives in (snapshot.resources, snapshot.templates, snapshot.prompts):
        yield from primitives


def _covered_item(snapshot: Snapshot, item: Item) -> CoveredItem:
    """The forms of a primitive: under each of its names; for deny rules, also the operation that it runs."""
    operation = operation_of(snapshot, item)
    operation_facets = () if operation is None else _facets(snapshot, operation)
    return CoveredItem(key_of(item), _facets(snapshot, item), operation_facets)


def _facets(snapshot: Snapshot, item: Tool | Primitive) -> Sequence[Facets]:
    # guard: access-counted-level
    return [replace(facets_of(form), safety=form.level) for form in forms_of(snapshot, item)]
