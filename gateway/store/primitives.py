"""Queries across the families of a tenant's own primitives, whose rows `gateway.store.kinds.primitives` maps."""

from collections.abc import Mapping, Sequence

from sqlalchemy import RowMapping, bindparam, func, literal, select

from gateway.domain.identifiers import LiveSourceId, PrimitiveId, TenantId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.own_primitives import to_primitive
from gateway.store.engine import Db
from gateway.store.kinds.primitives import ROWS
from gateway.store.tables import live_primitives, operations, primitives

_IS_OWN = primitives.c.tenant_id == bindparam("tenant")
_BY_FAMILY = select(primitives).where(_IS_OWN).order_by(primitives.c.kind, primitives.c.name)
_IS_LIVE = (
    live_primitives.c.tenant_id == bindparam("tenant"),
    live_primitives.c.is_present,
    live_primitives.c.source_id != bindparam("excluded"),
)
_COUNT = select(
    select(func.count()).where(_IS_OWN).scalar_subquery()
    + select(func.count()).where(operations.c.tenant_id == bindparam("tenant")).scalar_subquery()
    + select(func.count()).where(*_IS_LIVE).scalar_subquery()
)


async def load(tenant: TenantId, db: Db) -> Sequence[Primitive]:
    """All primitives of the tenant, sorted by family and name."""
    return [_primitive(row) for row in (await db.execute(_BY_FAMILY, {"tenant": tenant})).mappings()]


async def names(tenant: TenantId, db: Db, family: Family) -> Mapping[str, PrimitiveId]:
    """Ids by name for the primitives of a family, sorted by name."""
    named = select(primitives.c.name, primitives.c.id).where(
        primitives.c.tenant_id == tenant, primitives.c.kind == family.value
    )
    return {str(name): PrimitiveId(found) for name, found in await db.execute(named.order_by(primitives.c.name))}


async def tool_levels(tenant: TenantId, db: Db) -> Sequence[Primitive]:
    """The tenant's own tools without definitions and handlers, for their safety levels."""
    columns = [column for column in primitives.c if column.name not in {"definition", "handler"}]
    nothing = [literal(b"").label("definition"), literal(b"").label("handler")]
    query = select(*columns, *nothing).where(primitives.c.tenant_id == tenant, primitives.c.kind == Family.TOOL.value)
    return [_primitive(row) for row in (await db.execute(query.order_by(primitives.c.name))).mappings()]


async def count(tenant: TenantId, db: Db, *, exclude: LiveSourceId | None = None) -> int:
    """Number of the tenant's primitives of all families and origins, except those of the live source `exclude`.

    Of a live source, the primitives that are present count.
    """
    return int((await db.execute(_COUNT, {"tenant": tenant, "excluded": exclude or ""})).scalar_one())


async def users(tenant: TenantId, db: Db, reference: str) -> Sequence[tuple[Family, str]]:
    """Family and name of every primitive whose handler contains this reference."""
    query = select(primitives.c.kind, primitives.c.name).where(
        primitives.c.tenant_id == tenant, primitives.c.refers.any_() == reference
    )
    rows = await db.execute(query.order_by(primitives.c.kind, primitives.c.name))
    return [(Family(kind), str(name)) for kind, name in rows]


def _primitive(row: RowMapping) -> Primitive:
    return to_primitive(ROWS[Family(row["kind"])].read(row))
