"""The versions of a source's document. A version does not change once it is stored."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, delete, func, select
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.sources import Source
from gateway.domain.updates.source_versions import SourceVersion, VersionOrigin
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.tables import source_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionContent:
    """A document, its import report, and its outline if the source is exposed to the query tools."""

    document: bytes = field(repr=False)
    report: bytes = field(repr=False)
    outline: bytes | None = field(default=None, repr=False)
    digest: bytes | None = field(default=None, repr=False)
    tools: int | None = None
    origin: VersionOrigin = VersionOrigin.IMPORT
    restored: int | None = None
    """The number of the version that it restores."""


async def insert(tenant: TenantId, db: Db, *, source: SourceId, number: int, content: VersionContent) -> None:
    """Store one version of a source's document with its import report and outline.

    Raises:
        NameTaken: the source has a version of this number.
        NotFound: the tenant has no such source.
    """
    added = insert_into(source_versions).values(tenant_id=tenant, source_id=source, number=number)
    await db.execute(added.values(**columns_of(content)))


async def page(tenant: TenantId, db: Db, source: Source, *, below: int | None, limit: int) -> Sequence[SourceVersion]:
    """Versions of a source with numbers below `below`, the newest first."""
    known = source_versions.c
    size = func.pg_column_size(known.document) + func.pg_column_size(known.report)
    size += func.coalesce(func.pg_column_size(known.outline), 0)
    columns = (known.number, known.created_at, known.digest, known.tools, known.origin, known.restored)
    query = select(*columns, size.label("stored_bytes")).where(*_of(tenant, source.id))
    if below is not None:
        query = query.where(known.number < below)
    rows = (await db.execute(query.order_by(known.number.desc()).limit(limit))).mappings()
    return [_version(row, source) for row in rows]


async def numbers(tenant: TenantId, db: Db, source: SourceId) -> Sequence[int]:
    """The numbers of all versions of a source."""
    return list((await db.execute(select(source_versions.c.number).where(*_of(tenant, source)))).scalars())


async def remove(tenant: TenantId, db: Db, source: SourceId, removed: Collection[int]) -> None:
    """Delete versions of a source."""
    await db.execute(delete(source_versions).where(*_of(tenant, source), source_versions.c.number.in_(removed)))


async def report(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The import report of one version; None if the version does not exist."""
    return await _of_version(db, select(source_versions.c.report), tenant, source, number=number)


async def document(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The document of one version, byte for byte; None if the version does not exist."""
    return await _of_version(db, select(source_versions.c.document), tenant, source, number=number)


async def digest(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The SHA-256 of the document of one version; None if the version does not exist."""
    stored = func.coalesce(source_versions.c.digest, func.sha256(source_versions.c.document))
    return await _of_version(db, select(stored), tenant, source, number=number)


async def outline(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The outline of one version; None if the version does not exist or was not exposed to the query tools."""
    return await _of_version(db, select(source_versions.c.outline), tenant, source, number=number)


async def _of_version(db: Db, query: Select[Any], tenant: TenantId, source: SourceId, *, number: int) -> bytes | None:
    found = await db.execute(query.where(*_of(tenant, source), source_versions.c.number == number))
    value: bytes | None = found.scalar_one_or_none()
    return value


def _of(tenant: TenantId, source: SourceId) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return source_versions.c.tenant_id == tenant, source_versions.c.source_id == source


def _version(row: RowMapping, source: Source) -> SourceVersion:
    return read_record(SourceVersion, row, is_active=row["number"] == source.active_version)
