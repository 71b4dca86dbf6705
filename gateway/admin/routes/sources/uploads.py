"""Endpoints of documents that are uploaded by digest, before an application of manifests names them."""

from collections.abc import AsyncGenerator

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import LARGE_BODY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.requests.documents import DocumentSent
from gateway.admin.responses.documents import DocumentBytes, DocumentUploaded
from gateway.catalog.sources import uploads
from gateway.domain.identifiers import TenantId
from gateway.errors import NotFound
from gateway.kinds.manifests import kind_in_manifests
from gateway.kinds.sources import MANAGED_SOURCE
from gateway.web.models import NoBody, NoQuery

_PATH = "/tenants/{t}/documents/{digest}"
_KIND = kind_in_manifests(MANAGED_SOURCE.name)
_DIGEST_LENGTH = 64
_HEXADECIMAL = frozenset("0123456789abcdef")
_CHUNK = 256 * 1024
"""Bytes of a document that are written to the response at once."""


async def upload_document(admin: AdminDependencies, call: AdminRequest[DocumentSent, NoQuery]) -> AdminResponse:
    """Upload a document or an archive under its SHA-256, for the `document` of a source in an application of
    manifests. It is deleted two days after the last upload or dry run that named it.
    """
    digest, body = _parse_digest(call.path["digest"]), call.body
    is_archive = body.media_type in body.archive_types
    until = await uploads.upload_document(call.tenant, admin.catalog, digest, body.content, is_archive=is_archive)
    shown = DocumentUploaded(digest=digest.hex(), size=len(body.content), expires_at=until)
    return AdminResponse(content=shown)


async def get_document(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Return the bytes of a document of a stored version, or of an uploaded one, by SHA-256."""
    digest = _parse_digest(call.path["digest"])
    await uploads.find_document(call.tenant, admin.catalog, digest)
    return AdminResponse(lines=_chunks(call.tenant, admin, digest))


async def _chunks(tenant: TenantId, admin: AdminDependencies, digest: bytes) -> AsyncGenerator[bytes]:
    """Yield the document in parts; the whole is in memory until a slow reader has it, so few are read at once."""
    async with admin.exporter.slot_pool.hold(tenant):  # guard: document-reads-bounded
        document = await uploads.read_document(tenant, admin.catalog, digest)
        for start in range(0, max(1, len(document)), _CHUNK):
            yield document[start : start + _CHUNK]


def _parse_digest(text: str) -> bytes:
    if len(text) != _DIGEST_LENGTH or not _HEXADECIMAL.issuperset(text):
        raise NotFound("a document has its SHA-256 as its path: 64 hexadecimal digits in small letters")
    return bytes.fromhex(text)


ENDPOINTS = (
    endpoint(
        "PUT",
        _PATH,
        upload_document,
        DocumentSent,
        query=NoQuery,
        responses={200: DocumentUploaded},
        problems={404, 429},
        limit=LARGE_BODY,
        work=WorkKind.CHECK,
        applied_kind=_KIND,
    ),
    endpoint(
        "GET",
        _PATH,
        get_document,
        NoBody,
        query=NoQuery,
        responses={200: DocumentBytes},
        problems={404},
        media_type="application/octet-stream",
        work=WorkKind.SCAN,
        applied_kind=_KIND,
    ),
)
