"""Every noun of the store: a stored object is returned unchanged, and a change affects only the given members."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from gateway.domain.audit import AuditFilter, AuditKind
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import KeyId, SourceId, TenantId
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.keys import KeySecret, Scope
from gateway.domain.tenancy.policy import Decision, Limits, Policy, Safety
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import NameTaken, NotFound, SecretUnreadable
from gateway.store import operations, secrets, tables, tenants
from gateway.store.audit import entries
from gateway.store.audit.hash_chain import now_us
from gateway.store.database.connection import connect_owner
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.identity import keys
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.singletons import EGRESS, POLICY
from gateway.store.kinds.tenants import TENANTS
from gateway.store.secret_keys import sealed_values
from gateway.store.secret_keys.tables import metadata as operators_metadata
from gateway.store.sources import sources, versions
from tests.integration.store.samples import (
    CHAIN_KEY,
    NOW,
    SEALER,
    append_change,
    faults_of,
    make_key,
    make_operation,
    make_source,
    make_tenant,
    store_everything,
)
from tests.support.servers import TestDatabase


@pytest.fixture
async def tenant(store: Store) -> TenantId:
    """A stored tenant without anything."""
    made = make_tenant()
    async with store.transaction(made.id) as db:
        await TENANTS.insert(made.id, db, made)
    return made.id


async def test_tenants_are_listed_by_slug_in_pages(store: Store) -> None:
    """Ours: the operator's list has a stable order and misses no tenant."""
    for slug in ("b", "a-1", "a", "z9", "a0"):
        made = make_tenant(slug)
        async with store.transaction(made.id) as db:
            await TENANTS.insert(made.id, db, made)

    seen: list[str] = []
    async with store.unscoped() as db:
        while found := await tenants.page(db, after=seen[-1] if seen else None, limit=2):
            seen += [each.slug for each in found]
        assert await tenants.find(db, "nobody") is None
    assert seen == ["a", "a-1", "a0", "b", "z9"]


async def test_a_slug_belongs_to_one_tenant(store: Store) -> None:
    """Ours: two customers never share a URL."""
    first, second = make_tenant("acme"), make_tenant("acme")
    async with store.transaction(first.id) as db:
        await TENANTS.insert(first.id, db, first)
    async with store.transaction(second.id) as db:
        with pytest.raises(NameTaken):
            await TENANTS.insert(second.id, db, second)


async def test_a_revision_rises_by_one_each_time(store: Store, tenant: TenantId) -> None:
    """Ours: every change has its own revision."""
    async with store.transaction(tenant) as db:
        assert [await tenants.advance(tenant, db) for _ in range(3)] == [1, 2, 3]
        stored = await TENANTS.get(tenant, db, tenant)
        assert stored is not None
        await TENANTS.save(tenant, db, replace(stored, name="Another"))
        found = await TENANTS.get(tenant, db, tenant)
        assert await tenants.revision(tenant, db) == 3
    assert found is not None
    assert (found.name, found.revision) == ("Another", 3)


async def test_a_missing_tenant_has_no_revision(store: Store) -> None:
    """Ours: changes of a tenant that is gone are refused."""
    missing = TenantId("ten_missing")
    async with store.transaction(missing) as db:
        assert await tenants.revision(missing, db) is None
        assert not await TENANTS.remove(missing, db, missing)
        with pytest.raises(NotFound):
            await tenants.advance(missing, db)
        with pytest.raises(NotFound):
            await TENANTS.save(missing, db, replace(make_tenant(), id=missing))


