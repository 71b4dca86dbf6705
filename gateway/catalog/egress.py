"""The private upstreams that the operator lets a tenant reach: read, replaced, and handed to the guard of the way out.

A list is in force with the next revision of the tenant's catalog, like its policy: a snapshot carries the list that
belongs to its revision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.egress import Egress
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.store import egress
from gateway.store.engine import Store
from gateway.upstream.egress.allow_list import FORM, NOTHING, AllowList, read_entry, read_stored, write_entry


async def get_egress(tenant: TenantId, catalog: CatalogContext) -> Egress:
    """The tenant's allow-list; empty where none was set."""
    async with catalog.store.transaction(tenant) as db:
        return await egress.get(tenant, db)


async def replace_egress(
    tenant: TenantId, catalog: CatalogContext, allow: Sequence[str], *, by: Author, expected: Expected = None
) -> Egress:
    """The tenant's allow-list replaced by these entries, in force with the next revision.

    Raises:
        InvalidBody: an entry is not an exact `host:port`.
        NotFound: the tenant is gone.
        PreconditionFailed: it is another version than expected.
    """
    wanted = _read(allow)
    entry = CatalogChange(action="egress.update", target="egress")
    async with change(tenant, catalog, entry, by=by) as db:
        current = await egress.get(tenant, db)
        check_version(current, expected)
        entry.detail = {
            "added": [one for one in wanted if one not in current.allow],
            "removed": [one for one in current.allow if one not in wanted],
        }
        return await egress.save(tenant, db, replace(current, allow=wanted))


def _read(allow: Sequence[str]) -> tuple[str, ...]:
    """The entries in their one spelling, sorted, each once."""
    read = [read_entry(text) for text in allow]
    faults = [Fault(pointer=f"/allow/{place}", reason=FORM) for place, entry in enumerate(read) if entry is None]
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {FORM}", faults=faults)
    return tuple(sorted({write_entry(entry) for entry in read if entry is not None}))


@dataclass(frozen=True, slots=True)
class StoredAllowLists:
    """The allow-lists of tenants as the guard reads them: from the snapshot in use, else from the database.

    Nothing is kept here: a list is as old as the tenant's snapshot, which every replica replaces when the catalog
    moves. A tenant without a snapshot, such as one with nothing but watches, costs a query each time.
    """

    store: Store
    snapshots: Snapshots

    def current(self, tenant: TenantId) -> AllowList | None:
        """The list of the newest snapshot; None when there is none, or reason to look for a newer one."""
        snapshot = self.snapshots.current(tenant)
        return None if snapshot is None else snapshot.egress

    async def read(self, tenant: TenantId) -> AllowList:
        """The newest list; empty for a tenant that is gone, and while only an outdated one can be had.

        Raises:
            Unavailable: the database is away, and there is no snapshot or it is too old.
        """
        if not self.snapshots.newest(tenant):
            async with self.store.transaction(tenant) as db:
                return read_stored((await egress.get(tenant, db)).allow)
        try:
            snapshot = await self.snapshots.latest(tenant)
        except NotFound:
            return NOTHING
        # A catalog goes on with an outdated snapshot while the database is away; a withdrawn permission must not.
        return snapshot.egress if snapshot.revision >= self.snapshots.newest(tenant) else NOTHING
