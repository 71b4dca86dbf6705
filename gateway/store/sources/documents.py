"""Documents that were uploaded by digest, and those of stored versions, which have a digest too."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.store.engine import Db
from gateway.store.sources.tables import uploaded_documents
from gateway.store.tables import source_versions

_columns = uploaded_documents.c


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedDocument:
    """A document or an archive of its files, with the SHA-256 of its bytes."""

    digest: bytes = field(repr=False)
    document: bytes = field(repr=False)
    is_archive: bool
    expires_at: datetime


async def save(tenant: TenantId, db: Db, uploaded: UploadedDocument) -> None:
    """Store a document; of a stored one, the expiry and the form change."""
    added = insert_into(uploaded_documents).values(
        tenant_id=tenant,
        digest=uploaded.digest,
        document=uploaded.document,
        is_archive=uploaded.is_archive,
        expires_at=uploaded.expires_at,
    )
    keys = [_columns.tenant_id, _columns.digest]
    changed = {"expires_at": added.excluded.expires_at, "is_archive": added.excluded.is_archive}
    await db.execute(added.on_conflict_do_update(index_elements=keys, set_=changed))


async def get(tenant: TenantId, db: Db, digest: bytes) -> UploadedDocument | None:
    """The uploaded document with this digest."""
    wanted = select(_columns.document, _columns.is_archive, _columns.expires_at)
    row = (await db.execute(wanted.where(*_is(tenant, digest)))).mappings().one_or_none()
    return None if row is None else UploadedDocument(digest=digest, **row)


async def of_version(tenant: TenantId, db: Db, digest: bytes) -> bytes | None:
    """The document of a stored version of any source with this digest; versions before migration 0034 have none."""
    known = source_versions.c
    query = select(known.document).where(known.tenant_id == tenant, known.digest == digest).limit(1)
    found: bytes | None = (await db.execute(query)).scalar_one_or_none()
    return found


async def exists(tenant: TenantId, db: Db, digest: bytes) -> bool:
    """True if the document is uploaded or that of a stored version."""
    known = source_versions.c
    uploaded = select(_columns.digest).where(*_is(tenant, digest))
    versions = select(known.digest).where(known.tenant_id == tenant, known.digest == digest)
    return bool((await db.execute(select(uploaded.exists() | versions.exists()))).scalar_one())


async def extend(tenant: TenantId, db: Db, digest: bytes, until: datetime) -> None:
    """Move the expiry of an uploaded document, if it is stored."""
    await db.execute(update(uploaded_documents).where(*_is(tenant, digest)).values(expires_at=until))


async def sizes(tenant: TenantId, db: Db) -> Sequence[tuple[bytes, int]]:
    """The digest and the number of bytes of each uploaded document, the one that expires last first."""
    size = func.octet_length(_columns.document)
    query = select(_columns.digest, size).where(_columns.tenant_id == tenant).order_by(_columns.expires_at.desc())
    return [(digest, int(number)) for digest, number in await db.execute(query)]


async def next_expiry(tenant: TenantId, db: Db) -> datetime | None:
    """The time at which the next document expires; None if there is none."""
    query = select(func.min(_columns.expires_at)).where(_columns.tenant_id == tenant)
    found: datetime | None = (await db.execute(query)).scalar_one()
    return found


async def remove(tenant: TenantId, db: Db, digests: Collection[bytes]) -> None:
    """Delete uploaded documents."""
    await db.execute(delete(uploaded_documents).where(_columns.tenant_id == tenant, _columns.digest.in_(list(digests))))


async def remove_expired(tenant: TenantId, db: Db, now: datetime) -> None:
    """Delete the documents that have expired."""
    await db.execute(delete(uploaded_documents).where(_columns.tenant_id == tenant, _columns.expires_at <= now))


def _is(tenant: TenantId, digest: bytes) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _columns.tenant_id == tenant, _columns.digest == digest
