"""Stored overrides of imported tools, one row per operation; a row remains if its operation disappears."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
from sqlalchemy import ColumnElement, RowMapping, delete, func, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import OverrideId, SourceId, TenantId
from gateway.domain.overrides import Override, OverrideFields
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.tables import overrides, sources

_decode = msgspec.json.Decoder(OverrideFields).decode


async def insert(tenant: TenantId, db: Db, override: Override) -> None:
    """Add an override.

    Raises:
        NameTaken: another override of the tenant has the name, or the operation has an override.
        NotFound: the tenant has no such source.
    """
    columns = {"source_id": override.source, "identity": override.identity, "created_at": override.created_at}
    identity = {"tenant_id": tenant, "id": override.id, "version": override.version}
    await db.execute(insert_into(overrides).values(**identity, **columns, **_mutable_columns(override)))


async def get(tenant: TenantId, db: Db, source: SourceId, found: OverrideId) -> Override | None:
    """The source's override with this id."""
    query = select(overrides).where(*_of(tenant, source), overrides.c.id == found)
    row = (await db.execute(query)).mappings().one_or_none()
    return read_override(row) if row else None


async def of_source(tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, Override]:
    """All overrides of a source, by the identity of their operation."""
    rows = await db.execute(select(overrides).where(*_of(tenant, source)).order_by(overrides.c.identity))
    return {str(row["identity"]): read_override(row) for row in rows.mappings()}


async def page(tenant: TenantId, db: Db, source: SourceId, *, after: str | None, limit: int) -> Sequence[Override]:
    """One page of a source's overrides sorted by operation identity."""
    query = select(overrides).where(*_of(tenant, source)).order_by(overrides.c.identity).limit(limit)
    rows = await db.execute(query.where(overrides.c.identity > after) if after is not None else query)
    return [read_override(row) for row in rows.mappings()]


async def names(tenant: TenantId, db: Db) -> Mapping[str, str]:
    """All tool names that overrides set, each with the name of its source; missing operations are included."""
    is_of_source = (sources.c.tenant_id == overrides.c.tenant_id) & (sources.c.id == overrides.c.source_id)
    query = select(overrides.c.name, sources.c.name.label("source")).join_from(overrides, sources, is_of_source)
    rows = await db.execute(query.where(overrides.c.tenant_id == tenant, overrides.c.name.is_not(None)))
    return {str(name): str(source) for name, source in rows}


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's overrides, of all sources."""
    counted = select(func.count()).select_from(overrides).where(overrides.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def save(tenant: TenantId, db: Db, override: Override) -> None:
    """Store an override under its next version.

    Raises:
        NotFound: the tenant has no such override.
        NameTaken: another override of the tenant has the name.
    """
    matches = (overrides.c.tenant_id == tenant, overrides.c.id == override.id)
    written = update(overrides).where(*matches).values(version=overrides.c.version + 1, **_mutable_columns(override))
    if (await db.execute(written.returning(overrides.c.id))).one_or_none() is None:
        raise NotFound("There is no such override.")


async def remove(tenant: TenantId, db: Db, override: OverrideId) -> bool:
    """Delete an override; True if it existed."""
    matches = (overrides.c.tenant_id == tenant, overrides.c.id == override)
    return (await db.execute(delete(overrides).where(*matches).returning(overrides.c.id))).one_or_none() is not None


def read_override(row: RowMapping, prefix: str = "") -> Override:
    """The override in a row, whose columns may have a prefix."""
    return Override(
        id=OverrideId(row[f"{prefix}id"]),
        source=SourceId(row["source_id"]),
        identity=row["identity"],
        changes=replace(_decode(row[f"{prefix}body"]), name=row[f"{prefix}name"]),
        version=row[f"{prefix}version"],
        created_at=row[f"{prefix}created_at"],
        updated_at=row[f"{prefix}updated_at"],
    )


def _of(tenant: TenantId, source: SourceId) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return overrides.c.tenant_id == tenant, overrides.c.source_id == source


def _mutable_columns(override: Override) -> dict[str, object]:
    """Columns of an override. The name has a column of its own, so that a database constraint keeps names unique."""
    return {
        "name": override.changes.name,
        "body": msgspec.json.encode(replace(override.changes, name=None)),
        "updated_at": override.updated_at,
    }