async def test_removing_a_tenant_removes_all_but_its_trail(store: Store, database: TestDatabase) -> None:
    """Ours: nothing of a removed tenant is left except its audit entries, and no other tenant loses anything."""
    gone, other = await store_everything(store, "gone"), await store_everything(store, "other")
    async with store.transaction(gone.tenant.id) as db:
        assert await TENANTS.remove(gone.tenant.id, db, gone.tenant.id)

    superuser = await connect_owner(database.superuser_url)
    names = [row["relname"] for row in await superuser.fetch("select relname from pg_class where relrowsecurity")]
    left = {str(name): await superuser.fetchval(f"select count(*) from {name}") for name in names}
    await superuser.close()
    trails = ("audit_entries", "audit_heads", "audit_anchors", "audit_cuts", "deleted_tenants")
    doubled = dict.fromkeys(("keys", *trails), 2)
    of_operator = dict.fromkeys(operators_metadata.tables, 0)
    assert left == {**dict.fromkeys(left, 1), **doubled, **of_operator, "primitives": 4}  # a person is a key, too
    async with store.transaction(gone.tenant.id) as db:
        assert len(await entries.page(gone.tenant.id, db, after=None, limit=10)) == 1
    async with store.unscoped() as db:
        assert list(await keys.find(db, [gone.key.id, other.key.id])) == [other.key.id]


async def test_a_key_is_found_changed_and_removed(store: Store, tenant: TenantId) -> None:
    """Ours: the changeable members of a key change, the rest stays, and the version rises."""
    key = make_key(tenant)
    async with store.transaction(tenant) as db:
        await KEYS.insert(key.tenant, db, key)
        assert await keys.get(tenant, db, key.id) == key
        changed = replace(
            key,
            name="phone",
            scopes=frozenset({Scope.ADMIN}),
            expires_at=NOW + timedelta(days=1),
            revoked_at=NOW,
            secret=KeySecret(digest=b"new", pepper="two", number=4),
            former=replace(key.secret, ends_at=NOW + timedelta(hours=1)),
        )
        await KEYS.save(tenant, db, changed)
        assert await KEYS.get(tenant, db, key.id) == replace(changed, version=2)

    async with store.unscoped() as db:
        found = await keys.find(db, [key.id, KeyId("key_missing"), key.id])
        assert found == {key.id: (replace(changed, version=2), "acme")}
        assert await keys.find(db, []) == {}
    async with store.transaction(tenant) as db:
        assert await KEYS.remove(tenant, db, key.id)
        assert not await KEYS.remove(tenant, db, key.id)
        assert await keys.get(tenant, db, key.id) is None
        with pytest.raises(NotFound):
            await KEYS.save(tenant, db, key)


async def test_keys_are_listed_in_pages(store: Store, tenant: TenantId) -> None:
    """Ours: pages join without gaps or repeats."""
    made = sorted((make_key(tenant) for _ in range(5)), key=lambda key: key.id)
    async with store.transaction(tenant) as db:
        for key in made:
            await KEYS.insert(key.tenant, db, key)
        first = await KEYS.page(tenant, db, after=None, limit=3)
        rest = await KEYS.page(tenant, db, after=first[-1].id, limit=3)
    assert [*first, *rest] == made


async def test_a_key_of_no_tenant_is_refused(store: Store) -> None:
    """Ours: nothing belongs to a tenant that does not exist."""
    missing = TenantId("ten_missing")
    async with store.transaction(missing) as db:
        with pytest.raises(NotFound):
            await KEYS.insert(missing, db, make_key(missing))


async def test_a_source_keeps_its_documents_byte_for_byte(store: Store, tenant: TenantId) -> None:
    """Ours: every version of a document and of its report is there as it came."""
    source = make_source(tenant)
    document, report = bytes(range(256)) * 5000, b'{"z":1,"a":1.0}'
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await versions.insert(
            tenant, db, source=source.id, number=1, content=versions.VersionContent(document=document, report=report)
        )
        await versions.insert(
            tenant, db, source=source.id, number=2, content=versions.VersionContent(document=b"", report=b"")
        )

    async with store.transaction(tenant) as db:
        assert await versions.document(tenant, db, source.id, 1) == document
        assert await versions.report(tenant, db, source.id, 1) == report
        assert await versions.document(tenant, db, source.id, 2) == b""
        assert await versions.report(tenant, db, source.id, 3) is None
        with pytest.raises(NameTaken):
            await versions.insert(
                tenant, db, source=source.id, number=2, content=versions.VersionContent(document=b"", report=b"")
            )


