"""A tenant's sources, each with its refresh state and the number of its proposal."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, RowMapping, Select, Table, and_, bindparam, delete, func, or_, select, update
from sqlalchemy import insert as insert_into
from sqlalchemy.dialects.postgresql import aggregate_order_by

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.queries import QueriedSource
from gateway.domain.sources import Exposure, Source
from gateway.domain.updates.source_versions import RefreshStatus
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.pagination import select_page
from gateway.store.sources.refreshes import REFRESH_JOB_PREFIX, read_sighting
from gateway.store.sources.tables import source_proposals, source_refreshes
from gateway.store.tables import due_work, secrets, sources

_MAPPER = RowMapper(Source, sources)
_REFRESH_PREFIX = "look_"
_QUERIED = (
    select(sources.c.id, sources.c.name, sources.c.active_version)
    .where(sources.c.tenant_id == bindparam("tenant"), sources.c.expose != Exposure.TOOLS.value)
    .order_by(sources.c.name)
)


async def insert(source: Source, db: Db) -> None:
    """Add a source.

    Raises:
        NameTaken: the tenant has a source of this name.
    """
    await db.execute(
        insert_into(sources).values(
            tenant_id=source.tenant,
            id=source.id,
            created_at=source.created_at,
            version=source.version,
            **_row_values(source),
        )
    )


async def get(tenant: TenantId, db: Db, name_or_id: str) -> Source | None:
    """The source with this id or name; an id takes precedence."""
    is_named = or_(sources.c.id == name_or_id, sources.c.name == name_or_id)
    rows = await db.execute(
        _select_sources(tenant).where(is_named).order_by((sources.c.id == name_or_id).desc()).limit(1)
    )
    row = rows.mappings().one_or_none()
    return _source(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Source]:
    """One page of the tenant's sources, by default sorted by name."""
    query = select_page(_select_sources(tenant), sources.c, "name", after=after, limit=limit, order=order)
    return [_source(row) for row in (await db.execute(query)).mappings()]


async def save(source: Source, db: Db) -> Source:
    """Store a source, and return it with its new version.

    Raises:
        NotFound: the tenant has no such source.
        NameTaken: another source of the tenant has the name.
    """
    changed = await db.execute(
        update(sources)
        .where(sources.c.tenant_id == source.tenant, sources.c.id == source.id)
        .values(version=sources.c.version + 1, **_row_values(source))
        .returning(sources.c.version)
    )
    version = changed.scalar_one_or_none()
    if version is None:
        raise NotFound("There is no such source.")
    return replace(source, version=int(version))


async def remove(tenant: TenantId, db: Db, source: SourceId) -> bool:
    """Delete a source with all rows that belong to it; True if it existed."""
    deleted = delete(sources).where(sources.c.tenant_id == tenant, sources.c.id == source).returning(sources.c.id)
    return (await db.execute(deleted)).one_or_none() is not None


async def queried(tenant: TenantId, db: Db) -> Sequence[QueriedSource]:
    """The sources that the query tools show, sorted by name."""
    rows = await db.execute(_QUERIED, {"tenant": tenant})
    return [QueriedSource(id=SourceId(id_), name=name, version=version) for id_, name, version in rows]


def _select_sources(tenant: TenantId) -> Select[*tuple[object, ...]]:
    refreshes = [column.label(f"{_REFRESH_PREFIX}{column.name}") for column in source_refreshes.c]
    proposal = source_proposals.c.number.label("proposal")
    joined = (
        sources.outerjoin(source_refreshes, _belongs_to(source_refreshes))
        .outerjoin(source_proposals, and_(_belongs_to(source_proposals), _is_current()))
        .outerjoin(
            due_work,
            and_(due_work.c.tenant_id == sources.c.tenant_id, due_work.c.id == REFRESH_JOB_PREFIX + sources.c.id),
        )
    )
    selected = select(sources, _schemes(), proposal, due_work.c.due_at, *refreshes)
    return selected.select_from(joined).where(sources.c.tenant_id == tenant)


def _belongs_to(table: Table) -> ColumnElement[bool]:
    return and_(table.c.tenant_id == sources.c.tenant_id, table.c.source_id == sources.c.id)


def _is_current() -> ColumnElement[bool]:
    """A proposal counts only while the version that it was compared with is active."""
    return source_proposals.c.replaces == sources.c.active_version


def _schemes() -> ColumnElement[list[str]]:
    """The security schemes with a stored credential, read from the table of secrets, so they are always current."""
    stored = select(func.array_agg(aggregate_order_by(secrets.c.scheme, secrets.c.scheme)))
    is_of_source = (secrets.c.tenant_id == sources.c.tenant_id, secrets.c.source_id == sources.c.id)
    return stored.where(*is_of_source).correlate(sources).scalar_subquery().label("schemes")


def _row_values(source: Source) -> dict[str, object]:
    return {**_MAPPER.settable_values(source), "updated_at": source.updated_at}


def _source(row: RowMapping) -> Source:
    refresh = RefreshStatus(seen=read_sighting(row, _REFRESH_PREFIX), next_at=row["due_at"], proposal=row["proposal"])
    return replace(_MAPPER.read(row), schemes=tuple(row["schemes"] or ()), refresh_status=refresh)
