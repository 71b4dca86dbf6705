"""Databases that tests share one after the other: each test finds one as it was migrated."""

import anyio
import pytest

from gateway.store.database.connection import connect_owner
from tests.support.servers import TestDatabase, TestServers, dump, execute

_TENANT = "insert into tenants (id, slug, name, revision, created_at) values ('ten_x', 'x', 'x', 1, now())"


async def _name(servers: TestServers, statement: str = "select 1") -> str:
    """The name of the database in which the statement was run before it was given back."""
    with servers.database() as database:
        await execute(database.superuser_url, statement)
        return _name_of(database)


def _name_of(database: TestDatabase) -> str:
    return database.app_url.partition("?")[0].rpartition("/")[2]


async def _rows(database: TestDatabase) -> list[str]:
    """All values of all tables; a truncated table has another place among them."""
    return sorted((await dump(database.superuser_url)).split("\n"))


async def test_a_database_is_used_again_without_the_rows_of_the_test_before(servers: TestServers) -> None:
    """Ours: rows go whatever guards them, and connections that a test left open end."""
    name = await _name(servers, _TENANT)
    with servers.database() as database:
        assert _name_of(database) == name
        left = await connect_owner(database.superuser_url)
        assert await left.fetchval("select count(*) from tenants") == 0
    with pytest.raises(Exception, match="connection"):
        await left.fetchval("select 1")
    left.terminate()
    assert await _name(servers) == name


@pytest.mark.parametrize(
    "statement",
    [
        "alter table tenants add column x int",
        "alter table tenants disable row level security",
        "alter table tenants disable row level security; alter table tenants enable row level security",
        "revoke select on tenants from gateway_app",
        "create or replace function installation_id() returns text language sql as $$ select 'x' $$",
        "create table more (x int)",
        "create index more on tenants (name)",
        "update alembic_version set version_num = 'x'",
        "do $$ begin execute format('alter database %I set work_mem = 64', current_database()); end $$",
        "do $$ begin execute format('revoke connect on database %I from public', current_database()); end $$",
    ],
)
async def test_a_database_that_a_test_changed_is_not_used_again(servers: TestServers, statement: str) -> None:
    """Ours: neither with another schema, nor with other grants, settings or first rows."""
    assert await _name(servers, statement) != await _name(servers)


async def test_saved_rows_are_restored_after_every_change(servers: TestServers) -> None:
    """Ours: rows deleted, changed, added or truncated are as before; another schema is an error."""
    with servers.database() as database:
        await execute(database.superuser_url, _TENANT)
        saved = await _rows(database)
        servers.save_rows(database)
        for damage in (
            "update tenants set name = 'y', revision = 2",
            "truncate tenants cascade",
            f"delete from tenants; {_TENANT.replace('ten_x', 'ten_y')}",
        ):
            await execute(database.superuser_url, damage)
            assert await _rows(database) != saved
            servers.restore_rows(database)
            assert await _rows(database) == saved
        await execute(database.superuser_url, "revoke select on tenants from gateway_app")
        with pytest.raises(AssertionError):
            servers.restore_rows(database)


async def test_a_kept_connection_is_replaced_when_a_test_has_ended_it(servers: TestServers) -> None:
    """Ours: statements go on after all connections were ended, in the midst of another one, and across loans."""
    with servers.database() as database:
        others = f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{_name_of(database)}'"
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(execute, database.superuser_url, "select pg_sleep(0.01)")
        await execute(database.superuser_url, "begin; lock table tenants")
        await execute(servers.superuser_url, others)
        await execute(database.superuser_url, "begin; lock table tenants nowait; commit")
