"""The store against PostgreSQL: transactions, failures, and connections that are given up in the middle."""

import asyncio
import random
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import pytest
from sqlalchemy import literal_column, select, text
from sqlalchemy.dialects.postgresql import JSONB

from gateway.domain.identifiers import TenantId
from gateway.errors import BadInput, BrokenSetting, DatabaseUnavailable, NameTaken, NotFound
from gateway.store import tenants
from gateway.store.database.connection import PostgresConnection, connect_app, connect_owner
from gateway.store.database.migrations import head
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from gateway.store.sources import sources
from gateway.store.tables import SCHEMA
from tests.integration.store.samples import make_source, make_tenant
from tests.support.servers import TestDatabase, TestServers, execute

_SETTING = text("select current_setting('app.tenant', true)")


async def test_a_transaction_commits_on_a_clean_exit_only(store: Store) -> None:
    """Ours: a change is whole or not there."""
    tenant = make_tenant()

    async def fail() -> None:
        async with store.transaction(tenant.id) as db:
            await TENANTS.insert(tenant.id, db, tenant)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()

    async with store.transaction(tenant.id) as db:
        assert await TENANTS.get(tenant.id, db, tenant.id) is None
        await TENANTS.insert(tenant.id, db, tenant)
    async with store.transaction(tenant.id) as db:
        assert await TENANTS.get(tenant.id, db, tenant.id) == tenant


async def test_the_tenant_ends_with_its_transaction(database_url: str) -> None:
    """Ours: the one connection of this pool carries no tenant to its next user."""
    async with Store(database_url, pool_size=1) as store:
        async with store.transaction(TenantId("ten_a")) as db:
            assert (await db.execute(_SETTING)).scalar() == "ten_a"
        async with store.unscoped() as db:
            assert not (await db.execute(_SETTING)).scalar()


async def test_an_id_that_is_more_than_an_id_begins_no_transaction(store: Store) -> None:
    """Ours: the statement that begins a transaction has no parameters, so the id in it must be one."""
    for tenant in ("ten_a', true); select set_config('app.tenant', 'ten_b", "ten_\x00", "ten_\xe9", "", "ten a"):
        with pytest.raises(NotFound, match="no such tenant"):
            async with store.transaction(TenantId(tenant)):
                pass


async def test_a_transaction_takes_three_round_trips_for_one_statement(database_url: str) -> None:
    """Ours: check of the connection, BEGIN and tenant are one query, and a lookup has no other one (decision 62)."""
    async with Store(database_url, pool_size=1) as store:
        async with store.reading(TenantId("ten_a")) as db:
            assert (await db.execute(text("show transaction_isolation"))).scalar() == "repeatable read"
            driver = (await db.get_raw_connection()).driver_connection
            assert driver is not None
            sent: list[str] = []

            def note(record: Any) -> None:
                sent.append(record.query)

            driver.add_query_logger(note)
        async with store.transaction(TenantId("ten_b")) as db:
            await db.execute(_SETTING)
        async with store.lookup() as db:
            assert not (await db.execute(_SETTING)).scalar()
        async with store.lookup(within_s=5) as db:
            await db.execute(_SETTING)

    assert [query.split()[0] for query in sent] == [
        "commit",
        "begin",
        "commit",
        "select",
    ]  # prepared statements are not logged


async def test_a_lookup_does_not_take_a_connection_that_the_server_has_closed(database: TestDatabase) -> None:
    """Ours: PostgreSQL restarts within the second in which connections are not checked again (decision 62)."""
    ended = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = 'gateway_app'"
    async with Store(database.app_url, pool_size=1) as store:
        async with store.lookup() as db:
            driver: Any = (await db.get_raw_connection()).driver_connection
        await execute(database.superuser_url, ended)
        with anyio.fail_after(10):
            while not driver.is_closed():  # noqa: ASYNC110  # the driver reads the end on its own
                await anyio.sleep(0.001)
        async with store.lookup() as db:
            assert (await db.execute(text("select 1"))).scalar() == 1


async def test_a_new_connection_requests_its_role_alone(database_url: str) -> None:
    """Ours: neither types nor the version of the server are asked for, and values of JSON are read as such."""
    async with Store(database_url, pool_size=1) as store, store.unscoped() as db:
        others = "select statement from pg_prepared_statements where statement !~ 'pg_prepared_statements'"
        prepared = (await db.execute(text(others))).scalars().all()
        values = literal_column("""'{"a": [1, null]}'::jsonb""", JSONB), literal_column("null", JSONB)
        read = await db.execute(select(*values))

        assert read.one() == ({"a": [1, None]}, None)
    assert [query.split()[:3] for query in prepared] == [["select", "current_user", "="]]


