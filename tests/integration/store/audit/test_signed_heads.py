"""Signatures of the heads of a trail's chains: entries that were cut off at an end are missed without an earlier
result.
"""

import pytest
from sqlalchemy.exc import DBAPIError

from gateway.domain.identifiers import TenantId
from gateway.store.audit import entries, head_signer, signed_heads
from gateway.store.audit.anchors import TRAIL
from gateway.store.audit.hash_chain import CATALOG, Link
from gateway.store.audit.head_signer import AuditSigner
from gateway.store.audit.signed_heads import Signature
from gateway.store.audit.unsigned_tenants import UnsignedTenants
from gateway.store.audit.verification import TrailCheck, TrailKeys
from gateway.store.audit.writer import AuditWriter
from gateway.store.engine import Store
from tests.integration.store.samples import ANCHOR_KEY, CHAIN_KEY, append_change, make_record, store_everything
from tests.support.servers import TestDatabase, execute

_A, _B = TenantId("ten_a"), TenantId("ten_b")
_KEY = b"s" * 32
_LAST_CALLS = "writer <> 'catalog' and seq > 1"


@pytest.fixture
def moved() -> UnsignedTenants:
    """Entries that this replica has written."""
    return UnsignedTenants()


@pytest.fixture
def signer(store: Store, moved: UnsignedTenants) -> AuditSigner:
    """A signer that signs on request."""
    return AuditSigner(store, moved, key=_KEY, anchor_keys=[ANCHOR_KEY])


@pytest.mark.parametrize("where", [_LAST_CALLS, "writer <> 'catalog'"], ids=["the last", "all"])
async def test_an_end_that_was_cut_off_is_missed(
    database: TestDatabase, store: Store, moved: UnsignedTenants, signer: AuditSigner, where: str
) -> None:
    """Ours: of a writer that is gone too, with nothing kept outside of the database (SAF-4)."""
    writer = await _calls(database, moved, 3)
    await signer.sign()
    assert set((await _faults(store)).values()) == {None}

    await execute(database.superuser_url, f"delete from audit_entries where {where}")

    assert (await _faults(store))[writer] == "shortened"


async def test_a_signature_cannot_be_removed_while_its_signer_runs(
    database: TestDatabase, store: Store, moved: UnsignedTenants, signer: AuditSigner
) -> None:
    """Ours: the signer remembers its head, whatever the table contains (SAF-4)."""
    await _calls(database, moved, 2)
    await signer.sign()
    await execute(database.superuser_url, f"delete from audit_heads; delete from audit_entries where {_LAST_CALLS}")
    await _calls(database, moved, 1)
    await signer.sign()

    assert "missing" in (await _faults(store)).values()


async def test_all_signers_of_a_tenant_make_one_chain(
    database: TestDatabase, store: Store, moved: UnsignedTenants, signer: AuditSigner
) -> None:
    """Ours: the signatures of a replica that is gone cannot be taken out from under those of the next (SAF-4)."""
    await _calls(database, moved, 2)
    await signer.sign()
    first = (await _signatures(store))[0].row.signer
    await _calls(database, moved, 2)
    await AuditSigner(store, moved, key=_KEY, anchor_keys=[ANCHOR_KEY]).sign()
    assert set((await _faults(store)).values()) == {None}

    assert {one.row.signer for one in await _signatures(store)} == {first} == {TRAIL}

    await execute(database.superuser_url, "delete from audit_heads where number = 1")

    assert (await _faults(store))[f"heads:{TRAIL}"] == "missing"


@pytest.mark.parametrize(
    "edit", ["seq = 1", "head = 'x'", "writer = 'catalog'", "mac = 'x'"], ids=["number", "head", "writer", "mac"]
)
async def test_a_signature_that_was_changed_is_found(
    database: TestDatabase, store: Store, moved: UnsignedTenants, signer: AuditSigner, edit: str
) -> None:
    """Ours: only a replica's key makes one (SAF-4)."""
    await _calls(database, moved, 3)
    await signer.sign()

    await execute(database.superuser_url, f"update audit_heads set {edit}")

    assert "changed" in (await _faults(store)).values()


