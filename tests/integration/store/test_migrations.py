"""Migrations: applied once, by any permitted login, from a checkout or from an installed wheel."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import anyio
import pytest
from sqlalchemy import MetaData
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.errors import BrokenSetting, DatabaseUnavailable
from gateway.store.database.connection import PostgresConnection, connect_owner
from gateway.store.database.migrations import head, migrate
from gateway.store.engine import Store
from gateway.store.secret_keys.tables import metadata as operators_metadata
from gateway.store.tables import SCHEMA, metadata
from tests.support.servers import TestDatabase, TestServers, execute

_ROOT = Path(__file__).parents[3]
_REVISIONS = sorted(path.name[:4] for path in (_ROOT / "migrations/versions").glob("[0-9]*.py"))
_MIGRATE_INSTALLED = """
import asyncio, sys
from pathlib import Path
import gateway.store.database.migrations as module
assert Path(module.__file__).is_relative_to(Path.cwd()), module.__file__
print(asyncio.run(module.migrate(sys.argv[1])), module.head())
"""


async def test_concurrent_migrations_apply_once(servers: TestServers) -> None:
    """Ours: replicas that start together migrate once; the others wait and find nothing to do."""
    applied: list[list[str]] = []
    with servers.empty_database() as empty:

        async def run() -> None:
            applied.append(list(await migrate(empty.owner_url)))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(run)

        assert sorted(applied) == [[], [], _REVISIONS]
        async with Store(empty.app_url) as store:
            await store.check()


async def test_a_database_of_newer_code_is_not_touched(own_database: TestDatabase) -> None:
    """Ours: an old replica that restarts during a roll-out finds nothing to do."""
    await execute(own_database.owner_url, "update alembic_version set version_num = '9999'")
    assert await migrate(own_database.owner_url) == []


async def test_the_tables_in_the_code_are_the_tables_in_the_database(database: TestDatabase) -> None:
    """Ours: names, types and nullability agree, in both directions."""

    async def connect(*_: object, **__: object) -> PostgresConnection:
        return await connect_owner(database.owner_url)

    engine = create_async_engine("postgresql+asyncpg://", connect_args={"async_creator_fn": connect})
    found = MetaData()
    async with engine.connect() as connection:
        await connection.run_sync(found.reflect)
    await engine.dispose()

    assert _described(found) == _described(metadata) | _described(operators_metadata)


async def test_the_owner_sees_no_tenant_either(database: TestDatabase) -> None:
    """Ours: membership in the definer's role is without its sight."""
    await execute(database.superuser_url, "insert into tenants values ('ten_a', 'acme', 'A', 0, now())")
    owner = await connect_owner(database.owner_url)
    assert await owner.fetchval("select count(*) from tenants") == 0
    await owner.close()


async def test_one_login_may_migrate_and_run(servers: TestServers) -> None:
    """Ours: a single ordinary login that may create roles is enough."""
    with servers.empty_database() as empty:
        await execute(empty.superuser_url, "create role single login createrole nosuperuser")
        name = empty.owner_url.partition("@/")[2].partition("?")[0]
        await execute(empty.superuser_url, f"alter database {name} owner to single")
        await execute(empty.superuser_url, "grant gateway_app, gateway_definer to single with admin true, set false")
        url = empty.owner_url.replace("gateway_owner@", "single@")
        try:
            assert await migrate(url) == _REVISIONS
            async with Store(url) as store:
                await store.check()
        finally:
            await execute(empty.superuser_url, f"alter database {name} owner to gateway_owner")
            await execute(empty.superuser_url, "reassign owned by single to gateway_owner; drop owned by single")
            await execute(empty.superuser_url, "drop role single")


async def test_a_login_that_may_not_create_roles_gets_the_sql(servers: TestServers) -> None:
    """Ours: an administrator gets commands to run, not a stack trace."""
    with servers.empty_database() as empty:
        await execute(empty.superuser_url, "create role stranger login")
        try:
            with pytest.raises(BrokenSetting, match=r"grant gateway_definer to LOGIN"):
                await migrate(empty.owner_url.replace("gateway_owner@", "stranger@"))
        finally:
            await execute(empty.superuser_url, "drop role stranger")


async def test_a_database_that_is_away_is_unavailable() -> None:
    """Ours: `gateway migrate` reports in one line that PostgreSQL does not answer."""
    with pytest.raises(DatabaseUnavailable):
        await migrate("postgresql://nobody@/gateway?host=/nowhere")


async def test_an_installed_wheel_brings_its_migrations_and_types(servers: TestServers, tmp_path: Path) -> None:
    """Ours: `gateway migrate` works without a checkout, and type checkers read the package (PEP 561, PRG-5)."""
    await anyio.run_process([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=_ROOT)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)
    assert not (installed / "migrations").exists()
    assert (installed / "gateway" / "py.typed").is_file()

    with servers.empty_database() as empty:
        done = await anyio.run_process(
            [sys.executable, "-c", _MIGRATE_INSTALLED, empty.owner_url],
            cwd=installed,
            stderr=subprocess.STDOUT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
    assert done.stdout.decode().strip() == f"{_REVISIONS} {head()}"


def _described(tables: MetaData) -> dict[str, dict[str, tuple[str, bool, bool]]]:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's, untyped
    return {
        name: {
            column.name: (
                column.type.compile(dialect).partition(" COLLATE")[0],
                bool(column.nullable),
                column.primary_key,
            )
            for column in table.columns
        }
        for name, table in tables.tables.items()
        if name != "alembic_version"
    }


def test_the_gateway_requires_its_newest_migration() -> None:
    """Ours: replicas and the doctor compare the database with the last migration that this version has (SRV-4)."""
    assert _REVISIONS[-1] == SCHEMA
