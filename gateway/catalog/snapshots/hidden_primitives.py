"""Detection of Python primitives that names in tenants' catalogs hide, and their audit entries."""

from collections.abc import Sequence

from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.primitives import OwnedName
from gateway.domain.tenancy.principals import Operator
from gateway.errors import NotFound
from gateway.store.audit import entries
from gateway.store.engine import Db, Store
from gateway.store.name_owners import find_owners

ACTION = "code.hide"
_BY = Author(caller=Operator(name="gateway"), correlation_id="")


class _Recorded(Exception):
    """Rolls the transaction back: another replica has recorded the entry."""


async def find_hidden(store: Store, added: Sequence[PythonPrimitive]) -> Sequence[OwnedName]:
    """Names of tenants that hide these Python primitives, sorted by slug.

    Raises:
        DatabaseUnavailable: PostgreSQL does not respond.
    """
    if not added:
        return ()
    groups = [one.tenants for one in added]
    slugs = None if None in groups else frozenset[str]().union(*(group for group in groups if group is not None))
    async with store.lookup() as db:
        found = await find_owners(db, [(one.family, one.name) for one in added], slugs)
    return [one for one in dict.fromkeys(found) if any(_is_selected(primitive, one) for primitive in added)]


async def record_hidden(catalog: CatalogContext, hidden: OwnedName) -> bool:
    """Record in the tenant's audit trail that a name of the tenant hides a Python primitive.

    Every replica finds the same names at each start. So nothing is recorded, and the result is False, if the last entry
    for that name is such a record. The result is also False for a removed tenant.

    Raises:
        Unavailable: PostgreSQL does not respond.
    """
    tenant = hidden.tenant
    async with catalog.store.reading(tenant) as db:
        if await _is_recorded(hidden, db):
            return False
    entry = CatalogChange(
        action=ACTION, target=hidden.name, detail={"family": hidden.family.value, "behind": hidden.owner}
    )
    try:
        async with change(tenant, catalog, entry, by=_BY) as db:
            # checked under the lock of the tenant's row, so that only one replica writes the entry
            if await _is_recorded(hidden, db):
                raise _Recorded
    except (_Recorded, NotFound):
        return False
    return True


def _is_selected(primitive: PythonPrimitive, one: OwnedName) -> bool:
    is_same = (primitive.family, primitive.name) == (one.family, one.name)
    return is_same and (primitive.tenants is None or one.slug in primitive.tenants)


async def _is_recorded(hidden: OwnedName, db: Db) -> bool:
    last = await entries.last_change(hidden.tenant, db, hidden.name)
    return last is not None and (last.action, last.detail.get("family")) == (ACTION, hidden.family.value)