async def test_one_round_signs_every_tenant(
    database: TestDatabase, moved: UnsignedTenants, signer: AuditSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: tenants beyond the first portion do not wait for a later round (SAF-4)."""
    monkeypatch.setattr(head_signer, "_PORTION", 1)
    await _calls(database, moved, 1)
    moved.note(_B, CATALOG)
    await signer.sign()

    assert not moved.take(10)


async def test_signed_heads_are_not_signed_again(
    database: TestDatabase, store: Store, moved: UnsignedTenants, signer: AuditSigner
) -> None:
    """Ours: a signature for each chain that has moved, and none where nothing did (SAF-4)."""
    await _calls(database, moved, 5)
    for _ in range(3):
        await signer.sign()
    assert len(await _signatures(store)) == 1

    moved.note(_A, CATALOG)
    other = AuditSigner(store, moved, key=_KEY, anchor_keys=[ANCHOR_KEY])
    await other.sign()
    moved.note(_A, CATALOG)
    await signer.sign()
    assert len(await _signatures(store)) == 1
    assert await _signatures(store, _B) == []


async def test_changes_are_signed(
    database: TestDatabase, store: Store, moved: UnsignedTenants, signer: AuditSigner
) -> None:
    """Ours: lowering the revision does not hide that changes are gone (SAF-4)."""
    stored = await store_everything(store, "acme")
    tenant = stored.tenant.id
    await execute(database.superuser_url, "delete from audit_heads")
    async with store.transaction(tenant) as db:
        await append_change(tenant, db)
    moved.note(tenant, CATALOG)
    await signer.sign()

    await execute(database.superuser_url, "delete from audit_entries where seq = 2")

    assert (await _faults(store, tenant))[CATALOG] == "shortened"


async def test_failed_signatures_are_made_later(own_database: TestDatabase, moved: UnsignedTenants) -> None:
    """Ours: after a failure the chain of signatures goes on, and nothing is forgotten (SAF-4)."""
    async with Store(own_database.app_url) as store:
        signer = AuditSigner(store, moved, key=_KEY, anchor_keys=[ANCHOR_KEY])
        await _calls(own_database, moved, 1)
        await signer.sign()
        writer = await _calls(own_database, moved, 1)
        await execute(own_database.superuser_url, "revoke insert on audit_heads from gateway_app")
        with pytest.raises(DBAPIError):
            await signer.sign()
        await execute(own_database.superuser_url, "grant insert on audit_heads to gateway_app")
        await signer.sign()

        made = await _signatures(store)
        assert [one.row.number for one in made] == [1, 2]
        assert writer in {one.row.writer for one in made}
        assert set((await _faults(store)).values()) == {None}


async def test_at_its_end_a_signer_signs_the_last_entries(
    database: TestDatabase, store: Store, moved: UnsignedTenants
) -> None:
    """Ours: a replica that is stopped leaves nothing unsigned (SAF-4)."""
    async with AuditSigner(store, moved, key=_KEY, anchor_keys=[ANCHOR_KEY]):
        writer = await _calls(database, moved, 1)

    assert [one.row.writer for one in await _signatures(store)] == [writer]


async def _calls(database: TestDatabase, moved: UnsignedTenants, count: int) -> str:
    """Calls that a writer has recorded, which is gone then; its name."""
    async with AuditWriter(database.app_url, chain_key=CHAIN_KEY, moved=moved) as writer:
        for number in range(count):
            await writer.write(make_record(_A, number))
    taken = moved.take(10)
    for tenant, names in taken.items():
        for name in names:
            moved.note(tenant, name, names[name])
    return next(iter(taken[_A]))


async def _signatures(store: Store, tenant: TenantId = _A) -> list[Signature]:
    async with store.transaction(tenant) as db:
        return list(await signed_heads.signatures(tenant, db, after=None, limit=100))


async def _faults(store: Store, tenant: TenantId = _A) -> dict[str, str | None]:
    """The first fault of each chain, read in parts."""
    keys = TrailKeys(chain=[CHAIN_KEY], signing=[b"older" * 8, _KEY], anchor=[ANCHOR_KEY])
    check = TrailCheck(keys)
    last_signature: Signature | None = None
    last: Link | None = None
    async with store.transaction(tenant) as db:
        while signed := await signed_heads.signatures(tenant, db, after=last_signature, limit=1):
            check.follow_signatures(signed)
            last_signature = signed[-1]
        while part := await entries.links(tenant, db, after=last, limit=2):
            check.follow(part)
            last = part[-1]
    return {chain.writer: None if chain.fault is None else chain.fault.kind.value for chain in check.chains(None)}
