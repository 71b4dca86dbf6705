"""Stored ceilings, set by the operator: the highest values of a tenant's limits."""

import msgspec
from sqlalchemy import RowMapping, bindparam, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import LIMIT_NAMES, NO_BOUNDS, AdminBounds, Ceilings
from gateway.store.engine import Db
from gateway.store.tables import ceilings

_OF_TENANT = select(ceilings).where(ceilings.c.tenant_id == bindparam("tenant"))


async def get(tenant: TenantId, db: Db) -> Ceilings:
    """The tenant's own ceilings. Without a row, no ceiling is set."""
    rows = await db.execute(_OF_TENANT, {"tenant": tenant})
    row = rows.mappings().one_or_none()
    return _ceilings(row) if row else Ceilings()


async def save(tenant: TenantId, db: Db, new_ceilings: Ceilings) -> None:
    """Replace the tenant's ceilings under the next version.

    Raises:
        NotFound: there is no such tenant.
    """
    columns: dict[str, object] = {name: getattr(new_ceilings, name) for name in LIMIT_NAMES}
    columns["admin_bounds"] = msgspec.to_builtins(new_ceilings.admin_bounds)
    # A tenant without a row is at version 1, so its first row is version 2.
    first = insert_into(ceilings).values(tenant_id=tenant, version=Ceilings().version + 1, **columns)
    await db.execute(
        first.on_conflict_do_update(
            index_elements=[ceilings.c.tenant_id], set_={**columns, "version": ceilings.c.version + 1}
        )
    )


def _ceilings(row: RowMapping) -> Ceilings:
    stored = row["admin_bounds"]
    admin_bounds = NO_BOUNDS if stored is None else msgspec.convert(stored, AdminBounds)
    limits = {name: row[name] for name in LIMIT_NAMES}
    return Ceilings(version=row["version"], admin_bounds=admin_bounds, **limits)
