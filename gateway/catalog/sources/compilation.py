"""Obtains and compiles the document of an import, before the import stores anything."""

import json
from collections.abc import Mapping
from dataclasses import replace

import anyio.to_thread

from gateway.catalog.sources.document_files import add_files
from gateway.catalog.sources.drafts import Content, SourceDraft
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Compilation
from gateway.domain.updates.source_changes import ComparedVersion
from gateway.errors import DocumentTooLarge
from gateway.openapi.options import ImportOptions
from gateway.upstream.document_fetch import fetch_document

MAX_DOCUMENT_BYTES = 32 * 1024 * 1024


async def read_content(tenant: TenantId, catalog: CatalogContext, draft: SourceDraft) -> Content:
    """The document or archive that was sent, or the document fetched from the URL.

    Raises:
        DocumentTooLarge: the document exceeds the limit.
        FetchFailed, EgressDenied, UpstreamError: the URL returned no document.
    """
    if draft.url is not None:
        fetched = await fetch_document(catalog.upstream, draft.url, limit=MAX_DOCUMENT_BYTES, tenant=tenant)
        return await add_files(tenant, catalog, Content(document=fetched, url=draft.url), limit=MAX_DOCUMENT_BYTES)
    raw = await anyio.to_thread.run_sync(_encode, draft.document)
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise DocumentTooLarge(f"the document has {len(raw)} bytes (limit {MAX_DOCUMENT_BYTES})")
    return Content(document=raw, form=draft.form)


async def compile_source(
    tenant: TenantId,
    catalog: CatalogContext,
    content: Content,
    options: ImportOptions,
    *,
    before: ComparedVersion | None = None,
) -> tuple[Content, Compilation]:
    """Compile the document and return both; an archive or JSON string is replaced by the document made of it.

    The compilation is compared with the version `before`.

    Raises:
        InvalidBody: the JSON of the document breaks a rule of request bodies.
        InvalidDocument: the document cannot be read.
        DocumentTooLarge: the document exceeds a limit of documents, or the time or memory for reading one.
        BadInput: the options are invalid.
        LimitExceeded: too many documents wait to be read.
        Unavailable: the worker process did not start.
    """
    compiled = await catalog.workers.compile(content.document, options, form=content.form, before=before, tenant=tenant)
    if compiled.document is not None:
        content = replace(content, document=compiled.document)
    return content, compiled.compilation


def _encode(document: Mapping[str, object] | str | bytes | None) -> bytes:
    if isinstance(document, bytes):
        return document
    text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")  # the compiler locates and refuses the bytes of a lone surrogate
