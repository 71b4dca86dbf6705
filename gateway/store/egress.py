"""Stored allow-lists: the private upstreams that the operator permits for each tenant."""

from dataclasses import replace

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.egress import Egress
from gateway.store.engine import Db
from gateway.store.tables import egress

_OF_TENANT = select(egress.c.allow, egress.c.version).where(egress.c.tenant_id == bindparam("tenant"))


async def get(tenant: TenantId, db: Db) -> Egress:
    """The tenant's allow-list; empty without a row."""
    rows = await db.execute(_OF_TENANT, {"tenant": tenant})
    row = rows.mappings().one_or_none()
    return Egress(allow=tuple(row["allow"]), version=row["version"]) if row else Egress()


async def save(tenant: TenantId, db: Db, new_list: Egress) -> Egress:
    """Replace the tenant's allow-list, and return it with its new version.

    Raises:
        NotFound: there is no such tenant.
    """
    allow = list(new_list.allow)
    # A tenant without a row has the empty list at version 1, so its first row is version 2.
    first = insert_into(egress).values(tenant_id=tenant, allow=allow, version=Egress().version + 1)
    written = first.on_conflict_do_update(
        index_elements=[egress.c.tenant_id], set_={"allow": allow, "version": egress.c.version + 1}
    )
    version = (await db.execute(written.returning(egress.c.version))).scalar_one()
    return replace(new_list, version=int(version))