async def test_a_source_is_found_by_name_and_id_and_changed(store: Store, tenant: TenantId) -> None:
    """Ours: both address it; a source named like another's id does not hide that one."""
    source = make_source(tenant)
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await sources.insert(make_source(tenant, name=source.id), db)
        assert await sources.get(tenant, db, source.id) == source
        assert await sources.get(tenant, db, "petstore") == source
        assert await sources.get(tenant, db, "nothing") is None
        changed = replace(source, title="New", active_version=2, expose=Exposure.BOTH, url=None)
        assert await sources.save(changed, db) == replace(changed, version=2)
        assert await sources.get(tenant, db, "petstore") == replace(changed, version=2)
        assert [each.name for each in await sources.page(tenant, db, after=None, limit=9)] == ["petstore", source.id]
        assert [each.name for each in await sources.page(tenant, db, after="petstore", limit=9)] == [source.id]
        with pytest.raises(NotFound):
            await sources.save(replace(source, id=SourceId("src_missing")), db)


async def test_removing_a_source_removes_its_versions_and_operations(store: Store, tenant: TenantId) -> None:
    """Ours: versions, operations and credentials go with their source."""
    source = make_source(tenant)
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await versions.insert(
            tenant, db, source=source.id, number=1, content=versions.VersionContent(document=b"d", report=b"r")
        )
        await operations.insert_all(tenant, db, [make_operation(source.id, "list_pets")])
        await secrets.save(tenant, db, SEALER, source=source.id, scheme="key", credential=Credential(value="v"))
        assert await sources.remove(tenant, db, source.id)
        assert not await sources.remove(tenant, db, source.id)
        assert await operations.names(tenant, db) == {}
        assert await versions.document(tenant, db, source.id, 1) is None
        assert await secrets.load(tenant, db, SEALER, source.id) == {}


async def test_tools_come_back_sorted_and_byte_for_byte(store: Store, tenant: TenantId) -> None:
    """Ours: definitions are stored as text, so keywords, order and numbers stay as they are."""
    source, hidden = make_source(tenant), make_source(tenant, name="queried", expose=Exposure.QUERY)
    made = [make_operation(source.id, name, safety=Safety.MODERATE) for name in ("b", "a.b", "B", "a_b")]
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await sources.insert(hidden, db)
        await operations.insert_all(tenant, db, made)
        await operations.insert_all(tenant, db, [make_operation(hidden.id, "only_queried")])
        await operations.insert_all(tenant, db, [])
        found = [one.tool for one in await operations.page(tenant, db, after=None, limit=10)]
        names = await operations.names(tenant, db)
        known = await operations.known_names(tenant, db, source.id)

    assert [tool.name for tool in found] == sorted(["b", "a.b", "B", "a_b"])
    by_name = {operation.tool: operation for operation in made}
    for tool in found:
        stored = by_name[tool.name]
        assert (tool.definition, tool.plan, tool.identity) == (stored.definition, stored.plan, stored.identity)
        assert (tool.operation, tool.source, tool.source_name) == (stored.id, source.id, "petstore")
        assert (tool.safety, tool.origin) == (Safety.MODERATE, PrimitiveOrigin.SOURCE)
    assert names == {**dict.fromkeys(by_name, "source:petstore"), "only_queried": "source:queried"}
    assert known == {operation.identity: operation.tool for operation in made}


async def test_a_tool_name_is_used_once_in_a_tenant(store: Store, tenant: TenantId) -> None:
    """Ours: two sources cannot claim one tool name; replacing a source's own operations can keep it."""
    first, second = make_source(tenant, name="one"), make_source(tenant, name="two")
    async with store.transaction(tenant) as db:
        await sources.insert(first, db)
        await sources.insert(second, db)
        await operations.insert_all(tenant, db, [make_operation(first.id, "list"), make_operation(first.id, "get")])
    async with store.transaction(tenant) as db:
        assert await operations.remove_all(tenant, db, first.id) == 2
        await operations.insert_all(tenant, db, [make_operation(first.id, "list")])
    async with store.transaction(tenant) as db:
        with pytest.raises(NameTaken):
            await operations.insert_all(
                tenant, db, [make_operation(second.id, "free"), make_operation(second.id, "list")]
            )
    async with store.transaction(tenant) as db:
        assert await operations.names(tenant, db) == {"list": "source:one"}


