"""The audit trail of a tenant, as it is read, and whether it is as it was written."""

from collections.abc import Sequence

from gateway.catalog.catalog import Catalog
from gateway.domain.audit import AuditEntry, AuditFilter, Chain
from gateway.domain.identifiers import TenantId
from gateway.store import audit, audit_heads, tenants
from gateway.store.audit_chain import Link
from gateway.store.audit_check import TrailCheck
from gateway.store.audit_heads import Signature
from gateway.store.engine import Db

_AT_ONCE = 500
"""Entries that are read, and verified, before others get their turn."""


async def page_entries(
    tenant: TenantId, catalog: Catalog, wanted: AuditFilter, *, after: str | None, limit: int
) -> Sequence[AuditEntry]:
    """The tenant's entries that pass the filter, the newest first."""
    async with catalog.store.transaction(tenant) as db:
        return await audit.page(tenant, db, after=after, limit=limit, wanted=wanted)


def position_of(entry: AuditEntry) -> str:
    """Where the entry stands in the trail; ids rise with time."""
    return entry.id


async def verify_trail(tenant: TenantId, catalog: Catalog) -> Sequence[Chain]:
    """The chains of the tenant's trail, each with the first fault that was found.

    What is written meanwhile is verified too. The signatures are of one moment, and read first: what they speak of is
    there when the entries are read.

    Raises:
        LimitExceeded: too many trails are being verified.
    """
    async with catalog.verifying.hold(tenant):
        sealer = catalog.sealer
        check = TrailCheck(sealer.derive_all("audit"), signing_keys=sealer.derive_all("audit heads"))
        async with catalog.store.reading(tenant) as db:
            revision = await tenants.revision(tenant, db)
            await _follow_signatures(tenant, db, check)
        await _follow_entries(tenant, catalog, check)
        return check.chains(revision)


async def _follow_signatures(tenant: TenantId, db: Db, check: TrailCheck) -> None:
    last: Signature | None = None
    while True:
        part = await audit_heads.signatures(tenant, db, after=last, limit=_AT_ONCE)
        check.follow_signatures(part)
        if len(part) < _AT_ONCE:
            return
        last = part[-1]


async def _follow_entries(tenant: TenantId, catalog: Catalog, check: TrailCheck) -> None:
    """Part by part; no transaction lasts longer than one."""
    last: Link | None = None
    while True:
        async with catalog.store.transaction(tenant) as db:
            part = await audit.links(tenant, db, after=last, limit=_AT_ONCE)
        check.follow(part)
        if len(part) < _AT_ONCE:
            return
        last = part[-1]
