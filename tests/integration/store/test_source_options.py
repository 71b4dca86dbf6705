"""Selection and options of a source, as they are stored."""

from dataclasses import replace

from gateway.domain.identifiers import TenantId
from gateway.domain.sources import OperationRule
from gateway.store.database.connection import connect_owner
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from gateway.store.sources import sources
from tests.integration.store.samples import make_source, make_tenant
from tests.support.servers import TestDatabase

RULE = OperationRule(operation_ids=("list*", "ü'\""), methods=("GET",), paths=("/pets/*",), tags=("a b",))


async def kept_tenant(store: Store, slug: str) -> TenantId:
    """A stored tenant."""
    made = make_tenant(slug)
    async with store.transaction(made.id) as db:
        await TENANTS.insert(made.id, db, made)
    return made.id


async def test_options_are_returned_unchanged(store: Store) -> None:
    """Ours: rules keep their order and members, through an update too (OAS-3)."""
    tenant = await kept_tenant(store, "acme")
    source = replace(make_source(tenant), include=(RULE, OperationRule()), output_schemas=True)
    async with store.transaction(tenant) as db:
        await sources.insert(source, db)
        first = await sources.get(tenant, db, source.id)
        assert first is not None
        await sources.save(replace(first, include=(), exclude=(RULE,), output_schemas=False), db)
        [second] = await sources.page(tenant, db, after=None, limit=10)

    assert (first.include, first.exclude, first.output_schemas) == ((RULE, OperationRule()), (), True)
    assert (second.include, second.exclude, second.output_schemas) == ((), (RULE,), False)


async def test_a_source_stored_by_older_code_takes_everything(store: Store, database: TestDatabase) -> None:
    """Ours: a replica of the version before goes on storing sources while new ones roll out."""
    tenant = await kept_tenant(store, "older")
    source = make_source(tenant)
    owner = await connect_owner(database.superuser_url)
    await owner.execute(
        "insert into sources (tenant_id, id, name, title, expose, active_version, version, created_at, updated_at)"
        " values ($1, $2, 'old', 'Old', 'tools', 1, 1, now(), now())",
        tenant,
        source.id,
    )
    await owner.close()
    async with store.transaction(tenant) as db:
        found = await sources.get(tenant, db, "old")

    assert found is not None
    assert (found.include, found.exclude, found.output_schemas) == ((), (), False)