async def test_a_policy_has_defaults_until_it_is_saved(store: Store, tenant: TenantId) -> None:
    """Ours: allow everything until a first decision; the version rises with each decision."""
    wanted = Policy(safe=Decision.DENY, dangerous=Decision.APPROVE, limits=Limits(calls_per_second=0.5, burst=1))
    async with store.transaction(tenant) as db:
        assert await POLICY.get(tenant, db) == Policy()
        assert await POLICY.save(tenant, db, wanted) == replace(wanted, version=2)
        assert await POLICY.get(tenant, db) == replace(wanted, version=2)
        assert await POLICY.save(tenant, db, Policy()) == Policy(version=3)
        assert await POLICY.get(tenant, db) == Policy(version=3)


async def test_an_allow_list_is_empty_until_it_is_saved(store: Store, tenant: TenantId) -> None:
    """Ours: no private upstream is permitted by default; the version rises with each list (ISO-5)."""
    async with store.transaction(tenant) as db:
        assert await EGRESS.get(tenant, db) == Egress()
        assert await EGRESS.save(tenant, db, Egress(allow=("a.internal:1", "b.internal:2"))) == Egress(
            allow=("a.internal:1", "b.internal:2"), version=2
        )
        assert await EGRESS.save(tenant, db, Egress()) == Egress(version=3)
        assert await EGRESS.get(tenant, db) == Egress(version=3)


async def test_credentials_rest_sealed(store: Store, tenant: TenantId, database: TestDatabase) -> None:
    """Ours: a stored secret opens again, is replaced by name, and is nowhere in the database in the clear."""
    source = make_source(tenant)
    first, second = Credential(value="hunter2"), Credential(value="pässword\n", username="us:er")
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await secrets.save(tenant, db, SEALER, source=source.id, scheme="key", credential=Credential(value="old"))
        await secrets.save(tenant, db, SEALER, source=source.id, scheme="key", credential=first)
        await secrets.save(tenant, db, SEALER, source=source.id, scheme="basic", credential=second)
        assert await secrets.load(tenant, db, SEALER, source.id) == {"key": first, "basic": second}
        found = await sources.get(tenant, db, source.id)
    assert found is not None
    assert found.schemes == ("basic", "key")

    superuser = await connect_owner(database.superuser_url)
    for column in ("s.sealed", "d.wrapped"):
        rows = await superuser.fetch(f"select {column} as bytes from secrets s, data_keys d")
        assert not any(b"hunter2" in bytes(row["bytes"]) for row in rows)  # type: ignore[call-overload]  # untyped row
    await superuser.close()
    async with store.transaction(tenant) as db:
        assert await secrets.remove_all(tenant, db, source.id) == 2
        assert await secrets.load(tenant, db, SEALER, source.id) == {}


async def test_secret_keys_are_exchanged_in_three_steps(store: Store, tenant: TenantId) -> None:
    """Ours: add a new key, rewrap, drop the old one; a lost key loses what it sealed and nothing more."""
    source = make_source(tenant)
    old, both, new = (
        EnvelopeCipher(["old" * 11]),
        EnvelopeCipher(["new" * 11, "old" * 11]),
        EnvelopeCipher(["new" * 11]),
    )
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await secrets.save(tenant, db, old, source=source.id, scheme="key", credential=Credential(value="v"))
        with pytest.raises(SecretUnreadable):
            await secrets.load(tenant, db, new, source.id)
        assert await secrets.current_key(tenant, db, new) is None
        moved = await secrets.current_key(tenant, db, both)
        assert moved is not None
        assert await secrets.current_key(tenant, db, both) == moved
        assert await secrets.remove_unused_keys(tenant, db, both, [tables.secrets]) == 1
        resealed = await sealed_values.reseal_batch(
            tenant, db, both, sealed_values.SEALED_TABLES[0], to=moved, after=""
        )
        assert (resealed.changed, resealed.unreadable) == (1, 0)
        assert await secrets.remove_unused_keys(tenant, db, both, [tables.secrets]) == 0
        assert await secrets.current_key(tenant, db, both) is None
        assert await secrets.load(tenant, db, new, source.id) == {"key": Credential(value="v")}

        lost = EnvelopeCipher(["lost" * 11])
        await secrets.save(tenant, db, lost, source=source.id, scheme="key", credential=Credential(value="again"))
        assert await secrets.load(tenant, db, lost, source.id) == {"key": Credential(value="again")}


