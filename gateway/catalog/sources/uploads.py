"""Documents that are uploaded by digest, so that manifests and plans name them without their bytes.

A document is stored for two days; each dry run that names it moves its expiry. It is no configuration: nothing uses
it, and no entry is written, until an application makes it a version of a source.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from gateway.catalog.sources.compilation import digest_of
from gateway.catalog.sources.drafts import Content
from gateway.catalog.sources.limits import MAX_UPLOADED_BYTES, MAX_UPLOADS, UPLOAD_LIFETIME
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.openapi.options import DocumentForm
from gateway.store import jobs, tenants
from gateway.store.jobs import Job
from gateway.store.sources import documents
from gateway.store.sources.documents import UploadedDocument

EXPIRY_KIND = "documents_expire"
_JOB = "documents"
_LEASE = timedelta(minutes=5)


async def upload_document(
    tenant: TenantId, catalog: CatalogContext, digest: bytes, document: bytes, *, is_archive: bool
) -> datetime:
    """Store a document, and return the time of its deletion. The oldest ones above the limits are deleted.

    Raises:
        InvalidBody: the document has another digest.
        NotFound: the tenant does not exist.
    """
    if await digest_of(tenant, document) != digest:  # guard: upload-digest
        reason = "the SHA-256 of the body is another one"
        raise InvalidBody(f"digest: {reason}", faults=[Fault(pointer="", reason=reason)])
    until = datetime.now(UTC) + UPLOAD_LIFETIME
    uploaded = UploadedDocument(digest=digest, document=document, is_archive=is_archive, expires_at=until)
    async with catalog.store.transaction(tenant) as db:
        if await tenants.lock(tenant, db) is None:  # uploads at once would exceed the limits together
            raise NotFound("no such tenant")
        await documents.save(tenant, db, uploaded)
        await documents.remove(tenant, db, excess_of(await documents.sizes(tenant, db)))
        await jobs.bring_forward(tenant, db, _job(tenant, until))
    return until


async def find_document(tenant: TenantId, catalog: CatalogContext, digest: bytes) -> None:
    """Check that the tenant has the document, uploaded or as a version of a source.

    Raises:
        NotFound: it has not.
    """
    async with catalog.store.transaction(tenant) as db:
        if not await documents.exists(tenant, db, digest):
            raise NotFound("no such document")


async def read_document(tenant: TenantId, catalog: CatalogContext, digest: bytes) -> bytes:
    """The bytes of the document with this digest.

    Raises:
        NotFound: the tenant has no such document.
    """
    return (await open_document(tenant, catalog, digest)).document


async def open_document(tenant: TenantId, catalog: CatalogContext, digest: bytes) -> Content:
    """The document with this digest, uploaded or of a version; an uploaded one is kept for its full time again.

    Raises:
        NotFound: the tenant has no such document.
    """
    async with catalog.store.transaction(tenant) as db:
        uploaded = await documents.get(tenant, db, digest)
        if uploaded is not None:
            await documents.extend(tenant, db, digest, datetime.now(UTC) + UPLOAD_LIFETIME)
            return Content(document=uploaded.document, form=DocumentForm(is_archive=uploaded.is_archive))
        document = await documents.of_version(tenant, db, digest)
    if document is None:
        raise NotFound("no such document")
    return Content(document=document)


def excess_of(sizes: Sequence[tuple[bytes, int]]) -> Sequence[bytes]:
    """The digests of the documents above the limits, given all with their bytes, the one that expires last first."""
    kept, size, excess = 0, 0, list[bytes]()
    for digest, length in sizes:
        kept, size = kept + 1, size + length
        if kept > MAX_UPLOADS or size > MAX_UPLOADED_BYTES:  # guard: uploads-bounded
            excess.append(digest)
    return excess


async def expire_due(catalog: CatalogContext, due: Job) -> None:
    """Delete the documents of a tenant that have expired, unless another replica has claimed the job."""
    tenant, now = due.tenant, datetime.now(UTC)
    async with catalog.store.transaction(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=now + _LEASE):
            return
        await documents.remove_expired(tenant, db, now)
        following = await documents.next_expiry(tenant, db)
        if following is None:
            await jobs.remove(tenant, db, due.id)
        else:
            await jobs.schedule(tenant, db, _job(tenant, following))


def _job(tenant: TenantId, due_at: datetime) -> Job:
    return Job(tenant=tenant, id=_JOB, kind=EXPIRY_KIND, due_at=due_at)
