"""A tenant's live sources: their declarations, and the status of their attachments."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, Select, bindparam, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import AttachmentState, LiveKind, LiveSource, LiveStatus
from gateway.domain.order import KEYED, Order
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.pagination import select_page
from gateway.store.tables import live_sources

_ENABLED = (
    select(live_sources)
    .where(live_sources.c.tenant_id == bindparam("tenant"), live_sources.c.enabled)
    .order_by(live_sources.c.created_at, live_sources.c.id)
)
_ALL = func.list_live_sources().table_valued("tenant_id", "id", "kind")


async def insert(source: LiveSource, db: Db) -> None:
    """Add a live source.

    Raises:
        NameTaken: the tenant has a live source of this name.
        NotFound: there is no such tenant.
    """
    identity = {"tenant_id": source.tenant, "id": source.id, "version": source.version, "created_at": source.created_at}
    await db.execute(
        insert_into(live_sources).values(**identity, **_declaration_values(source), **_status_values(source.status))
    )


async def get(tenant: TenantId, db: Db, name_or_id: str) -> LiveSource | None:
    """The live source with this id or name; an id takes precedence."""
    is_named = or_(live_sources.c.id == name_or_id, live_sources.c.name == name_or_id)
    query = _select_sources(tenant).where(is_named).order_by((live_sources.c.id == name_or_id).desc()).limit(1)
    row = (await db.execute(query)).mappings().one_or_none()
    return _live_source(row) if row else None


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[LiveSource]:
    """One page of the tenant's live sources, by default sorted by name."""
    query = select_page(_select_sources(tenant), live_sources.c, "name", after=after, limit=limit, order=order)
    return [_live_source(row) for row in (await db.execute(query)).mappings()]


async def load(tenant: TenantId, db: Db) -> Sequence[LiveSource]:
    """The tenant's enabled live sources, oldest first."""
    return [_live_source(row) for row in (await db.execute(_ENABLED, {"tenant": tenant})).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's live sources."""
    counted = select(func.count()).select_from(live_sources).where(live_sources.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def of_credential(tenant: TenantId, db: Db, credential: str) -> Sequence[str]:
    """Names of the live sources that use this credential."""
    uses_it = or_(live_sources.c.credential == credential, live_sources.c.caller_credential == credential)
    matches = (live_sources.c.tenant_id == tenant, uses_it)
    return list((await db.execute(select(live_sources.c.name).where(*matches).order_by(live_sources.c.name))).scalars())


async def all_enabled(db: Db) -> Sequence[tuple[TenantId, LiveSourceId, LiveKind]]:
    """The enabled live sources of all tenants; the query bypasses row-level security."""
    rows = await db.execute(select(_ALL.c.tenant_id, _ALL.c.id, _ALL.c.kind))
    return [(TenantId(tenant), LiveSourceId(source), LiveKind(kind)) for tenant, source, kind in rows]


async def save(source: LiveSource, db: Db) -> None:
    """Store a live source and its status under its next version.

    Raises:
        NotFound: the tenant has no such live source.
        NameTaken: another live source of the tenant has the name.
    """
    matches = (live_sources.c.tenant_id == source.tenant, live_sources.c.id == source.id)
    columns = {**_declaration_values(source), **_status_values(source.status), "version": live_sources.c.version + 1}
    changed = await db.execute(update(live_sources).where(*matches).values(**columns).returning(live_sources.c.id))
    if changed.one_or_none() is None:
        raise NotFound("There is no such live source.")


async def report(tenant: TenantId, db: Db, source: LiveSourceId, status: LiveStatus) -> None:
    """Store the status of an attachment; the version is unchanged."""
    matches = (live_sources.c.tenant_id == tenant, live_sources.c.id == source)
    await db.execute(update(live_sources).where(*matches).values(**_status_values(status)))


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


async def remove(tenant: TenantId, db: Db, source: LiveSourceId) -> bool:
    """Delete a live source with its primitives; True if it existed."""
    matches = (live_sources.c.tenant_id == tenant, live_sources.c.id == source)
    changed = await db.execute(delete(live_sources).where(*matches).returning(live_sources.c.id))
    return changed.one_or_none() is not None


def _select_sources(tenant: TenantId) -> Select[*tuple[object, ...]]:
    return select(live_sources).where(live_sources.c.tenant_id == tenant)


def _declaration_values(source: LiveSource) -> Mapping[str, Any]:
    return {
        "name": source.name,
        "kind": source.kind.value,
        "settings": dict(source.settings),
        "prefix": source.prefix,
        "credential": source.credential,
        "caller_credential": source.caller_credential,
        "include": list(source.include),
        "exclude": list(source.exclude),
        "safety": {name: level.value for name, level in source.safety.items()},
        "accepts_changes": source.accepts_changes,
        "expose": source.expose.value,
        "enabled": source.enabled,
        "updated_at": source.updated_at,
    }


def _status_values(status: LiveStatus) -> Mapping[str, Any]:
    return {
        "state": status.state.value,
        "attachment": status.attachment,
        "replica": status.replica,
        "title": status.title,
        "since": status.since,
        "fault": status.fault,
        "failures": status.failures,
        "retry_at": status.retry_at,
        "notices": list(status.notices),
        "can_subscribe": status.can_subscribe,
    }


def _live_source(row: RowMapping) -> LiveSource:
    return LiveSource(
        tenant=TenantId(row["tenant_id"]),
        id=LiveSourceId(row["id"]),
        name=row["name"],
        kind=LiveKind(row["kind"]),
        settings=row["settings"],
        prefix=row["prefix"],
        credential=row["credential"],
        caller_credential=row["caller_credential"],
        include=tuple(row["include"]),
        exclude=tuple(row["exclude"]),
        safety={name: Safety(level) for name, level in row["safety"].items()},
        accepts_changes=row["accepts_changes"],
        expose=Exposure(row["expose"]),
        enabled=row["enabled"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        status=LiveStatus(
            state=AttachmentState(row["state"]),
            attachment=row["attachment"],
            replica=row["replica"],
            title=row["title"],
            since=row["since"],
            fault=row["fault"],
            failures=row["failures"],
            retry_at=row["retry_at"],
            notices=tuple(row["notices"]),
            can_subscribe=row["can_subscribe"],
        ),
    )