async def test_check_passes_on_a_migrated_database(store: Store) -> None:
    """Ours: reachable, safe role, migrated."""
    await store.check()


def test_the_code_knows_the_newest_migration() -> None:
    """Ours: a migration without the code's consent is a mistake."""
    assert head() == SCHEMA


async def test_check_names_the_remedy_for_an_old_database(servers: TestServers) -> None:
    """Ours: without migrations the store is not ready and names the command that helps."""
    with servers.empty_database() as empty:
        async with Store(empty.app_url) as store:
            with pytest.raises(DatabaseUnavailable, match="gateway migrate"):
                await store.check()


async def test_check_accepts_a_newer_database(store: Store, database: TestDatabase) -> None:
    """Ours: while new replicas roll out, old ones go on."""
    version = "update alembic_version set version_num = '{}'"
    await execute(database.superuser_url, version.format("9999"))
    await store.check()
    await execute(database.superuser_url, version.format("0000"))
    with pytest.raises(DatabaseUnavailable, match="0000"):
        await store.check()
    await execute(database.superuser_url, version.format(SCHEMA))


async def test_a_superusers_login_still_runs_as_the_app(database: TestDatabase) -> None:
    """Ours: whatever login is configured, queries run under row-level security."""
    async with Store(database.superuser_url) as store, store.unscoped() as db:
        assert (await db.execute(text("select current_user"))).scalar() == "gateway_app"
        assert (await db.execute(text("select count(*) from tenants"))).scalar() == 0


@pytest.mark.parametrize("trait", ["bypassrls", "superuser"])
async def test_an_unsafe_role_never_serves(database: TestDatabase, trait: str) -> None:
    """Ours: a role that row-level security does not hold gets no connection."""
    await execute(database.superuser_url, f"alter role gateway_app {trait}")
    try:
        async with Store(database.app_url) as store:
            with pytest.raises(DatabaseUnavailable) as refused:
                await store.check()
            assert f"no{trait}" in refused.value.cause
    finally:
        await execute(database.superuser_url, f"alter role gateway_app no{trait}")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg", "POSTGRES"])
async def test_every_usual_spelling_of_a_url_works(database_url: str, scheme: str) -> None:
    """Ours: a URL made for another tool is understood."""
    url = database_url.replace("postgresql", scheme, 1)
    for spelling in (url, f"{url}&sslmode=prefer"):
        connection = await connect_app(spelling)
        assert await connection.fetchval("select current_user") == "gateway_app"
        await connection.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "mysql://u:hunter2@h/db",
        "postgresql://u:hunter2@h:port/db",
        "postgresql://u:hunter2@h/db?sslmode=no",
    ],
)
async def test_a_broken_url_is_a_broken_setting(url: str) -> None:
    """Ours: the message explains the form and does not repeat the password."""
    with pytest.raises(BrokenSetting, match="URL is invalid") as refused:
        await connect_app(url)
    assert "hunter2" not in repr(refused.value)


@pytest.mark.parametrize(
    "place", ["?host=/nowhere", "?host=127.0.0.1&port=1", "?host=127.0.0.1&port=1&sslmode=require"]
)
async def test_a_server_that_is_away_is_unavailable(place: str) -> None:
    """Ours: no driver's error leaves the store, and no password is in ours."""
    async with Store(f"postgresql://gateway_app:hunter2@/gateway{place}") as store:
        with pytest.raises(DatabaseUnavailable) as away:
            await store.check()
    assert "hunter2" not in repr(away.value) + repr(away.value.__cause__)


async def test_a_database_that_does_not_exist_is_unavailable(database_url: str) -> None:
    """Ours: a wrong name in the URL is described in words, to the operator only."""
    async with Store(database_url.replace(urlsplit(database_url).path, "/no_such_database")) as store:
        with pytest.raises(DatabaseUnavailable) as refused:
            await store.check()
    assert "no_such_database" in refused.value.cause
    assert "no_such_database" not in refused.value.message


async def test_a_connection_that_broke_is_replaced(database: TestDatabase) -> None:
    """Ours: after PostgreSQL restarts or cuts us off, the next transaction works."""
    async with Store(database.app_url, pool_size=1) as store:
        await store.check()
        superuser = await connect_owner(database.superuser_url)
        with pytest.raises(DatabaseUnavailable):
            await _query_while_cut_off(store, superuser)
        await store.check()

        for is_checked in (True, False):
            await superuser.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = 'gateway_app'"
            )
            with nullcontext() if is_checked else suppress(DatabaseUnavailable):
                async with store.lookup(within_s=5 if is_checked else None) as db:
                    await db.execute(_SETTING)
            await store.check()
        await superuser.close()


