"""Sign-ins and the gateway's clients in the store: what is sealed where, and who may store refreshed tokens."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.secret_references import SecretReference, SecretStoreKind
from gateway.errors import SecretUnreadable
from gateway.store.engine import Store
from gateway.store.identity import grants, introspection_secrets, issuers, people, sign_ins
from tests.integration.store.samples import (
    NOW,
    SEALER,
    Stored,
    make_person,
    make_provider_tokens,
    make_sign_in,
    store_everything,
)
from tests.support.servers import TestDatabase, execute


@pytest.fixture
async def acme(store: Store) -> Stored:
    """A tenant with a sign-in."""
    return await store_everything(store, "acme")


async def test_the_secret_of_a_client_opens_only_for_its_client_and_endpoint(store: Store, acme: Stored) -> None:
    """Ours: with another token endpoint in the database the secret does not open, so it is sent nowhere (TEN-4)."""
    client = acme.issuer.sign_in
    assert client is not None
    others = [replace(client, token_url="https://evil.example"), replace(client, client_id="other")]
    async with store.transaction(acme.tenant.id) as db:
        assert await issuers.open_secret(acme.tenant.id, db, SEALER, acme.issuer) == "acme client secret"
        for other in others:
            with pytest.raises(SecretUnreadable):
                await issuers.open_secret(acme.tenant.id, db, SEALER, replace(acme.issuer, sign_in=other))


async def test_the_secret_of_an_introspection_client_opens_only_for_its_client_and_endpoint(
    store: Store, acme: Stored
) -> None:
    """Ours: with another endpoint in the database the secret does not open, so it is sent nowhere (TEN-4)."""
    client = acme.issuer.introspection
    assert client is not None
    others = [replace(client, url="https://evil.example"), replace(client, client_id="other")]
    async with store.transaction(acme.tenant.id) as db:
        opened = await introspection_secrets.open_one(acme.tenant.id, db, SEALER, acme.issuer)
        for other in others:
            with pytest.raises(SecretUnreadable):
                changed = replace(acme.issuer, introspection=other)
                await introspection_secrets.open_one(acme.tenant.id, db, SEALER, changed)
        assert await introspection_secrets.remove(acme.tenant.id, db, acme.issuer.id)
        gone = await introspection_secrets.open_one(acme.tenant.id, db, SEALER, acme.issuer)

    assert (opened, gone) == ("acme introspection secret", None)


async def test_a_reference_to_the_secret_of_a_client_opens_only_as_it_was_sealed(store: Store, acme: Stored) -> None:
    """Ours: a reference that was changed, added or removed in the database is not read (TEN-4, IDN-5)."""
    sign_in, introspection, tenant = acme.issuer.sign_in, acme.issuer.introspection, acme.tenant.id
    assert sign_in is not None
    assert introspection is not None

    def refer(path: str | None) -> Issuer:
        where = None if path is None else SecretReference(store=SecretStoreKind.FILE, path=path)
        clients = (
            replace(sign_in, client_secret_reference=where),
            replace(introspection, client_secret_reference=where),
        )
        return replace(acme.issuer, sign_in=clients[0], introspection=clients[1])

    async with store.transaction(tenant) as db:
        for issuer in (refer("other"), refer("billing/token")):
            with pytest.raises(SecretUnreadable):
                await issuers.open_secret(tenant, db, SEALER, issuer)
            with pytest.raises(SecretUnreadable):
                await introspection_secrets.open_one(tenant, db, SEALER, issuer)
        await issuers.save_secret(tenant, db, SEALER, refer("billing/token"), secret="")
        await introspection_secrets.save(tenant, db, SEALER, refer("billing/token"), secret="")
        for issuer in (refer("other"), refer(None)):
            with pytest.raises(SecretUnreadable):
                await issuers.open_secret(tenant, db, SEALER, issuer)
            with pytest.raises(SecretUnreadable):
                await introspection_secrets.open_one(tenant, db, SEALER, issuer)
        assert await issuers.open_secret(tenant, db, SEALER, refer("billing/token")) == ""
        assert await introspection_secrets.open_one(tenant, db, SEALER, refer("billing/token")) == ""


async def test_tokens_open_only_for_the_sign_in_that_they_are_of(
    store: Store, acme: Stored, database: TestDatabase
) -> None:
    """Ours: one person's sealed tokens, copied to another one's row, do not open (TEN-4)."""
    tenant = acme.tenant.id
    bob = replace(make_person(tenant, acme.issuer), id=KeyId("key_bob"), subject="bob")
    async with store.transaction(tenant) as db:
        await people.enter(tenant, db, bob)
        other = make_sign_in(acme.issuer, bob, "bob")
        await sign_ins.insert(tenant, db, SEALER, other, tokens=make_provider_tokens("bob"))
    await execute(
        database.superuser_url,
        f"update sign_ins set sealed = (select sealed from sign_ins where id = '{acme.sign_in.id}')",
    )

    async with store.transaction(tenant) as db:
        opened = await sign_ins.open_tokens(tenant, db, SEALER, acme.sign_in)
        with pytest.raises(SecretUnreadable):
            await sign_ins.open_tokens(tenant, db, SEALER, other)
    assert opened == make_provider_tokens("acme")


async def test_one_holder_of_the_lease_stores_tokens(store: Store, acme: Stored) -> None:
    """Ours: a provider rotates its tokens, so a slow refresh never replaces the tokens of a newer one (IDN-2)."""
    tenant, found = acme.tenant.id, acme.sign_in
    later = NOW + timedelta(seconds=30)
    async with store.transaction(tenant) as db:
        assert await sign_ins.take_lease(tenant, db, found.id, "one", now=NOW, until=later)
        assert not await sign_ins.take_lease(tenant, db, found.id, "two", now=NOW, until=later)
        assert await sign_ins.take_lease(tenant, db, found.id, "three", now=later + timedelta(1), until=later)
        slow, quick = make_provider_tokens("slow"), make_provider_tokens("quick")
        assert await sign_ins.save(tenant, db, SEALER, found, tokens=quick, lease="three")
        assert not await sign_ins.save(tenant, db, SEALER, found, tokens=slow, lease="one")
        assert await sign_ins.open_tokens(tenant, db, SEALER, found) == quick
        assert await sign_ins.take_lease(tenant, db, found.id, "four", now=NOW, until=later)
        await sign_ins.end_lease(tenant, db, found.id, "four")
        assert await sign_ins.take_lease(tenant, db, found.id, "five", now=NOW, until=later)


async def test_ended_sessions_are_deleted_and_many_end_the_oldest(store: Store, acme: Stored) -> None:
    """Ours: a person who signs in all day fills no table; a sign-in stays as long as a grant of it (ISO-6)."""
    tenant, first = acme.tenant.id, acme.sign_in
    made = first
    async with store.transaction(tenant) as db:
        for index in range(1, 4):
            made = make_sign_in(acme.issuer, acme.person, "acme")
            made = replace(made, created_at=NOW + timedelta(seconds=index))
            await sign_ins.insert(tenant, db, SEALER, made, tokens=make_provider_tokens("acme"))
        await sign_ins.end_oldest(tenant, db, acme.person.id, limit=3, at=NOW)
        ended = await sign_ins.get(tenant, db, first.id)
        assert ended is not None
        assert ended.session_ends_at == NOW
        next_at = await sign_ins.remove_ended(tenant, db, now=NOW)
        assert next_at == first.session_ends_at
        assert await sign_ins.get(tenant, db, first.id) is not None
        await grants.remove_ended(tenant, db, ended_before=acme.grant.ends_at, codes_expired_before=NOW)
        await sign_ins.remove_ended(tenant, db, now=NOW)
        assert await sign_ins.get(tenant, db, first.id) is None
        await sign_ins.end_session(tenant, db, made.id, at=NOW)
        await sign_ins.end_session(tenant, db, made.id, at=NOW + timedelta(1))
        found = await sign_ins.get(tenant, db, made.id)
    assert found is not None
    assert found.session_ends_at == NOW
