"""Bounds of the files that a document by URL refers to: their bytes in all, and the time of their fetches."""

import asyncio
import json
from functools import partial

import pytest

from gateway.catalog.sources import document_files
from gateway.catalog.sources.document_files import add_files
from gateway.catalog.sources.drafts import Content
from gateway.catalog.sources.limits import FILES_S
from gateway.errors import DocumentTooLarge, FetchFailed
from tests.integration.catalog.conftest import Changes
from tests.support.catalog_options import with_options

ROOT = json.dumps({"openapi": "3.1.0", "paths": {f"/{n}": {"$ref": f"{n}.json"} for n in range(3)}}).encode()
FILE = json.dumps({"get": {"description": "x" * 1000}}).encode()


async def test_the_bytes_of_all_files_are_bounded(changes: Changes) -> None:
    """Ours: the limit counts the document and all its files, and the next file has what is left (OAS-7)."""
    changes.upstream.respond = lambda _: FILE
    catalog = with_options(changes.catalog, reference_hosts=frozenset({"127.0.0.1"}))
    content = Content(document=ROOT, url=f"{changes.upstream.url}/openapi.json")
    add = partial(add_files, changes.tenant.id, catalog, content)
    whole = len(ROOT) + 3 * len(FILE)

    assert (await add(limit=whole)).form.is_archive
    changes.upstream.seen.clear()
    with pytest.raises(DocumentTooLarge):
        await add(limit=whole - 1)
    assert len(changes.upstream.seen) == 3
    with pytest.raises(DocumentTooLarge):
        await add(limit=len(ROOT) + len(FILE) - 1)


async def test_the_time_of_all_files_is_bounded(changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a host that does not end its responses keeps an import no longer than the limit (OAS-7)."""
    assert FILES_S == 60
    monkeypatch.setattr(document_files, "FILES_S", 0.5)
    changes.upstream.gate = asyncio.Event()
    catalog = with_options(changes.catalog, reference_hosts=frozenset({"127.0.0.1"}))
    content = Content(document=ROOT, url=f"{changes.upstream.url}/openapi.json")

    with pytest.raises(FetchFailed, match=r"The files of the document took more than 0\.5 seconds"):
        await add_files(changes.tenant.id, catalog, content, limit=1_000_000)
    changes.upstream.gate.set()
