"""Re-encryption in PostgreSQL: leases, and data keys that a writer is about to use."""

from dataclasses import replace
from datetime import timedelta

import anyio
from sqlalchemy import text

from gateway.domain.calls.mcp_tasks import TaskCall, TaskOutcome, TaskRounds
from gateway.domain.tenancy.secret_references import SecretReference, SecretStoreKind
from gateway.store import secrets
from gateway.store.calls import mcp_tasks
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.identity import accounts, introspection_secrets, issuers, people, sign_ins
from gateway.store.kinds.credentials import CREDENTIALS, SealedCredential
from gateway.store.kinds.tenants import TENANTS
from gateway.store.secret_keys import registry, rotation_state
from gateway.store.secret_keys.sealed_values import SEALED_TABLES, reseal_batch
from gateway.store.tables import metadata
from tests.integration.store.samples import (
    make_account,
    make_credential,
    make_issuer,
    make_person,
    make_provider_tokens,
    make_sign_in,
    make_task,
    make_tenant,
)

LEASE = timedelta(seconds=30)
OLD, BOTH, NEW = EnvelopeCipher(["o" * 32]), EnvelopeCipher(["n" * 32, "o" * 32]), EnvelopeCipher(["n" * 32])


def test_every_table_with_a_data_key_is_sealed_again() -> None:
    """Ours: a new table with sealed values fails here until a rotation knows it (IDN-5)."""
    with_key = {name for name, table in metadata.tables.items() if "data_key_id" in table.c}
    assert {sealed.table.name for sealed in SEALED_TABLES} == with_key
    assert {"idempotency_records", "data_keys"} == {name for name, one in metadata.tables.items() if "wrapped" in one.c}
    contents = {TaskCall.__name__, TaskRounds.__name__, TaskOutcome.__name__}
    assert set(mcp_tasks.SEALED.values()) == contents


async def test_a_holder_that_lost_its_lease_changes_nothing(store: Store) -> None:
    """Ours: two rotations at once are one, also after a replica was frozen (IDN-5)."""
    name = BOTH.names[0]
    async with store.unscoped() as db:
        await registry.lock(db)
        await rotation_state.start(db, name)
        assert await rotation_state.take(db, "other key", "a", lease=LEASE) is None
        assert await rotation_state.take(db, name, "a", lease=LEASE) is not None
        assert await rotation_state.take(db, name, "b", lease=LEASE) is None
        assert await rotation_state.advance(db, "a", lease=timedelta(0), tenants_done=1)
        taken = await rotation_state.take(db, name, "b", lease=LEASE)
        assert taken is not None
        assert taken.tenants_done == 1
        assert not await rotation_state.advance(db, "a", lease=LEASE, tenants_done=7)
        assert not await rotation_state.finish(db, "a")
        assert await rotation_state.finish(db, "b")
        found = await rotation_state.get(db)
    assert found is not None
    assert (found.tenants_done, found.finished_at is not None) == (1, True)


async def test_a_data_key_stays_while_a_writer_is_about_to_use_it(store: Store) -> None:
    """Ours: a value that is sealed beside the end of a rotation is not sealed with a deleted key (IDN-5, TEN-4)."""
    made = make_tenant()
    tenant = made.id
    async with store.transaction(tenant) as db:
        await TENANTS.insert(made.id, db, made)
        old = await secrets.tenant_key(tenant, db, OLD)
    used = [sealed.table for sealed in SEALED_TABLES]
    async with store.transaction(tenant) as writing:
        assert await secrets.tenant_key(tenant, writing, OLD) == old
        with anyio.fail_after(5):
            async with store.upkeep(tenant) as db:
                assert await secrets.current_key(tenant, db, BOTH) not in {None, old}
                assert await secrets.remove_unused_keys(tenant, db, BOTH, used) == 1
    async with store.upkeep(tenant) as db:
        assert await secrets.remove_unused_keys(tenant, db, BOTH, used) == 0
        kept = (await db.execute(text("select count(*) from data_keys"))).scalar_one()
    assert kept == 1


