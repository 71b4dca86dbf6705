"""Documents that are uploaded by digest: bounded, deleted after their time, and each tenant's own."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from gateway.catalog import tenants
from gateway.catalog.sources import imports, uploads
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.sources.limits import MAX_UPLOADED_BYTES, MAX_UPLOADS, UPLOAD_LIFETIME
from gateway.catalog.sources.uploads import excess_of
from gateway.errors import InvalidBody, NotFound
from gateway.store import jobs
from gateway.store.jobs import Job
from gateway.store.sources import documents
from tests.integration.catalog.conftest import BY, Changes
from tests.support.documents import pets
from tests.support.manifests import text_of

TEXT = text_of(pets("https://pets.example"))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


async def _upload(changes: Changes, content: bytes, digest: bytes | None = None) -> datetime:
    upload = uploads.upload_document(
        changes.tenant.id, changes.catalog, digest or _digest(content), content, is_archive=False
    )
    return await upload


async def _due(changes: Changes) -> list[Job]:
    far = datetime.now(UTC) + timedelta(days=30)
    async with changes.catalog.store.unscoped() as db:
        found = await jobs.page(db, until=far, limit=100, of_each=100)
    return [one for one in found if one.kind == uploads.EXPIRY_KIND]


async def test_a_document_is_found_by_its_digest_until_it_expires(changes: Changes) -> None:
    """Ours: an upload is the tenant's own for two days, and a wrong digest is refused (CFG-6)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    until = await _upload(changes, TEXT)
    assert timedelta(days=1, hours=23) < until - datetime.now(UTC) <= UPLOAD_LIFETIME
    assert await uploads.read_document(tenant, catalog, _digest(TEXT)) == TEXT
    with pytest.raises(InvalidBody, match="SHA-256"):
        await _upload(changes, TEXT, _digest(b"another"))
    other = await tenants.create_tenant(catalog, "globex", "Globex", by=BY)
    for read in (uploads.read_document, uploads.find_document):
        with pytest.raises(NotFound):
            await read(other.id, catalog, _digest(TEXT))
    [due] = await _due(changes)
    await uploads.expire_due(catalog, due)  # too early: the job moves to the time of the next expiry
    [due] = await _due(changes)
    async with catalog.store.transaction(tenant) as db:
        await documents.extend(tenant, db, _digest(TEXT), datetime.now(UTC))
    await uploads.expire_due(catalog, due)
    assert await _due(changes) == []
    with pytest.raises(NotFound):
        await uploads.find_document(tenant, catalog, _digest(TEXT))
    assert [one for one in changes.events if one.tenant == tenant] == []  # an upload is no change of the catalog


async def test_the_document_of_a_version_is_found_too(changes: Changes) -> None:
    """Ours: a stored document needs no upload (CFG-6)."""
    await imports.import_source(changes.tenant.id, changes.catalog, SourceDraft(name="pets", document=TEXT), by=BY)
    await uploads.find_document(changes.tenant.id, changes.catalog, _digest(TEXT))
    assert await uploads.read_document(changes.tenant.id, changes.catalog, _digest(TEXT)) == TEXT


async def test_the_oldest_uploads_above_the_limit_are_deleted(changes: Changes) -> None:
    """Ours: uploads of a tenant are bounded by number and bytes, and the one that expires first goes first (CFG-6)."""
    contents = [b"%d" % number for number in range(MAX_UPLOADS + 1)]
    for content in contents:
        await _upload(changes, content)
    tenant, catalog = changes.tenant.id, changes.catalog
    async with catalog.store.transaction(tenant) as db:
        stored = {digest for digest, _ in await documents.sizes(tenant, db)}
    assert stored == {_digest(content) for content in contents[1:]}
    assert excess_of([(b"a", MAX_UPLOADED_BYTES), (b"b", 1), (b"c", 1)]) == [b"b", b"c"]
