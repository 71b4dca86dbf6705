"""A tenant's guardrails, each with its rule as one JSON value."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import RowMapping, bindparam, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import GuardrailId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.guardrails import Guardrail, GuardrailRule
from gateway.errors import NotFound
from gateway.store.calls.tables import guardrails
from gateway.store.engine import Db
from gateway.store.pagination import select_page

_IN_ORDER = (
    select(guardrails)
    .where(guardrails.c.tenant_id == bindparam("tenant"))
    .order_by(guardrails.c.position, guardrails.c.name)
)
_decode = msgspec.json.Decoder(GuardrailRule).decode


async def insert(tenant: TenantId, db: Db, guardrail: Guardrail) -> None:
    """Add a guardrail.

    Raises:
        NameTaken: the tenant has a guardrail of this name.
        NotFound: there is no such tenant.
    """
    key = {"tenant_id": tenant, "id": guardrail.id, "name": guardrail.name, "created_at": guardrail.created_at}
    await db.execute(insert_into(guardrails).values(**key, version=guardrail.version, **_row_values(guardrail)))


async def get(tenant: TenantId, db: Db, name_or_id: str) -> Guardrail | None:
    """The guardrail with this id or name; an id takes precedence."""
    is_named = or_(guardrails.c.id == name_or_id, guardrails.c.name == name_or_id)
    query = select(guardrails).where(guardrails.c.tenant_id == tenant, is_named)
    row = (await db.execute(query.order_by((guardrails.c.id == name_or_id).desc()).limit(1))).mappings().one_or_none()
    return _guardrail(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Guardrail]:
    """One page of the tenant's guardrails, by default sorted by name."""
    query = select_page(
        select(guardrails).where(guardrails.c.tenant_id == tenant),
        guardrails.c,
        "name",
        after=after,
        limit=limit,
        order=order,
    )
    return [_guardrail(row) for row in (await db.execute(query)).mappings()]


async def load(tenant: TenantId, db: Db) -> Sequence[Guardrail]:
    """All guardrails of the tenant, in the order in which they run."""
    rows = await db.execute(_IN_ORDER, {"tenant": tenant})
    return [_guardrail(row) for row in rows.mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's guardrails."""
    counted = select(func.count()).select_from(guardrails).where(guardrails.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def of_credential(tenant: TenantId, db: Db, credential: str) -> Sequence[str]:
    """Names of the guardrails whose hook is signed with this credential."""
    query = select(guardrails.c.name).where(guardrails.c.tenant_id == tenant, guardrails.c.credential == credential)
    return list((await db.execute(query.order_by(guardrails.c.name))).scalars())


async def save(tenant: TenantId, db: Db, guardrail: Guardrail) -> None:
    """Store a guardrail under its next version.

    Raises:
        NotFound: the tenant has no such guardrail.
    """
    matches = (guardrails.c.tenant_id == tenant, guardrails.c.id == guardrail.id)
    written = update(guardrails).where(*matches).values(version=guardrails.c.version + 1, **_row_values(guardrail))
    if (await db.execute(written.returning(guardrails.c.id))).one_or_none() is None:
        raise NotFound("There is no such guardrail.")


async def remove(tenant: TenantId, db: Db, guardrail: GuardrailId) -> bool:
    """Delete a guardrail; True if it existed."""
    matches = (guardrails.c.tenant_id == tenant, guardrails.c.id == guardrail)
    return (await db.execute(delete(guardrails).where(*matches).returning(guardrails.c.id))).one_or_none() is not None


def _row_values(guardrail: Guardrail) -> dict[str, object]:
    hook = guardrail.rule.hook
    return {
        "position": guardrail.rule.position,
        "rule": msgspec.json.encode(guardrail.rule),
        "credential": None if hook is None else hook.credential,
        "updated_at": guardrail.updated_at,
    }


def _guardrail(row: RowMapping) -> Guardrail:
    return Guardrail(
        id=GuardrailId(row["id"]),
        name=row["name"],
        rule=_decode(row["rule"]),
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
