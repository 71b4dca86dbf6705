"""The allow-lists of tenants: stored, audited, and read by the guard of the way out."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.catalog import audit
from gateway.catalog.egress import StoredAllowLists
from gateway.catalog.kinds.singletons import EGRESS
from gateway.catalog.kinds.tenants import TENANTS
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.domain.audit import AuditFilter
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.egress import Egress
from gateway.errors import DatabaseUnavailable, InvalidBody, NotFound
from gateway.store.engine import Store
from gateway.upstream.egress.allow_list import NOTHING, read_stored
from tests.integration.catalog.conftest import BY, Changes
from tests.support.servers import TestDatabase, execute

LIST = ("10.0.0.5:8080", "[fd00::5]:8080", "billing.internal:8443")


async def _replace(changes: Changes, allow: Sequence[str]) -> Egress:
    wanted = Egress(allow=tuple(allow))
    return await EGRESS.set(changes.tenant.id, changes.catalog, lambda _: wanted, by=BY)


def _lists(changes: Changes) -> tuple[Snapshots, StoredAllowLists]:
    snapshots = Snapshots(changes.catalog.store)
    return snapshots, StoredAllowLists(changes.catalog.store, snapshots)


async def test_a_list_is_stored_in_one_spelling_and_changes_are_audited(changes: Changes) -> None:
    """Ours: entries are compared as they are stored; the trail names those that came and went (ISO-5, SAF-4)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    written = ["Billing.Internal:8443", "[FD00:0::5]:8080", " 10.0.0.5:8080 ", "[::ffff:10.0.0.5]:8080"]
    assert await EGRESS.get(tenant, catalog) == Egress()
    assert await _replace(changes, written) == Egress(allow=LIST, version=2)
    await _replace(changes, ["billing.internal:8443", "crm.internal:443"])

    entries = await audit.page_entries(tenant, catalog, AuditFilter(), after=None, limit=2)
    assert [(entry.action, entry.target) for entry in entries] == [("egress.update", "egress")] * 2
    details = [{name: entry.detail[name] for name in ("before", "after")} for entry in entries]
    assert details == [
        {"before": {"allow": list(LIST)}, "after": {"allow": ["billing.internal:8443", "crm.internal:443"]}},
        {"before": {"allow": []}, "after": {"allow": list(LIST)}},
    ]


@pytest.mark.parametrize(
    "entry",
    ["*.internal:443", "10.0.0.0/8:80", "billing.internal", "http://10.0.0.5:80", "127.1:80", "[fe80::1%lo]:80"],
)
async def test_an_entry_that_is_not_exact_is_refused_by_its_place(changes: Changes, entry: str) -> None:
    """Ours: as in GATEWAY_EGRESS_ALLOW, and nothing of such a list is stored (ISO-5)."""
    with pytest.raises(InvalidBody) as refused:
        await _replace(changes, ["10.0.0.5:80", entry])

    assert [fault.pointer for fault in refused.value.faults] == ["/allow/1"]
    assert await EGRESS.get(changes.tenant.id, changes.catalog) == Egress()


async def test_the_list_of_a_snapshot_is_that_of_its_revision(changes: Changes) -> None:
    """Ours: a change of the list moves the catalog, so a noted revision is a newer list (ISO-5)."""
    tenant = changes.tenant.id
    snapshots, lists = _lists(changes)
    assert (await snapshots.latest(tenant)).egress == lists.current(tenant) == NOTHING
    await _replace(changes, LIST)
    snapshots.note(tenant, 2)
    assert lists.current(tenant) is None
    assert await lists.read(tenant) == read_stored(LIST)
    assert lists.current(tenant) == read_stored(LIST)


async def test_a_tenant_without_a_snapshot_is_looked_up_and_none_is_loaded(changes: Changes) -> None:
    """Ours: a watch or an import costs a query, not the tenant's catalog (ISO-5)."""
    tenant = changes.tenant.id
    snapshots, lists = _lists(changes)
    for allow in (LIST, ()):
        await _replace(changes, allow)
        assert lists.current(tenant) is None
        assert await lists.read(tenant) == read_stored(allow)
    assert snapshots.loaded == 0
    assert await lists.read(TenantId("ten_missing")) == NOTHING


async def test_a_tenant_that_is_gone_may_reach_nothing(changes: Changes) -> None:
    """Ours: a call that outlives its tenant has no permission left (ISO-5)."""
    tenant = changes.tenant.id
    await _replace(changes, LIST)
    snapshots, lists = _lists(changes)
    await snapshots.latest(tenant)
    await TENANTS.remove(tenant, changes.catalog, tenant, by=BY)
    snapshots.invalidate_all()
    assert await lists.read(tenant) == NOTHING
    with pytest.raises(NotFound):
        await _replace(changes, LIST)


async def test_an_entry_that_was_damaged_permits_nothing(changes: Changes, database: TestDatabase) -> None:
    """Ours: an unreadable object is left out; the rest of the catalog is served (ISO-5)."""
    tenant = changes.tenant.id
    await _replace(changes, LIST)
    await execute(database.superuser_url, "update egress set allow = array['*:443', '10.0.0.5:8080', '']")
    snapshots, lists = _lists(changes)
    assert await lists.read(tenant) == read_stored(["10.0.0.5:8080"])
    assert (await snapshots.latest(tenant)).egress == read_stored(["10.0.0.5:8080"])


async def test_an_outdated_list_permits_nothing_while_the_database_is_away(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the catalog goes on with what is kept; a permission that may be withdrawn does not (ISO-5)."""
    tenant = changes.tenant.id
    await _replace(changes, LIST)
    snapshots, lists = _lists(changes)
    kept = await snapshots.latest(tenant)

    def refuse(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(Store, "_transaction", refuse)
    snapshots.invalidate_all()
    assert await lists.read(tenant) == read_stored(LIST), "no newer revision is known"
    snapshots.note(tenant, kept.revision + 1)
    assert await snapshots.latest(tenant) is kept
    assert await lists.read(tenant) == NOTHING


async def test_a_change_of_the_catalog_during_a_load_withdraws_no_permission(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a loaded snapshot that is outdated already is not an outage; the stored list counts (ISO-5, DYN-1)."""
    tenant, load = changes.tenant.id, Snapshots.__dict__["_load"]

    async def load_slowly(self: Snapshots, *arguments: Any, **options: Any) -> Snapshot:
        loaded: Snapshot = await load(self, *arguments, **options)
        await _replace(changes, LIST)
        self.note(tenant, loaded.revision + 1)
        return loaded

    snapshots, lists = _lists(changes)
    first = await snapshots.latest(tenant)
    snapshots.note(tenant, first.revision + 1)
    monkeypatch.setattr(Snapshots, "_load", load_slowly)
    await _replace(changes, ["10.0.0.9:80"])
    assert await lists.read(tenant) == read_stored(LIST)
