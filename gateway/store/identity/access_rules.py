"""A tenant's access rules, stored as one row."""

from dataclasses import replace

import msgspec
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.access import OPEN, AccessEffect, AccessRule, AccessRules, RoleRule
from gateway.store.engine import Db
from gateway.store.identity.tables import access_rules


async def get(tenant: TenantId, db: Db) -> AccessRules:
    """The tenant's access rules; without a row, rules that permit everything."""
    rows = await db.execute(select(access_rules).where(access_rules.c.tenant_id == tenant))
    row = rows.mappings().one_or_none()
    if row is None:
        return OPEN
    return AccessRules(
        default=AccessEffect(row["default_effect"]),
        rules=msgspec.convert(row["rules"], tuple[AccessRule, ...]),
        roles=msgspec.convert(row["roles"], tuple[RoleRule, ...]),
        version=row["version"],
    )


async def save(tenant: TenantId, db: Db, access: AccessRules) -> AccessRules:
    """Replace the tenant's access rules, and return them with their new version.

    Raises:
        NotFound: there is no such tenant.
    """
    columns = {
        "default_effect": access.default.value,
        "rules": msgspec.to_builtins(access.rules),
        "roles": msgspec.to_builtins(access.roles),
        "updated_at": func.now(),
    }
    # A tenant without a row has version 1, so its first row is version 2.
    first = insert_into(access_rules).values(tenant_id=tenant, version=OPEN.version + 1, **columns)
    written = first.on_conflict_do_update(
        index_elements=[access_rules.c.tenant_id], set_={**columns, "version": access_rules.c.version + 1}
    )
    version = (await db.execute(written.returning(access_rules.c.version))).scalar_one()
    return replace(access, version=int(version))
