"""The secrets of keys in PostgreSQL: what a use changes, and what a replica of an earlier release changes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Key, KeySecret
from gateway.store.engine import Store
from gateway.store.identity import keys
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.tenants import TENANTS
from tests.integration.store.samples import NOW, make_key, make_tenant


@pytest.fixture
async def tenant(store: Store) -> TenantId:
    """A stored tenant without anything."""
    made = make_tenant()
    async with store.transaction(made.id) as db:
        await TENANTS.insert(made.id, db, made)
    return made.id


@pytest.fixture
async def key(store: Store, tenant: TenantId) -> Key:
    """A stored key with two secrets."""
    made = make_key(tenant)
    former = KeySecret(digest=b"former", pepper="one", number=2, ends_at=NOW + timedelta(hours=1))
    async with store.transaction(tenant) as db:
        await KEYS.insert(tenant, db, replace(made, former=former))
        found = await keys.get(tenant, db, made.id)
    assert found is not None
    assert found.former == former
    return found


async def test_a_use_is_stored_as_its_hour_and_never_moves_back(store: Store, tenant: TenantId, key: Key) -> None:
    """Ours: a use changes neither the version nor anything else of the key (IDN-5)."""
    async with store.transaction(tenant) as db:
        for hour in (NOW, NOW - timedelta(hours=1)):
            await keys.note_use(tenant, db, hour, [key.id])
        assert await keys.get(tenant, db, key.id) == replace(key, last_used_at=NOW)


async def test_a_digest_is_replaced_only_as_it_was_read(store: Store, tenant: TenantId, key: Key) -> None:
    """Ours: a use that is stored late undoes no rotation (IDN-5)."""
    assert key.former is not None
    async with store.transaction(tenant) as db:
        for secret in (key.secret, key.former):
            renewed = replace(secret, digest=b"new " + secret.digest, pepper="two")
            assert await keys.renew_secret(tenant, db, key.id, secret, after=renewed)
            assert not await keys.renew_secret(tenant, db, key.id, secret, after=replace(renewed, digest=b"late"))
        found = await keys.get(tenant, db, key.id)
    assert found is not None
    assert found.former is not None
    assert (found.secret.digest, found.former.digest) == (b"new \x00digest\xff", b"new former")
    assert (found.secret.pepper, found.former.pepper, found.version) == ("two", "two", key.version)


async def test_a_rotation_by_an_earlier_release_ends_both_secrets(store: Store, tenant: TenantId, key: Key) -> None:
    """Ours: an older replica replaces the digest alone; no secret that it meant to end stays valid (IDN-5)."""
    async with store.transaction(tenant) as db:
        own = {"digest": b"of an older replica", "id": key.id}
        await db.execute(text("update keys set digest = :digest, version = version + 1 where id = :id"), own)
        found = await keys.get(tenant, db, key.id)
    assert found is not None
    assert found.former is None
    assert found.secret == replace(key.secret, digest=b"of an older replica", pepper=None, number=key.secret.number + 1)