async def test_secrets_of_identities_open_without_the_old_key(store: Store) -> None:
    """Ours: clients' secrets, tokens of sign-ins and tokens of accounts are used after the old key is gone (IDN-5)."""
    made, issuer, tokens = make_tenant(), make_issuer("acme"), make_provider_tokens("ada")
    tenant, credential = made.id, make_credential("vendor")
    where = SecretReference(store=SecretStoreKind.FILE, path="idp")
    assert issuer.sign_in is not None
    assert issuer.introspection is not None
    sign_in_client = replace(issuer.sign_in, client_secret_reference=where)
    introspection = replace(issuer.introspection, client_secret_reference=where)
    other = replace(make_issuer("acme"), name="lab", url="https://lab.example")
    other = replace(other, sign_in=sign_in_client, introspection=introspection)
    person = make_person(tenant, issuer)
    sign_in, account = make_sign_in(issuer, person, "ada"), make_account(person, credential)
    async with store.transaction(tenant) as db:
        await TENANTS.insert(made.id, db, made)
        await issuers.insert(tenant, db, issuer)
        await issuers.save_secret(tenant, db, OLD, issuer, secret="of the sign-in")
        await introspection_secrets.save(tenant, db, OLD, issuer, secret="of the introspection")
        await issuers.insert(tenant, db, other)
        await issuers.save_secret(tenant, db, OLD, other, secret="")
        await introspection_secrets.save(tenant, db, OLD, other, secret="")
        await people.enter(tenant, db, person)
        await sign_ins.insert(tenant, db, OLD, sign_in, tokens=tokens)
        await CREDENTIALS.insert_sealed(tenant, db, OLD, credential, secret=SealedCredential(value="named"))
        await accounts.enter(tenant, db, OLD, account, tokens=tokens)
    async with store.upkeep(tenant) as db:
        target = await secrets.current_key(tenant, db, BOTH)
        assert target is not None
        batches = {
            each.table.name: await reseal_batch(tenant, db, BOTH, each, to=target, after="") for each in SEALED_TABLES
        }
    async with store.upkeep(tenant) as db:
        assert await secrets.remove_unused_keys(tenant, db, BOTH, [each.table for each in SEALED_TABLES]) == 0
    async with store.transaction(tenant) as db:
        assert await issuers.open_secret(tenant, db, NEW, issuer) == "of the sign-in"
        assert await introspection_secrets.open_one(tenant, db, NEW, issuer) == "of the introspection"
        assert await issuers.open_secret(tenant, db, NEW, other) == ""
        assert await introspection_secrets.open_one(tenant, db, NEW, other) == ""
        assert await issuers.get(tenant, db, "lab") == other
        assert await sign_ins.open_tokens(tenant, db, NEW, sign_in) == tokens
        assert await accounts.open_tokens(tenant, db, NEW, account) == tokens
    changed = {name for name, batch in batches.items() if batch.changed and batch.unreadable == 0}
    assert changed == {"issuers", "introspection_secrets", "sign_ins", "accounts", "credentials"}


async def test_values_not_rows_are_counted(store: Store) -> None:
    """Ours: a row with an unreadable value stays whole, and each of its unreadable values is counted (IDN-5)."""
    made = make_tenant()
    tenant = made.id
    tasks = next(sealed for sealed in SEALED_TABLES if sealed.table.name == "mcp_tasks")
    async with store.transaction(tenant) as db:
        await TENANTS.insert(made.id, db, made)
        old, wrapped = await secrets.tenant_key(tenant, db, OLD)
        for name, contents in (("sound", ("TaskCall", "TaskRounds")), ("half", ("TaskCall",)), ("lost", ())):
            task = make_task(name, old)
            sealed = [
                OLD.seal(tenant, wrapped, b"{}", *mcp_tasks.context_of(task.id, content))
                if content in contents
                else b"changed"
                for content in ("TaskCall", "TaskRounds")
            ]
            row = replace(task, call=sealed[0], rounds=sealed[1])
            await mcp_tasks.insert(tenant, db, row, lease=timedelta(0), lifetime=timedelta(hours=1))
    async with store.upkeep(tenant) as db:
        key = await secrets.current_key(tenant, db, BOTH)
        assert key is not None
        batch = await reseal_batch(tenant, db, BOTH, tasks, to=key, after="")
    assert (batch.changed, batch.unreadable) == (2, 3)
