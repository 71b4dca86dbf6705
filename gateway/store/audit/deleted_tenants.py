"""Tenants that were deleted, whose audit trails remain: a trigger of the database stores them."""

from collections.abc import Sequence

from sqlalchemy import select, text

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.tenants import DeletedTenant
from gateway.store import tenants
from gateway.store.audit.hash_chain import CATALOG, DELETION
from gateway.store.audit.tables import deleted_tenants
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import read_record
from gateway.store.tables import audit_entries

_LIST = text("select * from list_deleted_tenants(:slug, :after_slug, :after_id, :most)")


async def page(
    db: Db, *, slug: str | None = None, after: tuple[str, str] | None = None, limit: int
) -> Sequence[DeletedTenant]:
    """Deleted tenants, of one slug or of all, sorted by slug and id; bypasses row-level security."""
    after_slug, after_id = after or (None, None)
    bounds = {"slug": slug, "after_slug": after_slug, "after_id": after_id, "most": limit}
    return [read_record(DeletedTenant, row) for row in (await db.execute(_LIST, bounds)).mappings()]


async def last_revision(tenant: TenantId, db: Db) -> int | None:
    """The revision of a deleted tenant, which is the number of its last change; None if it is not stored."""
    query = select(deleted_tenants.c.revision).where(deleted_tenants.c.tenant_id == tenant)
    found: int | None = (await db.execute(query)).scalar_one_or_none()
    return found


async def revision_of(tenant: TenantId, db: Db) -> int | None:
    """The revision of a tenant, deleted or not; None if neither is stored. A stored 0 is one of an attacker."""
    found = await tenants.revision(tenant, db)
    return await last_revision(tenant, db) if found is None else found  # guard: revision-of-the-tenant


async def is_deleted(tenant: TenantId, db: Db) -> bool:
    """True if the last change in the tenant's trail is its deletion, also one of before the trigger."""
    columns = audit_entries.c
    of_changes = (columns.tenant_id == tenant, columns.writer == CATALOG)
    query = select(columns.action).where(*of_changes).order_by(columns.seq.desc()).limit(1)
    return (await db.execute(query)).scalar_one_or_none() == DELETION
