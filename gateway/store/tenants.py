"""The tenants and their revisions. Each catalog change raises the tenant's revision by one."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Integer, Text, bindparam, column, func, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.kinds.tenants import TENANTS
from gateway.store.pagination import select_page
from gateway.store.tables import tenants

_FOUND = func.tenant_revisions(bindparam("wanted", type_=ARRAY(Text))).table_valued("id", "revision")
_REVISIONS = select(_FOUND.c.id, _FOUND.c.revision)
"""Built once, because the revisions of all tenants in use are read every few seconds."""

_NAMED = func.slugs_of_tenants(bindparam("wanted", type_=ARRAY(Text))).table_valued("id", "slug")
_SLUGS = select(_NAMED.c.id, _NAMED.c.slug)


def _tenant_columns() -> dict[str, ColumnElement[Any]]:
    """Columns of the SQL function that lists tenants, with a collation, because a function's columns have none."""
    typed = [column(each.name, each.type) for each in tenants.c]
    bounds = bindparam("slug", type_=Text), bindparam("after", type_=Text), bindparam("most", type_=Integer)
    found = func.list_tenants(*bounds).table_valued(*typed).c
    return {
        each.name: found[each.name].collate("C").label(each.name) if isinstance(each.type, Text) else found[each.name]
        for each in tenants.c
    }


_TENANT_COLUMNS = _tenant_columns()
_TENANTS = select(*_TENANT_COLUMNS.values())
"""Built once, because each admin request reads its tenant."""

_IS_NAMED = tenants.c.id == bindparam("tenant")
_REVISION = select(tenants.c.revision).where(_IS_NAMED)
_ADVANCE = update(tenants).where(_IS_NAMED).values(revision=tenants.c.revision + 1).returning(tenants.c.revision)
"""Built once, because each change executes it."""


async def insert_installation(db: Db) -> bool:
    """Add the row of the installation; False if it exists."""
    added = insert_into(tenants).values(
        id=INSTALLATION, slug="*", name="The installation", revision=1, created_at=func.now()
    )
    return (await db.execute(added.on_conflict_do_nothing().returning(tenants.c.id))).one_or_none() is not None


async def find(db: Db, slug: str) -> Tenant | None:
    """The tenant of this slug; bypasses row-level security."""
    found = await _list(db, slug, None, 1)
    return found[0] if found else None


async def page(db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Tenant]:
    """One page of all tenants, by default sorted by slug; bypasses row-level security."""
    if order == KEYED:
        return await _list(db, None, after, limit)
    query = select_page(_TENANTS, _TENANT_COLUMNS, "slug", after=after, limit=limit, order=order)
    rows = await db.execute(query, {"slug": None, "after": None, "most": None})
    return [TENANTS.read(row) for row in rows.mappings()]


async def advance(tenant: TenantId, db: Db) -> int:
    """Raise the revision by one and return it.

    The row stays locked until the transaction ends. So transactions that call this before their changes are serialised
    per tenant.

    Raises:
        NotFound: there is no such tenant.
    """
    changed = await db.execute(_ADVANCE, {"tenant": tenant})
    advanced = changed.scalar_one_or_none()
    if advanced is None:
        raise NotFound("There is no such tenant.")
    return int(advanced)


async def lock(tenant: TenantId, db: Db) -> int | None:
    """Lock the row as `advance` does, and return the current revision; None if there is no such tenant.

    The lock is that of an update of other columns than the key. A stronger one would wait for every transaction that
    adds a row of the tenant, such as a job's, and the two could deadlock.
    """
    return (await db.execute(_REVISION.with_for_update(key_share=True), {"tenant": tenant})).scalar_one_or_none()


async def revision(tenant: TenantId, db: Db) -> int | None:
    """The current revision; None if there is no such tenant."""
    return (await db.execute(_REVISION, {"tenant": tenant})).scalar_one_or_none()


async def revisions(db: Db, ids: Collection[TenantId]) -> Mapping[TenantId, int]:
    """The current revisions of the tenants in `ids` that exist; bypasses row-level security."""
    rows = await db.execute(_REVISIONS, {"wanted": list(ids)})
    return {TenantId(row["id"]): row["revision"] for row in rows.mappings()}


async def slugs(db: Db, ids: Collection[str]) -> Mapping[str, str]:
    """The slugs of the tenants in `ids` that exist, by id; bypasses row-level security."""
    rows = await db.execute(_SLUGS, {"wanted": list(ids)})
    return {row["id"]: row["slug"] for row in rows.mappings()}


async def _list(db: Db, slug: str | None, after: str | None, limit: int) -> list[Tenant]:
    rows = await db.execute(_TENANTS, {"slug": slug, "after": after, "most": limit})
    return [TENANTS.read(row) for row in rows.mappings()]
