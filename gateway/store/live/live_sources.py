"""Statements over live sources that other kinds do not have: of all tenants, by credential, and for notices."""

from collections.abc import Sequence

from sqlalchemy import func, or_, select, update

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import AttachmentState, LiveKind, LiveSource
from gateway.store.engine import Db
from gateway.store.kinds.live_sources import LIVE_SOURCES
from gateway.store.tables import live_sources

_ALL = func.list_live_sources().table_valued("tenant_id", "id", "kind")


async def load_enabled(tenant: TenantId, db: Db) -> Sequence[LiveSource]:
    """The tenant's enabled live sources, oldest first."""
    found = [one for one in await LIVE_SOURCES.load(tenant, db) if one.enabled]
    return sorted(found, key=lambda one: (one.created_at, one.id))


async def of_credential(tenant: TenantId, db: Db, credential: str) -> Sequence[str]:
    """Names of the live sources that use this credential."""
    uses_it = or_(live_sources.c.credential == credential, live_sources.c.caller_credential == credential)
    matches = (live_sources.c.tenant_id == tenant, uses_it)
    return list((await db.execute(select(live_sources.c.name).where(*matches).order_by(live_sources.c.name))).scalars())


async def all_enabled(db: Db) -> Sequence[tuple[TenantId, LiveSourceId, LiveKind]]:
    """The enabled live sources of all tenants; the query bypasses row-level security."""
    rows = await db.execute(select(_ALL.c.tenant_id, _ALL.c.id, _ALL.c.kind))
    return [(TenantId(tenant), LiveSourceId(source), LiveKind(kind)) for tenant, source, kind in rows]


async def add_notice(tenant: TenantId, db: Db, source: LiveSourceId, text: str, *, most: int) -> None:
    """Add a notice to an attached live source, unless it has the notice, or `most` of them."""
    notices = live_sources.c.notices
    matches = (
        live_sources.c.tenant_id == tenant,
        live_sources.c.id == source,
        live_sources.c.state == AttachmentState.ATTACHED.value,
        func.array_position(notices, text).is_(None),
        func.cardinality(notices) < most,
    )
    await db.execute(update(live_sources).where(*matches).values(notices=func.array_append(notices, text)))
