"""Obtains and compiles the document of an import, before the import stores anything."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import anyio.to_thread

from gateway.catalog.sources.worker_pool import UploadedArchive
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Compilation
from gateway.errors import DocumentTooLarge
from gateway.openapi.options import ImportOptions
from gateway.upstream.document_fetch import fetch_document

_PIECES_DEPTH = 3
"""Depth to which `_write` splits a document: each operation and each schema is encoded by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOrigin:
    """The origin of an import's document. At most one member is set; without one, the stored document is used."""

    document: Mapping[str, object] | str | bytes | None = None
    url: str | None = None
    archive: UploadedArchive | None = None

    @property
    def is_stored(self) -> bool:
        """True if the document is the stored one."""
        return self.document is None and self.url is None and self.archive is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A document as it will be stored, and the URL it was fetched from; or an archive that is not compiled yet."""

    document: bytes = b""
    url: str | None = None
    archive: UploadedArchive | None = None


async def read_content(tenant: TenantId, catalog: CatalogContext, origin: DocumentOrigin) -> Content:
    """The document or archive that was sent, or the document fetched from the URL.

    Raises:
        DocumentTooLarge: the document exceeds the limit.
        FetchFailed, EgressDenied, UpstreamError: the URL returned no document.
    """
    if origin.archive is not None:
        return Content(archive=origin.archive)
    if origin.url is not None:
        fetched = await fetch_document(catalog.upstream, origin.url, limit=catalog.document_limit, tenant=tenant)
        return Content(document=fetched, url=origin.url)
    raw = await anyio.to_thread.run_sync(_encode, origin.document)
    if len(raw) > catalog.document_limit:
        raise DocumentTooLarge(f"the document has {len(raw)} bytes; {catalog.document_limit} are allowed")
    return Content(document=raw)


async def compile_source(
    tenant: TenantId, catalog: CatalogContext, content: Content, options: ImportOptions
) -> tuple[Content, Compilation]:
    """Compile the document and return both; an archive is replaced by the one document made of its files.

    Raises:
        InvalidDocument: the document cannot be read.
        DocumentTooLarge: the document exceeds a limit of documents, or the time or memory for reading one.
        BadInput: the options are invalid.
        LimitExceeded: too many documents wait to be read.
        Unavailable: the worker process did not start.
    """
    archive = content.archive
    document = content.document if archive is None else archive
    compiled = await catalog.workers.compile(document, options, tenant=tenant)
    if compiled.bundle is not None:
        content = replace(content, document=compiled.bundle, archive=None)
    return content, compiled.compilation


def _encode(document: Mapping[str, object] | str | bytes | None) -> bytes:
    if isinstance(document, bytes):
        return document
    text = document if isinstance(document, str) else _write(document, _PIECES_DEPTH)
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate makes bytes that the compiler locates and refuses


def _write(value: object, depth: int) -> str:
    """JSON encoded in pieces: the encoder holds the GIL while it runs, and other threads must run in between."""
    if depth and isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        return "{" + ",".join(f"{_dump(name)}:{_write(member, depth - 1)}" for name, member in members) + "}"
    return _dump(value)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
