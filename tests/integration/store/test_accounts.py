"""Accounts of users in the store: what their tokens are bound to, whom they end with, and who may store new ones."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.identifiers import new_account_id
from gateway.domain.tenancy.accounts import AccountState
from gateway.errors import SecretUnreadable
from gateway.store.engine import Store
from gateway.store.identity import accounts, issuers
from gateway.store.kinds.credentials import CREDENTIALS
from tests.integration.store.samples import NOW, SEALER, Stored, make_provider_tokens, store_everything
from tests.support.servers import TestDatabase, execute


@pytest.fixture
async def acme(store: Store) -> Stored:
    """A tenant with an account."""
    return await store_everything(store, "acme")


@pytest.mark.parametrize("column", ["terms", "owner_id"])
async def test_tokens_open_only_for_their_owner_credential_and_terms(
    store: Store, acme: Stored, database: TestDatabase, column: str
) -> None:
    """Ours: a row that the database was made to give to another key, or to other terms, opens no tokens (TEN-4)."""
    tenant = acme.tenant.id
    async with store.transaction(tenant) as db:
        assert await accounts.open_tokens(tenant, db, SEALER, acme.account) == make_provider_tokens("acme")
    await execute(database.superuser_url, f"update accounts set {column} = '{acme.key.id}'")
    async with store.transaction(tenant) as db:
        changed = await accounts.get(tenant, db, acme.account.id)
        assert changed is not None
        with pytest.raises(SecretUnreadable):
            await accounts.open_tokens(tenant, db, SEALER, changed)


async def test_an_account_is_the_only_one_of_its_owner_and_ends_with_owner_and_credential(
    store: Store, acme: Stored
) -> None:
    """Ours: a new connection replaces the former one; the issuer's people take theirs with them (TEN-4)."""
    tenant, first = acme.tenant.id, acme.account
    second = replace(first, id=new_account_id())
    async with store.transaction(tenant) as db:
        await accounts.enter(tenant, db, SEALER, second, tokens=make_provider_tokens("new"))
        assert await accounts.get(tenant, db, first.id) is None
        assert await accounts.count(tenant, db) == 1
        assert await accounts.owner_of(tenant, db, acme.grant.id) == acme.person.id
        assert await accounts.owner_of(tenant, db, acme.key.id) == acme.key.id
        await CREDENTIALS.remove(tenant, db, acme.credential.id)
        assert await accounts.count(tenant, db) == 0
    globex = await store_everything(store, "globex")
    async with store.transaction(globex.tenant.id) as db:
        await issuers.remove(globex.tenant.id, db, globex.issuer.id)
        assert await accounts.count(globex.tenant.id, db) == 0


async def test_a_late_refresh_replaces_no_newer_tokens(store: Store, acme: Stored) -> None:
    """Ours: only the holder of the lease stores tokens or a refusal; no lease lasts (TEN-4)."""
    tenant, found, later = acme.tenant.id, acme.account, NOW + timedelta(seconds=30)
    async with store.transaction(tenant) as db:
        assert await accounts.take_lease(tenant, db, found.id, "one", now=NOW, until=later)
        assert not await accounts.take_lease(tenant, db, found.id, "two", now=NOW, until=later)
        assert await accounts.take_lease(tenant, db, found.id, "three", now=later + timedelta(1), until=later)
        assert not await accounts.save(tenant, db, SEALER, found, tokens=make_provider_tokens("slow"), lease="one")
        assert not await accounts.end_lease(tenant, db, found.id, "one", state=AccountState.REFUSED)
        assert await accounts.save(tenant, db, SEALER, found, tokens=make_provider_tokens("quick"), lease="three")
        assert await accounts.open_tokens(tenant, db, SEALER, found) == make_provider_tokens("quick")
