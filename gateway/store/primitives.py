"""A tenant's own tools, resources, resource templates and prompts."""

from collections.abc import Mapping, Sequence

from sqlalchemy import RowMapping, Select, bindparam, delete, func, literal, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import LiveSourceId, PrimitiveId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.pagination import select_page
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


async def insert(tenant: TenantId, db: Db, primitive: Primitive) -> None:
    """Add a primitive.

    Raises:
        NameTaken: the tenant already has a primitive of this family and name.
        NotFound: there is no such tenant.
    """
    await db.execute(
        insert_into(primitives).values(
            tenant_id=tenant,
            id=primitive.id,
            kind=primitive.family.value,
            version=primitive.version,
            created_at=primitive.created_at,
            **_row_values(primitive),
        )
    )


async def get(tenant: TenantId, db: Db, family: Family, name_or_id: str) -> Primitive | None:
    """The primitive of this family and id or name; an id takes precedence."""
    is_named = or_(primitives.c.id == name_or_id, primitives.c.name == name_or_id)
    query = _select_family(tenant, family).where(is_named).order_by((primitives.c.id == name_or_id).desc()).limit(1)
    row = (await db.execute(query)).mappings().one_or_none()
    return _primitive(row) if row else None


async def page(
    tenant: TenantId, db: Db, family: Family, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Primitive]:
    """One page of the primitives of a family, by default sorted by name."""
    query = select_page(_select_family(tenant, family), primitives.c, "name", after=after, limit=limit, order=order)
    return [_primitive(row) for row in (await db.execute(query)).mappings()]


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


async def save(tenant: TenantId, db: Db, primitive: Primitive) -> None:
    """Store a primitive under its next version.

    Raises:
        NotFound: the tenant has no such primitive.
        NameTaken: another primitive of the family has the name.
    """
    matches = (primitives.c.tenant_id == tenant, primitives.c.id == primitive.id)
    written = update(primitives).where(*matches).values(version=primitives.c.version + 1, **_row_values(primitive))
    if (await db.execute(written.returning(primitives.c.id))).one_or_none() is None:
        raise NotFound("There is no such primitive.")


async def remove(tenant: TenantId, db: Db, primitive: PrimitiveId) -> bool:
    """Delete a primitive; True if it existed."""
    matches = (primitives.c.tenant_id == tenant, primitives.c.id == primitive)
    deleted = delete(primitives).where(*matches).returning(primitives.c.id)
    return (await db.execute(deleted)).one_or_none() is not None


def _select_family(tenant: TenantId, family: Family) -> Select[*tuple[object, ...]]:
    return select(primitives).where(primitives.c.tenant_id == tenant, primitives.c.kind == family.value)


def _row_values(primitive: Primitive) -> dict[str, object]:
    return {
        "name": primitive.name,
        "definition": primitive.definition,
        "handler": primitive.handler,
        "safety": None if primitive.override is None else primitive.override.value,
        "assessed": primitive.assessed.value,
        "reasons": list(primitive.safety_reasons),
        "refers": list(primitive.refers),
        "enabled": primitive.enabled,
        "updated_at": primitive.updated_at,
    }


def _primitive(row: RowMapping) -> Primitive:
    assessed = Safety(row["assessed"])
    override = None if row["safety"] is None else Safety(row["safety"])
    return Primitive(
        id=PrimitiveId(row["id"]),
        family=Family(row["kind"]),
        name=row["name"],
        definition=row["definition"],
        handler=row["handler"],
        safety=override or assessed,
        safety_reasons=tuple(row["reasons"]),
        override=override,
        assessed=assessed,
        refers=tuple(row["refers"]),
        enabled=row["enabled"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
