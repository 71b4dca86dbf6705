"""The rule of upgrades, expand and contract: this release serves on a schema that a later one has expanded."""

from gateway.store.database.migrations import migrate
from tests.support.documents import pets
from tests.support.gateway import running_gateway
from tests.support.servers import TestDatabase, execute
from tests.support.upstream import recording_upstream

EXPANSION = """
create table of_the_next_release (tenant_id text not null references tenants (id) on delete cascade, what jsonb);
grant select, insert, update, delete on of_the_next_release to gateway_app;
alter table tenants add column of_the_next_release text;
alter table sources add column of_the_next_release integer not null default 7;
alter table keys add column of_the_next_release jsonb not null default '{}';
alter table audit_entries add column of_the_next_release text;
create index of_the_next_release_by_name on sources (tenant_id, of_the_next_release);
update alembic_version set version_num = '9999';
"""
"""A later migration while this release serves: it adds, and never removes."""


async def test_this_release_serves_on_the_schema_of_the_next(database: TestDatabase, redis_url: str) -> None:
    """Ours: replicas of the old release continue after the migration of the new one, and restart, too (SRV-6)."""
    params = {"name": "get_pet", "arguments": {"id": 7}}
    async with recording_upstream() as upstream:
        allowed = [upstream.authority]
        async with running_gateway(database.app_url, redis_url, egress_allow=allowed) as old:
            await old.create_tenant("before")
            await old.import_document("before", pets(upstream.url))
            key = await old.create_key("before")
            (await old.rpc("before", key, "tools/call", params)).raise_for_status()

            await execute(database.superuser_url, EXPANSION)

            (await old.rpc("before", key, "tools/call", params)).raise_for_status()
            await old.create_tenant("after")
            await old.import_document("after", pets(upstream.url))
            assert (await old.http.get("/readyz")).status_code == 200
        async with running_gateway(database.app_url, redis_url, egress_allow=allowed) as restarted:
            (await restarted.rpc("before", key, "tools/call", params)).raise_for_status()
            other = await restarted.create_key("after")
            (await restarted.rpc("after", other, "tools/call", params)).raise_for_status()
            assert (await restarted.http.get("/readyz")).status_code == 200

    assert await migrate(database.owner_url) == [], "an old release leaves a newer schema as it is"
