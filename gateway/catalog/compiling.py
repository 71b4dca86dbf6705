"""How a document is obtained and compiled: the one place that a separate worker will take over.

Compiling is pure and can take seconds, so it runs in a thread and few run at once.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import anyio.to_thread

from gateway.catalog.catalog import Catalog
from gateway.domain.sources import Compilation
from gateway.errors import DocumentTooLarge
from gateway.openapi.compile import ImportOptions, compile_document
from gateway.upstream.fetch import fetch_document

_PIECES_DEPTH = 3
"""Down to each path and each schema of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A document as it will be stored, and the URL it was fetched from."""

    document: bytes
    url: str | None = None


async def read_content(catalog: Catalog, *, document: Mapping[str, object] | str | None, url: str | None) -> Content:
    """The document that was sent, or the one that stands at the URL.

    Raises:
        DocumentTooLarge: it is beyond the limit.
        FetchFailed, EgressDenied, UpstreamError: the URL gave no document.
    """
    if url is not None:
        return Content(document=await fetch_document(catalog.upstream, url, limit=catalog.document_limit), url=url)
    raw = await anyio.to_thread.run_sync(_encode, document)
    if len(raw) > catalog.document_limit:
        raise DocumentTooLarge(f"the document has {len(raw)} bytes; {catalog.document_limit} are allowed")
    return Content(document=raw)


async def compile_source(catalog: Catalog, content: Content, options: ImportOptions) -> Compilation:
    """What an import takes from the document.

    Raises:
        InvalidDocument: it cannot be read; a fault says where.
    """
    return await anyio.to_thread.run_sync(compile_document, content.document, options, limiter=catalog.compiling)


def _encode(document: Mapping[str, object] | str | None) -> bytes:
    text = document if isinstance(document, str) else _write(document, _PIECES_DEPTH)
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate makes bytes that the compiler refuses by place


def _write(value: object, depth: int) -> str:
    """JSON in pieces: the encoder holds the interpreter while it runs, and others must get their turn in between."""
    if depth and isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        return "{" + ",".join(f"{_dump(name)}:{_write(member, depth - 1)}" for name, member in members) + "}"
    return _dump(value)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
