"""Retrieval and compilation of an import's document, before the import stores anything."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from gateway.catalog.sources.document_files import add_files, may_have_files
from gateway.catalog.sources.drafts import Content, SourceDraft
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Compilation
from gateway.domain.updates.source_changes import ComparedVersion
from gateway.domain.updates.watches import Sighting
from gateway.errors import DocumentTooLarge
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES
from gateway.openapi.options import ImportOptions
from gateway.upstream.document_fetch import FetchedDocument, fetch_changed


async def read_content(tenant: TenantId, catalog: CatalogContext, draft: SourceDraft) -> Content:
    """The document or archive that was sent, or the document fetched from the URL.

    Raises:
        DocumentTooLarge: the document exceeds the limit.
        FetchFailed, EgressDenied, UpstreamError: the URL returned no document.
    """
    if draft.url is not None:
        return await _read_url(tenant, catalog, draft.url)
    raw = await run_in_thread(CATALOG_CHANGES, tenant, _encode, draft.document)
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise DocumentTooLarge(f"the document has {len(raw)} bytes (limit {MAX_DOCUMENT_BYTES})")
    return Content(document=raw, form=draft.form)


async def read_changed(tenant: TenantId, catalog: CatalogContext, url: str, seen: Sighting) -> Content | None:
    """The document at a URL with its files; None if the server reports that it is unchanged since `seen`.

    A document that may refer to other files is fetched unconditionally: its HTTP validators do not cover the files.

    Raises:
        DocumentTooLarge, FetchFailed, EgressDenied, UpstreamError: as for `read_content`.
    """
    condition = Sighting() if may_have_files(catalog, url) else seen
    fetched = await fetch_changed(catalog.upstream, url, limit=MAX_DOCUMENT_BYTES, tenant=tenant, seen=condition)
    return await _complete(tenant, catalog, fetched, url) if fetched.is_modified else None


async def compile_source(
    tenant: TenantId,
    catalog: CatalogContext,
    content: Content,
    options: ImportOptions,
    *,
    before: ComparedVersion | None = None,
) -> tuple[Content, Compilation]:
    """Compile the document and return both. An archive or JSON string is replaced by the document in it.

    The compilation is compared with the version `before`.

    Raises:
        InvalidBody: the JSON of the document violates a rule of request bodies.
        InvalidDocument: the document cannot be read.
        DocumentTooLarge: the document exceeds a limit of documents, or the time or memory for reading one.
        BadInput: the options are invalid.
        LimitExceeded: too many documents are queued.
        Unavailable: the worker process did not start.
    """
    compiled = await catalog.workers.compile(content.document, options, form=content.form, before=before, tenant=tenant)
    if compiled.document is not None:
        content = replace(content, document=compiled.document)
    if content.seen is None:
        content = replace(content, digest=await digest_of(tenant, content.document))
    return content, compiled.compilation


async def digest_of(tenant: TenantId, document: bytes) -> bytes:
    """The SHA-256 of a document, computed in a thread, because 32 MiB would block the event loop."""
    return (await run_in_thread(CATALOG_CHANGES, tenant, hashlib.sha256, document)).digest()


async def _read_url(tenant: TenantId, catalog: CatalogContext, url: str) -> Content:
    fetched = await fetch_changed(catalog.upstream, url, limit=MAX_DOCUMENT_BYTES, tenant=tenant)
    return await _complete(tenant, catalog, fetched, url)


async def _complete(tenant: TenantId, catalog: CatalogContext, fetched: FetchedDocument, url: str) -> Content:
    """The document with its files; the digest covers all of them."""
    content = Content(document=fetched.body, url=url)
    content = await add_files(tenant, catalog, content, limit=MAX_DOCUMENT_BYTES)
    digest, now = await digest_of(tenant, content.document), datetime.now(UTC)
    sighting = Sighting(etag=fetched.etag, last_modified=fetched.last_modified, digest=digest, checked_at=now)
    return replace(content, seen=sighting, digest=digest)


def _encode(document: Mapping[str, object] | str | bytes | None) -> bytes:
    if isinstance(document, bytes):
        return document
    text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")  # the compiler locates and refuses the bytes of a lone surrogate