async def test_a_credential_moved_to_another_source_does_not_open(
    store: Store, tenant: TenantId, database: TestDatabase
) -> None:
    """Ours: a writer of the table still cannot point a secret at another upstream."""
    source, other = make_source(tenant, name="one"), make_source(tenant, name="two")
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        await sources.insert(other, db)
        await secrets.save(tenant, db, SEALER, source=source.id, scheme="key", credential=Credential(value="v"))

    superuser = await connect_owner(database.superuser_url)
    await superuser.execute("update secrets set source_id = $1", other.id)
    await superuser.close()
    async with store.transaction(tenant) as db:
        with pytest.raises(SecretUnreadable):
            await secrets.load(tenant, db, SEALER, other.id)


async def test_changes_are_listed_newest_first(store: Store, tenant: TenantId, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: pages join, and filters leave out what was not asked for."""
    milliseconds = count(now_us(), 1000)  # an id sorts by the millisecond, and changes may be made faster
    monkeypatch.setattr("gateway.store.audit.entries.now_us", lambda: next(milliseconds))
    async with store.transaction(tenant) as db:
        made = [await append_change(tenant, db, target=f"source:{number % 2}") for number in range(5)]
    async with store.transaction(tenant) as db:
        first = await entries.page(tenant, db, after=None, limit=3)
        rest = await entries.page(tenant, db, after=first[-1].id, limit=3)
        some = await entries.page(tenant, db, after=None, limit=9, filters=AuditFilter(kind=AuditKind.CHANGE))
        since = await entries.page(tenant, db, after=None, limit=9, filters=AuditFilter(since=first[-1].at))
        none = [
            await entries.page(tenant, db, after=None, limit=9, filters=wanted)
            for wanted in (
                AuditFilter(kind=AuditKind.CALL),
                AuditFilter(principal="somebody"),
                AuditFilter(tool="source:1"),
                AuditFilter(until=rest[-1].at),
            )
        ]

    assert {entry.id for entry in (*first, *rest)} == set(made)
    assert [entry.at for entry in (*first, *rest)] == sorted((entry.at for entry in (*first, *rest)), reverse=True)
    assert list(some) == [*first, *rest]
    assert list(since) == list(first)
    assert none == [[]] * 4
    entry = max((*first, *rest), key=lambda entry: str(entry.detail["revision"]))
    assert (entry.kind, entry.principal, entry.action) == (AuditKind.CHANGE, "operator", "source.import")
    assert entry.detail == {"operations": 3, "nul": "\x00", "revision": 5}


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        ("update audit_entries set principal = 'somebody else' where seq = 2", 1),
        ("update audit_entries set at = at + interval '1 microsecond' where seq = 2", 1),
        ("update audit_entries set mac = 'x' where seq = 2", 2),
        ("delete from audit_entries where seq = 2", 1),
        ("select 1", 0),
    ],
)
async def test_an_edited_trail_is_found(
    store: Store, tenant: TenantId, database: TestDatabase, edit: str, found: int
) -> None:
    """Ours: a writer of the table without a key cannot change or remove an entry unnoticed."""
    for _ in range(4):
        async with store.transaction(tenant) as db:
            await append_change(tenant, db)
    superuser = await connect_owner(database.superuser_url)
    await superuser.execute(edit)
    await superuser.close()

    async with store.transaction(tenant) as db:
        assert await faults_of(tenant, db, keys=[b"newer", CHAIN_KEY]) == found
        assert await faults_of(tenant, db, keys=[b"another"]) >= 3