async def test_connections_that_break_at_each_beginning_are_unavailable(database_url: str) -> None:
    """Ours: the replacement of a lost connection is lost as well, and the caller gets a retry hint."""
    socket_path = Path(dict(parse_qsl(urlsplit(database_url).query))["host"]) / ".s.PGSQL.5432"

    async def forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while (data := await source.read(65_536)) and b"begin isolation" not in data:
                target.write(data)
        target.close()

    async def relay(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        server, forth = await asyncio.open_unix_connection(str(socket_path))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(forward(client, forth))
            tasks.create_task(forward(server, back))

    with TemporaryDirectory() as folder:
        async with await asyncio.start_unix_server(relay, f"{folder}/.s.PGSQL.5432"):
            broken = database_url.replace(str(socket_path.parent), folder)
            async with Store(broken, pool_size=1) as store:
                for _ in range(3):
                    with pytest.raises(DatabaseUnavailable, match="does not respond"):
                        await store.check()


async def _query_while_cut_off(store: Store, superuser: PostgresConnection) -> None:
    async with store.unscoped() as db:
        pid = (await db.execute(text("select pg_backend_pid()"))).scalar()
        await superuser.fetchval("select pg_terminate_backend($1, 5000)", pid)
        await db.execute(text("select 1"))


async def test_an_exhausted_pool_is_unavailable(database_url: str) -> None:
    """Ours: a caller that waits too long for a connection gets a retry hint."""
    async with Store(database_url, pool_size=1, timeout_s=0.05) as store, store.unscoped() as db:
        await db.execute(text("select 1"))
        with pytest.raises(DatabaseUnavailable, match="in use"):
            await store.check()


async def test_a_query_that_takes_too_long_is_unavailable(store: Store) -> None:
    """Ours: PostgreSQL ends a statement that holds a connection too long."""
    async with store.unscoped() as db:
        await db.execute(text("set local statement_timeout = '20ms'"))
        with pytest.raises(DatabaseUnavailable, match="did not finish in time"):
            await db.execute(text("select pg_sleep(10)"))
    await store.check()


async def test_a_closed_store_is_unavailable(database_url: str) -> None:
    """Ours: late callers get an answer."""
    store = Store(database_url)
    async with store:
        pass
    with pytest.raises(DatabaseUnavailable):
        async with store.unscoped():
            pass


async def test_a_taken_name_is_reported_inside_the_block(store: Store) -> None:
    """Ours: a unique violation is NameTaken inside the block already, and the transaction stores nothing."""
    tenant = make_tenant()
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
        await sources.insert(make_source(tenant.id), db)
        with pytest.raises(NameTaken):
            await sources.insert(make_source(tenant.id), db)

    # PostgreSQL turns the commit of a failed transaction into a rollback.
    async with store.transaction(tenant.id) as db:
        assert await TENANTS.get(tenant.id, db, tenant.id) is None


async def test_a_character_that_postgres_cannot_hold_is_bad_input(store: Store) -> None:
    """Ours: NUL in a name is refused as what it is."""
    tenant = make_tenant()
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
        with pytest.raises(BadInput):
            await TENANTS.save(tenant.id, db, replace(tenant, name="a\x00b"))


async def test_cancelled_work_leaves_pool_and_tenants_as_they_were(database_url: str) -> None:
    """Ours: giving up at any moment mixes up no tenants and loses no connection."""
    chance = random.Random(20260728)
    slugs = [make_tenant(f"tenant-{number}") for number in range(3)]
    wrong: list[object] = []
    finished = 0
    async with Store(database_url, pool_size=3) as store:
        for tenant in slugs:
            async with store.transaction(tenant.id) as db:
                await TENANTS.insert(tenant.id, db, tenant)

        async def work(number: int) -> None:
            nonlocal finished
            tenant = slugs[number % len(slugs)]
            with anyio.move_on_after(chance.choice([0.0, 0.001, 0.002, 0.004, 0.008, 0.016, 1.0, 1.0])):
                async with store.transaction(tenant.id) as db:
                    seen = (await db.execute(text("select array_agg(slug) from tenants"))).scalar()
                    await tenants.advance(tenant.id, db)
                    if seen != [tenant.slug]:
                        wrong.append(seen)
                finished += 1

        for _ in range(20):
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(work, number)

        assert wrong == []
        assert 0 < finished < 400
        await _hold_all(store, count=3)


async def _hold_all(store: Store, *, count: int) -> None:
    """The pool still gives out all its connections at once, and none carries a tenant."""
    held = 0
    everybody = anyio.Event()

    async def hold() -> None:
        nonlocal held
        async with store.unscoped() as db:
            assert not (await db.execute(_SETTING)).scalar()
            held += 1
            if held == count:
                everybody.set()
            await everybody.wait()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(hold)
