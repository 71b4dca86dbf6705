"""The versions of a source's document. A version does not change once it is stored."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import SourceId, TenantId
from gateway.store.engine import Db
from gateway.store.tables import source_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionContent:
    """A document, its import report, and its outline if the source is exposed to the query tools."""

    document: bytes
    report: bytes
    outline: bytes | None = None


async def insert(tenant: TenantId, db: Db, *, source: SourceId, number: int, content: VersionContent) -> None:
    """Store one version of a source's document with its import report and outline.

    Raises:
        NameTaken: the source has a version of this number.
        NotFound: the tenant has no such source.
    """
    await db.execute(
        insert_into(source_versions).values(
            tenant_id=tenant,
            source_id=source,
            number=number,
            document=content.document,
            report=content.report,
            outline=content.outline,
        )
    )


async def report(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The import report of one version; None if the version does not exist."""
    return await _of_version(db, select(source_versions.c.report), tenant, source, number)


async def document(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The document of one version, byte for byte; None if the version does not exist."""
    return await _of_version(db, select(source_versions.c.document), tenant, source, number)


async def outline(tenant: TenantId, db: Db, source: SourceId, number: int) -> bytes | None:
    """The outline of one version; None if the version does not exist or was not exposed to the query tools."""
    return await _of_version(db, select(source_versions.c.outline), tenant, source, number)


async def _of_version(db: Db, wanted: Select[Any], tenant: TenantId, source: SourceId, number: int) -> bytes | None:
    versions = source_versions.c
    is_it = (versions.tenant_id == tenant, versions.source_id == source, versions.number == number)
    found: bytes | None = (await db.execute(wanted.where(*is_it))).scalar_one_or_none()
    return found
