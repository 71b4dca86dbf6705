"""Migration of a database to the newest revision, one caller at a time, with the roles that migrations expect."""

from collections.abc import Sequence
from pathlib import Path

import anyio
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio.engine import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from gateway.errors import BrokenSetting
from gateway.store.database.connection import APP_ROLE, PostgresConnection, connect_owner
from gateway.store.database.errors import translate_engine_errors
from gateway.store.database.limits import LOCK_RETRY_S

DEFINER_ROLE = "gateway_definer"

_LOCK = 0x6761746577617931
_LACKS_PRIVILEGE = "42501"
_ROLES = {APP_ROLE: "login", DEFINER_ROLE: "nologin"}
_ROLE_ATTRIBUTES = "nosuperuser nobypassrls noinherit"


async def migrate(url: str) -> Sequence[str]:
    """Apply the missing migrations and return them, oldest first; concurrent callers wait for each other.

    A database that newer code has migrated is left unchanged, so that old replicas may restart during a rollout.

    Raises:
        DatabaseUnavailable: PostgreSQL does not respond, or refuses the login.
        BrokenSetting: the login lacks a privilege (the message contains the SQL to run), the URL cannot be read, or the
            migrations are not installed.
    """

    async def connect(*_: object, **__: object) -> PostgresConnection:
        return await connect_owner(url)

    engine = create_async_engine(
        "postgresql+asyncpg://", connect_args={"async_creator_fn": connect}, poolclass=NullPool
    )
    translate_engine_errors(engine)
    applied: list[str] = []
    async with engine.connect() as connection:
        await _lock(connection)
        # The advisory lock ends with the connection, in every case.
        await _make_roles(connection)
        await _upgrade(connection, applied)
    await engine.dispose()
    return applied


async def _lock(connection: AsyncConnection) -> None:
    """Wait for other migrations. A statement that waited would hold a snapshot, for which concurrent indexes wait."""
    while not await _is_true(connection, "select pg_try_advisory_lock(:lock)", lock=_LOCK):
        await connection.commit()
        await anyio.sleep(LOCK_RETRY_S)
    await connection.commit()


def head() -> str:
    """The newest installed revision.

    Raises:
        BrokenSetting: the migrations are not installed.
    """
    found = ScriptDirectory.from_config(_config()).get_current_head()
    if found is None:
        raise BrokenSetting("The migrations of the gateway are not installed.")
    return found


async def _upgrade(connection: AsyncConnection, applied: list[str]) -> None:
    def run(sync: SyncConnection) -> None:
        current = MigrationContext.configure(sync).get_current_revision()
        if current is not None and current > head():
            return
        sync.commit()  # Alembic begins a transaction for each migration only on a connection that is in none
        config = _config()
        config.attributes.update(connection=sync, applied=applied)
        command.upgrade(config, "head")

    try:
        await connection.run_sync(run)
        await connection.commit()
    except DBAPIError as error:
        raise _migration_error(error, "create tables and functions in the schema public of this database") from error


async def _make_roles(connection: AsyncConnection) -> None:
    """Create the missing roles, and let this login transfer functions to the definer."""
    has_options = await _is_true(connection, "select current_setting('server_version_num')::int >= 160000")
    right, options = ("SET", " with inherit false, set true") if has_options else ("MEMBER", "")
    try:
        for role, login in _ROLES.items():
            if not await _is_true(connection, "select 1 from pg_roles where rolname = :role", role=role):
                await _run(connection, _create_role(role, login))
            if not await _is_true(connection, f"select pg_has_role(current_user, :role, '{right}')", role=role):
                await _grant_membership(connection, role, options)
        await connection.commit()
    except DBAPIError as error:
        raise _migration_error(error, "create roles") from error


async def _grant_membership(connection: AsyncConnection, role: str, options: str) -> None:
    """Grant membership without inheritance: an owner that inherited the definer's rights would see every tenant."""
    try:
        async with connection.begin_nested():
            await _run(connection, f"grant {role} to current_user{options}")
    except DBAPIError:
        # Only needed if one login both migrates and serves; the store refuses to connect without it.
        if role != APP_ROLE:
            raise


async def _is_true(connection: AsyncConnection, query: str, **parameters: str | int) -> bool:
    return bool((await connection.execute(text(query), parameters)).scalar())


async def _run(connection: AsyncConnection, statement: str) -> None:
    await connection.exec_driver_sql(statement)


def _create_role(role: str, login: str) -> str:
    """SQL that creates a role unless it exists.

    Roles belong to the whole server, so another database's migration may be creating the same one now.
    """
    create = f"create role {role} {login} {_ROLE_ATTRIBUTES}"
    return f"do $$ begin {create}; exception when duplicate_object or unique_violation then null; end $$"


def _migration_error(error: DBAPIError, wanted: str) -> Exception:
    if getattr(error.orig, "sqlstate", None) != _LACKS_PRIVILEGE:
        return error
    commands = [f"create role {role} {login} {_ROLE_ATTRIBUTES};" for role, login in _ROLES.items()]
    commands.append(f"grant {DEFINER_ROLE} to LOGIN with inherit false, set true;")
    return BrokenSetting(
        f"This login may not {wanted}. Let it own the database, and let a superuser run (LOGIN is the login that "
        f"migrates): {' '.join(commands)}"
    )


def _config() -> Config:
    installed = Path(__file__).parents[2] / "_migrations"
    folder = installed if (installed / "env.py").is_file() else Path(__file__).parents[3] / "migrations"
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
