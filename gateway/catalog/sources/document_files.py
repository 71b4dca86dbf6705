"""Files to which a document from a URL refers, fetched from the same origin if the operator allows its host.

A child process finds the references; the gateway fetches the named files, until none is missing. References to other
origins are never fetched. References to files that do not exist remain, and the report lists them.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace

import anyio
from yarl import URL

from gateway.catalog.sources.drafts import Content
from gateway.catalog.sources.limits import FILES_S, MAX_FILES, MAX_ROUNDS
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.errors import FetchFailed
from gateway.openapi.options import DocumentForm
from gateway.upstream.document_fetch import fetch_document

_PARENT = ".."


async def add_files(tenant: TenantId, catalog: CatalogContext, content: Content, *, limit: int) -> Content:
    """Return the document and the files that it refers to as an archive; only the document if it refers to none.

    Raises:
        FetchFailed: the files could not be fetched within 60 s.
        DocumentTooLarge: the files together exceed `limit` bytes.
        EgressDenied, UpstreamError: as for the document.
        InvalidDocument, LimitExceeded, Unavailable: as for a compilation.
    """
    if not may_have_files(catalog, content.url or ""):  # guard: reference-host
        return content
    url = URL(content.url or "")
    entry = url.path.strip("/")
    files = {entry: content.document}
    try:
        with anyio.fail_after(FILES_S):
            await _fetch_missing(tenant, catalog, url, files, limit=limit)
    except TimeoutError:
        raise FetchFailed(f"The files of the document took more than {FILES_S:g} seconds.") from None
    if len(files) == 1:
        return content
    archive = await run_in_thread(CATALOG_CHANGES, tenant, _pack, files)
    return replace(content, document=archive, form=DocumentForm(is_archive=True, entry=entry))


def may_have_files(catalog: CatalogContext, url: str) -> bool:
    """True if the operator allows files from the host of a document's URL."""
    host = URL(url).host
    return host is not None and host.lower() in catalog.options.reference_hosts


async def _fetch_missing(
    tenant: TenantId, catalog: CatalogContext, url: URL, files: dict[str, bytes], *, limit: int
) -> None:
    entry = next(iter(files))
    tried = set(files)
    for _ in range(MAX_ROUNDS):
        archive = await run_in_thread(CATALOG_CHANGES, tenant, _pack, files)
        missing = await catalog.workers.list_missing(archive, entry=entry, tenant=tenant)
        to_fetch = [path for path in missing if path not in tried and _is_safe_path(path)]
        if not to_fetch or len(tried) >= MAX_FILES:
            return
        for path in to_fetch[: MAX_FILES - len(tried)]:
            tried.add(path)
            room = limit - sum(map(len, files.values()))
            try:
                files[path] = await fetch_document(
                    catalog.upstream, str(_sibling_url(url, path)), limit=room, tenant=tenant
                )
            except FetchFailed:
                continue  # the reference remains, and the report lists it


def _is_safe_path(path: str) -> bool:
    """True if the path stays within the host and has no control characters."""
    return path.isprintable() and not path.startswith((_PARENT, "/"))


def _sibling_url(url: URL, path: str) -> URL:
    """The URL of a path at the origin of the document.

    `with_path` encodes the path, so it cannot become another URL.
    """
    return url.origin().with_path(f"/{path}")


def _pack(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, raw in files.items():
            archive.writestr(zipfile.ZipInfo(path), raw)
    return packed.getvalue()
